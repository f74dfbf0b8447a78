"""Ranks of facts among all entities, raw and filtered, and their summaries.

A fact (h, r, t) is ranked twice: t among all tails of (h, r, ?) and h among
all heads of (?, r, t). The filtered rank leaves out candidates that make
another known fact. Scores are computed for one block of queries at a time, so
memory grows as `block` times the number of entities. Known facts are listed by
their places in the block, without a mask of its shape.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from repr_jax.errors import InputError
from repr_jax.kb import scores as kb_scores
from repr_jax.kb.score_model import ScoreModel
from repr_jax.kb.score_models import get_model
from repr_jax.ops import mesh as meshes
from repr_jax.ops import ranking

HITS = (1, 3, 10)
SIDES = ("head", "tail", "both")


class SideRanks(NamedTuple):
  """Ranks of one side's answers.

  Attributes:
    raw: ranks among all entities, fields [n].
    filtered: ranks among the entities that make no other known fact, [n].
  """

  raw: ranking.RankBounds
  filtered: ranking.RankBounds


class Ranks(NamedTuple):
  """Ranks of n facts, in the order they came in.

  Attributes:
    head: ranks of the true heads among all heads.
    tail: ranks of the true tails among all tails.
    unseen: facts that name an entity or relation the model lacks, bool [n].
    kept: facts that count in a summary, bool [n].
  """

  head: SideRanks
  tail: SideRanks
  unseen: np.ndarray
  kept: np.ndarray


def scorers(
  model: ScoreModel | str, params: kb_scores.Params, mesh: Mesh | None = None
) -> tuple[jax.tree_util.Partial, jax.tree_util.Partial]:
  """The two scoring functions that `rank` takes.

  >>> import jax
  >>> from repr_jax import kb
  >>> params = kb.init_params("T", jax.random.key(0), 5, 2, 4)
  >>> score_heads, score_tails = kb.scorers("T", params)
  >>> score_tails(jax.numpy.array([0, 2]), jax.numpy.array([0, 1])).shape
  (2, 5)

  Args:
    model: a score model or its name.
    params: entities [E, d] and relations [R, p].
    mesh: devices that share the entities, all axes together. Scores are then
      padded with -inf to a multiple of the number of devices: give `rank` the
      `num_entities`.

  Returns:
    `(score_heads, score_tails)`.

  Raises:
    InputError: if a table is not finite; ranks would not show it.
  """
  kb_scores.check_tables(kb_scores.Params(*meshes.to_host(params)))
  count = params.entities.shape[0]
  if mesh is not None:
    params = _spread(mesh, params)
  padded = params.entities.shape[0] > count
  heads, tails = slot_scores(get_model(model), count if padded else None)
  squares = _squares(params.entities)
  return (
    jax.tree_util.Partial(heads, params, squares),
    jax.tree_util.Partial(tails, params, squares),
  )


def rank(
  score_heads: Callable,
  score_tails: Callable,
  triples: np.ndarray,
  known: np.ndarray,
  *,
  block: int = 256,
  num_entities: int | None = None,
  num_relations: int | None = None,
  seen: np.ndarray | None = None,
  unseen: Literal["last", "drop"] = "last",
) -> Ranks:
  """Ranks each fact's head and tail among all entities (thesis 5.4).

  rank = 1 + the number of candidates that score higher; the realistic rank adds
  half of the ties. The filtered rank leaves out candidates that make another
  known fact.

  >>> import jax, numpy as np
  >>> from repr_jax import kb
  >>> params = kb.init_params("T", jax.random.key(0), 5, 2, 4)
  >>> facts = np.array([[0, 0, 1], [2, 1, 0]])
  >>> ranks = kb.rank(*kb.scorers("T", params), facts, known=facts)
  >>> sorted(kb.summary(ranks))
  ['count', 'hits@1', 'hits@10', 'hits@3', 'mean_rank', 'mrr']

  Give the scoring functions as `jax.tree_util.Partial(function, params)`, as
  `scorers` does: the parameters are then arguments of the compiled block,
  which is compiled once for a function and block size, whatever the
  parameters or the facts.

  Args:
    score_heads: scores of all heads, (relations [b], tails [b]) -> [b, E].
    score_tails: scores of all tails, (heads [b], relations [b]) -> [b, E].
    triples: facts to rank as head, relation, tail, int [n, 3]; negative for
      a name that the model lacks.
    known: facts to leave out in the filtered setting, int [m, 3]; duplicates,
      and the ranked facts themselves, are harmless.
    block: queries scored at a time; memory grows as block * E.
    num_entities: entities of the model, E; needed if scores are padded or if
      facts have ids of E or more, which are then unseen.
    num_relations: relations of the model; relations with ids at or above it are
      unseen.
    seen: entities the model was trained on, bool [E]; all where None.
    unseen: facts with an unseen name are ranked "last" or "drop"ped from the
      summaries. They are counted in `Ranks.unseen` either way.

  Returns:
    The ranks.
  """
  triples, known = _checked(triples, "triples"), _checked(known, "known")
  if block < 1:
    raise InputError(f"block must be at least 1, not {block}")
  if unseen not in ("last", "drop"):
    raise InputError(f"unseen must be 'last' or 'drop', not {unseen!r}")
  if not len(triples):
    raise InputError("there are no facts to rank")
  heads, relations, tails = triples.T
  widths = {
    name: _width(name, score, block)
    for name, score in (
      ("score_heads", score_heads),
      ("score_tails", score_tails),
    )
  }
  if len(set(widths.values())) > 1:
    raise InputError(
      f"score_heads scores {widths['score_heads']} entities and score_tails "
      f"{widths['score_tails']}; both must score all"
    )
  width = widths["score_tails"]
  entities = int(width if num_entities is None else num_entities)
  if entities > width:
    raise InputError(
      f"the scorers score {width} entities, fewer than num_entities={entities}"
    )
  if num_entities is None:
    for name, facts in (("triples", triples), ("known", known)):
      most = int(facts[:, ::2].max(initial=-1))
      if most >= width:
        raise InputError(
          f"{name} has entity {most}, but the scorers score {width} entities; "
          "if it is unseen, give num_entities"
        )
  present = np.ones(entities, bool) if seen is None else np.asarray(seen, bool)
  if present.shape != (entities,):
    raise InputError(f"seen has shape {present.shape}, not ({entities},)")

  def strange(ids):
    inside = (ids >= 0) & (ids < entities)
    return ~inside | ~present[np.where(inside, ids, 0)]

  missing = strange(heads) | strange(tails) | (relations < 0)
  if num_relations is not None:
    missing |= relations >= num_relations
  known = known[np.all((known >= 0) & (known < _limits(entities)), axis=1)]
  by_head = (tails, relations, heads), known[:, ::-1]
  by_tail = (heads, relations, tails), known
  kept = ~missing if unseen == "drop" else np.ones(len(triples), bool)
  return Ranks(
    head=_rank_side(score_heads, *by_head, missing, block, entities, flip=True),
    tail=_rank_side(
      score_tails, *by_tail, missing, block, entities, flip=False
    ),
    unseen=missing,
    kept=kept,
  )


def summary(
  ranks: Ranks,
  *,
  side: Literal["head", "tail", "both"] = "both",
  filtered: bool = True,
  ties: Literal["realistic", "optimistic", "pessimistic"] = "realistic",
  subset: np.ndarray | None = None,
) -> dict[str, float]:
  """Mean reciprocal rank, mean rank and HITS@1, 3, 10.

  >>> import numpy as np
  >>> from repr_jax import kb
  >>> facts = np.array([[0, 0, 1], [2, 0, 0]])
  >>> score = lambda first, second: np.eye(3)[np.asarray([1, 0])]
  >>> kb.summary(kb.rank(score, score, facts, facts, block=2))["mrr"]
  0.7...

  Args:
    ranks: what `rank` returned.
    side: whose ranks; "both" averages over heads and tails together.
    filtered: filtered or raw ranks.
    ties: which end of a tie, or their mean.
    subset: facts to count, bool [n]; all kept ones where None.

  Returns:
    "mrr", "mean_rank", "hits@1", "hits@3", "hits@10" and "count", the number
    of ranks averaged. All but the count are NaN where that is zero.
  """
  if side not in SIDES:
    raise InputError(f"side must be one of {', '.join(SIDES)}, not {side!r}")
  keep = ranks.kept if subset is None else ranks.kept & subset
  chosen = (
    (ranks.head, ranks.tail) if side == "both" else (getattr(ranks, side),)
  )
  values = np.concatenate(
    [
      getattr(one.filtered if filtered else one.raw, ties)[keep]
      for one in chosen
    ]
  ).astype(np.float64)
  count = len(values)
  mean = np.mean if count else lambda _: float("nan")
  result = {"mrr": float(mean(1 / values)), "mean_rank": float(mean(values))}
  result |= {f"hits@{k}": float(mean(values <= k)) for k in HITS}
  return result | {"count": count}


def per_relation(
  ranks: Ranks,
  relations: np.ndarray,
  *,
  side: Literal["head", "tail", "both"] = "both",
  filtered: bool = True,
) -> Mapping[int, dict[str, float]]:
  """The summary of each relation's facts.

  >>> import jax, numpy as np
  >>> from repr_jax import kb
  >>> params = kb.init_params("T", jax.random.key(0), 5, 2, 4)
  >>> facts = np.array([[0, 0, 1], [2, 1, 0]])
  >>> ranks = kb.rank(*kb.scorers("T", params), facts, known=facts)
  >>> [value["count"] for value in kb.per_relation(ranks, facts[:, 1]).values()]
  [2, 2]

  Args:
    ranks: what `rank` returned.
    relations: the ranked facts' relations, int [n].
    side: as in `summary`.
    filtered: as in `summary`.

  Returns:
    Relation to summary, for every relation with a fact that counts.
  """
  relations = np.asarray(relations)
  return {
    int(one): summary(
      ranks, side=side, filtered=filtered, subset=relations == one
    )
    for one in np.unique(relations[ranks.kept])
  }


@functools.cache
def slot_scores(
  model: ScoreModel, count: int | None = None
) -> tuple[Callable, Callable]:
  """Scores of all heads and of all tails, one pair of functions per model.

  Args:
    count: of padded tables, rows that are entities; None for all.

  Returns:
    (params, squares, relations [b], tails [b]) -> [b, E], and the same for
    heads [b] and relations [b]; `squares` [E] are the rows' squared lengths.
  """

  def fill(scores):
    if count is None:
      return scores
    return jnp.where(jnp.arange(scores.shape[1]) < count, scores, -jnp.inf)

  def tables(params, ids):  # a relation outside the table scores NaN
    return params.relations.at[ids].get(mode="fill", fill_value=jnp.nan)

  def heads(params, squares, relations, tails):
    own, entities = tables(params, relations), params.entities
    return fill(
      kb_scores.score_all_heads(model, own, entities[tails], entities, squares)
    )

  def tails(params, squares, heads, relations):
    own, entities = tables(params, relations), params.entities
    return fill(
      kb_scores.score_all_tails(model, own, entities[heads], entities, squares)
    )

  return heads, tails


def _spread(mesh: Mesh, params: kb_scores.Params) -> kb_scores.Params:
  """Entities over all devices, padded to a multiple, and relations on all."""
  entities, relations = meshes.to_host(params)
  more = meshes.padded_size(len(entities), mesh.size) - len(entities)
  padded = np.pad(entities, ((0, more), (0, 0)))
  return kb_scores.Params(
    meshes.place(padded, mesh, mesh.axis_names), meshes.place(relations, mesh)
  )


@jax.jit
def _squares(entities):
  return jnp.sum(entities * entities, axis=1)


def _checked(triples, name: str) -> np.ndarray:
  array = np.asarray(triples)
  if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
    raise InputError(
      f"{name} must be integers of shape [n, 3] (head, relation, tail), "
      f"not {array.dtype} {list(array.shape)}"
    )
  return array.astype(np.int64)


def _limits(entities: int) -> np.ndarray:
  return np.array([entities, np.iinfo(np.int32).max, entities])


def _rank_side(
  score: Callable,
  queries: tuple[np.ndarray, np.ndarray, np.ndarray],
  known: np.ndarray,
  missing: np.ndarray,
  block: int,
  entities: int,
  flip: bool,
) -> SideRanks:
  """Ranks the answers to (anchor, relation) queries on one side."""
  anchors, relations, targets = queries
  last = entities + (targets < 0) + (targets >= entities)
  places = np.flatnonzero(~missing)
  table = _Known(known, anchors[places], relations[places])
  score = _partial(score)
  ends = np.repeat(last[None, :], 4, axis=0)

  def keep(chosen, result):
    bounds, finite = jax.device_get(result)
    if not finite[: len(chosen)].all():
      bad = chosen[np.flatnonzero(~finite[: len(chosen)])[0]]
      raise InputError(f"the score of fact {bad} is not a number")
    ends[:, chosen] = bounds[:, : len(chosen)]

  # A block is prepared while the one before is computed; to compute several at
  # once would hold their memory, and is slower.
  waiting = None
  for rows, columns, offsets in table.blocks(block):
    chosen = places[rows]
    arguments = [
      np.pad(one[chosen], (0, block - len(chosen)), mode="edge").astype(
        np.int32
      )
      for one in (anchors, relations, targets)
    ]
    if waiting is not None:
      keep(*waiting)
    result = rank_block(score, *arguments, columns, offsets, flip=flip)
    waiting = chosen, result
  if waiting is not None:
    keep(*waiting)
  return SideRanks(
    ranking.RankBounds(ends[0], ends[1]), ranking.RankBounds(ends[2], ends[3])
  )


class _Known:
  """Known answers of each query, as slices of one sorted array."""

  def __init__(
    self, known: np.ndarray, anchors: np.ndarray, relations: np.ndarray
  ):
    # A query is encoded as one int64 number, and so is a known fact.
    span = int(max(known[:, 1].max(initial=0), relations.max(initial=0))) + 1
    keys = known[:, 0] * span + known[:, 1]
    wanted = anchors * span + relations
    names = np.unique(wanted)
    place = np.searchsorted(names, keys)
    place[place == len(names)] = 0
    asked = names[place] == keys if len(names) else np.zeros(len(keys), bool)
    width = int(known[:, 2].max(initial=0)) + 1
    facts = np.unique(place[asked] * width + known[asked, 2])
    owner = np.searchsorted(names, wanted)
    self._answers = (facts % width).astype(np.int32)
    ends = np.searchsorted(facts // width, np.arange(len(names) + 1))
    self._begin = ends[owner]
    self._count = ends[owner + 1] - self._begin

  def blocks(
    self, size: int
  ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Queries of each block, their known answers and where these begin.

    Queries are dealt out in order of their number of answers. All blocks then
    have about as many answers, and one padded length serves all.
    """
    number = -(-len(self._count) // size)
    order = np.argsort(-self._count, kind="stable")
    deals = [order[start::number] for start in range(number)]
    longest = max((self._count[rows].sum() for rows in deals), default=0)
    width = max(1024, 1 << int(np.ceil(np.log2(max(longest, 1)))))
    for rows in deals:
      counts = self._count[rows]
      ends = np.cumsum(counts)
      within = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
      columns = np.zeros(width, np.int32)
      columns[: len(within)] = self._answers[
        np.repeat(self._begin[rows], counts) + within
      ]
      offsets = np.full(size + 1, ends[-1], np.int32)
      offsets[0] = 0
      offsets[1 : len(rows) + 1] = ends
      yield rows, columns, offsets


def _width(name: str, score: Callable, block: int) -> int:
  """Entities that a scorer scores; its result must be [block, E]."""
  query = jax.ShapeDtypeStruct((block,), jnp.int32)
  # The scorer is an argument, so that its tables are traced.
  result = jax.eval_shape(
    lambda score, *asked: score(*asked), _partial(score), query, query
  )
  shape = getattr(result, "shape", None)
  if shape is None or len(shape) != 2 or shape[0] != block:
    raise InputError(
      f"{name} must return one array [{block}, entities] for {block} queries, "
      f"not {shape}"
    )
  return shape[1]


def _partial(score: Callable) -> jax.tree_util.Partial:
  if isinstance(score, jax.tree_util.Partial):
    return score
  return jax.tree_util.Partial(score)


@functools.partial(jax.jit, static_argnames="flip")
def rank_block(score, anchors, relations, targets, columns, offsets, *, flip):
  """Ranks of a block of b queries.

  Args:
    score: scores of all candidates, a `jax.tree_util.Partial`.
    anchors: given entity of each query, int32 [b].
    relations: int32 [b].
    targets: the true answer, int32 [b].
    columns: known answers of all queries, int32 [n].
    offsets: where the known answers of each query begin, int32 [b + 1].
    flip: whether heads are asked for (static).

  Returns:
    Bounds of the ranks, raw then filtered, int32 [4, b]; and whether the
    answers' scores are numbers, bool [b].
  """
  scores = score(relations, anchors) if flip else score(anchors, relations)
  # Candidates by query: the product that makes the scores is several times
  # faster this way round, if it is not merged with what follows.
  table = jax.lax.optimization_barrier(scores.T)
  target = table[targets, jnp.arange(targets.size)]
  every = ranking.count_candidates(table, target)
  listed = ranking.count_listed(table.T, targets, columns, offsets)
  rest = ranking.Counts(every.above - listed.above, every.level - listed.level)
  bounds = (*ranking.rank_bounds(every), *ranking.rank_bounds(rest))
  return jnp.stack(bounds), ~jnp.isnan(target)

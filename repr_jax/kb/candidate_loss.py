"""Losses of facts against many candidates at once.

Each fact is compared with every entity, or with a sample that the batch
shares, in place of its tail and in place of its head: one matrix product per
side, with batch_size * candidates scores in memory. The loss is softmax
cross-entropy (Lacroix et al. 2018) or the mean BPR loss over the candidates;
the penalty is N3 (sum of cubed moduli), L2, or DURA (Zhang et al. 2020): the
squared norms of each question's query vector and of its answer.

With sampled candidates, softmax also scores each fact's other entity: most
models score (r, (e, e)) highest among all (r, (e, ?)), and a sample hardly ever
contains e.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from repr_jax.errors import InputError
from repr_jax.kb import negatives, pair_training, scores
from repr_jax.kb.score_models import get_model
from repr_jax.ops import mesh as meshes
from repr_jax.ops.precision import chosen_products

# Up to this number of relations, queries of all relations at once
# (`batch_queries`) are cheaper than gathering each fact's relation.
_TOGETHER = 64

# Value of the argument `place` of `drop` for rows of relations.
RELATION = 4


@dataclasses.dataclass(frozen=True)
class CandidateConfig:
  """Static part of training against candidates.

  Attributes:
    num_entities: E.
    num_relations: R.
    model: a score model or its name.
    dim: d, numbers per entity.
    loss: "softmax" or "bpr".
    regularizer: "n3" (cubed moduli), "l2" (squares) or "dura" (squares of
      query vectors and answers, for models whose score is a product).
    batch_size: facts in a step of a pass.
    num_candidates: entities drawn for each batch of a pass; 0 for all.
    dropout: whether steps apply dropout to the questions, at the rates in the
      state; needs a model whose score is a product.
    predict_relations: whether the loss of questions adds the cross-entropy of
      each fact's relation, weighted by `CandidateState.relation_weight`; needs
      a model whose score is a product.
    dtype: of the tables.
    mesh: devices that share each batch or, if all entities are candidates, the
      entities; all axes together. `sharding.place_state` shards the tables by
      entity.
  """

  num_entities: int
  num_relations: int
  model: Any = "complex"
  dim: int = 100
  loss: str = "softmax"
  regularizer: str = "n3"
  batch_size: int = 1000
  num_candidates: int = 0
  dropout: bool = False
  predict_relations: bool = False
  dtype: Any = jnp.float32
  mesh: Mesh | None = None

  def __post_init__(self):
    object.__setattr__(self, "model", get_model(self.model))
    pair_training.check_sizes(self.dim, self.batch_size, self.mesh)
    if self.num_candidates < 0:
      raise InputError(
        f"num_candidates must be 0 or more, not {self.num_candidates}"
      )
    if self.loss not in ("softmax", "bpr"):
      raise InputError(f'loss must be "softmax" or "bpr", not {self.loss!r}')
    if self.regularizer not in ("n3", "l2", "dura"):
      raise InputError(
        f'regularizer must be "n3", "l2" or "dura", not {self.regularizer!r}'
      )
    by_distance = self.model.distance or self.model.norm_weight
    for name, asked in (
      ("dropout", self.dropout),
      ("dura", self.regularizer == "dura"),
      ("predict_relations", self.predict_relations),
    ):
      if asked and by_distance:
        raise InputError(
          f"model {self.model.name} scores by a distance; {name} takes models "
          "whose score is a product, such as complex, distmult, R, A and B"
        )


class CandidateBatch(NamedTuple):
  """Facts and the entities that they are compared with.

  Attributes:
    facts: head, relation, tail, int32 [B, 3].
    candidates: ids drawn at random, int32 [S]; None for all entities. With a
      sample, a step touches the rows of the batch and the sample alone.
  """

  facts: jax.Array
  candidates: jax.Array | None = None


class Noise(NamedTuple):
  """Dropout of one step.

  Attributes:
    key: random key.
    rate: share of numbers of entities and queries to drop, scalar in [0, 1).
    relation_rate: share of numbers of relations to drop, scalar in [0, 1).
  """

  key: jax.Array
  rate: jax.Array | float
  relation_rate: jax.Array | float = 0.0


class Rows(NamedTuple):
  """Heads, tails [B, d] of facts; relations [R, p]; candidates [S, d]."""

  heads: jax.Array
  tails: jax.Array
  relations: jax.Array
  candidates: jax.Array


class _Asked(NamedTuple):
  """Queries and scores of a batch of facts.

  Attributes:
    queries: of heads and of tails, each [B, d] and [B].
    truth: scores of the facts as answers of heads and of tails, each [B].
    own: scores of (r, (e, e)) for the fact's tail and for its head e, each
      [B].
    links: sum over the batch of the penalty of relations, or, with "dura", of
      queries, scalar.
  """

  queries: tuple[scores.Query, scores.Query]
  truth: tuple[jax.Array, jax.Array]
  own: tuple[jax.Array, jax.Array]
  links: jax.Array


def batch_loss(
  config: CandidateConfig,
  known: negatives.Known | None,
  params: scores.Params,
  batch: CandidateBatch,
  penalty: jax.Array | float,
  noise: Noise | None = None,
) -> jax.Array:
  """Mean loss of a batch over both sides, with the penalty.

  Args:
    config: static part.
    known: table of known facts, which BPR leaves out as candidates.
    params: entities [E, d] and relations [R, p].
    batch: facts [B, 3] and candidates [S].
    penalty: weight of the penalty, scalar.
    noise: dropout of the questions; None for none.

  Returns:
    Scalar.
  """
  head, _, tail = batch.facts.T
  ids, table = jnp.arange(params.entities.shape[0]), params.entities
  if batch.candidates is not None:
    ids, table = batch.candidates, params.entities[batch.candidates]
  rows = Rows(
    params.entities[head], params.entities[tail], params.relations, table
  )
  sampled = batch.candidates is not None
  count = min(config.num_entities, params.entities.shape[0])
  return rows_loss(
    config, known, rows, batch.facts, ids, count, sampled, penalty, noise
  )


def rows_loss(
  config: CandidateConfig,
  known: negatives.Known | None,
  rows: Rows,
  facts: jax.Array,
  ids: jax.Array,
  count: int,
  sampled: bool,
  weight: jax.Array | float,
  noise: Noise | None = None,
) -> jax.Array:
  """`batch_loss` of gathered rows.

  Args:
    config: static part.
    known: table of known facts, read by BPR.
    rows: of the facts and candidates.
    facts: head, relation, tail, int32 [B, 3].
    ids: ids of the candidates, [S].
    count: E; candidates from there on are padding.
    sampled: whether the candidates are a sample.
    noise: dropout of the questions; None for none.

  Returns:
    Scalar.
  """
  heads, tails, relations, table = rows
  heads, tails = _over_devices(config, (heads, tails), sampled)
  few = relations.shape[0] <= _TOGETHER
  ask = _ask_at_once if config.model.batch_queries and few else _ask
  asked = ask(config, relations, facts[:, 1], heads, tails, sampled, noise)
  total = jnp.zeros((), heads.dtype)
  for side, query, truth, own in zip(
    (0, 2), asked.queries, asked.truth, asked.own, strict=True
  ):
    logits = scores.score_candidates(config.model, query, table)
    if not sampled and table.shape[0] > count:
      logits = jnp.where(ids < count, logits, -jnp.inf)
    if config.loss == "bpr":
      total += _bpr(logits, truth, ids, facts, side, known, count)
    elif not sampled:
      total += jnp.mean(jax.nn.logsumexp(logits, axis=1) - truth)
    else:
      total += _softmax(
        logits, truth, own, ids, facts[:, side], facts[:, 2 - side], count
      )
  penalty = asked.links
  penalty += sum(row_penalty(config, x).sum() for x in (heads, tails))
  return total / 2 + weight * penalty / facts.shape[0]


def _over_devices(config, rows, sampled):
  """Shards facts over the devices, unless the entities are sharded."""
  if config.mesh is None:
    return rows
  axes = (config.mesh.axis_names,) if sampled else ()
  return meshes.constrain(rows, config.mesh, *axes)


def drop(noise: Noise | None, place: int, rows: jax.Array) -> jax.Array:
  """Dropout: sets values to 0 at the rate and rescales the rest.

  Args:
    noise: key and rate; None leaves the rows as they are.
    place: folded into the key, so that rows of one step have masks of their
      own; `RELATION` for rows of relations, which have a rate of their own.
    rows: of any shape.

  Returns:
    The rows.
  """
  if noise is None:
    return rows
  rate = noise.relation_rate if place == RELATION else noise.rate
  kept = 1 - jnp.asarray(rate, rows.dtype)
  key = jax.random.fold_in(noise.key, place)
  mask = jax.random.bernoulli(key, kept, rows.shape)
  return jnp.where(mask, rows / kept, 0)


def _dropped(noise, first, query):
  """A query with dropout on its vector."""
  return query._replace(vector=drop(noise, first, query.vector))


def _penalty(config, queries, links):
  """The penalty of relations, `links`, or, with "dura", of their queries."""
  if config.regularizer != "dura":
    return links
  return sum(jnp.sum(x.vector * x.vector) for x in queries)


def _product(query, entities):
  """Scores of one entity for each query, by a product, [B]."""
  return jnp.sum(query.vector * entities, axis=1) + query.constant


def _ask(config, relations, ids, heads, tails, sampled, noise=None):
  """Each fact with its own relation row."""
  links = _over_devices(config, relation_rows(relations, ids), sampled)
  model = config.model
  asking = drop(noise, RELATION, links)
  queries = (
    jax.vmap(model.head_query)(asking, drop(noise, 0, tails)),
    jax.vmap(model.tail_query)(asking, drop(noise, 1, heads)),
  )
  # A relation's two rows share its penalty.
  shared = 1 if model.base is None else 2
  rows = links.reshape(shared * links.shape[0], -1)
  penalty = _penalty(config, queries, row_penalty(config, rows).sum() / shared)
  if noise is not None:
    for_heads, for_tails = (
      _dropped(noise, 2 + i, query) for i, query in enumerate(queries)
    )
    return _Asked(
      (for_heads, for_tails),
      (_product(for_heads, heads), _product(for_tails, tails)),
      (_product(for_heads, tails), _product(for_tails, heads)),
      penalty,
    )
  if model.base is not None:
    first, second = jnp.split(links, 2, axis=1)
    score = jax.vmap(functools.partial(scores.score, model.base))
    return _Asked(
      queries,
      (score(second, tails, heads), score(first, heads, tails)),
      (score(second, tails, tails), score(first, heads, heads)),
      penalty,
    )
  score = jax.vmap(functools.partial(scores.score, model))
  truth = score(links, heads, tails)
  return _Asked(
    queries,
    (truth, truth),
    (score(links, tails, tails), score(links, heads, heads)),
    penalty,
  )


@chosen_products
def _ask_at_once(config, relations, ids, heads, tails, sampled, noise=None):
  """Queries of all relations, of which each fact picks its own."""
  del sampled
  chosen = (ids[:, None] == jnp.arange(relations.shape[0])).astype(heads.dtype)
  for_heads, for_tails = config.model.batch_queries(
    drop(noise, RELATION, relations),
    chosen,
    drop(noise, 1, heads),
    drop(noise, 0, tails),
  )
  penalty = _penalty(
    config,
    (for_heads, for_tails),
    chosen.sum(axis=0) @ row_penalty(config, relations).sum(axis=1),
  )
  for_heads = _dropped(noise, 2, for_heads)
  for_tails = _dropped(noise, 3, for_tails)

  def value(query, entities):
    squares = jnp.sum(entities * entities, axis=1)
    return _product(query, entities) - config.model.norm_weight * squares

  truth = value(for_tails, tails)
  return _Asked(
    (for_heads, for_tails),
    (truth if noise is None else value(for_heads, heads), truth),
    (value(for_heads, tails), value(for_tails, heads)),
    penalty,
  )


@chosen_products
def relation_rows(table: jax.Array, ids: jax.Array) -> jax.Array:
  """Rows by a one-hot product, whose gradient is a product too.

  Args:
    table: [R, p].
    ids: int32 [B].

  Returns:
    [B, p].
  """
  if table.shape[0] > 512 or table.shape[1] > 1024:
    return table[ids]
  one_hot = (ids[:, None] == jnp.arange(table.shape[0])).astype(table.dtype)
  return one_hot @ table


def _softmax(logits, truth, own, ids, answer, given, count):
  """Cross-entropy; each of a sample of S stands for E / S of E entities.

  The score `own` [B] of the entity in the other place, `given`, is counted
  once.
  """
  logits = logits + jnp.log(count / ids.size).astype(logits.dtype)
  counted = (ids == answer[:, None]) | (ids == given[:, None])
  rest = jax.nn.logsumexp(jnp.where(counted, -jnp.inf, logits), axis=1)
  rest = jnp.logaddexp(rest, jnp.where(given == answer, -jnp.inf, own))
  return jnp.mean(jnp.logaddexp(rest, truth) - truth)


def _bpr(logits, truth, ids, facts, side, known, count):
  """Mean of -log sigmoid(truth - candidate) over unknown candidates."""
  shape = (facts.shape[0], ids.size)
  others = [jnp.broadcast_to(x[:, None], shape) for x in facts.T]
  others[side] = jnp.broadcast_to(ids, shape)
  losses = jax.nn.softplus(logits - truth[:, None])
  valid = ~negatives.is_known(known, jnp.stack(others, axis=-1))
  valid &= ids < count
  valid = valid.astype(losses.dtype)
  return jnp.sum(losses * valid) / jnp.maximum(jnp.sum(valid), 1)


def row_penalty(config: CandidateConfig, rows: jax.Array) -> jax.Array:
  """Penalty of each number; with "n3", of each modulus.

  Args:
    rows: [.., p].

  Returns:
    [.., p] or [.., p / 2].
  """
  if config.regularizer != "n3":
    return rows * rows
  square = config.model.moduli(rows)
  # The floor keeps the root's slope finite at 0.
  return square * jnp.sqrt(jnp.maximum(square, 1e-20))

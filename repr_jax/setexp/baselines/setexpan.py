"""SetExpan: context features chosen anew for a set that grows (thesis 4.3.4).

Shen et al. 2017, three steps in each of at most `iterations` rounds:

1. Strength of a feature = sum of f_ec over the current set, with
   f_ec = log(1 + count) (log X - log sum_x count); the strongest `features`
   that at least two entities have are kept.
2. `samples` random subsets of the kept features, each a share `ratio` of
   them; in each, candidates (the most similar on all kept features) are
   ranked by their mean similarity to the set,
   sum_c min(f_xc, f_ec) / sum_c max(f_xc, f_ec).
3. The mean reciprocal rank over the subsets; a candidate whose value exceeds
   1 / `rank` joins the set. A round that adds nobody is the last.

Entities that joined earlier score higher, then those with a reciprocal rank,
then the rest by their last similarity, so that all have a finite score.

Weights multiply a member's part in the strengths and in the mean similarity
(over the sum of absolute weights); entities that join have weight 1. If no
feature has a positive strength, as in a query of negative weights alone, the
largest strengths by magnitude are kept.

Features can be any columns of counts; `skip_grams` makes the original ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.setexp.baselines.baseline import Baseline, of_features
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.query import Query, best

_WINDOWS = ((1, 1), (2, 1), (3, 1), (1, 3), (2, 2), (1, 2))
_DEPTH = 256  # lower ranks add less than 1/256 to a mean reciprocal rank


class Config(NamedTuple):
  """Settings, with the values of Shen et al.

  Attributes:
    features: context features kept in a round.
    samples: subsets T.
    ratio: share of the kept features in a subset, 0 to 1.
    rank: mean rank that an entity must beat to join.
    iterations: rounds at most.
    candidates: entities that are ranked in a round, the most similar on all
      kept features.
    seed: of the subsets.
  """

  features: int = 150
  samples: int = 60
  ratio: float = 0.6
  rank: float = 5.0
  iterations: int = 3
  candidates: int = 1000
  seed: int = 0


_DEFAULT = Config()


class Model(NamedTuple):
  """Weighted features by entity and by feature.

  Attributes:
    weights: f_ec, float32 [X, F].
    postings: the same by feature, float32 [F, X].
    idf: log X - log of a feature's total count, 0 or more, float32 [F].
    config: settings.
  """

  weights: sp.csr_array
  postings: sp.csr_array
  idf: np.ndarray
  config: Config


class _Expansion(NamedTuple):
  """Where the last round ended."""

  scores: np.ndarray  # [X]
  strengths: np.ndarray  # of the kept features [k]
  kept: np.ndarray  # int [k]
  members: np.ndarray  # weighted features of the set [m, k]
  trust: np.ndarray  # their weights [m]
  part_features: np.ndarray  # features of the watched entity's parts [p]
  parts: np.ndarray  # what they added to its score [p]
  constant: float  # what its round added


def skip_grams(
  tokens: Sequence[str],
  start: int,
  end: int,
  windows: Iterable[tuple[int, int]] = _WINDOWS,
) -> Iterator[str]:
  """Contexts of one mention: words before and after, the mention left out.

  Args:
    tokens: the sentence.
    start: first token of the mention.
    end: one past its last token.
    windows: words to the left and right of each context.

  Yields:
    A context such as "is a __ of the"; one that the sentence has no room for
    on either side is cut there, and each text is given once.
  """
  if not 0 <= start <= end <= len(tokens):
    raise InputError(
      f"a mention of tokens {start} to {end} lies outside a sentence of "
      f"{len(tokens)} tokens"
    )
  if start == end:
    return  # a sentence about the entity that does not name it
  seen = set()
  for left, right in windows:
    before = tokens[max(start - left, 0) : start]
    after = tokens[end : end + right]
    text = " ".join([*before, "__", *after])
    if text != "__" and text not in seen:
      seen.add(text)
      yield text


def skip_gram_counts(
  mentions: Iterable[tuple[int, Sequence[str], int, int]],
  size: int,
  *,
  min_entities: int = 2,
  windows: Sequence[tuple[int, int]] = _WINDOWS,
) -> tuple[sp.csr_array, list[str]]:
  """Counts skip-grams of all mentions.

  Args:
    mentions: entity's row, tokens of the sentence, start and end of the
      mention in it.
    size: the number of entities X.
    min_entities: entities that must share a context for it to be kept.
    windows: see `skip_grams`.

  Returns:
    Counts, float32 [X, C], and the contexts, sorted.
  """
  ids: dict[str, int] = {}
  rows, columns = [], []
  for entity, tokens, start, end in mentions:
    for text in skip_grams(tokens, start, end, windows):
      rows.append(entity)
      columns.append(ids.setdefault(text, len(ids)))
  table = sp.coo_array(
    (np.ones(len(rows), np.float32), (rows, columns)), (size, len(ids))
  ).tocsc()
  texts = np.array(list(ids), dtype=object)
  kept = np.flatnonzero(np.diff(table.indptr) >= min_entities)
  order = kept[np.argsort(texts[kept])] if kept.size else kept
  return sp.csr_array(table[:, order]), texts[order].tolist()


def fit(counts: sp.csr_array, config: Config = _DEFAULT) -> Model:
  """Weighs the features.

  Args:
    counts: context counts, [X, F], not negative.
    config: settings.

  Returns:
    The model.
  """
  counts = sp.csr_array(counts, dtype=np.float32)
  if not np.isfinite(counts.data).all() or (counts.data < 0).any():
    raise InputError("SetExpan needs counts that are finite, 0 or more")
  if not counts.data.any():
    raise InputError("no entity has any feature: there is nothing to expand")
  if not _usable(config):
    raise InputError(f"SetExpan cannot work with {config}")
  total = counts.sum(axis=0, dtype=np.float64)
  idf = np.log(counts.shape[0]) - np.log(np.maximum(total, 1e-30))
  shared = np.bincount(counts.indices, minlength=counts.shape[1]) >= 2
  # A negative weight has no minimum over maximum: such features tell nothing.
  idf = (np.maximum(idf, 0) * shared * (total > 0)).astype(np.float32)
  weights = _weigh(counts, idf)
  return Model(weights, sp.csr_array(weights.T), idf, config)


def score(model: Model, query: Query) -> np.ndarray:
  """Scores all entities by when they joined and by reciprocal rank.

  Args:
    model: from `fit`.
    query: members with weights.

  Returns:
    Scores, float32 [X]: above 1 for entities that joined the set, in (0, 1]
    for ranked ones, in [-2, 0] for others; members of the query lead.
  """
  return _expand(model, query).scores


def score_rows(model: Model, query: Query, rows: sp.csr_array) -> np.ndarray:
  """Similarity of rows outside the table to the set that the query grew to.

  Args:
    model: from `fit`.
    query: the query.
    rows: context counts, [s, F].

  Returns:
    Mean similarities on the last round's features, float32 [s].
  """
  last = _expand(model, query)
  rows = sp.csr_array(rows, dtype=np.float32)
  table = _weigh(rows, model.idf)[:, last.kept].toarray()
  everything = np.ones((last.kept.size, 1), np.float32)
  return _similarity(table, last.members, last.trust, everything)[:, 0]


def contributions(model: Model, query: Query, entity: int) -> Contributions:
  """What each feature added to the score of an entity.

  Args:
    model: from `fit`.
    query: the query.
    entity: its row.

  Returns:
    The reciprocal rank in each subset, divided among the subset's features in
    proportion to what they add to the similarity; for an entity of no rank
    its similarity less 1. The round in which it joined is the constant.
  """
  last = _expand(model, query, entity)
  return of_features(last.part_features, last.parts)._replace(
    constant=np.float64(last.constant)
  )


def rationale(model: Model, query: Query) -> np.ndarray:
  """Strengths of the features that the last round kept, 0 elsewhere, [F]."""
  last = _expand(model, query)
  weights = np.zeros(len(model.idf), np.float32)
  weights[last.kept] = last.strengths
  return weights


def _usable(config: Config) -> bool:
  whole = (
    config.features, config.samples, config.iterations, config.candidates
  )  # fmt: skip
  return min(whole) >= 1 and 0 < config.ratio <= 1 and config.rank >= 1


def _weigh(counts: sp.csr_array, idf: np.ndarray) -> sp.csr_array:
  """log(1 + count) times idf, without the features of no weight."""
  values = np.log1p(counts.data) * idf[counts.indices]
  weights = sp.csr_array((values, counts.indices, counts.indptr), counts.shape)
  weights = weights.copy()
  weights.eliminate_zeros()
  return weights


def _expand(
  model: Model, query: Query, watched: int | None = None
) -> _Expansion:
  config, size = model.config, model.weights.shape[0]
  rng = np.random.default_rng(config.seed)
  members = _weigh(sp.csr_array(query.rows), model.idf)
  trust = query.weights.astype(np.float32)
  joined, outside = np.zeros(size, np.float32), np.ones(size, bool)
  outside[query.ids[query.ids >= 0]] = False
  part_features, parts = np.zeros(0, np.int64), np.zeros(0)
  constant = config.iterations + 2.0  # of members
  for turn in range(config.iterations):
    kept, strengths = _select(members, trust, config.features)
    table = members[:, kept].toarray()
    looking = watched is not None and outside[watched]
    ranks, last, shares = _rank(
      model, kept, table, trust, outside, rng, watched if looking else None
    )
    if looking:
      part_features, parts = kept, shares
      constant = 0.0 if ranks[watched] > 0 else -1.0
    new = np.flatnonzero(ranks > 1 / config.rank)
    if turn + 1 == config.iterations or not new.size:
      break
    joined[new] = config.iterations - turn + ranks[new]
    if watched in new:
      constant = float(config.iterations - turn)
    outside[new] = False
    members = sp.csr_array(sp.vstack([members, model.weights[new]]))
    trust = np.append(trust, np.ones(new.size, np.float32))
  scores = np.where(ranks > 0, ranks, last - 1)
  scores = np.where(joined > 0, joined, scores)
  scores[query.ids[query.ids >= 0]] = config.iterations + 2
  return _Expansion(
    scores.astype(np.float32), strengths, kept, table, trust, part_features,
    parts, constant,
  )  # fmt: skip


def _select(
  members: sp.csr_array, trust: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
  """The strongest features of the current set, and their strengths."""
  strengths = np.asarray(members.T @ trust)
  order = strengths if (strengths > 0).any() else np.abs(strengths)
  kept = np.argsort(-order, kind="stable")[:count]
  kept = np.sort(kept[order[kept] > 0])
  return kept, strengths[kept]


def _rank(
  model: Model,
  kept: np.ndarray,
  members: np.ndarray,
  trust: np.ndarray,
  outside: np.ndarray,
  rng: np.random.Generator,
  watched: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Mean reciprocal rank over subsets, and similarity on all features, [X].

  Last comes what each kept feature added for the watched entity, [k].
  """
  config = model.config
  ranks = np.zeros(outside.size)
  last = _overall(model.postings[kept], members, trust)
  rows = best(np.where(outside & (last > 0), last, -np.inf), config.candidates)
  shares = np.zeros(kept.size)
  if watched is not None:
    row = model.weights[[watched]][:, kept].toarray()[0]
    every = np.ones((kept.size, 1), np.float32)
    shares = _similarity_parts(row, members, trust, every)[:, 0]
  if not rows.size:
    return ranks, last, shares
  table = model.weights[rows][:, kept].toarray()
  size = int(np.ceil(config.ratio * kept.size))
  draws = rng.random((config.samples, kept.size)).argsort(axis=1)
  masks = (draws < size).T.astype(np.float32)
  reciprocal: list[dict[int, float]] = []
  for column in _similarity(table, members, trust, masks).T:
    top = best(np.where(column > 0, column, -np.inf), _DEPTH)
    ranks[rows[top]] += 1 / np.arange(1, top.size + 1)
    places = 1 / np.arange(1.0, top.size + 1)
    reciprocal.append(dict(zip(rows[top].tolist(), places)))
  ranks = ranks / config.samples
  if watched is not None and ranks[watched] > 0:
    parts = _similarity_parts(row, members, trust, masks)
    own = [x.get(watched, 0.0) / config.samples for x in reciprocal]
    totals = parts.sum(axis=0)
    shares = parts @ np.divide(
      own, totals, out=np.zeros(len(own)), where=totals > 0
    )
  return ranks, last, shares


def _overall(
  postings: sp.csr_array, members: np.ndarray, trust: np.ndarray
) -> np.ndarray:
  """Similarity of all entities on all kept features, by postings, [X]."""
  size = postings.shape[1]
  feature = np.repeat(np.arange(postings.shape[0]), np.diff(postings.indptr))
  sums = np.bincount(postings.indices, postings.data, size)
  total = np.zeros(size)
  for member, weight in zip(members, trust):
    shared = np.minimum(postings.data, member[feature])
    # What the member lacks adds nothing: most entries, in a set that grew.
    some = np.flatnonzero(shared)
    low = np.bincount(postings.indices[some], shared[some], size)
    total += weight * low / np.maximum(sums + member.sum() - low, 1e-30)
  return total / np.abs(trust).sum()


def _similarity(
  table: np.ndarray, members: np.ndarray, trust: np.ndarray, masks: np.ndarray
) -> np.ndarray:
  """Weighted mean of min over max, on each subset of features.

  Args:
    table: candidates, [n, k].
    members: the set, [m, k].
    trust: signed weights of the set, [m].
    masks: one column of zeros and ones for each subset, [k, t].

  Returns:
    Similarities, [n, t].
  """
  total = np.zeros((len(table), masks.shape[1]), np.float32)
  sums = table @ masks
  for member, weight in zip(members, trust):
    low = np.minimum(table, member) @ masks
    high = sums + member @ masks - low
    total += weight * low / np.maximum(high, 1e-30)
  return total / np.abs(trust).sum()


def _similarity_parts(
  row: np.ndarray, members: np.ndarray, trust: np.ndarray, masks: np.ndarray
) -> np.ndarray:
  """What each feature adds to `_similarity` of one candidate [k], [k, t]."""
  low = np.minimum(row, members).astype(np.float64)
  high = row @ masks + members @ masks - low @ masks
  share = trust[:, None] / np.maximum(high, 1e-30) / np.abs(trust).sum()
  return low.T @ share * masks


SETEXPAN = Baseline(
  "setexpan",
  lambda counts, seed: fit(counts, Config(seed=seed)),
  score,
  score_rows,
  contributions,
  rationale,
)

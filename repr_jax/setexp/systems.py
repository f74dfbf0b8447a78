"""Systems that answer queries, each bound to its entities.

A `System` is a fitted autoencoder, a fitted baseline, or two systems as one.
All have the same functions for scores and explanations.
"""

import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.setexp import expansion, from_scipy, models
from repr_jax.setexp.baselines import (
  bayesian_sets,
  bm25,
  lsa,
  setexpan,
  word2vecf,
)
from repr_jax.setexp.baselines.baseline import Baseline
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.query import Query
from repr_jax.setexp.rationale import decoder_rationale

_BLOCK = 64  # Queries that are scored at once.
_ENTITIES = 32  # Entities whose scores are taken apart at once.

_BUILT_IN = {
  x.name: x
  for x in (
    bm25.BM25,
    lsa.LSA,
    bayesian_sets.BERNOULLI,
    bayesian_sets.POISSON,
    bayesian_sets.GAUSSIAN,
    word2vecf.WORD2VECF,
    setexpan.SETEXPAN,
  )
}
BASELINES = tuple(_BUILT_IN)
SYSTEMS = ("nvse", *BASELINES, "nvse+bm25")


@dataclasses.dataclass(frozen=True)
class RankingConfig:
  """How the autoencoder ranks entities; see `expansion.make_ranking`.

  Attributes:
    score: one of `expansion.SCORES`.
    power: exponent of the features' weights ("features" only).
    member_share: share of the members' own features ("features" only).
    pooling: how members make one concept ("features" and "cosine" only).
    normalize: divide a query's weights by the sum of their absolute values
      (scores between Gaussians only).
    reliability: see `models.fit_cosine` and `prepare` ("cosine" only).
    hubness: see `models.fit_cosine` and `prepare` ("cosine" only).
  """

  score: str = "features"
  power: float = 0.75
  member_share: float = 0.5
  pooling: str = "mean"
  normalize: bool = False
  reliability: float = 0.0
  hubness: float = 0.0

  def traced(self) -> expansion.Ranking:
    """The numbers that the scorer takes."""
    return expansion.make_ranking(
      self.score,
      power=self.power,
      member_share=self.member_share,
      pooling=self.pooling,
      normalize=self.normalize,
    )


class Shape(NamedTuple):
  """Least sizes to pad queries to, so that few programs are compiled.

  Attributes:
    members: members of a query.
    entries: counts of all members of a query.
    row_width: features of a row that is not in the table.
  """

  members: int = 4
  entries: int = 64
  row_width: int = 32


_SHAPE = Shape()


class System(NamedTuple):
  """A fitted system.

  Attributes:
    name: its name in tables of results.
    score_batch: scores [n, X] of n queries; empty without queries.
    score_rows: scores [s] of rows [s, F] for a query.
    contributions: parts of the score of each entity in a list of rows, for a
      query.
    rationale: weights of features [F] for a query, for any entity.
    features: names of its features; None for those of the table.
  """

  name: str
  score_batch: Callable[[Sequence[Query]], np.ndarray]
  score_rows: Callable[[Query, sp.csr_array], np.ndarray]
  contributions: Callable[[Query, Sequence[int]], list[Contributions]]
  rationale: Callable[[Query], np.ndarray]
  features: Sequence[str] | None = None


def find_baseline(name: str) -> Baseline:
  """A baseline by its name, or by "module:name" for one of your own."""
  if name in _BUILT_IN:
    return _BUILT_IN[name]
  module, colon, attribute = name.partition(":")
  if not colon:
    raise InputError(
      f"there is no system {name!r}; there are {', '.join(BASELINES)}, and "
      "MODULE:NAME for one of your own"
    )
  try:
    value = getattr(importlib.import_module(module), attribute)
  except (ImportError, AttributeError, ValueError) as error:
    raise InputError(f"the system {name!r} cannot be used: {error}") from error
  if not isinstance(value, Baseline):
    raise InputError(f"{name} is no Baseline, but {type(value).__name__}")
  return value


def baseline(
  name: str,
  counts: sp.csr_array,
  seed: int = 0,
  vectors: word2vecf.Model | None = None,
  shape: Shape = _SHAPE,
) -> System:
  """Fits a baseline.

  Args:
    name: one of `BASELINES`, or "module:name".
    counts: [X, F].
    vectors: a trained word2vecf model, to use in place of training one.
    shape: see `bind`.
  """
  chosen = find_baseline(name)
  if name == "word2vecf" and vectors is not None:
    return bind(chosen, vectors, shape)
  return bind(chosen, chosen.fit(counts, seed), shape)


def bind(baseline: Baseline, model: Any, shape: Shape = _SHAPE) -> System:
  """A baseline with its fitted model; its functions are compiled.

  Args:
    model: from `baseline.fit`.
    shape: least sizes of queries and rows.
  """
  model = jax.tree.map(jnp.asarray, model)
  programs = _programs(baseline)
  encode = None
  if baseline.encode is not None:
    encode = functools.partial(baseline.encode, model)
  pad = functools.partial(
    from_scipy.pad_members,
    encode=encode,
    members=shape.members,
    entries=shape.entries,
  )

  def score_batch(queries: Sequence[Query]) -> np.ndarray:
    if not queries:
      return np.zeros((0, 0), np.float32)
    if len(queries) == 1 or not baseline.batched:
      scores = [programs.score(model, one(query)) for query in queries]
      return np.stack([np.asarray(x) for x in scores])
    blocks = []
    for start in range(0, len(queries), _BLOCK):
      block = queries[start : start + _BLOCK]
      scores = programs.score_batch(model, pad(block, size=_BLOCK))
      blocks.append(np.asarray(scores)[: len(block)])
    return np.concatenate(blocks)

  def score_rows(query: Query, rows: sp.csr_array) -> np.ndarray:
    padded = from_scipy.padded_rows(rows, shortest=shape.row_width)
    scores = programs.score_rows(model, one(query), padded)
    return np.asarray(scores)[: rows.shape[0]]

  def contributions(
    query: Query, entities: Sequence[int]
  ) -> list[Contributions]:
    padded, parts = one(query), []
    for start in range(0, len(entities), _ENTITIES):
      block = np.zeros(_ENTITIES, np.int32)
      own = entities[start : start + _ENTITIES]
      block[: len(own)] = own
      fields = map(np.asarray, programs.contributions(model, padded, block))
      parts += [Contributions(*x) for x in zip(*fields)][: len(own)]
    return parts

  def one(query: Query) -> expansion.PaddedQuery:
    return jax.tree.map(lambda x: x[0], pad([query]))

  return System(
    baseline.name,
    score_batch,
    score_rows,
    contributions,
    lambda query: np.asarray(programs.rationale(model, one(query))),
  )


def prepare(model: expansion.Model, ranking: RankingConfig) -> expansion.Model:
  """Fits a model's cosine score to the ranking's reliability and hubness."""
  if not (ranking.reliability or ranking.hubness):
    return model
  if ranking.score != "cosine":
    raise InputError(
      f"reliability and hubness belong to the score 'cosine', not to "
      f"{ranking.score!r}: leave them 0"
    )
  return _fit_cosine(model, ranking.reliability, ranking.hubness)


def nvse(
  model: expansion.Model,
  ranking: RankingConfig,
  *,
  relative: bool = False,
  shape: Shape = _SHAPE,
) -> System:
  """The autoencoder as a system.

  Args:
    model: the model with its entities, from `prepare`.
    relative: of the rationale; see `rationale.decoder_rationale`.
    shape: see `bind`.
  """
  return bind(
    _NVSE, _Ranked(model, ranking.traced(), np.bool_(relative)), shape
  )


def with_features(
  system: System, counts: sp.csr_array, names: Sequence[str]
) -> System:
  """A system whose features of entities are not those of the table.

  New members lack these features and are left out. Rows of the table's
  features score 0. If a query has only new members, all entities score 0 and
  there is no explanation.

  Args:
    system: fitted on `counts`.
    counts: the other features, [X, C].
    names: their names, C of them.

  Returns:
    The system, which takes queries of the table.
  """

  def is_known(query: Query) -> bool:
    return bool(query.weights[query.ids >= 0].any())

  def score_batch(queries: Sequence[Query]) -> np.ndarray:
    places = [i for i, query in enumerate(queries) if is_known(query)]
    scores = np.zeros((len(queries), counts.shape[0]), np.float32)
    if places:
      scores[places] = system.score_batch([of(queries[i]) for i in places])
    return scores

  def of(query: Query) -> Query:
    known = query.ids >= 0
    if not is_known(query):
      raise InputError(
        f"{system.name} knows the entities of the corpus only: name one"
      )
    ids = query.ids[known]
    rows = sp.csr_array(counts[ids], dtype=np.float32)
    return Query(rows, query.weights[known], ids)

  return System(
    system.name,
    score_batch,
    lambda query, rows: np.zeros(rows.shape[0], np.float32),
    lambda query, entities: system.contributions(of(query), entities),
    lambda query: system.rationale(of(query)),
    names,
  )


def ablations(model: expansion.Model, pooling: str) -> list[System]:
  """Each part of the autoencoder's ranking without the others.

  Args:
    model: with its entities.
    pooling: how members make one concept.

  Returns:
    "nvse-decoder" ranks by the decoder alone, "nvse-members" by the members'
    own features alone, "nvse-xi" by the distance of natural parameters, as the
    thesis does (4.6).
  """
  rankings = {
    "nvse-decoder": RankingConfig("features", 0.75, 0.0, pooling),
    "nvse-members": RankingConfig("features", 1.0, 1.0, pooling),
    "nvse-xi": RankingConfig("xi"),
  }
  return [
    nvse(model, ranking)._replace(name=name)
    for name, ranking in rankings.items()
  ]


def fuse(first: System, second: System, weight: float) -> System:
  """Two systems as one: the weighted sum of their standardized scores.

  Args:
    first: a system, which also gives the rationale.
    second: another over the same entities.
    weight: of the first, 0 to 1.
  """
  shares = ((first, weight), (second, 1 - weight))

  def score_batch(queries: Sequence[Query]) -> np.ndarray:
    total = 0
    for system, share in shares:
      scores = np.asarray(system.score_batch(queries))
      mean, spread = _moments(scores)
      total = total + share * (scores - mean[:, None]) / spread[:, None]
    return np.asarray(total, np.float32)

  def score_rows(query: Query, rows: sp.csr_array) -> np.ndarray:
    total = np.zeros(rows.shape[0])
    for system, share in shares:
      mean, spread = _moments(np.asarray(system.score_batch([query])))
      total += share * (system.score_rows(query, rows) - mean[0]) / spread[0]
    return total.astype(np.float32)

  def contributions(
    query: Query, entities: Sequence[int]
  ) -> list[Contributions]:
    scaled = []
    for system, share in shares:
      mean, spread = _moments(np.asarray(system.score_batch([query])))
      scale = share / spread[0]
      scaled.append(
        [
          Contributions(
            np.asarray(x.indices),
            scale * np.asarray(x.features, np.float64),
            scale * np.asarray(x.dimensions, np.float64),
            scale * (float(x.constant) - mean[:1]),
          )
          for x in system.contributions(query, entities)
        ]
      )
    joined = [map(np.concatenate, zip(x, y)) for x, y in zip(*scaled)]
    return [
      Contributions(indices, features, dimensions, constants.sum())
      for indices, features, dimensions, constants in joined
    ]

  name = f"{first.name}+{second.name}"
  return System(name, score_batch, score_rows, contributions, first.rationale)


def _moments(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Mean and deviation of each query's scores; 1 where all are equal."""
  wide = scores.astype(np.float64)
  spread = wide.std(axis=1)
  return wide.mean(axis=1), np.where(spread > 0, spread, 1.0)


class _Ranked(NamedTuple):
  """The autoencoder and how it ranks."""

  model: expansion.Model
  ranking: expansion.Ranking
  relative: Any


def _never(counts: sp.csr_array, seed: int) -> Any:
  raise InputError("the autoencoder is trained by `setexp.fit`")


_NVSE = Baseline(
  "nvse",
  _never,
  lambda x, query: expansion.score_entities(x.model, query, x.ranking),
  lambda x, query, rows: expansion.score_rows(x.model, query, x.ranking, rows),
  lambda x, query, entity: expansion.contributions(
    x.model, query, entity, x.ranking
  ),
  lambda x, query: decoder_rationale(x.model, query, x.relative),
  lambda x, rows: from_scipy.encode_rows(
    x.model.config, x.model.params, x.model.inputs, rows
  ),
)


_fit_cosine = jax.jit(models.fit_cosine)


class _Programs(NamedTuple):
  """Compiled functions of a baseline."""

  score: Callable[..., Any]
  score_batch: Callable[..., Any]
  score_rows: Callable[..., Any]
  contributions: Callable[..., Any]
  rationale: Callable[..., Any]


@functools.cache  # models of one kind share their programs
def _programs(baseline: Baseline) -> _Programs:
  each = jax.vmap(baseline.contributions, in_axes=(None, None, 0))
  return _Programs(
    jax.jit(baseline.score),
    jax.jit(jax.vmap(baseline.score, in_axes=(None, 0))),
    jax.jit(baseline.score_rows),
    jax.jit(each),
    jax.jit(baseline.rationale),
  )

"""Systems that answer queries, each bound to its entities.

A `System` is a fitted autoencoder, a fitted baseline, or two systems as one.
All score, explain and are asked in the same way.
"""

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.setexp import expansion, from_scipy
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
    pooling: how members make one concept ("features" only).
    normalize: divide a query's weights by the sum of their sizes (scores
      between Gaussians only).
  """

  score: str = "features"
  power: float = 0.75
  member_share: float = 0.5
  pooling: str = "mean"
  normalize: bool = False

  def traced(self) -> expansion.Ranking:
    """The numbers that the scorer takes."""
    return expansion.make_ranking(
      self.score,
      power=self.power,
      member_share=self.member_share,
      pooling=self.pooling,
      normalize=self.normalize,
    )


class System(NamedTuple):
  """A fitted system.

  Attributes:
    name: how tables call it.
    score_batch: scores [n, X] of n queries.
    score_rows: scores [s] of rows [s, F] for a query.
    contributions: parts that sum to the score, of each entity in a list of
      rows, for a query.
    rationale: weights of features [F] for a query, whatever the entity.
  """

  name: str
  score_batch: Callable[[Sequence[Query]], np.ndarray]
  score_rows: Callable[[Query, sp.csr_array], np.ndarray]
  contributions: Callable[[Query, Sequence[int]], list[Contributions]]
  rationale: Callable[[Query], np.ndarray]


def find_baseline(name: str) -> Baseline:
  """A baseline by its name, or by "module:name" for one from elsewhere."""
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
) -> System:
  """Fits a baseline.

  Args:
    name: one of `BASELINES`, or "module:name".
    counts: [X, F].
    seed: of those that draw.
    vectors: trained vectors of word2vecf, which take longest to fit.

  Returns:
    The system.
  """
  chosen = find_baseline(name)
  if name == "word2vecf" and vectors is not None:
    return bind(chosen, vectors)
  return bind(chosen, chosen.fit(counts, seed))


def bind(baseline: Baseline, model: Any) -> System:
  """A baseline with its fitted model."""

  def score_batch(queries: Sequence[Query]) -> np.ndarray:
    return np.stack([baseline.score(model, query) for query in queries])

  def contributions(
    query: Query, entities: Sequence[int]
  ) -> list[Contributions]:
    return [baseline.contributions(model, query, x) for x in entities]

  return System(
    baseline.name,
    score_batch,
    lambda query, rows: baseline.score_rows(model, query, rows),
    contributions,
    lambda query: baseline.rationale(model, query),
  )


def nvse(
  model: expansion.Model,
  ranking: RankingConfig,
  *,
  relative: bool = False,
  members: int = 4,
  entries: int = 64,
  row_width: int = 32,
) -> System:
  """The autoencoder as a system.

  Args:
    model: the model with its entities.
    ranking: how it ranks.
    relative: of the rationale; see `rationale.decoder_rationale`.
    members: least number of members that a query is padded to.
    entries: least number of counts that a query is padded to.
    row_width: least number of features that a new row is padded to.

  Returns:
    The system.
  """
  how = ranking.traced()

  def score_batch(queries: Sequence[Query]) -> np.ndarray:
    blocks = [np.zeros((0, model.side.constants.shape[1]), np.float32)]
    for start in range(0, len(queries), _BLOCK):
      block = queries[start : start + _BLOCK]
      size = 1 if len(queries) == 1 else _BLOCK
      padded = from_scipy.pad_queries(
        model, block, size=size, members=members, entries=entries
      )
      scores = _score_batch(model, padded, how)
      blocks.append(np.asarray(scores)[: len(block)])
    return np.concatenate(blocks)

  def score_rows(query: Query, rows: sp.csr_array) -> np.ndarray:
    padded = from_scipy.padded_rows(rows, shortest=row_width)
    scores = _score_rows(model, one(query), how, padded)
    return np.asarray(scores)[: rows.shape[0]]

  def contributions(
    query: Query, entities: Sequence[int]
  ) -> list[Contributions]:
    padded, parts = one(query), []
    for start in range(0, len(entities), _ENTITIES):
      block = np.zeros(_ENTITIES, np.int32)
      own = entities[start : start + _ENTITIES]
      block[: len(own)] = own
      fields = map(np.asarray, _contributions(model, padded, block, how))
      parts += [Contributions(*x) for x in zip(*fields)][: len(own)]
    return parts

  def rationale(query: Query) -> np.ndarray:
    return np.asarray(_rationale(model, one(query), relative))

  def one(query: Query) -> expansion.PaddedQuery:
    padded = from_scipy.pad_queries(
      model, [query], members=members, entries=entries
    )
    return jax.tree.map(lambda x: x[0], padded)

  return System("nvse", score_batch, score_rows, contributions, rationale)


def ablations(model: expansion.Model, pooling: str) -> list[System]:
  """Each part of the autoencoder's ranking without the others.

  Args:
    model: with its entities.
    pooling: how members make one concept.

  Returns:
    "nvse-decoder" ranks by the decoder alone, "nvse-members" by the members'
    own features without it, "nvse-xi" by the distance of natural parameters,
    as the thesis does (4.6).
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

  Returns:
    The ensemble.
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


_score_batch = jax.jit(
  jax.vmap(expansion.score_entities, in_axes=(None, 0, None))
)
_score_rows = jax.jit(expansion.score_rows)
_contributions = jax.jit(
  jax.vmap(expansion.contributions, in_axes=(None, None, 0, None))
)
_rationale = jax.jit(decoder_rationale)

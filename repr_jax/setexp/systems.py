"""All systems behind one interface: the autoencoder, baselines, ensembles."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax.setexp import expansion, feature_scores, gaussian_scores
from repr_jax.setexp.baselines import bayesian_sets, bm25, setexpan, word2vecf
from repr_jax.setexp.query import Query

BASELINES = (
  "bm25", "bernoulli", "poisson", "gaussian", "word2vecf", "setexpan",
)  # fmt: skip
SYSTEMS = ("nvse", *BASELINES, "nvse+bm25")
RANKINGS = ("decoded", *gaussian_scores.RANKINGS)


@dataclasses.dataclass(frozen=True)
class Ranking:
  """How the autoencoder ranks entities.

  Attributes:
    score: one of `RANKINGS`.
    power: exponent of the features' weights ("decoded" only).
    own: share of the members' own features ("decoded" only).
    pooling: how members make one concept ("decoded" only).
    normalize: divide a query's weights by the sum of their sizes (scores
      between Gaussians only).
  """

  score: str = "decoded"
  power: float = 0.75
  own: float = 0.5
  pooling: str = "mean"
  normalize: bool = False


class System(NamedTuple):
  """A fitted system.

  Attributes:
    name: what tables call it.
    score_batch: scores [n, X] of n queries.
    score_rows: scores [s] of rows [s, F] for a query.
    rationale: weights of features [F] for a query.
  """

  name: str
  score_batch: Callable[[Sequence[Query]], np.ndarray]
  score_rows: Callable[[Query, sp.csr_array], np.ndarray]
  rationale: Callable[[Query], np.ndarray]


def baseline(
  name: str,
  counts: sp.csr_array,
  seed: int = 0,
  vectors: word2vecf.Model | None = None,
) -> System:
  """Fits a baseline.

  Args:
    name: one of `BASELINES`.
    counts: [X, F].
    seed: of those that draw.
    vectors: trained vectors of word2vecf, which take longest to fit.

  Returns:
    The system.
  """
  if name == "bm25":
    return _system(name, bm25, bm25.fit(counts))
  if name == "word2vecf":
    model = vectors or word2vecf.fit(counts, seed=seed)
    return _system(name, word2vecf, model)
  if name == "setexpan":
    options = setexpan.Options(seed=seed)
    return _system(name, setexpan, setexpan.fit(counts, options))
  return _system(name, bayesian_sets, bayesian_sets.fit(counts, name))


def nvse(
  model: expansion.Model,
  counts: sp.csr_array,
  ranking: Ranking,
  relative: bool = False,
) -> System:
  """The autoencoder as a system.

  Args:
    model: with its entities.
    counts: their features, [X, F].
    ranking: how it ranks.
    relative: see `expansion.rationale`.
  """
  if ranking.score == "decoded":
    fitted = feature_scores.fit(
      model, counts, ranking.power, ranking.pooling, ranking.own
    )
    system = _system("nvse", feature_scores, fitted)
  else:
    ranked = expansion.with_ranking(model, ranking.score, ranking.normalize)
    system = _system("nvse", expansion, ranked)
  return system._replace(
    rationale=lambda query: expansion.rationale(model, query, relative)
  )


def ablations(
  model: expansion.Model, counts: sp.csr_array, pooling: str
) -> list[System]:
  """Each part of the autoencoder's ranking without the others.

  Args:
    model: with its entities.
    counts: their features, [X, F].
    pooling: how members make one concept.

  Returns:
    "nvse-decoder" ranks by the decoder alone, "nvse-members" by the members'
    own features without it, "nvse-xi" by the distance of natural parameters,
    as the thesis does (4.6).
  """
  rankings = {
    "nvse-decoder": Ranking("decoded", 0.75, 0.0, pooling),
    "nvse-members": Ranking("decoded", 1.0, 1.0, pooling),
    "nvse-xi": Ranking("xi"),
  }
  return [
    nvse(model, counts, ranking)._replace(name=name)
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

  def score_batch(queries: Sequence[Query]) -> np.ndarray:
    total = 0
    for system, share in ((first, weight), (second, 1 - weight)):
      scores = np.asarray(system.score_batch(queries))
      mean, spread = _moments(scores)
      total = total + share * (scores - mean[:, None]) / spread[:, None]
    return np.asarray(total, np.float32)

  def score_rows(query: Query, rows: sp.csr_array) -> np.ndarray:
    total = np.zeros(rows.shape[0])
    for system, share in ((first, weight), (second, 1 - weight)):
      mean, spread = _moments(np.asarray(system.score_batch([query])))
      total += share * (system.score_rows(query, rows) - mean[0]) / spread[0]
    return total.astype(np.float32)

  name = f"{first.name}+{second.name}"
  return System(name, score_batch, score_rows, first.rationale)


def _moments(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Mean and deviation of each query's scores; 1 where all are equal."""
  wide = scores.astype(np.float64)
  spread = wide.std(axis=1)
  return wide.mean(axis=1), np.where(spread > 0, spread, 1.0)


def _system(name: str, module, model) -> System:
  return System(
    name,
    functools.partial(module.score_batch, model),
    functools.partial(module.score_rows, model),
    functools.partial(module.rationale, model),
  )

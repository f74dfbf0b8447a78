"""Explanations of answers, for any system of this package (thesis 4.4).

A system gives weights of features (`rationale`) and scores rows of features
(`score_rows`); this module turns them into named features, ranked sentences,
and a table of the top features of each latent dimension.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax import errors


class Contributions(NamedTuple):
  """Parts that add up to the score of an entity.

  Attributes:
    indices: features of the entity, int [m]; padding has a part of 0.
    features: part of each of these features, [m].
    dimensions: part of each latent dimension, [d]; [0] for a score that is a
      sum over features.
    constant: the rest of the score, [].
  """

  indices: Any
  features: Any
  dimensions: Any
  constant: Any

  @property
  def total(self) -> Any:
    """The score, []."""
    return self.features.sum() + self.dimensions.sum() + self.constant

  def by_feature(self, size: int) -> np.ndarray:
    """Parts of all F = `size` features, float64 [F], on the host."""
    indices, parts = np.asarray(self.indices), np.asarray(self.features)
    inside = (indices >= 0) & (indices < size)
    return np.bincount(indices[inside], parts[inside], size)


class Named(NamedTuple):
  """A feature by name with its weight."""

  name: str
  weight: float


class Justification(NamedTuple):
  """A sentence with its score for the query."""

  sentence: str
  score: float


class Concept(NamedTuple):
  """Features that a latent dimension makes likely, and unlikely."""

  positive: list[Named]
  negative: list[Named]


def top_features(
  weights: np.ndarray, names: Sequence[str], k: int = 10
) -> list[Named]:
  """The features of greatest weight, by name.

  Args:
    weights: of all features, [F].
    names: their names, F of them.
    k: how many.

  Returns:
    The features, heaviest first; ties in the order of the table.
  """
  weights = np.asarray(weights)
  if weights.shape != (len(names),):
    raise errors.InputError(
      f"{len(names)} feature names cannot name weights of shape {weights.shape}"
    )
  return [Named(names[i], float(weights[i])) for i in _first(weights, k)]


def named_parts(
  parts: Sequence[Contributions],
  names: Sequence[str],
  k: int = 10,
  dimensions: Sequence[str] = (),
) -> list[Named]:
  """The largest parts of scores by name, summed over several entities.

  Args:
    names: of the features, F of them.
    k: how many.
    dimensions: names of latent dimensions; their numbers by default.

  Returns:
    Features, the largest part first; then dimensions by their size.
  """
  if not parts:
    return []
  total = np.sum([part.by_feature(len(names)) for part in parts], axis=0)
  chosen = [x for x in top_features(total, names, k) if x.weight]
  latent = np.sum([part.dimensions for part in parts], axis=0)
  order = np.argsort(-np.abs(latent), kind="stable")[: k - len(chosen)]
  return chosen + [
    Named(
      dimensions[j] if j < len(dimensions) else f"dimension {j}",
      float(latent[j]),
    )
    for j in order.tolist()
    if latent[j]
  ]


def justifications(
  score_rows: Callable[[sp.csr_array], np.ndarray],
  featurize: Callable[[str], sp.csr_array],
  sentences: Sequence[str],
  k: int = 3,
) -> list[Justification]:
  """The sentences of an entity that score highest for a query.

  Args:
    score_rows: scores of rows [s, F] for the query, of any system.
    featurize: features of one sentence, [1, F].
    sentences: sentences of the entity.
    k: how many to return, at most.

  Returns:
    Sentences with scores; those without a known feature come last, and a
    sentence that is repeated counts once.
  """
  distinct = list(dict.fromkeys(sentences))
  if not distinct:
    return []
  rows = sp.csr_array(sp.vstack([featurize(x) for x in distinct], "csr"))
  scores = np.asarray(score_rows(rows), np.float64)
  empty = np.diff(rows.indptr) == 0
  order = np.lexsort((np.arange(len(distinct)), -scores, empty))
  return [Justification(distinct[i], float(scores[i])) for i in order[:k]]


def concept_table(
  decoder: np.ndarray,
  names: Sequence[str],
  k: int = 10,
  both_signs: bool = False,
) -> list[Concept]:
  """Names latent dimensions by the top features of decoder(e_j).

  Args:
    decoder: weights with the biases in the last column, [F, d + 1].
    names: names of the features, F of them.
    k: features for each sign.

  Returns:
    One entry for each of the d dimensions. Features are ordered by their
    logits; weights are logits without the bias, which all dimensions share.
  """
  decoder = np.asarray(decoder)
  bias = decoder[:, -1]
  concepts = []
  for column in decoder[:, :-1].T:
    sides = []
    for signed in (column, -column)[: 2 if both_signs else 1]:
      order = _first(signed + bias, k)
      sides.append([Named(names[i], float(signed[i])) for i in order])
    concepts.append(Concept(sides[0], sides[1] if both_signs else []))
  return concepts


def _first(weights: np.ndarray, k: int) -> np.ndarray:
  """Indices of the k greatest, falling; ties by index, NaN last."""
  weights = np.where(np.isnan(weights), -np.inf, weights)
  k = max(0, min(k, len(weights)))
  if k == 0:
    return np.zeros(0, np.int64)
  bound = np.partition(weights, len(weights) - k)[len(weights) - k]
  near = np.flatnonzero(weights >= bound)
  return near[np.argsort(-weights[near], kind="stable")][:k]

"""Reasons: the parts of the score that ranked, by name, with their shares."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from repr_jax.setexp.explain import Contributions


def decompose(
  contributions: Sequence[Contributions], names: Sequence[str], count: int
) -> dict[str, Any]:
  """The parts that weigh most in a score, or in a sum of scores.

  A part's share is its value over the whole score, so that all shares add up
  to 1, those of a distance (a negative score) too. A score of 0 has no shares.

  Args:
    contributions: of one entity, or of all entities whose scores are summed.
    names: of the features, [F].
    count: parts at most.

  Returns:
    "score", "parts" (block, word, value and share of each, the largest
    absolute values first) and "rest", the value and share of all others.
  """
  size = len(names)
  features = sum(x.by_feature(size) for x in contributions)
  dimensions = _sum_dimensions(contributions)
  constant = sum(float(x.constant) for x in contributions)
  values = np.concatenate([features, dimensions])
  score = float(values.sum() + constant)
  nonzero = np.flatnonzero(values)
  order = nonzero[np.argsort(-np.abs(values[nonzero]), kind="stable")]
  chosen = order[:count]
  parts = [
    {**_name(place, names), **_value(float(values[place]), score)}
    for place in chosen.tolist()
  ]
  rest = score - float(values[chosen].sum())
  return {"score": score, "parts": parts, "rest": _value(rest, score)}


def supporting_features(
  contributions: Contributions, names: Sequence[str], share: float
) -> set[str]:
  """Names of the features that raised an entity's score most.

  Args:
    names: names of the features, [F].
    share: share of everything that raised the score. The result has as few
      features as together reach this share.
  """
  values = np.maximum(contributions.by_feature(len(names)), 0)
  order = np.argsort(-values, kind="stable")[: np.count_nonzero(values)]
  before = np.cumsum(values[order]) - values[order]
  chosen = order[before < share * values.sum()]
  return {names[place] for place in chosen.tolist()}


def split_name(name: str) -> dict[str, str]:
  """A feature's block and word apart, as JSON has them."""
  block, _, word = name.partition(":")
  return {"block": block, "word": word}


def _name(place: int, names: Sequence[str]) -> dict[str, str]:
  if place < len(names):
    return split_name(names[place])
  return {"block": "dimension", "word": str(place - len(names) + 1)}


def _value(value: float, score: float) -> dict[str, float]:
  return {"value": value, "share": value / score if score else 0.0}


def _sum_dimensions(contributions: Sequence[Contributions]) -> np.ndarray:
  size = max((len(x.dimensions) for x in contributions), default=0)
  total = np.zeros(size)
  for x in contributions:
    total[: len(x.dimensions)] += np.asarray(x.dimensions, np.float64)
  return total

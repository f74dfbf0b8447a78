"""Whether one system is better over several similarity sets at once.

A small set can show only large gains; all sets together can show smaller ones.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.evaluation.significance import Difference

_HELD = 1 << 22  # numbers of a batch of resamples


class ScoredSet(NamedTuple):
  """One set with the similarities of two systems.

  Attributes:
    items: names of the items; an item of several sets has one name.
    truth: human scores, [n].
    a: similarities by system a, [n].
    b: similarities by system b, [n].
  """

  items: Sequence[Hashable]
  truth: np.ndarray
  a: np.ndarray
  b: np.ndarray


def pooled_gain(
  sets: Sequence[ScoredSet],
  rng: np.random.Generator,
  *,
  samples: int = 1000,
  level: float = 0.95,
) -> Difference:
  """Mean gain in Spearman's correlation, b minus a, over several sets.

  The interval comes from a bootstrap over distinct items. An item is drawn
  equally often in all sets that contain it, so a set and its subset do not
  count as two. All sets have the same weight.

  Args:
    sets: the sets, each with at least two items and finite scores.
    rng: source of the resamples.
    samples: how many resamples.
    level: level of the percentile interval.

  Returns:
    The mean difference of correlations, with its interval. p is twice the
    smaller share of resamples on one side of zero.
  """
  if not sets:
    raise ValueError("pooled_gain needs 1 set or more, not 0")
  index: dict[Hashable, int] = {}
  rows = [
    np.array([index.setdefault(item, len(index)) for item in one.items])
    for one in sets
  ]
  for one in sets:
    parts = [np.asarray(x, float) for x in one[1:]]
    if len(one.items) < 2 or any(x.shape != (len(one.items),) for x in parts):
      raise ValueError("a set needs 2 items or more, and one score for each")
    if not all(np.isfinite(x).all() for x in parts):
      raise ValueError("a score is not finite")
  value = float(_mean_gain(sets, rows, np.ones((1, len(index))))[0])
  drawn = []
  left, size = samples, max(1, _HELD // len(index))
  while left > 0:
    count = min(size, left)
    share = np.full(len(index), 1 / len(index))
    draws = rng.multinomial(len(index), share, size=count).astype(float)
    drawn.append(_mean_gain(sets, rows, draws))
    left -= count
  gains = np.concatenate(drawn)
  gains = gains[np.isfinite(gains)]  # a tiny set may lose all its items
  tail = (1 - level) / 2
  lower, upper = np.quantile(gains, [tail, 1 - tail])
  side = min((gains <= 0).sum(), (gains >= 0).sum())
  p_value = min(1.0, 2 * (side + 1) / (gains.size + 1))
  return Difference(value, float(lower), float(upper), float(p_value))


def resampled_spearman(
  x: np.ndarray, y: np.ndarray, counts: np.ndarray
) -> np.ndarray:
  """Spearman's correlation of resamples of one set's items.

  Args:
    x: values, [n].
    y: other values, [n].
    counts: how often each resample has each item, [B, n].

  Returns:
    The correlations, [B]; 0 if x or y is constant on the set, NaN for a
    resample on which one of them is constant.
  """
  x, y = np.asarray(x), np.asarray(y)
  # Constant scores have no correlation, as in `similarity.spearman`.
  if np.ptp(x) == 0 or np.ptp(y) == 0:
    return np.zeros(len(counts))
  return _correlation(_ranks(x, counts), _ranks(y, counts), counts)


def _mean_gain(
  sets: Sequence[ScoredSet], rows: Sequence[np.ndarray], counts: np.ndarray
) -> np.ndarray:
  """Mean gain over sets for each row of counts of items, [B, items] to [B]."""
  gains = []
  for one, places in zip(sets, rows):
    b, a = (
      resampled_spearman(x, one.truth, counts[:, places])
      for x in (one.b, one.a)
    )
    gains.append(b - a)
  return np.mean(gains, axis=0)


def _ranks(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
  """Mean ranks of x [n] if each item occurs `weights` [B, n] times."""
  _, group, sizes = np.unique(x, return_inverse=True, return_counts=True)
  starts = np.cumsum(sizes) - sizes
  order = np.argsort(group, kind="stable")
  totals = np.add.reduceat(weights[:, order], starts, axis=1)
  middle = np.cumsum(totals, axis=1) - totals / 2
  return middle[:, group]


def _correlation(
  x: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> np.ndarray:
  """Weighted correlation of each row, [B]; NaN where one is constant."""
  total = weights.sum(axis=1, keepdims=True)
  with np.errstate(invalid="ignore", divide="ignore"):
    x = x - (weights * x).sum(axis=1, keepdims=True) / total
    y = y - (weights * y).sum(axis=1, keepdims=True) / total
    spread = (weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)
    return (weights * x * y).sum(axis=1) / np.sqrt(spread)

"""Dimensions of a model's concepts that a query depends on most."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.explorer import reasons
from repr_jax.ops import topk, unit_rows
from repr_jax.setexp import expansion

_DIMENSIONS, _EACH = 5, 6  # Dimensions in an answer, and features of each.


class Concepts:
  """The entities' concepts and the decoder that gives them features.

  Attributes:
    dim: numbers in a concept.
  """

  def __init__(
    self, model: expansion.Model, names: Sequence[str], used: np.ndarray
  ):
    """Measures the mean and the deviation of each dimension.

    Args:
      model: with its entities.
      used: which entities have features, bool [X].
    """
    xi, precision = (np.asarray(x) for x in model.entities)
    self._means = xi / precision
    self._center = self._means[:, used].mean(axis=1)
    self._spread = np.maximum(self._means[:, used].std(axis=1), 1e-6)
    self.dim = len(self._center)
    self._names = names
    self._decoder = jnp.asarray(model.params.decoder)
    self._multilabel = model.config.decoder == "multilabel"
    self.active(self._center)  # Compiles.

  def active(self, concept: np.ndarray) -> list[dict[str, Any]]:
    """The dimensions that the query's features depend on most.

    If a dimension had its mean value, the features' distribution p would
    diverge by about difference^2 Var_p(weights) / 2. The features of a
    dimension are those that would lose most: p log(p / p without).

    Args:
      concept: of the query, [d].
    """
    chosen, gains, places = (
      np.asarray(x)
      for x in _active(self._multilabel, self._decoder, self._center, concept)
    )
    level = (concept - self._center) / self._spread
    return [
      {
        "dimension": int(dimension) + 1,
        "level": float(level[dimension]),
        "features": [
          {**reasons.split_name(self._names[i]), "weight": float(gain)}
          for i, gain in zip(row, values)
        ],
      }
      for dimension, values, row in zip(chosen, gains, places)
    ]

  def farthest(self, rows: np.ndarray) -> int:
    """Of these entities, the one whose concept is least like the first's."""
    means = (self._means[:, rows].T - self._center) / self._spread
    units = unit_rows(means)
    return int(rows[np.argmin(units @ units[0])])


@functools.partial(jax.jit, static_argnums=0)
def _active(multilabel, decoder, usual, concept):
  """Dimensions [m], and gains [m, k] and places [m, k] of their features."""
  weights, bias = decoder[:, :-1], decoder[:, -1]
  difference = concept - usual
  log_p = jax.nn.log_sigmoid if multilabel else jax.nn.log_softmax
  logits = weights @ concept + bias
  logs = log_p(logits)
  p = jnp.exp(logs)
  if multilabel:
    variance = (p * (1 - p)) @ weights**2
  else:
    variance = p @ weights**2 - (p @ weights) ** 2
  count = min(_DIMENSIONS, weights.shape[1])
  _, chosen = jax.lax.top_k(difference**2 * variance, count)

  def gains(dimension):
    without = log_p(logits - weights[:, dimension] * difference[dimension])
    return topk.top_k(p * (logs - without), min(_EACH, len(p)))

  return chosen, *jax.vmap(gains)(chosen)

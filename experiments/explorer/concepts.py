"""Features by name, and the dimensions that a query stands out in."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from repr_jax.setexp import expand, explain

_DIMENSIONS, _EACH = 5, 6  # Dimensions that are told, and features of each.


class Concepts:
  """What the dimensions of a model mean.

  Attributes:
    usual: mean of the entities' concepts, [d].
    spread: their deviation, [d].
  """

  def __init__(
    self, model: expand.Model, names: Sequence[str], used: np.ndarray
  ):
    """Measures what is usual.

    Args:
      model: with its entities.
      names: of the features.
      used: which entities have features, bool [X].
    """
    xi, precision = (np.asarray(x) for x in model.entities)
    means = (xi / precision)[:, used]
    self.usual = means.mean(axis=1)
    self.spread = np.maximum(means.std(axis=1), 1e-6)
    self._names = names
    self._decoder = np.asarray(model.params.decoder)
    self._multilabel = model.config.decoder == "multilabel"
    self._squares = self._decoder[:, :-1] ** 2

  def active(self, concept: np.ndarray) -> list[dict[str, Any]]:
    """The dimensions that the query's features depend on most.

    Were a dimension at its usual value, the features' distribution p would
    diverge by about difference^2 Var_p(weights) / 2. The features of a
    dimension are those that would lose by it: by p log(p / p without).

    Args:
      concept: of the query, [d].
    """
    difference = concept - self.usual
    weights, bias = self._decoder[:, :-1], self._decoder[:, -1]
    logits = weights @ concept + bias
    logs = self._logs(logits)
    p = np.exp(logs)
    if self._multilabel:
      variance = (p * (1 - p)) @ self._squares
    else:
      variance = p @ self._squares - (p @ weights) ** 2
    order = np.argsort(-(difference**2 * variance), kind="stable")
    chosen = order[:_DIMENSIONS]
    without = logits[:, None] - weights[:, chosen] * difference[chosen]
    gains = p[:, None] * (logs[:, None] - self._logs(without))
    return [
      {
        "dimension": dimension,
        "level": float(difference[dimension] / self.spread[dimension]),
        "features": named(explain.top_features(gain, self._names, _EACH)),
      }
      for dimension, gain in zip(chosen.tolist(), gains.T)
    ]

  def _logs(self, logits: np.ndarray) -> np.ndarray:
    """Log-probabilities of features, [F, ...]."""
    if self._multilabel:
      return special.log_expit(logits)
    return special.log_softmax(logits, axis=0)


def named(chosen: Sequence[explain.Named]) -> list[dict[str, Any]]:
  """Features with their blocks apart, as JSON has them."""
  found = []
  for name, weight in chosen:
    block, _, word = name.partition(":")
    found.append({"block": block, "word": word, "weight": weight})
  return found

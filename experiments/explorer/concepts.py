"""Features by name, and the dimensions that a query stands out in."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.ops import topk
from repr_jax.setexp import expansion, explain

_DIMENSIONS, _EACH = 5, 6  # Dimensions that are told, and features of each.


class Concepts:
  """What the dimensions of a model mean.

  Attributes:
    usual: mean of the entities' concepts, [d].
    spread: their deviation, [d].
  """

  def __init__(
    self, model: expansion.Model, names: Sequence[str], used: np.ndarray
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
    self._decoder = jnp.asarray(model.params.decoder)
    self._multilabel = model.config.decoder == "multilabel"
    self.active(self.usual)  # Compiles.

  def active(self, concept: np.ndarray) -> list[dict[str, Any]]:
    """The dimensions that the query's features depend on most.

    Were a dimension at its usual value, the features' distribution p would
    diverge by about difference^2 Var_p(weights) / 2. The features of a
    dimension are those that would lose by it: by p log(p / p without).

    Args:
      concept: of the query, [d].
    """
    found = _active(self._multilabel, self._decoder, self.usual, concept)
    chosen, gains, features = (np.asarray(x) for x in found)
    level = (concept - self.usual) / self.spread
    return [
      {
        "dimension": int(dimension),
        "level": float(level[dimension]),
        "features": named(
          [
            explain.Named(self._names[i], float(gain))
            for i, gain in zip(row, values)
          ]
        ),
      }
      for dimension, values, row in zip(chosen, gains, features)
    ]


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


def named(chosen: Sequence[explain.Named]) -> list[dict[str, Any]]:
  """Features with their blocks apart, as JSON has them."""
  found = []
  for name, weight in chosen:
    block, _, word = name.partition(":")
    found.append({"block": block, "word": word, "weight": weight})
  return found

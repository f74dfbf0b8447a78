"""Rows of length 1, from arrays of any scale."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.ops import precision

T = TypeVar("T", np.ndarray, jax.Array)


def unit_rows(x: T) -> T:
  """Scales each row to Euclidean length 1: y_i = x_i / norm(x_i).

  Products of unit rows are cosines. Rows are first brought near 1 by a power
  of two, so that squares neither overflow nor underflow.

  >>> import numpy as np
  >>> from repr_jax import ops
  >>> ops.unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
  array([[0.6, 0.8],
         [0. , 0. ]])

  Args:
    x: floating, [..., d]; numpy or JAX.

  Returns:
    The rows, [..., d], in numpy for numpy and in JAX for JAX. Zero rows stay
    zero. A row with a NaN is NaN throughout.
  """
  if isinstance(x, np.ndarray):
    return _scaled(x, np)
  return _on_device(x)


def _scaled(x: Any, xp: Any) -> Any:
  """The rows, by the functions of numpy or of `jax.numpy`."""
  largest = xp.abs(x).max(axis=-1, keepdims=True, initial=0)
  x = x * precision.near_one(largest, xp)
  square = (x * x).sum(axis=-1, keepdims=True)
  return x / xp.sqrt(xp.where(square == 0, 1, square))


@jax.jit
def _on_device(x: jax.Array) -> jax.Array:
  return _scaled(x, jnp)

"""Rows of length 1, and logarithms of the sums that normalize a softmax."""

from typing import Any, TypeVar

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from repr_jax.ops import precision
from repr_jax.ops.precision import chosen_products

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


@jax.custom_vjp
def log_sum_products(
  table: jax.Array, vectors: jax.Array, bias: jax.Array | None
) -> jax.Array:
  """log sum_e exp(<table_e, q> + bias_e) for each vector q.

  Args:
    table: [E, d].
    vectors: [Q, d].
    bias: [E], or None for zeros.

  Returns:
    [Q].
  """
  return _forward(table, vectors, bias)[0]


@chosen_products
def _forward(table, vectors, bias):
  chex.assert_rank([table, vectors], 2)
  # The long side first: this product is the faster one on a CPU.
  logits = table @ vectors.T
  if bias is not None:
    logits = logits + bias[:, None]
  largest = logits.max(axis=0)
  # Without the barrier the exponentials are computed again for the gradient.
  weights = lax.optimization_barrier(jnp.exp(logits - largest))
  sums = weights.sum(axis=0)
  return largest + jnp.log(sums), (table, vectors, bias, weights, sums)


@chosen_products
def _backward(saved, slope):
  table, vectors, bias, weights, sums = saved
  # The scale is folded into the small factors.
  scale = slope / sums
  return (
    weights @ (vectors * scale[:, None]),
    (weights.T @ table) * scale[:, None],
    None if bias is None else weights @ scale,
  )


log_sum_products.defvjp(_forward, _backward)

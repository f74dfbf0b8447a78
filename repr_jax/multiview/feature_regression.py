"""Vectors that features of words predict, such as a view of their spelling.

A rare word has few contexts, but its spelling is known. Ridge regression on
character n-grams predicts its vector from words with similar spelling. As a
further view, this prediction helps where contexts are few.
"""

import jax.numpy as jnp
from jax import Array, lax

from repr_jax.ops import operators
from repr_jax.ops.sparse import Sparse


def predict_from_features(
  features: Array | Sparse,
  targets: Array,
  weights: Array,
  *,
  ridge: float | Array = 1.0,
  iterations: int | Array = 20,
) -> Array:
  """Predicts target vectors from features by weighted ridge regression.

    minimize sum_i w_i |n_i B - y_i|^2 + r |B|^2

  by conjugate gradients, all columns of Y at once; N'N is never formed.

  Args:
    features: N, [n, f].
    targets: Y, [n, d].
    weights: w of each row, 0 for a row whose target is not known, [n].
    ridge: r, above 0.
    iterations: number of steps; further ones hardly change a converged result.

  Returns:
    N B, [n, d], for rows without a target too.

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> spelling = jnp.array([[1.0, 0], [1, 0], [0, 1]])
    >>> y = jnp.array([[2.0], [0], [5]])
    >>> weights = jnp.array([1.0, 0, 1])
    >>> multiview.predict_from_features(spelling, y, weights).ravel().tolist()
    [1.0, 1.0, 2.5]
  """
  x = operators.as_operator(features)
  w = jnp.asarray(weights, x.dtype)[:, None]
  known = jnp.where(w > 0, jnp.asarray(targets, x.dtype), 0)
  right = x.rmatmat(w * known)
  tiny = jnp.finfo(right.dtype).tiny

  def step(_, state):
    b, residual, direction, square = state
    image = x.rmatmat(w * x.matmat(direction)) + ridge * direction
    curvature = jnp.sum(direction * image, axis=0)
    length = jnp.where(curvature > tiny, square / curvature, 0)
    b = b + length * direction
    residual = residual - length * image
    new = jnp.sum(residual**2, axis=0)
    ratio = jnp.where(square > tiny, new / square, 0)
    return b, residual, residual + ratio * direction, new

  start = (jnp.zeros_like(right), right, right, jnp.sum(right**2, axis=0))
  return x.matmat(lax.fori_loop(0, iterations, step, start)[0])

"""Canonical correlation analysis of two views (thesis 2.1.3)."""

from typing import NamedTuple

import chex
import jax.numpy as jnp
from jax import Array

from repr_jax.errors import InputError


class CCA(NamedTuple):
  """Canonical directions of two views.

  Attributes:
    means: column means of the views, ([d1], [d2]).
    projections: (U_1 [d1, k], U_2 [d2, k]); projected training data has
      covariance I (up to the ridge) in each view.
    correlations: canonical correlations, descending, [k].
  """

  means: tuple[Array, Array]
  projections: tuple[Array, Array]
  correlations: Array


def cca_fit(x: Array, y: Array, k: int, *, ridge: float = 0.0) -> CCA:
  """SVD of S11^(-1/2) S12 S22^(-1/2) with ridge-regularised covariances.

  Args:
    x: first view, [n, d1].
    y: second view, [n, d2].
    k: number of directions, at most min(d1, d2).
    ridge: added to the diagonal of both covariances.
  """
  chex.assert_rank([x, y], 2)
  if x.shape[0] != y.shape[0]:
    raise InputError(
      f"two views of one set of rows: the first has {x.shape[0]} rows, "
      f"the second {y.shape[0]}"
    )
  if k > min(x.shape[1], y.shape[1]):
    raise InputError(
      f"k = {k} directions asked of views with {x.shape[1]} and "
      f"{y.shape[1]} columns"
    )
  means = (x.mean(axis=0), y.mean(axis=0))
  xc, yc = x - means[0], y - means[1]
  n = x.shape[0]
  wx = inverse_root(xc.T @ xc / n, ridge)
  wy = inverse_root(yc.T @ yc / n, ridge)
  left, values, right_t = jnp.linalg.svd(wx @ (xc.T @ yc / n) @ wy)
  return CCA(means, (wx @ left[:, :k], wy @ right_t[:k].T), values[:k])


def cca_transform(model: CCA, x: Array, y: Array) -> tuple[Array, Array]:
  """Projections of new rows [n, d1] and [n, d2], each [n, k]."""
  return (
    (x - model.means[0]) @ model.projections[0],
    (y - model.means[1]) @ model.projections[1],
  )


def inverse_root(covariance: Array, ridge: float | Array) -> Array:
  """(S + r I)^(-1/2) of a covariance [d, d]; null directions map to zero."""
  values, vectors = jnp.linalg.eigh(covariance)
  return (vectors * inverse_root_values(values, ridge)) @ vectors.T


def inverse_root_values(values: Array, ridge: float | Array) -> Array:
  """1 / sqrt(value + ridge) of eigenvalues [d], zero for null directions."""
  eps = jnp.finfo(values.dtype).eps
  good = values > values.shape[0] * eps * jnp.max(values)
  total = jnp.where(good, values + ridge, 1)
  return jnp.where(good, 1 / jnp.sqrt(total), 0)

"""Canonical correlation analysis of two views (thesis 2.1.3)."""

from typing import NamedTuple

import chex
import jax.numpy as jnp
from jax import Array

from repr_jax.errors import InputError
from repr_jax.ops import dense_factorizations as dense
from repr_jax.ops.precision import exact_products
from repr_jax.ops.spectral import SVD, fix_signs


class CCA(NamedTuple):
  """Canonical directions of two views.

  Attributes:
    means: column means of the views, ([d1], [d2]).
    projections: (U_1 [d1, k], U_2 [d2, k]); projected training data has
      covariance I (up to the ridge) in each view.
    correlations: canonical correlations, descending, [k]. Past the rank of
      either view they are 0, and columns of U are 0 or arbitrary.
  """

  means: tuple[Array, Array]
  projections: tuple[Array, Array]
  correlations: Array


@exact_products
def cca_fit(x: Array, y: Array, k: int, *, ridge: float | Array = 0.0) -> CCA:
  """Canonical correlation analysis of two views, ridge-regularized.

    U_1 = S11^(-1/2) A and U_2 = S22^(-1/2) B, where A and B are the singular
    vectors of S11^(-1/2) S12 S22^(-1/2) and its values the correlations.

  Args:
    x: first view, [n, d1]; one NaN makes all results NaN.
    y: second view, [n, d2].
    k: number of directions, from 1 to min(d1, d2).
    ridge: added to the diagonal of both covariances.

  Returns:
    Means, projections [d1, k] and [d2, k], correlations [k].

  Example:
    >>> import numpy as np
    >>> from repr_jax import multiview
    >>> x = np.random.default_rng(0).normal(size=(50, 3)).astype("float32")
    >>> model = multiview.cca_fit(x, x[:, ::-1] * 2 + 1, 2)
    >>> model.correlations.round(3).tolist()
    [1.0, 1.0]
  """
  x, y = jnp.asarray(x), jnp.asarray(y)
  chex.assert_rank([x, y], 2)
  if x.shape[0] != y.shape[0]:
    raise InputError(
      f"two views of one set of rows: the first has {x.shape[0]} rows, "
      f"the second {y.shape[0]}"
    )
  if not 1 <= k <= min(x.shape[1], y.shape[1]):
    raise InputError(
      f"k = {k} directions asked of views with {x.shape[1]} and "
      f"{y.shape[1]} columns"
    )
  means = (exact_mean(x), exact_mean(y))
  xc, yc = x - means[0], y - means[1]
  n = x.shape[0]
  wx = inverse_root(xc.T @ xc / n, ridge, means[0])
  wy = inverse_root(yc.T @ yc / n, ridge, means[1])
  left, values, right_t = dense.svd(wx @ (xc.T @ yc / n) @ wy)
  values = jnp.minimum(values[:k], 1)  # more is rounding
  svd = fix_signs(SVD(wx @ left[:, :k], values, wy @ right_t[:k].T))
  return CCA(means, (svd.u, svd.v), values)


@exact_products
def cca_transform(model: CCA, x: Array, y: Array) -> tuple[Array, Array]:
  """Projects rows of both views: (x - mean_1) U_1 and (y - mean_2) U_2.

  Args:
    model: a fitted CCA.
    x: rows of the first view, [n, d1].
    y: rows of the second view, [n, d2].

  Returns:
    Projections, [n, k] each.

  Example:
    >>> import numpy as np
    >>> from repr_jax import multiview
    >>> x, y = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> model = multiview.cca_fit(x, y, 2)
    >>> one, other = multiview.cca_transform(model, x, y)
    >>> matrix = np.cov(one.T, other.T, bias=True)[:2, 2:]
    >>> bool(np.allclose(matrix, np.diag(model.correlations), atol=1e-4))
    True
  """
  return (
    (x - model.means[0]) @ model.projections[0],
    (y - model.means[1]) @ model.projections[1],
  )


def exact_mean(x: Array) -> Array:
  """Column means [d] of x [n, d], right to the last digit for any n."""
  mean = x.mean(axis=0)
  return mean + (x - mean).mean(axis=0)


def rounding(mean: Array, directions: Array) -> Array:
  """Variance that rounding leaves when columns are centered.

  Args:
    mean: of the columns, [d].
    directions: unit vectors, [d, k].

  Returns:
    A bound along each direction, [k].
  """
  along = jnp.sum((mean[:, None] * directions) ** 2, axis=0)
  return (8 * jnp.finfo(mean.dtype).eps) ** 2 * along


@exact_products
def inverse_root(covariance: Array, ridge: float | Array, mean: Array) -> Array:
  """(S + r I)^(-1/2) of a covariance; null directions map to zero.

  Args:
    covariance: S, [d, d].
    mean: subtracted column means, whose rounding is null too, [d].

  Returns:
    The root, [d, d].
  """
  values, vectors = dense.eigh(covariance)
  roots = inverse_root_values(values, ridge, rounding(mean, vectors))
  return (vectors * roots) @ vectors.T


def inverse_root_values(
  values: Array, ridge: float | Array, floor: Array
) -> Array:
  """1 / sqrt(value + ridge) of eigenvalues [d].

  Zero for null directions, whose value is at most the rounding level of the
  largest or their floor [d].
  """
  eps = jnp.finfo(values.dtype).eps
  least = jnp.maximum(values.shape[0] * eps * jnp.max(values), floor)
  good = values > least
  total = jnp.where(good, values + ridge, 1)
  return jnp.where(good, 1 / jnp.sqrt(total), 0)

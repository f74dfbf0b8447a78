"""Principal components, plain and probabilistic (thesis 2.1.1).

The covariance is normalized by N, so that an eigenvalue is a squared singular
value of the centered data divided by N.
"""

from typing import NamedTuple

import chex
import jax.numpy as jnp
from jax import Array

from repr_jax.errors import InputError
from repr_jax.ops import sparse
from repr_jax.ops.operators import (
  Operator,
  as_operator,
  centered,
  centering_noise,
  column_means,
  range_scale,
  scaled,
)
from repr_jax.ops.precision import exact_products
from repr_jax.ops.sparse import Sparse
from repr_jax.ops.spectral import truncated_svd, without_noise


class PCA(NamedTuple):
  """A fitted (probabilistic) PCA.

  Attributes:
    mean: column means, [d].
    components: principal directions as columns, [d, k].
    variances: their variances, the top eigenvalues of the covariance, [k];
      0 or inf where squares of the data are out of the range of floats.
    noise: mean of the discarded eigenvalues, the noise variance s2, []; 0
      where k components explain everything.
  """

  mean: Array
  components: Array
  variances: Array
  noise: Array


def pca_fit(
  x: Array | Sparse, k: int, key: Array, *, tolerance: float = 1e-3
) -> PCA:
  """Fits k components to the rows of x, dense or sparse.

  The components are the eigenvectors of (1/N) sum_i (x_i - mean)(x_i - mean)'
  with the largest eigenvalues.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import ops
  >>> x = jnp.array([[1.0, 1.0], [-1.0, -1.0], [3.0, 3.0]])
  >>> model = ops.pca_fit(x, 1, jax.random.key(0))
  >>> model.mean
  Array([1., 1.], dtype=float32)
  >>> again = ops.pca_inverse(model, ops.pca_transform(model, x))
  >>> bool(jnp.allclose(again, x, atol=1e-5))
  True

  Args:
    x: data, one example per row, [n, d].
    k: number of components, less than d for a positive noise variance.
    key: random key of the SVD's starting block.
    tolerance: relative error at which the SVD stops.

  Returns:
    The fitted model.
  """
  n, d = x.shape
  if k > min(n, d):
    raise InputError(f"k = {k} components asked of {n} x {d} data")
  scale = range_scale(x)
  op = scaled(x, scale)
  mean = column_means(op, None)
  svd, _ = truncated_svd(centered(op, mean), k, key, tolerance=tolerance)
  rows = jnp.ones(n, op.dtype)
  svd = without_noise(svd, centering_noise(mean, rows, svd.v))
  variances = svd.s**2 / n
  total = _total_variance(x, scale, mean)
  noise = jnp.maximum(total - variances.sum(), 0) / max(d - k, 1)
  variances, noise = (v / scale / scale for v in (variances, noise))
  return PCA(mean / scale, svd.v, variances, noise)


@exact_products
def pca_transform(model: PCA, x: Array | Sparse | Operator) -> Array:
  """Coordinates z = U'(x - mean) of the rows of x.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> axis = jnp.array([[0.0], [1.0]])
  >>> model = ops.PCA(jnp.ones(2), axis, jnp.ones(1), jnp.zeros(()))
  >>> ops.pca_transform(model, jnp.array([[5.0, 3.0]]))
  Array([[2.]], dtype=float32)

  Args:
    model: a fitted model.
    x: dense or sparse, [n, d].

  Returns:
    Coordinates, [n, k].
  """
  return as_operator(x).matmat(model.components) - model.mean @ model.components


@exact_products
def pca_inverse(model: PCA, z: Array) -> Array:
  """Data with the given coordinates: x = U z + mean.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> axis = jnp.array([[0.0], [1.0]])
  >>> model = ops.PCA(jnp.ones(2), axis, jnp.ones(1), jnp.zeros(()))
  >>> ops.pca_inverse(model, jnp.array([[2.0]]))
  Array([[1., 3.]], dtype=float32)

  Args:
    model: a fitted model.
    z: coordinates, [n, k].

  Returns:
    Data, [n, d].
  """
  return z @ model.components.T + model.mean


def ppca_loading(model: PCA) -> Array:
  """M = U_k (L_k - s2 I)^(1/2), the maximum-likelihood loadings, [d, k]."""
  return model.components * jnp.sqrt(
    jnp.maximum(model.variances - model.noise, 0)
  )


@exact_products
def ppca_posterior(model: PCA, x: Array) -> tuple[Array, Array]:
  """Posterior of the latent z of each row under probabilistic PCA.

  N(W^(-1) M'(x - mean), s2 W^(-1)) with W = M'M + s2 I and loadings M
  (thesis 2.1.1; Tipping and Bishop 1999).

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> axis = jnp.array([[0.0], [1.0]])
  >>> model = ops.PCA(jnp.zeros(2), axis, jnp.full(1, 5.0), jnp.ones(()))
  >>> ops.ppca_posterior(model, jnp.array([[0.0, 5.0]]))
  (Array([[2.]], dtype=float32), Array([[0.2]], dtype=float32))

  Args:
    model: a fitted model.
    x: data, [n, d].

  Returns:
    Means [n, k], and the covariance that all rows share, [k, k].
  """
  chex.assert_rank(x, 2)
  loading = ppca_loading(model)
  scale = jnp.maximum(model.variances, model.noise)  # M'M + s2 I is diagonal
  mean = ((x - model.mean) @ loading) / scale
  return mean, jnp.diag(model.noise / scale)


@exact_products
def ppca_log_likelihood(model: PCA, x: Array) -> Array:
  """Log-density log N(x; mean, M M' + s2 I) of each row.

  A noise of 0 is replaced by the smallest positive float: rows outside the
  plane of the components then get -inf.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> axis = jnp.array([[0.0], [1.0]])
  >>> model = ops.PCA(jnp.zeros(2), axis, jnp.ones(1), jnp.ones(()))
  >>> round(float(ops.ppca_log_likelihood(model, jnp.zeros((1, 2)))[0]), 4)
  -1.8379

  Args:
    model: a fitted model.
    x: data, [n, d].

  Returns:
    Log-densities, [n].
  """
  chex.assert_rank(x, 2)
  d, k = model.components.shape
  gap = x - model.mean
  along = gap @ model.components
  noise = jnp.maximum(model.noise, jnp.finfo(x.dtype).tiny)
  signal = jnp.maximum(model.variances, noise)
  log_det = jnp.sum(jnp.log(signal)) + (d - k) * jnp.log(noise)
  inside = jnp.sum(along**2 / signal, axis=1)
  beside = jnp.sum(gap**2, axis=1) - jnp.sum(along**2, axis=1)
  outside = jnp.maximum(beside, 0) / noise
  return -0.5 * (d * jnp.log(2 * jnp.pi) + log_det + inside + outside)


@exact_products
def _total_variance(x: Array | Sparse, scale: Array, mean: Array) -> Array:
  """Sum of the variances of the columns of c X, given their means.

  Large means cause no cancellation.
  """
  n = x.shape[0]
  if not isinstance(x, Sparse):
    return jnp.sum((scale * x - mean) ** 2) / n
  stored = x.values != 0
  gaps = jnp.where(stored, (scale * x.values - mean[x.indices]) ** 2, 0)
  ones = sparse.map_values(x, lambda v: (v != 0).astype(v.dtype))
  absent = n - sparse.column_sums(ones)
  return (jnp.sum(jnp.sum(gaps, axis=1)) + absent @ mean**2) / n

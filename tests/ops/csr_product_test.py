"""Both routes of the sparse product against scipy, and their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from repr_jax.ops import csr_product, precision

_ROUTES = (csr_product.csr_product, csr_product._segments)


def _block(dtype=np.float32):
  rng = np.random.default_rng(0)
  matrix = scipy.sparse.random_array(
    (12, 9), density=0.3, rng=rng, format="csr", dtype=dtype
  )
  matrix = scipy.sparse.csr_array(matrix.multiply(rng.random((12, 1)) < 0.7))
  matrix.eliminate_zeros()  # some rows are empty now
  padded = [np.pad(x, (0, 5)) for x in (matrix.data, matrix.indices)]
  parts = (
    padded[0],
    padded[1].astype(np.int32),
    matrix.indptr.astype(np.int32),
  )
  return matrix, parts, rng.normal(size=(9, 4)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("route", _ROUTES)
def test_the_product_equals_scipy(route, dtype):
  with precision.enable_x64(dtype == np.float64):
    matrix, parts, dense = _block(dtype)
    product = jax.jit(route)(*parts, dense)
  assert product.dtype == dtype
  np.testing.assert_allclose(product, matrix @ dense, rtol=1e-5, atol=1e-6)


def test_many_right_sides_and_many_matrices():
  matrix, parts, dense = _block()
  sides = jnp.stack([dense, 2 * dense])
  over_sides = jax.vmap(csr_product.csr_product, (None, None, None, 0))
  np.testing.assert_allclose(
    over_sides(*parts, sides)[1], 2 * (matrix @ dense), rtol=1e-5, atol=1e-6
  )
  values = jnp.stack([parts[0], 3 * parts[0]])
  over_values = jax.vmap(csr_product.csr_product, (0, None, None, None))
  np.testing.assert_allclose(
    over_values(values, *parts[1:], dense)[1], 3 * (matrix @ dense),
    rtol=1e-5, atol=1e-6,
  )  # fmt: skip


def test_gradients_equal_those_of_a_dense_product():
  matrix, (values, indices, indptr), dense = _block()
  weights = np.random.default_rng(1).normal(size=(12, 4)).astype(np.float32)

  def ours(values, dense):
    product = csr_product.csr_product(values, indices, indptr, dense)
    return jnp.sum(weights * product)

  slope = jax.jit(jax.grad(ours, (0, 1)))(values, dense)
  np.testing.assert_allclose(slope[1], matrix.T @ weights, rtol=1e-4, atol=1e-5)
  rows, columns = matrix.nonzero()
  expected = np.sum(weights[rows] * dense[columns], axis=1)
  np.testing.assert_allclose(slope[0][: len(rows)], expected, rtol=1e-4)


def test_rows_of_entries():
  indptr = jnp.array([0, 2, 2, 3], jnp.int32)
  rows = csr_product.row_of_entries(indptr, 5)
  np.testing.assert_array_equal(rows, [0, 0, 2, 2, 2])

"""Blocked sparse matrices against scipy."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from repr_jax import ops
from repr_jax.errors import InputError
from repr_jax.ops import precision, sparse


def _random(n, d, density, seed, dtype=np.float32):
  matrix = scipy.sparse.random(
    n, d, density, format="csr", random_state=seed, dtype=np.float64
  )
  matrix.data = matrix.data + 0.1
  return matrix.astype(dtype)


@pytest.mark.parametrize(
  "n, d, blocks", [(1, 1, 1), (9, 40, 20), (64, 1, 3), (70, 33, 7)]
)
def test_round_trip_and_sums(n, d, blocks):
  dense = _random(n, d, 0.3, n).toarray()
  dense[0, 0] = 2.5
  matrix = scipy.sparse.csr_matrix(dense)
  x = sparse.from_scipy(matrix, blocks=blocks)
  np.testing.assert_array_equal(sparse.to_scipy(x).toarray(), dense)
  np.testing.assert_allclose(ops.row_sums(x), dense.sum(1), rtol=2e-6)
  np.testing.assert_allclose(ops.column_sums(x), dense.sum(0), rtol=2e-6)
  np.testing.assert_array_equal(ops.observed_rows(x), (dense != 0).any(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("blocks", [1, 6, 16])
def test_products(dtype, blocks):
  with precision.enable_x64(dtype == np.float64):
    matrix = _random(203, 57, 0.1, 3, dtype)
    x = sparse.from_scipy(matrix, blocks=blocks, dtype=dtype)
    rng = np.random.default_rng(0)
    q = jnp.asarray(rng.standard_normal((57, 5)), dtype)
    p = jnp.asarray(rng.standard_normal((203, 5)), dtype)
    rtol = 1e-12 if dtype == np.float64 else 1e-4
    forward = ops.matmat(x, q)
    assert forward.dtype == dtype
    np.testing.assert_allclose(forward, matrix @ q, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(
      ops.rmatmat(x, p), matrix.T @ p, rtol=rtol, atol=rtol
    )
    np.testing.assert_allclose(
      ops.normal_matmat(x, q),
      matrix.T @ (matrix @ q),
      rtol=10 * rtol,
      atol=10 * rtol,
    )


def test_scaling_selection_and_transforms():
  matrix = _random(101, 33, 0.2, 5)
  x = sparse.from_scipy(matrix)
  rng = np.random.default_rng(1)
  rows = rng.random(101).astype(np.float32)
  columns = rng.random(33).astype(np.float32)
  dense = matrix.toarray()
  both = ops.scale_columns(ops.scale_rows(x, rows), columns)
  expected = rows[:, None] * dense * columns
  np.testing.assert_allclose(sparse.to_scipy(both).toarray(), expected, 1e-6)
  q = np.eye(33, dtype=np.float32)
  np.testing.assert_allclose(ops.matmat(both, q), expected, rtol=1e-6)
  p = np.eye(101, dtype=np.float32)
  np.testing.assert_allclose(ops.rmatmat(both, p), expected.T, rtol=1e-6)
  logs = sparse.map_values(x, jnp.log1p)
  np.testing.assert_allclose(ops.rmatmat(logs, p), np.log1p(dense).T, rtol=1e-6)


def test_transform_of_padding_changes_nothing():
  x = sparse.from_scipy(_random(50, 20, 0.2, 7))
  ones = sparse.map_values(x, lambda v: v * 0 + 1)
  assert float(jnp.sum(ones.values)) == int(x.indptr[:, -1].sum())


def test_padded_columns_are_empty():
  matrix = _random(40, 10, 0.3, 2)
  x = sparse.from_scipy(matrix, columns=16)
  assert x.shape == (40, 16)
  np.testing.assert_array_equal(ops.column_sums(x)[10:], 0)


def test_memory_is_linear_in_entries():
  matrix = _random(4000, 3000, 0.01, 1)
  x = sparse.from_scipy(matrix)
  stored = sum(leaf.nbytes for leaf in jax.tree.leaves(x))
  pointers = x.indptr.nbytes + x.t_indptr.nbytes
  assert stored - pointers <= 16 * matrix.nnz * 1.4


def test_similar_sizes_share_a_program(compilations):
  product = jax.jit(sparse.normal_matmat)
  q = jnp.ones((30, 4))
  first, second = (
    sparse.from_scipy(_random(300, 30, density, 0), blocks=4)
    for density in (0.42, 0.44)
  )
  assert first.values.shape == second.values.shape
  assert compilations.during(lambda: product(first, q)) > 0
  assert compilations.during(lambda: product(second, q)) == 0


@given(size=st.integers(1, 10**9))
def test_bucket_wastes_at_most_a_quarter(size):
  bucket = sparse.bucket_size(size)
  assert size <= bucket <= max(8, 1.25 * size + 1)


def test_argument_is_not_changed():
  matrix = scipy.sparse.csr_array(
    (np.array([1.0, 0.0, 2.0], np.float32), [0, 1, 0], [0, 2, 3])
  )
  sparse.from_scipy(matrix)
  assert matrix.nnz == 3


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_entries_name_the_row(value):
  matrix = _random(30, 5, 0.5, 0).tolil()
  matrix[17, 3] = value
  with pytest.raises(InputError, match=r"anchors.*row 17"):
    sparse.from_scipy(matrix.tocsr(), name="anchors")


def test_entries_that_would_overflow_are_refused():
  matrix = _random(30, 5, 0.5, 0)
  matrix.data[0] = 1e30
  with pytest.raises(InputError, match="overflow"):
    sparse.from_scipy(matrix)


def test_empty_matrix_is_refused():
  with pytest.raises(InputError, match="empty"):
    sparse.from_scipy(scipy.sparse.csr_matrix((5, 4)))


@pytest.mark.parametrize("matrix", ["a", [["a"]]])
def test_what_is_no_matrix_is_refused(matrix):
  with pytest.raises(InputError, match="must be a scipy or numpy matrix"):
    sparse.from_scipy(matrix)


def test_a_tpu_compiles_the_product_of_a_block_once():
  def gathers(blocks):
    x = sparse.from_scipy(_random(64, 40, 0.2, 0), blocks=blocks)
    export = jax.export.export(
      jax.jit(sparse.normal_matmat), platforms=["tpu"]
    )(x, jnp.ones((40, 3)))
    return export.mlir_module().count("stablehlo.gather")

  assert gathers(8) == gathers(1) > 0


@pytest.mark.parametrize("width", [1, 8, 11])
def test_the_cpu_multiplies_whole_groups_of_columns(width):
  x = sparse.from_scipy(_random(30, 5, 0.5, 0))
  q = jnp.ones((5, width))
  text = jax.jit(sparse.matmat).lower(x, q).as_text()
  calls = [line for line in text.splitlines() if "csr_sparse_dense" in line]
  group = f"tensor<5x{8 * -(-width // 8)}xf32>"
  assert calls and all(group in line for line in calls)
  np.testing.assert_allclose(
    sparse.matmat(x, q), sparse.to_scipy(x) @ np.asarray(q), rtol=1e-5
  )

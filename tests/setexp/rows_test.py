"""Rows in fixed shapes, and products with a table of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from jax.test_util import check_grads

from repr_jax.setexp import rows as row_lib


@pytest.fixture(scope="module")
def matrix():
  rng = np.random.default_rng(0)
  dense = rng.random((90, 60)) * (rng.random((90, 60)) < rng.random((90, 1)))
  dense[7] = 0
  return sp.csr_array(dense.astype(np.float32))


def test_rows_hold_the_matrix(matrix):
  rows = row_lib.rows_from_scipy(matrix)
  dense = np.zeros((90, 61), np.float32)
  np.put_along_axis(dense, rows.indices, rows.counts, axis=1)
  np.testing.assert_array_equal(dense[:, :60], matrix.toarray())
  assert not dense[:, 60].any()


def test_groups_hold_each_row_once(matrix):
  seen = []
  for numbers, rows in row_lib.by_length(matrix):
    sizes = np.diff(matrix.indptr)[numbers]
    assert rows.indices.shape[1] < max(2 * sizes.min(), 9)
    seen += numbers.tolist()
  assert sorted(seen) == list(range(90))


@pytest.mark.parametrize("number", [None, 1, 5, 40])
def test_products_equal_scipys(matrix, number):
  weights = np.random.default_rng(1).random((number or 1, 60)).astype("f")
  for table in (
    row_lib.table_from_scipy(matrix),
    row_lib.table_from_rows(row_lib.rows_from_scipy(matrix), 60),
  ):
    product = row_lib.product
    if number is None:
      found = jax.jit(product)(table, weights[0])[None]
    else:
      found = jax.jit(jax.vmap(product, (None, 0)))(table, weights)
    np.testing.assert_allclose(found, (matrix @ weights.T).T, rtol=1e-5)


def test_tables_are_vmapped_too(matrix):
  rows = row_lib.rows_from_scipy(matrix)
  table = row_lib.table_from_rows(rows, 60)
  two = jax.tree.map(lambda x: jnp.stack([x, x]), table)
  weights = jnp.asarray(np.random.default_rng(1).random((2, 60)), jnp.float32)
  found = jax.jit(jax.vmap(row_lib.product))(two, weights)
  np.testing.assert_allclose(found, (matrix @ weights.T).T, rtol=1e-5)


def test_gradient_by_finite_differences(matrix):
  table = row_lib.table_from_scipy(matrix)

  def value(values, weights):
    sums = row_lib.product(table._replace(values=values), weights)
    return jnp.sum(jnp.sin(sums))

  weights = jnp.linspace(0.01, 0.1, 60)
  check_grads(
    value, (table.values, weights), order=1, modes=["rev"], atol=2e-2, rtol=2e-2
  )


def test_one_row_of_a_table(matrix):
  table = row_lib.table_from_scipy(matrix)
  for entity in (0, 7, 41, 89):
    row = row_lib.take_row(table, entity)
    found = np.bincount(row.indices, row.counts, 60)
    np.testing.assert_allclose(found, matrix[[entity]].toarray()[0])


def test_lengths_are_few():
  lengths = [row_lib.padded_length(x, 64) for x in (1, 64, 65, 97, 129, 385)]
  assert lengths == [64, 64, 96, 128, 192, 512]
  small = [row_lib.padded_length(x, 1) for x in (1, 2, 3, 4, 5, 7)]
  assert small == [1, 2, 3, 4, 6, 8]

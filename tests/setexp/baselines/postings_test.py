"""Sums over rows of a sparse table, against dense ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.setexp.baselines import postings as posting_lib


@pytest.fixture(scope="module")
def dense():
  rng = np.random.default_rng(0)
  dense = rng.normal(size=(50, 700)) * (rng.random((50, 700)) < 0.3)
  dense[0] = 0
  dense[1] = 1  # longer than a chunk of lanes
  return dense.astype(np.float32)


@pytest.fixture(scope="module")
def table(dense):
  return posting_lib.from_scipy(sp.csr_array(dense))


@pytest.mark.parametrize("rows", [[0], [1, 2, 2], [49, 50, -1, 3], range(50)])
def test_weighted_sums_of_rows(dense, table, rows):
  rows = np.array(rows, np.int32)
  weights = np.arange(1.0, len(rows) + 1, dtype=np.float32)
  valid = (rows >= 0) & (rows < 50)
  wanted = (weights * valid) @ dense[np.clip(rows, 0, 49)]
  total = jax.jit(posting_lib.add_rows)(table, rows, weights)
  np.testing.assert_allclose(total, wanted, rtol=1e-4, atol=1e-3)


def test_a_row_and_a_column(dense, table):
  row = jax.jit(posting_lib.take_row)(table, jnp.int32(7))
  back = np.zeros(701)
  back[np.asarray(row.indices)] = row.counts
  np.testing.assert_array_equal(back[:700], dense[7])
  rows, look_up = jnp.array([3, 0, 49, 50, -1]), jax.jit(posting_lib.look_up)
  for item in (0, 5, 699):
    values = look_up(table, rows, jnp.int32(item))
    wanted = [*dense[[3, 0, 49], item], 0, 0]
    np.testing.assert_array_equal(values, wanted)


def test_rows_are_walked_once(dense, table):
  def count(carry, row, place, used):
    return carry.at[jnp.where(used, place, table.items.shape[0])].add(
      1, mode="drop"
    )

  seen = posting_lib.walk(
    table.starts, jnp.array([4, 1]), count, jnp.zeros(table.items.shape[0])
  )
  wanted = np.zeros_like(seen)
  for row in (4, 1):
    wanted[table.starts[row] : table.starts[row + 1]] = 1
  np.testing.assert_array_equal(seen, wanted)

"""Rows of tables by shard equal rows of whole tables."""

import jax.numpy as jnp
import numpy as np

from repr_jax.setexp import batch_rows


def _problem():
  rng = np.random.default_rng(0)
  table = jnp.asarray(rng.normal(size=(12, 3)).astype(np.float32))
  ids = jnp.asarray([[0, 2], [4, 5], [8, 11]], jnp.int32)  # four rows a shard
  rows = jnp.asarray(rng.normal(size=(6, 3)).astype(np.float32))
  return table, ids, rows


def test_rows_are_taken_put_and_added_by_shard():
  table, ids, rows = _problem()
  ids = ids.at[1, 1].set(6)
  flat = ids.reshape(-1)
  np.testing.assert_array_equal(batch_rows.take(table, ids), table[flat])
  np.testing.assert_array_equal(batch_rows.take(table, flat), table[flat])
  for function, want in (
    (batch_rows.put, table.at[flat].set(rows)),
    (batch_rows.add, table.at[flat].add(rows)),
  ):
    np.testing.assert_array_equal(function(table, ids, rows), want)
    np.testing.assert_array_equal(function(table, flat, rows), want)


def test_ids_beyond_the_table_change_nothing():
  table, _, rows = _problem()
  ids = jnp.asarray([1, 5, 12, 13, 14, 15], jnp.int32)
  put = batch_rows.put(table, ids, rows)
  np.testing.assert_array_equal(put[1], rows[0])
  np.testing.assert_array_equal(
    np.delete(put, [1, 5], 0), np.delete(table, [1, 5], 0)
  )


def test_join_undoes_split():
  rows = jnp.arange(20.0).reshape(10, 2)
  own, samples = batch_rows.split(rows, (2, 3))  # each shard: three and two
  np.testing.assert_array_equal(own[:, 0], [0, 2, 4, 10, 12, 14])
  np.testing.assert_array_equal(samples[:, 0], [6, 8, 16, 18])
  np.testing.assert_array_equal(batch_rows.join(own, samples, (2, 3)), rows)
  own, samples = batch_rows.split(rows, (7,))
  np.testing.assert_array_equal(own, rows[:7])
  np.testing.assert_array_equal(batch_rows.join(own, samples, (7,)), rows)

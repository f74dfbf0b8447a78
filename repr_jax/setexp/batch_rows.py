"""Rows of large tables that a batch reads and writes, whole or by shard."""

import chex
import jax
import jax.numpy as jnp
from jax import lax

from repr_jax.setexp.batches import Batch


def counts(batch: Batch, dtype) -> jax.Array:
  """Counts of the features of a batch by entity.

  Args:
    batch: of one step, with features [u], or [S, u / S] by shard.

  Returns:
    The matrix of counts, [b, u].
  """
  b, u = batch.weights.shape[0], batch.features.size
  values = batch.counts.astype(dtype)
  if batch.features.ndim == 1:
    table = jnp.zeros(b * u, dtype)
    table = table.at[batch.cells].set(values, mode="drop", unique_indices=True)
    return table.reshape(b, u)
  # Entities go over one axis of the mesh and features over the other.
  place = batch.cells // u, batch.cells % u
  return (
    jnp.zeros((b, u), dtype)
    .at[place]
    .set(values, mode="drop", unique_indices=True)
  )


def _by_shard(table, ids):
  """The table in parts [S, F / S, ...], and the rows of each, [S, u]."""
  shards = ids.shape[0]
  rows = table.shape[0] // shards
  parts = table.reshape(shards, rows, *table.shape[1:])
  return parts, ids - rows * jnp.arange(shards, dtype=ids.dtype)[:, None]


def take(table: chex.Array, ids: chex.Array) -> jax.Array:
  """Rows of a table.

  Args:
    table: [F, ...].
    ids: distinct rows, int32 [u], or rows of each shard, [S, u / S].

  Returns:
    The rows, [u, ...].
  """

  # The barrier keeps XLA from repeating the gather in each of its users.
  def own(table, ids):
    return table.at[ids].get(mode="clip", unique_indices=True)

  table = jnp.asarray(table)
  if ids.ndim == 1:
    return lax.optimization_barrier(own(table, ids))
  rows = lax.optimization_barrier(jax.vmap(own)(*_by_shard(table, ids)))
  return rows.reshape(ids.size, *table.shape[1:])


def put(table: chex.Array, ids: chex.Array, rows: jax.Array) -> jax.Array:
  """The table with other rows.

  Args:
    table: [F, ...].
    ids: as for `take`; ids of F or more are dropped.
    rows: [u, ...].

  Returns:
    The table, [F, ...].
  """

  def own(table, ids, rows):
    return table.at[ids].set(rows, mode="drop", unique_indices=True)

  return _write(own, table, ids, rows)


def add(table: chex.Array, ids: chex.Array, rows: jax.Array) -> jax.Array:
  """The table with rows added.

  Args:
    table: [F, ...].
    ids: as for `put`, ascending.
    rows: [u, ...].

  Returns:
    The table, [F, ...].
  """

  def own(table, ids, rows):
    return table.at[ids].add(
      rows, mode="drop", unique_indices=True, indices_are_sorted=True
    )

  return _write(own, table, ids, rows)


def _write(own, table, ids, rows):
  if ids.ndim == 1:
    return own(table, ids, rows)
  rows = rows.reshape(*ids.shape, *rows.shape[1:])
  return jax.vmap(own)(*_by_shard(table, ids), rows).reshape(table.shape)


def split(
  rows: jax.Array, shape: tuple[int, ...]
) -> tuple[jax.Array, jax.Array]:
  """Rows of the batch's own features, and of the samples.

  Args:
    rows: [u + s, h]; where features go by shard, each shard's samples follow
      its own features.
    shape: shape of the ids of the batch's own features.

  Returns:
    Both, [u, h] and [s, h].
  """
  parts = rows.reshape(*shape[:-1], -1, rows.shape[1])
  first, second = jnp.split(parts, [shape[-1]], axis=-2)
  width = rows.shape[1]
  return first.reshape(-1, width), second.reshape(-1, width)


def join(
  first: jax.Array, second: jax.Array, shape: tuple[int, ...]
) -> jax.Array:
  """Undoes `split`.

  Args:
    first: rows of the batch's own features, [u, h].
    second: rows of the samples, [s, h].
    shape: shape of the ids of the batch's own features.

  Returns:
    The rows, [u + s, h].
  """
  width = first.shape[1]
  parts = [x.reshape(*shape[:-1], -1, width) for x in (first, second)]
  return jnp.concatenate(parts, axis=-2).reshape(-1, width)

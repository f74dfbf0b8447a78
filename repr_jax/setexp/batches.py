"""Batches of entities in fixed shapes, packed on the host.

Entities differ wildly in how many features they have (one sentence or four
thousand), so a batch is not padded to its longest row: it lists its distinct
features once, and its counts as cells of a small [b, u] matrix over these.
Lists are padded to few different lengths, so that few programs are compiled.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax import errors
from repr_jax.setexp import softmax
from repr_jax.setexp.rows import check_values, padded_length

_SHORTEST = 64


class Batch(NamedTuple):
  """A batch, or with a leading axis several of the same shapes.

  Padding of `features` and `samples` consists of distinct ids of F or more,
  which no table has. Padding of `cells` is b u, which is outside the matrix.
  Over a mesh, `features` and `samples` have one row for each of S shards of the
  tables, [S, u / S] and [S, s / S]; a row has the features of its shard
  (`by_shard`).

  Attributes:
    features: distinct features of the batch, ascending, int32 [u].
    cells: entity * u + place of the feature, distinct, int32 [n].
    counts: the count in each cell, float32 [n].
    weights: 1 for an entity, 0 for padding, float32 [b].
    samples: features drawn for a sampled softmax, int32 [s]; s = 0 if exact.
    log_weights: of the drawn features, -inf for padding, float32 [s].
  """

  features: jax.Array | np.ndarray
  cells: jax.Array | np.ndarray
  counts: jax.Array | np.ndarray
  weights: jax.Array | np.ndarray
  samples: jax.Array | np.ndarray
  log_weights: jax.Array | np.ndarray


def dense_batch(counts: jax.Array) -> Batch:
  """A batch of dense rows: every feature is listed.

  >>> import jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> setexp.dense_batch(jnp.ones((2, 3))).features.tolist()
  [0, 1, 2]

  Args:
    counts: [b, F].

  Returns:
    The batch, of the counts' type.
  """
  size, features = counts.shape
  return Batch(
    jnp.arange(features, dtype=jnp.int32),
    jnp.arange(size * features, dtype=jnp.int32),
    jnp.ravel(counts),
    jnp.ones(size, counts.dtype),
    jnp.zeros(0, jnp.int32),
    jnp.zeros(0, counts.dtype),
  )


def check_counts(counts: sp.csr_array) -> sp.csr_array:
  """Checks counts for packing: merged, sorted, finite, positive.

  Args:
    counts: [X, F].

  Returns:
    float32 CSR [X, F] without explicit zeros; a copy where needed.
  """
  counts = sp.csr_array(counts)
  if counts.dtype != np.float32:
    counts = counts.astype(np.float32)
  if not counts.has_canonical_format or (counts.data == 0).any():
    counts = counts.copy()
    counts.sum_duplicates()
    counts.eliminate_zeros()
  if counts.nnz == 0:
    raise errors.InputError("no entity has a feature: there is nothing to fit")
  check_values(counts.data)
  return counts


def pack(
  counts: sp.csr_array,
  order: np.ndarray,
  proposal: softmax.Proposal | None = None,
  sampled: int = 0,
  rng: np.random.Generator | None = None,
  shortest: tuple[int, int] = (_SHORTEST, _SHORTEST),
) -> Batch:
  """Packs batches of entities into arrays of common shapes.

  Args:
    counts: of all entities, as `check_counts` returns them, [X, F].
    order: rows of each batch's entities, [steps, b]; -1 for padding.
    proposal: where samples of a sampled softmax come from.
    sampled: number of samples; 0 for none.
    shortest: least lengths of the lists of features and of cells.

  Returns:
    The batches, with a leading axis of steps.
  """
  parts = [_cells(counts, rows) for rows in order]
  u = padded_length(max(len(x[0]) for x in parts), shortest[0])
  n = padded_length(max(len(x[3]) for x in parts), shortest[1])
  steps, b = order.shape
  features = np.empty((steps, u), np.int32)
  features[:] = counts.shape[1] + np.arange(u)
  cells = np.full((steps, n), b * u, np.int32)
  values = np.zeros((steps, n), np.float32)
  samples = np.empty((steps, sampled), np.int32)
  log_weights = np.empty((steps, sampled), np.float32)
  for i, (own, row, place, count) in enumerate(parts):
    features[i, : len(own)] = own
    cells[i, : len(count)] = row * u + place
    values[i, : len(count)] = count
    if sampled:
      if proposal is None or rng is None:
        raise ValueError("sampling needs a proposal and a generator")
      drawn, log_weights[i] = softmax.draw(proposal, rng, sampled, own)
      empty = drawn == counts.shape[1]
      # Beyond the padding of `features`, so that all are distinct.
      drawn[empty] += u + np.arange(empty.sum(), dtype=np.int32)
      samples[i] = drawn
  weights = (order >= 0).astype(np.float32)
  return Batch(features, cells, values, weights, samples, log_weights)


def stack(parts: Sequence[Batch], features: int) -> Batch:
  """Packed batches of several runs in one, padded to common lengths.

  Args:
    parts: of each run, with the same entities in a batch and as many steps.
    features: F, columns of the counts.

  Returns:
    The batches, with a leading axis of runs.
  """
  u = max(x.features.shape[-1] for x in parts)
  n = max(x.cells.shape[-1] for x in parts)
  wide = [_widen(Batch(*map(np.asarray, x)), features, u, n) for x in parts]
  return Batch(*(np.stack(field) for field in zip(*wide)))


def _widen(batch: Batch, features: int, u: int, n: int) -> Batch:
  """The same batch with longer lists of features and cells."""
  old, b = batch.features.shape[-1], batch.weights.shape[-1]
  leading = batch.features.shape[:-1]
  new = np.broadcast_to(
    np.arange(features + old, features + u, dtype=np.int32), (*leading, u - old)
  )
  entity, place = np.divmod(batch.cells, np.int32(old))
  cells = np.where(batch.cells < b * old, entity * u + place, b * u)
  longer = [(0, 0)] * len(leading) + [(0, n - cells.shape[-1])]
  # Padding of the samples comes after that of the features.
  empty = batch.samples >= features
  return batch._replace(
    features=np.concatenate([batch.features, new], axis=-1),
    cells=np.pad(cells, longer, constant_values=b * u).astype(np.int32),
    counts=np.pad(batch.counts, longer),
    samples=np.where(empty, batch.samples + (u - old), batch.samples),
  )


def typical_lengths(counts: sp.csr_array, batch: int) -> tuple[int, int]:
  """Padded lengths that most batches fit in, so that they share one program.

  Args:
    counts: of all entities, as `check_counts` returns them, [X, F].

  Returns:
    Lengths of the lists of features and of cells.
  """
  rng = np.random.default_rng(0)
  rows = rng.integers(counts.shape[0], size=(32, batch))
  parts = [_cells(counts, x) for x in rows]
  u = max(len(x[0]) for x in parts)
  n = max(len(x[3]) for x in parts)
  # Cells are cheap, features are rows of the large table.
  return padded_length(u, _SHORTEST), padded_length(n + n // 8, _SHORTEST)


def _cells(counts: sp.csr_array, rows: np.ndarray) -> Sequence[np.ndarray]:
  """Distinct features, and row, place among them, count of each nonzero."""
  starts = counts.indptr[np.maximum(rows, 0)]
  sizes = np.where(rows >= 0, counts.indptr[np.maximum(rows, 0) + 1], starts)
  sizes = (sizes - starts).astype(np.int64)
  ends = np.cumsum(sizes)
  entity = np.repeat(np.arange(len(rows), dtype=np.int64), sizes)
  position = np.arange(ends[-1]) - np.repeat(ends - sizes - starts, sizes)
  own, place = np.unique(counts.indices[position], return_inverse=True)
  return own, entity, place, counts.data[position]


def by_shard(packed: Batch, features: int, shards: int) -> Batch:
  """Lists each batch's features by the shard of the tables that has them.

  A device then reads and writes rows of its own shard alone.

  Args:
    packed: numpy batches with a leading axis of steps, as `pack` gives them.
    features: F.
    shards: S; tables are padded to a multiple of it and cut evenly.

  Returns:
    Batches with features [steps, S, v] and samples [steps, S, t]; their cells
    and weights are in that order.
  """
  length = -(-features // shards)
  u = np.shape(packed.features)[1]
  lists, place = _deal(np.asarray(packed.features), features, length, shards)
  width = lists.shape[1] * lists.shape[2]
  b = np.shape(packed.weights)[1]
  cells = np.asarray(packed.cells, np.int64)
  row, column = np.divmod(cells, u)
  column = np.take_along_axis(place, column, axis=1)
  cells = np.where(row < b, row * width + column, b * width)
  samples, order = _deal(np.asarray(packed.samples), features, length, shards)
  log_weights = np.full((len(samples), samples[0].size), -np.inf, np.float32)
  for step, (to, given) in enumerate(zip(order, np.asarray(packed.samples))):
    there = given < features
    log_weights[step, to[there]] = packed.log_weights[step][there]
  # Beyond the padding of `features`, so that all are distinct.
  samples = np.where(samples >= length * shards, samples + width, samples)
  if b * width >= 2**31:
    raise errors.InputError(
      f"a batch of {b} entities with {width} features has too many cells; "
      "lower the batch size"
    )
  return packed._replace(
    features=lists,
    cells=cells.astype(np.int32),
    samples=samples.astype(np.int32),
    log_weights=log_weights,
  )


def _deal(
  ids: np.ndarray, features: int, length: int, shards: int
) -> tuple[np.ndarray, np.ndarray]:
  """Ids [steps, u] by shard, [steps, S, v], and where each went, [steps, u]."""
  steps, u = ids.shape
  there = ids < features
  owner = np.where(there, ids // length, shards)
  counts = np.stack([np.bincount(x, minlength=shards + 1) for x in owner])
  most = int(counts[:, :shards].max(initial=0))
  width = min(padded_length(most, min(_SHORTEST, length)), length) if u else 0
  lists = np.empty((steps, shards, width), np.int32)
  lists[:] = (shards * length + np.arange(shards * width)).reshape(shards, -1)
  place = np.zeros((steps, u), np.int64)
  for step in range(steps):
    # Ids ascend, so the ids of a shard are adjacent.
    own = np.flatnonzero(there[step])
    shard = owner[step, own]
    first = np.concatenate([[0], np.cumsum(counts[step, :shards])])[shard]
    rank = np.arange(len(own)) - first
    lists[step, shard, rank] = ids[step, own]
    place[step, own] = shard * width + rank
  return lists, place

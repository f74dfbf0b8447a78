"""Rows of feature counts in fixed shapes, and a table of them to multiply.

`Rows` lists the features of an entity with their counts, padded to a common
length. A `Table` holds weighted features of all entities for products with a
vector. Entities of similar length are grouped, so that little is padding (ELL).
A gather along each row is faster on a CPU than a compressed product. Products
with many vectors at once use `ops.sparse`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from repr_jax import errors
from repr_jax.ops import sharded, sparse

_SHORTEST = 8
# Up to 7 vectors are multiplied in turn; 8 at once take a fifth of the time.
_FEW = 7


class Rows(NamedTuple):
  """Feature counts of entities.

  Attributes:
    indices: features, int32 [..., m]; an index outside 0..F-1 is padding, and
      its count is ignored.
    counts: how often each occurs, [..., m].
  """

  indices: Any
  counts: Any


class Table(NamedTuple):
  """Weighted features of X entities.

  Attributes:
    indices: features by group of entities, int32 [n_g, m_g] each.
    values: their weights, [n_g, m_g] each; 0 for padding.
    place: position of each entity among the groups' rows, int32 [X].
    blocks: the same numbers for many products at once, sharded if the entities
      are; None if not stored. Without groups they serve every product.
  """

  indices: tuple[Any, ...]
  values: tuple[Any, ...]
  place: Any
  blocks: sparse.Sparse | sharded.Sharded | None


def rows_from_dense(counts: jax.Array) -> Rows:
  """Rows of a dense matrix: every feature is listed.

  >>> from repr_jax import setexp
  >>> setexp.rows_from_dense([[0.0, 2.0]]).indices.tolist()
  [[0, 1]]

  Args:
    counts: [..., F].

  Returns:
    Rows, fields [..., F].
  """
  counts = jnp.asarray(counts)
  indices = jnp.arange(counts.shape[-1], dtype=jnp.int32)
  return Rows(jnp.broadcast_to(indices, counts.shape), counts)


def check_values(values: np.ndarray) -> None:
  """Refuses feature counts, of any shape, that are negative or not finite."""
  if not np.isfinite(values).all() or (values < 0).any():
    raise errors.InputError("feature counts must be finite and not negative")


def rows_from_scipy(matrix: sp.csr_array, width: int | None = None) -> Rows:
  """Rows of a sparse matrix, padded to the longest.

  >>> import scipy.sparse
  >>> from repr_jax import setexp
  >>> setexp.rows_from_scipy(scipy.sparse.csr_array([[0, 2], [3, 1]]))
  Rows(indices=array([[1, 2],
         [0, 1]], dtype=int32), counts=array([[2., 0.],
         [3., 1.]], dtype=float32))

  Args:
    matrix: [X, F].
    width: entries of a padded row; by default those of the longest row.

  Returns:
    Rows on the host, fields [X, width]; padding has the index F.
  """
  matrix = sp.csr_array(matrix)
  check_values(matrix.data)
  sizes = np.diff(matrix.indptr)
  width = max(int(sizes.max(initial=0)), 1) if width is None else width
  indices = np.full((matrix.shape[0], width), matrix.shape[1], np.int32)
  counts = np.zeros((matrix.shape[0], width), np.float32)
  used = np.arange(width) < sizes[:, None]
  indices[used] = matrix.indices
  counts[used] = matrix.data
  return Rows(indices, counts)


def padded_length(n: int, shortest: int) -> int:
  """The first of shortest times 1, 3/2, 2, 3, 4, 6, ... that is at least n."""
  length = shortest
  while length < n:
    if length * 3 // 2 >= n and length >= 2:
      return length * 3 // 2
    length *= 2
  return length


def by_length(
  matrix: sp.csr_array, shortest: int = _SHORTEST
) -> Iterator[tuple[np.ndarray, Rows]]:
  """Rows of a sparse matrix in groups of similar length.

  Args:
    matrix: [X, F].
    shortest: least length of a group.

  Yields:
    Numbers of the rows, ascending, int64 [n_g], and the rows, [n_g, m_g].
  """
  sizes = np.diff(matrix.indptr)
  distinct, group = np.unique(sizes, return_inverse=True)
  lengths = np.array([padded_length(int(x), shortest) for x in distinct])
  for length in np.unique(lengths):
    rows = np.flatnonzero(lengths[group] == length)
    yield rows, rows_from_scipy(sp.csr_array(matrix[rows]), int(length))


def table_from_scipy(matrix: sp.csr_array) -> Table:
  """The table of a sparse matrix [X, F]."""
  width = matrix.shape[1]
  groups = list(by_length(matrix))
  order = np.concatenate([rows for rows, _ in groups])
  place = np.empty(len(order), np.int32)
  place[order] = np.arange(len(order), dtype=np.int32)
  indices = [jnp.asarray(np.minimum(x.indices, width - 1)) for _, x in groups]
  values = [jnp.asarray(x.counts) for _, x in groups]
  blocks = sparse.from_scipy(matrix, name="features of the entities")
  return Table(tuple(indices), tuple(values), jnp.asarray(place), blocks)


def table_to_scipy(table: Table, width: int) -> sp.csr_array:
  """The matrix [X, F] of a table over F = `width` features."""
  order = np.argsort(np.asarray(table.place))
  parts, start = [], 0
  for own, value in zip(table.indices, table.values):
    rows = order[start : start + own.shape[0]]
    start += own.shape[0]
    owner = np.repeat(rows, own.shape[1])
    parts.append((owner, np.asarray(own).ravel(), np.asarray(value).ravel()))
  owner, column, value = (np.concatenate(x) for x in zip(*parts))
  kept = value != 0
  shape = (len(order), width)
  return sp.csr_array((value[kept], (owner[kept], column[kept])), shape=shape)


def table_from_rows(rows: Rows, width: int) -> Table:
  """The table of weighted rows [X, m] over F = `width` features."""
  valid = (rows.indices >= 0) & (rows.indices < width)
  indices = jnp.where(valid, rows.indices, 0)
  values = jnp.where(valid, rows.counts, 0)
  place = jnp.arange(indices.shape[0], dtype=jnp.int32)
  return Table((indices,), (values,), place, None)


@jax.custom_vjp
def product(table: Table, weights: jax.Array) -> jax.Array:
  """Sums of the entities' values times the weights of their features.

  Args:
    table: of X entities over F features.
    weights: [F]; vmap for many.

  Returns:
    [X].
  """
  return _product(table, weights)


def take_row(table: Table, entity: jax.Array) -> Rows:
  """One entity's weighted features.

  Args:
    table: of X entities.
    entity: its number, int32 [].

  Returns:
    Rows, fields [m] with m the longest length; padding has the value 0.
  """
  place, start = table.place[entity], 0
  width = max(x.shape[1] for x in table.indices)
  indices = jnp.zeros(width, jnp.int32)
  values = jnp.zeros(width, table.values[0].dtype)
  for own, value in zip(table.indices, table.values):
    here = (place >= start) & (place < start + own.shape[0])
    row = jnp.clip(place - start, 0, own.shape[0] - 1)
    more = (0, width - own.shape[1])
    indices = jnp.where(here, jnp.pad(own[row], more), indices)
    values = jnp.where(here, jnp.pad(value[row], more), values)
    start += own.shape[0]
  return Rows(indices, values)


@jax.custom_batching.custom_vmap
def _product(table, weights):
  if not table.indices:
    return sparse.matmat(table.blocks, weights[:, None])[:, 0]
  sums = [
    jnp.sum(value * weights.at[own].get(mode="promise_in_bounds"), axis=1)
    for own, value in zip(table.indices, table.values)
  ]
  return jnp.concatenate(sums)[table.place]


@_product.def_vmap
def _many_products(size, batched, table, weights):
  """[n, X]; a compressed product reads each number once for all vectors."""
  batched = tuple(batched)
  table_batched = any(jax.tree.leaves(batched[0]))
  many = size > _FEW or not table.indices
  if not table_batched and table.blocks is not None and many:
    return sparse.matmat(table.blocks, weights.T).T, True

  def one(item):
    pair = jax.tree.map(
      lambda own, whole, part: part if own else whole,
      batched, (table, weights), item,
    )  # fmt: skip
    return _product(*pair)

  moved = jax.tree.map(
    lambda own, x: x if own else jnp.zeros(size), batched, (table, weights)
  )
  return lax.map(one, moved), True


def _forward(table, weights):
  return _product(table, weights), (table, weights)


def _backward(kept, slope):
  table, weights = kept
  total, start = jnp.zeros_like(weights), 0
  ordered = jnp.zeros_like(slope).at[table.place].set(slope)
  values = []
  for own, value in zip(table.indices, table.values):
    part = ordered[start : start + own.shape[0], None]
    total = total.at[own].add(value * part)
    values.append(part * weights[own])
    start += own.shape[0]
  zeros = jax.tree.map(
    lambda x: (
      jnp.zeros_like(x)
      if jnp.issubdtype(x.dtype, jnp.floating)
      else np.zeros(x.shape, jax.dtypes.float0)
    ),
    table,
  )
  return zeros._replace(values=tuple(values)), total


product.defvjp(_forward, _backward)

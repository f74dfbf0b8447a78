"""The matrices of RESCAL's relations, stored by the rows that they touch.

A relation of a knowledge base names few of the entities: WN18's 18 relations
have 41 thousand rows each, of which a seventh are not empty. So only nonempty
rows of each matrix and of its transpose are stored. Both are needed, because a
product that gathers is several times faster than one that scatters. The rows
are cut into tiles that belong to one matrix each, so that products of tiles
with a small matrix per relation are one batched product, whatever the number
of relations.
"""

import dataclasses
from collections.abc import Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array

from repr_jax.errors import InputError
from repr_jax.ops import sparse
from repr_jax.ops.csr_product import csr_product
from repr_jax.ops.precision import exact_products

_LANES = 4  # parts of about equal work, which run side by side
_TILES = (512, 256, 128, 64, 32, 16, 8)  # rows of a tile, the widest first
_PADDING = 1.1  # rows stored for each row that is not empty, at most


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Tiles:
  """Rows of several matrices [v, v] that are not empty, in L lanes.

  Attributes:
    values: entries of a lane by row, [L, m], zero beyond the last.
    indices: their columns, int32 [L, m].
    indptr: where each row of a lane starts, int32 [L, T * t + 1].
    rows: which row of its matrix each is, v for padding, int32 [L, T, t].
    owner: the matrix of each tile, int32 [L, T].
  """

  values: Array
  indices: Array
  indptr: Array
  rows: Array
  owner: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Slices:
  """K relations: X_k = sum_b mixing[k, b] base_b + ones[k] 11'.

  Attributes:
    by_row: the bases' rows.
    by_column: the bases' columns.
    mixing: [K, number of bases].
    ones: [K].
    norms: squared Frobenius norm of each X_k, [K].
    entities: number of entities v, static.
  """

  by_row: Tiles
  by_column: Tiles
  mixing: Array
  ones: Array
  norms: Array
  entities: int = dataclasses.field(metadata={"static": True})


def make_slices(
  bases: Sequence[scipy.sparse.spmatrix | scipy.sparse.sparray],
  mixing: np.ndarray | None = None,
  ones: np.ndarray | None = None,
  *,
  dtype=np.float32,
) -> Slices:
  """Puts relations on the device, stored by the rows that they touch.

  >>> import numpy as np, scipy.sparse
  >>> from repr_jax import kb
  >>> edges = scipy.sparse.csr_matrix([[0.0, 1.0], [0.0, 0.0]])
  >>> both = kb.make_slices([edges], np.array([[1.0], [-1.0]]), [0.0, 1.0])
  >>> print(both.norms)  # of the relation and of its complement
  [1. 3.]

  Args:
    bases: matrices [v, v] in any scipy format.
    mixing: weight of each matrix in each relation, [K, number of bases]; one
      relation per matrix where None.
    ones: the constant added to all entries of each relation, [K]; 0 where None.
    dtype: of all arrays.

  Returns:
    The slices.
  """
  if not len(bases):
    raise InputError("no relation matrix was given")
  size = bases[0].shape[0]
  for index, base in enumerate(bases):
    if base.shape != (size, size):
      raise InputError(
        f"relation matrix {index} has shape {base.shape}, not {(size, size)}"
      )
  matrices = [_clean(base, index, dtype) for index, base in enumerate(bases)]
  weights = np.eye(len(bases)) if mixing is None else np.asarray(mixing)
  constant = np.zeros(len(weights)) if ones is None else np.asarray(ones)
  norms = []
  for row, one in zip(weights, constant):
    part = sum(
      (w * base.astype(np.float64) for w, base in zip(row, matrices) if w),
      scipy.sparse.csr_matrix((size, size)),
    )
    square = part.power(2).sum()
    norms.append(square + 2 * one * part.sum() + one**2 * float(size) ** 2)
  return Slices(
    _packed(matrices),
    _packed([matrix.T.tocsr() for matrix in matrices]),
    jnp.asarray(weights, dtype),
    jnp.asarray(constant, dtype),
    jnp.asarray(norms, dtype),
    size,
  )


def stack(runs: Sequence[Slices]) -> Slices:
  """Slices of several runs as one batch: every array gets a leading axis.

  All are padded to the longest run, which adds empty rows only.
  """
  size = runs[0].entities

  def join(arrays, fill=0, edge=False):
    shape = np.max([array.shape for array in arrays], axis=0)
    padded = []
    for array in arrays:
      more = [(0, int(n) - m) for n, m in zip(shape, array.shape)]
      padded.append(
        jnp.pad(array, more, mode="edge")
        if edge
        else jnp.pad(array, more, constant_values=fill)
      )
    return jnp.stack(padded)

  def tiles(parts):
    width = min(part.rows.shape[2] for part in parts)
    parts = [_split(part, width) for part in parts]
    return Tiles(
      join([part.values for part in parts]),
      join([part.indices for part in parts]),
      join([part.indptr for part in parts], edge=True),
      join([part.rows for part in parts], size),
      join([part.owner for part in parts]),
    )

  return Slices(
    tiles([run.by_row for run in runs]),
    tiles([run.by_column for run in runs]),
    jnp.stack([run.mixing for run in runs]),
    jnp.stack([run.ones for run in runs]),
    jnp.stack([run.norms for run in runs]),
    size,
  )


def images(tiles: Tiles, dense: Array) -> tuple[Array, ...]:
  """Rows of base_b Q for a dense Q [v, d], as [T, t, d] for each of L lanes.

  Lanes stay separate, since joining them would cost more than the products.
  """
  chex.assert_rank(dense, 2)
  _, count, width = tiles.rows.shape
  products = [
    csr_product(values, indices, indptr, dense)
    for values, indices, indptr in zip(
      tiles.values, tiles.indices, tiles.indptr
    )
  ]
  return tuple(product.reshape(count, width, -1) for product in products)


@exact_products
def mixed_sum(
  tiles: Tiles, rows: Sequence[Array], weights: Array, entities: int
) -> Array:
  """sum_b Y_b W_b for the rows [T, t, d] of Y_b and W [bases, d, k].

  Args:
    tiles: where the rows belong.
    rows: what `images` returned, [T, t, d] for each lane.
    weights: a matrix for each base, [bases, d, k].
    entities: v.

  Returns:
    The sum, [v, k].
  """
  chex.assert_rank([*rows, weights], 3)
  total = jnp.zeros((entities, weights.shape[2]), weights.dtype)
  for lane, owner, place in zip(rows, tiles.owner, tiles.rows):
    turned = jnp.einsum("nti,nij->ntj", lane, weights[owner])
    total = total.at[place].add(turned, mode="drop")
  return total


@exact_products
def inner(
  tiles: Tiles, left: Array, rows: Sequence[Array], bases: int
) -> Array:
  """A' Y_b for a dense A [v, k] and the rows [T, t, d] of Y_b.

  Args:
    tiles: where the rows belong.
    left: A, [v, k].
    rows: what `images` returned, [T, t, d] for each lane.

  Returns:
    The products, [bases, k, d].
  """
  chex.assert_rank([left, *rows], [2] + [3] * len(rows))
  total = jnp.zeros((bases, left.shape[1], rows[0].shape[2]), left.dtype)
  for lane, owner, place in zip(rows, tiles.owner, tiles.rows):
    own = left.at[place].get(mode="fill", fill_value=0)
    parts = jnp.einsum("nti,ntj->nij", own, lane)
    total += jax.ops.segment_sum(parts, owner, bases)
  return total


def _clean(base, index: int, dtype) -> scipy.sparse.csr_matrix:
  return sparse.checked_csr(base, f"relation matrix {index}", dtype)


def _packed(matrices: Sequence[scipy.sparse.csr_matrix]) -> Tiles:
  """Deals the rows of each matrix to the lanes, the fullest first."""
  size = matrices[0].shape[0]
  counts = [np.diff(matrix.indptr) for matrix in matrices]
  orders = [
    np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    for count in counts
  ]
  share = np.array([-(-len(order) // _LANES) for order in orders])
  width = next(
    (t for t in _TILES if (-share % t).sum() <= (_PADDING - 1) * share.sum()),
    _TILES[-1],
  )
  per_base = -(-share // width)
  tiles = int(per_base.sum())
  starts = width * (np.cumsum(per_base) - per_base)
  rows = np.full((_LANES, tiles * width), size, np.int32)
  owner = np.zeros((_LANES, tiles), np.int32)
  owner[:] = np.repeat(np.arange(len(matrices)), per_base)
  lanes = []
  for lane in range(_LANES):
    parts = []
    for start, order, stacked, matrix in zip(
      starts, orders, per_base, matrices
    ):
      own = order[lane::_LANES]
      rows[lane, start : start + len(own)] = own
      empty = scipy.sparse.csr_matrix((stacked * width - len(own), size))
      parts += [matrix[own], empty.astype(matrix.dtype)]
    lanes.append(scipy.sparse.vstack(parts, format="csr"))
  capacity = sparse.bucket_size(max(lane.nnz for lane in lanes))
  values, indices, indptr = sparse.pack(lanes, tiles * width, capacity)
  return Tiles(
    jnp.asarray(values),
    jnp.asarray(indices),
    jnp.asarray(indptr),
    jnp.asarray(rows.reshape(_LANES, tiles, width)),
    jnp.asarray(owner),
  )


def _split(tiles: Tiles, width: int) -> Tiles:
  """The same rows in tiles of `width`, which divides theirs."""
  lanes, _, old = tiles.rows.shape
  return dataclasses.replace(
    tiles,
    rows=tiles.rows.reshape(lanes, -1, width),
    owner=jnp.repeat(tiles.owner, old // width, axis=1),
  )

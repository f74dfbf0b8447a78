"""Matrices whose rows are spread over the devices of a mesh.

Rows are dealt to P shards in rounds of P blocks, so that shards hold about as
many entries each when rows are sorted by frequency. Blocks grow with the number
of the row, so that a process reads few stretches of a file, and short shards
are padded with empty rows. Dense arrays that belong to such a matrix (row
weights, left factors) have their rows in the same dealt order; `deal` and
`gather_rows` go there and back on the host.

A product X Q needs no communication, X' P is one sum over the devices, and
so the spectral code sees an operator like any other.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse
from jax import Array, lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from repr_jax.ops import dense_factorizations as dense
from repr_jax.ops import mesh as meshes
from repr_jax.ops import sparse
from repr_jax.ops.precision import exact_products
from repr_jax.ops.sparse import Sparse

_ROUNDS = 4  # rows n to 2.7 n are dealt in about so many rounds


class Part(NamedTuple):
  """Rows of a matrix that one process has.

  Attributes:
    rows: their numbers, ascending, int [r].
    total: n, rows of all processes.
  """

  rows: np.ndarray
  total: int


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sharded:
  """A matrix [n, d] in S shards of n / S rows, one on each device.

  Attributes:
    parts: a dense array [S, n / S, d], or the fields of a `Sparse` with an
      axis of S in front, whose `shape` is (n / S, d).
    shape: (n, d) with the padding, static.
    mesh: the devices, static.
    axes: names of the axes of the mesh that rows go over, static.
  """

  parts: Array | Sparse
  shape: tuple[int, int] = dataclasses.field(metadata={"static": True})
  mesh: Mesh = dataclasses.field(metadata={"static": True})
  axes: tuple[str, ...] = dataclasses.field(metadata={"static": True})

  @property
  def dtype(self):
    """Type of the entries."""
    return self.parts.dtype


def deal(array: np.ndarray, shards: int, axis: int = 0) -> np.ndarray:
  """Puts rows into the order of the shards, on the host.

  Args:
    array: rows along one axis, [..., n, ...].
    shards: P.

  Returns:
    The same with ceil(n / P) P rows, zero where there was none.
  """
  n = array.shape[axis]
  order = dealt_order(n, shards)
  more = [(0, 0)] * array.ndim
  more[axis] = (0, len(order) - n)
  return np.take(np.pad(array, more), order, axis=axis)


def dealt_order(n: int, shards: int) -> np.ndarray:
  """The row at each place, int [ceil(n / P) P]; from n on for padding."""
  rows = -(-n // shards)
  parts: list[np.ndarray] = []
  start = used = 0
  while used < rows:
    size = min(max(1, start // (_ROUNDS * shards)), rows - used)
    blocks = start + np.arange(size * shards).reshape(shards, size)
    # Every other round goes backwards: the first shard has no advantage.
    parts.append(blocks[::-1] if len(parts) % 2 else blocks)
    start, used = start + size * shards, used + size
  return np.concatenate(parts, axis=1).ravel()


def own_part(n: int, mesh: Mesh | None) -> Part | None:
  """The rows that this process needs of n, dealt over all devices of a mesh.

  Args:
    n: rows of all processes.
    mesh: the devices; rows go over its first axis before the others.

  Returns:
    The rows; None if the process needs all.
  """
  if mesh is None or jax.process_count() == 1:
    return None
  here = jax.process_index()
  owners = np.vectorize(lambda device: device.process_index)(mesh.devices)
  # Along the other axes a row of the mesh has the same rows of the matrix.
  mine = (owners == here).reshape(len(owners), -1).any(axis=1)
  order = dealt_order(n, mesh.size).reshape(len(owners), -1)
  rows = np.sort(order[mine].ravel())
  return Part(rows[rows < n], n)


def gather_rows(array: Any, n: int, shards: int) -> np.ndarray:
  """The inverse of `deal`: rows of an array [n', ...] in order, [n, ...]."""
  host = meshes.to_host(array)
  rows = np.empty((n, *host.shape[1:]), host.dtype)
  order = dealt_order(n, shards)
  rows[order[order < n]] = host[order < n]
  return rows


def from_host(
  matrix: Any,
  mesh: Mesh,
  axes: tuple[str, ...],
  shards: int,
  *,
  blocks: int = 16,
  columns: int | None = None,
  dealt: bool = True,
  part: Part | None = None,
  name: str = "matrix",
) -> Sharded:
  """Lays a matrix out on a mesh; each process packs its own shards alone.

  Args:
    matrix: scipy or numpy, [n, d]; the same on all processes, or the rows of
      this process.
    axes: the axes that rows go over.
    shards: P, which rows are dealt to; a multiple of the devices along the
      axes, so that parts of a mesh and the whole of it agree on the order.
    blocks: blocks of rows in a device's part, as in `sparse.from_scipy`.
    columns: pads a sparse matrix with empty columns up to this number.
    dealt: whether rows are dealt; if not, they stay in order.
    part: which rows the matrix has; None for all.
    name: how error messages call the matrix.

  Returns:
    The matrix, [ceil(n / P) P, max(d, columns)].
  """
  held, d = matrix.shape
  n = held if part is None else part.total
  order = np.arange(meshes.padded_size(n, shards))
  # Places of rows in the matrix; after its last row for those it has not.
  place: np.ndarray = np.full(len(order), held)
  place[slice(held) if part is None else part.rows] = np.arange(held)
  if dealt:
    order = dealt_order(n, shards)
  place = place[order].reshape(meshes.axis_size(mesh, axes), -1)
  if not scipy.sparse.issparse(matrix):
    dense = np.asarray(matrix, np.float32)
    sparse.check_finite(dense, name)

    def rows(index: Any) -> np.ndarray:
      mine = place[index[0]]
      return np.where(
        (mine < held)[..., None], dense[np.minimum(mine, held - 1)], 0
      )

    parts = jax.make_array_from_callback(
      (*place.shape, d), meshes.spec(mesh, axes), rows
    )
    return Sharded(parts, (len(order), d), mesh, axes)
  if part is None or matrix.nnz:
    matrix = sparse.checked_csr(matrix, name)
  width = max(d, columns or 0)
  return Sharded(
    _sparse_parts(matrix, place, width, blocks, mesh, axes),
    (len(order), width),
    mesh,
    axes,
  )


def matmat(x: Sharded, q: Array) -> Array:
  """X Q for Q [d, k] on all devices, as [n, k] in rows as X has them."""
  return _mapped(x, _times, (P(),), P(x.axes))(x.parts, q)


def rmatmat(x: Sharded, p: Array) -> Array:
  """X' P for P [n, k] in rows as X has them, as [d, k] on all devices."""

  def local(part, p):
    return lax.psum(_transposed_times(part, p), x.axes)

  return _mapped(x, local, (P(x.axes),), P())(x.parts, p)


@exact_products
def normal_matmat(x: Sharded, q: Array) -> Array:
  """X'X Q for Q [d, k], as [d, k]; both on all devices, one sum of [d, k]."""

  def local(part, q):
    if isinstance(part, Sparse):
      return lax.psum(sparse.normal_matmat(part, q), x.axes)
    return lax.psum(part.T @ (part @ q), x.axes)

  return _mapped(x, local, (P(),), P())(x.parts, q)


def scale_rows(x: Sharded, scale: Array) -> Sharded:
  """diag(scale) X for a scale [n] in rows as X has them."""

  def local(part, scale):
    if isinstance(part, Sparse):
      return jax.tree.map(lambda a: a[None], sparse.scale_rows(part, scale))
    return (part * scale[:, None])[None]

  parts = _mapped(x, local, (P(x.axes),), P(x.axes))(x.parts, scale)
  return dataclasses.replace(x, parts=parts)


@exact_products
def tall_qr(mesh: Mesh, axes: tuple[str, ...], x: Array) -> tuple[Array, Array]:
  """X = Q R of a tall array [n, d] in rows over the mesh, by two levels.

  Each device computes the QR of its own rows. Every device then computes the
  QR of the stacked R factors. Devices exchange [d, d] each, never a row of X.

  Returns:
    Q [n, d], in rows as X is, and R [d, d] on all devices.
  """

  def local(x):
    q, r = dense.qr(x)
    rows = r.shape[0]
    triangles = lax.all_gather(r, axes, tiled=True)
    inner, r = dense.qr(triangles)
    mine = lax.axis_index(axes) * rows
    return q @ lax.dynamic_slice_in_dim(inner, mine, rows), r

  return meshes.shard_map(local, mesh, (P(axes),), (P(axes), P()))(x)


@exact_products
def _times(part, q):
  return sparse.matmat(part, q) if isinstance(part, Sparse) else part @ q


@exact_products
def _transposed_times(part, p):
  return sparse.rmatmat(part, p) if isinstance(part, Sparse) else part.T @ p


def _mapped(x: Sharded, function: Callable, in_specs, out_specs) -> Callable:
  """The function on each device's part, without the axis of shards."""

  def local(parts, *rest):
    return function(jax.tree.map(lambda a: a[0], parts), *rest)

  return meshes.shard_map(local, x.mesh, (P(x.axes), *in_specs), out_specs)


def _sparse_parts(csr, place, width, blocks, mesh, axes) -> Sparse:
  """Rows at the shards' places [S, n / S] as the fields of one `Sparse`."""
  size, rows = place.shape
  blocks = max(1, min(blocks, rows // 8))
  # Padding is one more row, an empty one.
  counts = np.append(np.diff(csr.indptr), 0)
  entries = [counts[place[:, b::blocks]].sum(axis=1) for b in range(blocks)]
  largest = meshes.from_processes(np.array([np.max(entries)], np.int64))
  capacity = sparse.bucket_size(int(largest.max()))
  csr = scipy.sparse.csr_matrix(
    (csr.data, csr.indices, np.append(csr.indptr, csr.indptr[-1])),
    shape=(csr.shape[0] + 1, width),
  )
  packed: dict[int, tuple[np.ndarray, ...]] = {}

  def fields(shard: int):
    if shard not in packed:
      cut = [csr[place[shard, b::blocks]] for b in range(blocks)]
      by_row = sparse.pack(cut, -(-rows // blocks), capacity)
      turned = [part.T.tocsr() for part in cut]
      packed[shard] = (*by_row, *sparse.pack(turned, width, capacity))
    return packed[shard]

  tall = -(-rows // blocks) + 1
  widths = [capacity, capacity, tall, capacity, capacity, width + 1]

  def field(i: int):
    def part(index: Any) -> np.ndarray:
      return fields(index[0].start or 0)[i][None]

    shape = (size, blocks, widths[i])
    return jax.make_array_from_callback(shape, meshes.spec(mesh, axes), part)

  v, i, p, tv, ti, tp = (field(i) for i in range(len(widths)))
  return Sparse(v, i, p, tv, ti, tp, (rows, width))

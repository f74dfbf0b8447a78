"""Where the arrays of a fit live: on one device, or spread over a mesh.

On a mesh with axes "rows" and "views", V views at a time are decomposed, each
on its own part of the mesh, with its rows over the devices of that part. The
left factors then move, in one exchange, to rows over all devices; there they
are combined. Sums over devices are small: products with X'X ([d, b]), Gram
matrices of factors, and the Gram matrix of all factors, of which each device
keeps its share of rows. No device ever gathers an array of all words.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array, lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from repr_jax.errors import InputError
from repr_jax.multiview import gcca, host_views, streaming
from repr_jax.multiview.host_views import Matrix
from repr_jax.ops import mesh as meshes
from repr_jax.ops import sharded, sparse
from repr_jax.ops.operators import Operator
from repr_jax.ops.precision import exact_products
from repr_jax.ops.sharded import Sharded
from repr_jax.ops.sparse import Sparse
from repr_jax.ops.spectral import top_eigenpairs

AXES = ("rows", "views")


def make(
  mesh: Mesh | None, weights: np.ndarray, view_weights: np.ndarray
) -> "OneDevice | OnMesh":
  """Chooses the placement of a fit with W_j K_j [J, n] and c_j [J]."""
  if mesh is None:
    return OneDevice(weights, view_weights)
  return OnMesh(mesh, weights, view_weights)


class OneDevice:
  """All arrays on JAX's default device.

  Attributes:
    rows: n.
    weights: W_j K_j, [J, n].
    scale: K^(-1/2), [n].
  """

  def __init__(self, weights: np.ndarray, view_weights: np.ndarray):
    self.rows = weights.shape[1]
    self.weights = jnp.asarray(weights)
    self.scale = gcca.support_scale(self.weights, jnp.asarray(view_weights))

  def groups(self, views: int) -> Iterator[list[int]]:
    """Views that are decomposed at a time: one."""
    yield from ([j] for j in range(views))

  def load(self, matrix: Matrix, j: int) -> Sparse | Array:
    """View j [n, d], ready for its SVD."""
    dtype = np.dtype(self.weights.dtype)
    return host_views.device_view(matrix, f"view {j}", dtype)

  load_whole = load

  def weights_of(self, j: int) -> Array:
    """Weights [n] of view j, where the view is."""
    return self.weights[j]

  def rows_of(self, vector: np.ndarray, j: int) -> Array:
    """A number for each row [n], where view j is."""
    del j
    return jnp.asarray(vector)

  def scale_of(self, j: int) -> Array:
    """K^(-1/2) [n], where view j is."""
    del j
    return self.scale

  def spread(self, bases: Sequence[Array]) -> Sequence[Array]:
    """Blocks of M~ [n, m] of a group, where they are combined."""
    return bases

  def to_host(self, tree: Any) -> Any:
    """Arrays where the results are put together."""
    return tree

  def stream(self, rank: int):
    """The state of a streamed combination before any view, u [n, rank]."""
    return streaming.stream_init(self.rows, rank, self.weights.dtype)

  def gather(self, embedding: Array) -> Array:
    """The embedding [n, k] with its rows in order."""
    return embedding


class OnMesh:
  """Views on parts of a mesh, their combination on the whole mesh.

  Attributes:
    rows: n with the padding.
    weights: W_j K_j in dealt order over all devices, [J, rows].
    scale: K^(-1/2) in the same order, [rows].
  """

  def __init__(self, mesh: Mesh, weights: np.ndarray, view_weights: np.ndarray):
    if tuple(mesh.axis_names) != AXES:
      raise InputError(f"the mesh has axes {mesh.axis_names}, not {AXES}")
    self._mesh = mesh
    self._parts = [
      Mesh(mesh.devices[:, v : v + 1], AXES) for v in range(mesh.shape["views"])
    ]
    _check_processes(self._parts)
    self._words = weights.shape[1]
    self._own = sharded.own_part(self._words, mesh)
    self._host = sharded.deal(weights, mesh.size, axis=1)
    self.rows = self._host.shape[1]
    self.weights = meshes.place(self._host, mesh, None, AXES)
    self.scale = _support_scale(self.weights, view_weights)
    host_scale = meshes.to_host(self.scale)
    self._scales = [meshes.place(host_scale, p, AXES) for p in self._parts]

  def groups(self, views: int) -> Iterator[list[int]]:
    """Views that are decomposed at a time: one on each part of the mesh."""
    step = len(self._parts)
    for start in range(0, views, step):
      yield list(range(start, min(start + step, views)))

  def load(self, matrix: Matrix, j: int) -> Sharded:
    """View j [rows, d] on its part of the mesh."""
    return self._load(matrix, j, self._parts[j % len(self._parts)])

  def load_whole(self, matrix: Matrix, j: int) -> Sharded:
    """View j [rows, d] on the whole mesh."""
    return self._load(matrix, j, self._mesh)

  def _load(self, matrix: Matrix, j: int, mesh: Mesh) -> Sharded:
    columns = None
    if scipy.sparse.issparse(matrix):
      columns = sparse.bucket_size(matrix.shape[1])
    return sharded.from_host(
      matrix, mesh, AXES, self._mesh.size, columns=columns, part=self._own,
      name=f"view {j}",
    )  # fmt: skip

  def weights_of(self, j: int) -> Array:
    """Weights [rows] of view j, where the view is."""
    part = self._parts[j % len(self._parts)]
    return meshes.place(self._host[j], part, AXES)

  def rows_of(self, vector: np.ndarray, j: int) -> Array:
    """A number for each row [n], dealt [rows], where view j is."""
    part = self._parts[j % len(self._parts)]
    return meshes.place(sharded.deal(vector, self._mesh.size), part, AXES)

  def scale_of(self, j: int) -> Array:
    """K^(-1/2) [rows], where view j is."""
    return self._scales[j % len(self._parts)]

  def spread(self, bases: Sequence[Array]) -> Sequence[Array]:
    """Blocks of M~ [rows, m] of a group, in rows over all devices.

    Where there are several views, each device sends all but its own share of
    rows to the others of its row of the mesh, and gets as much from them.
    """
    if len(self._parts) == 1:
      return bases
    width = max(basis.shape[1] for basis in bases)
    held: list[Array] = []
    for v, part in enumerate(self._parts):
      if v < len(bases):
        whole = _widened(part, width)(bases[v])
      else:
        whole = _zeros(part, (1, self.rows, width), None, "rows")()
      held.extend(shard.data for shard in whole.addressable_shards)
    stacked = jax.make_array_from_single_device_arrays(
      (len(self._parts), self.rows, width),
      meshes.spec(self._mesh, "views", "rows"),
      held,
    )
    moved = exchange(self._mesh, stacked)
    return [block[:, : b.shape[1]] for block, b in zip(moved, bases)]

  def to_host(self, tree: Any) -> Any:
    """Arrays on the host."""
    return meshes.to_host(tree)

  def stream(self, rank: int):
    """The state of a streamed combination before any view, u [rows, rank]."""
    return _empty_stream(self._mesh, self.rows, rank)()

  def memory(self, k: int, m: int, views: int) -> "MeshMemory":
    """Holds all blocks of M~ until they are combined into k dimensions."""
    return MeshMemory(self._mesh, self.rows, k, m, views)

  def gather(self, embedding: Array) -> np.ndarray:
    """The embedding [n, k] with its rows in order, on the host."""
    return sharded.gather_rows(embedding, self._words, self._mesh.size)


class MeshMemory:
  """One array M~ [rows, J m] in rows over all devices of a mesh."""

  def __init__(self, mesh: Mesh, rows: int, k: int, m: int, views: int):
    self._mesh, self._k, self._m = mesh, k, m
    self._widths: list[int] = []
    self._whole = _zeros(mesh, (rows, views * m), AXES)()

  def add(self, basis: Array) -> None:
    """Takes in a block [rows, m], with rows over all devices."""
    start = np.int32(len(self._widths) * self._m)
    self._widths.append(basis.shape[1])
    self._whole = _write(self._whole, basis, start)

  def finish(self, key: Array) -> tuple[Array, Array, float]:
    """V [rows, k], the eigenvalues [k], and the share that was dropped, 0."""
    gcca.check_rank(self._k, sum(self._widths), self._whole.shape[0])
    v, values = combine(self._mesh, self._m, self._k, self._whole, key)
    return v, values, 0.0

  def inside(self, v: Array) -> list[Array]:
    """M~_j' V [m, k] of each view."""
    every = _coordinates(self._whole, v)
    starts = range(0, every.shape[0], self._m)
    return [every[i : i + width] for i, width in zip(starts, self._widths)]


@functools.partial(jax.jit, static_argnums=0)
def exchange(mesh: Mesh, stacked: Array) -> tuple[Array, ...]:
  """V arrays on parts of a mesh as V arrays over the whole of it.

  Args:
    mesh: with axes "rows" and "views" (static).
    stacked: one array for each part, [V, n, m], in rows over the part.

  Returns:
    V arrays [n, m] in rows over all devices.
  """

  def local(x):
    moved = lax.all_to_all(x, "views", split_axis=1, concat_axis=0, tiled=True)
    return tuple(moved)

  parts = mesh.shape["views"]
  return meshes.shard_map(
    local, mesh, (P("views", "rows"),), (P(AXES),) * parts
  )(stacked)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
@exact_products
def combine(
  mesh: Mesh, width: int, k: int, whole: Array, key: Array
) -> tuple[Array, Array]:
  """`gcca.combine` of blocks that lie side by side, over a mesh.

  Args:
    mesh: with axes "rows" and "views" (static).
    width: columns whose products with all others are formed at a time, which
      divides c (static).
    k: how many vectors (static).
    whole: M~, [n, c], in rows over all devices.
    key: random key for the eigensolver.

  Returns:
    V [n, k], in rows over all devices, and the eigenvalues [k].
  """
  size = whole.shape[1]
  gram = meshes.shard_map(
    functools.partial(_gram_rows, mesh.size, width), mesh, (P(AXES),), P(AXES)
  )(whole)

  def product(q):
    def local(gram, q):
      whole = lax.all_gather(gram @ q, AXES, tiled=True)
      return whole[:size]

    return meshes.shard_map(local, mesh, (P(AXES), P()), P())(gram, q)

  op = Operator((size, size), whole.dtype, product, product, product)
  values, vectors = top_eigenpairs(op, k, key)
  scaled, values = gcca.scaled_eigenvectors(values, vectors)
  return whole @ scaled, values


@exact_products
def _gram_rows(devices: int, width: int, part: Array) -> Array:
  """This device's rows of M~' M~, [c' / P, c], of its part [n / P, c].

  The sum over devices is taken `width` columns at a time and scattered, so
  that none of them ever holds the whole matrix.
  """
  c = part.shape[1]
  more = meshes.padded_size(c, devices) - c

  def columns(start):
    some = lax.dynamic_slice_in_dim(part, start, width, axis=1)
    products = jnp.pad(part.T @ some, ((0, more), (0, 0)))
    return lax.psum_scatter(products, AXES, scatter_dimension=0, tiled=True)

  rows = lax.map(columns, jnp.arange(0, c, width))
  return jnp.moveaxis(rows, 0, 1).reshape(-1, c)


def _check_processes(parts: Sequence[Mesh]) -> None:
  here = jax.process_index()
  for part in parts:
    if all(device.process_index != here for device in part.devices.flat):
      raise InputError(
        f"--mesh has {len(parts)} views on processes with "
        f"{jax.local_device_count()} devices each; every process needs a "
        "device for each, so choose a divisor of that"
      )


_support_scale = jax.jit(gcca.support_scale)
_write = jax.jit(
  lambda whole, basis, start: lax.dynamic_update_slice(
    whole, basis, (jnp.zeros_like(start), start)
  ),
  donate_argnums=0,
)
_coordinates = jax.jit(exact_products(lambda whole, v: whole.T @ v))


@functools.cache
def _widened(part: Mesh, width: int) -> Callable[[Array], Array]:
  """Pads [n, m] to [1, n, width], each device its own rows."""
  return jax.jit(
    lambda x: jnp.pad(x, ((0, 0), (0, width - x.shape[1])))[None],
    out_shardings=meshes.spec(part, None, "rows"),
  )


@functools.cache
def _zeros(mesh: Mesh, shape: tuple[int, ...], *axes) -> Callable[[], Array]:
  """Makes an array of zeros that is sharded from the start."""
  layout = meshes.spec(mesh, *axes)
  return jax.jit(lambda: jnp.zeros(shape), out_shardings=layout)


@functools.cache
def _empty_stream(mesh: Mesh, rows: int, rank: int) -> Callable:
  everywhere = meshes.spec(mesh)
  state = jax.eval_shape(lambda: streaming.stream_init(rows, rank))
  shardings = state._replace(
    u=meshes.spec(mesh, AXES), s=everywhere, lost=everywhere, total=everywhere
  )
  return jax.jit(
    lambda: streaming.stream_init(rows, rank), out_shardings=shardings
  )

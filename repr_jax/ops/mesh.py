"""Meshes of devices: their axes, and the placement of arrays on them.

Thin helpers over JAX's own `Mesh`, `NamedSharding` and `shard_map`. Dense code
needs no change: `jit` partitions a program whose arrays are laid out on a mesh.
Programs that the compiler cannot partition (sparse products, decompositions)
are mapped over the shards by `shard_map`.
"""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from repr_jax.errors import InputError

try:
  _shard_map: Any = jax.shard_map
except AttributeError:  # an older JAX
  from jax.experimental import shard_map as _older

  _shard_map = _older.shard_map

T = TypeVar("T")

# Bytes of a sharded array that are brought to the host at a time.
_BLOCK_BYTES = 1 << 28
_CHECK = next(
  name
  for name in inspect.signature(_shard_map).parameters
  if name in ("check_vma", "check_rep")
)


def make_mesh(
  text: str | None, axes: Sequence[str], devices: Sequence[Any] | None = None
) -> Mesh | None:
  """The mesh that a text such as `rows:4,views:2` describes.

  Args:
    text: axes with their sizes; None or empty for no mesh.
    axes: names that the program knows, in the order of the mesh. Axes that
      the text leaves out have size 1.
    devices: of all processes; by default all that JAX has.

  Returns:
    A mesh with all the axes, or None.
  """
  if not text:
    return None
  sizes: dict[str, int] = {}
  for part in text.split(","):
    name, _, size = (x.strip() for x in part.partition(":"))
    if name not in axes:
      raise InputError(
        f"--mesh={text}: there is no axis {name!r} here; there are "
        f"{', '.join(axes)}, as in --mesh={axes[0]}:4"
      )
    if name in sizes:
      raise InputError(f"--mesh={text}: {name!r} stands there twice")
    if not size.isascii() or not size.isdigit() or int(size) < 1:
      raise InputError(
        f"--mesh={text}: the size of {name!r} must be a positive whole "
        f"number, not {size!r}"
      )
    sizes[name] = int(size)
  available = list(jax.devices() if devices is None else devices)
  wanted = math.prod(sizes.values())
  count = len(available)
  if wanted != count:
    hint = (
      f" (on a CPU, XLA_FLAGS=--xla_force_host_platform_device_count={wanted} "
      f"gives a process {wanted} devices)"
    )
    raise InputError(
      f"--mesh={text} is a mesh of {wanted} devices, and there are {count}; "
      f"choose sizes whose product is {count}, as --mesh={axes[0]}:{count}"
      + (hint if devices is None else "")
    )
  shape = [sizes.get(name, 1) for name in axes]
  return Mesh(np.array(available, object).reshape(shape), tuple(axes))


def own_devices() -> Mesh | None:
  """A mesh of this process' devices, axis "devices"; None for one device."""
  own = jax.local_devices()
  return Mesh(np.array(own, object), ("devices",)) if len(own) > 1 else None


def axis_size(mesh: Mesh, axes: str | Sequence[str]) -> int:
  """Devices along one axis of a mesh, or along several together."""
  names = [axes] if isinstance(axes, str) else axes
  return math.prod(mesh.shape[name] for name in names)


def padded_size(size: int, shards: int) -> int:
  """The next multiple of the number of shards."""
  return -(-size // shards) * shards


def spec(mesh: Mesh, *axes: Any) -> NamedSharding:
  """The sharding of dimensions over these axes; None replicates one."""
  return NamedSharding(mesh, PartitionSpec(*axes))


def place(array: np.ndarray | jax.Array, mesh: Mesh, *axes: Any) -> jax.Array:
  """Lays a host array out on a mesh; each process puts its own part there.

  Args:
    array: the same on all processes, [...]; dimensions that go over an axis
      are multiples of its size.
    *axes: for each leading dimension the axes that it goes over, or None.

  Returns:
    The array on the mesh, of the same shape.
  """
  host = np.asarray(array)
  return jax.make_array_from_callback(
    host.shape, spec(mesh, *axes), lambda index: host[index]
  )


def to_host(tree: T) -> T:
  """Brings whole arrays to every process.

  Parts on other processes' devices come block by block, so that no device
  ever holds a whole array.

  Args:
    tree: of arrays of any shape.

  Returns:
    The tree with numpy arrays.
  """
  return jax.tree.map(_array_to_host, tree)


def from_processes(array: np.ndarray) -> np.ndarray:
  """Concatenates the arrays of all processes, on every process.

  Args:
    array: of this process, [n, ...]; n may differ between processes.

  Returns:
    [sum of all n, ...], in the order of the processes.
  """
  if jax.process_count() == 1:
    return array
  # Bytes, since JAX would shorten 64-bit types.
  raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
  gather = multihost_utils.process_allgather
  sizes = np.asarray(gather(np.array([raw.size], np.int32))).ravel()
  padded = np.pad(raw, (0, int(sizes.max()) - raw.size))
  parts = np.asarray(gather(padded)).reshape(len(sizes), -1)
  whole = b"".join(x[:size].tobytes() for x, size in zip(parts, sizes))
  return np.frombuffer(whole, array.dtype).reshape(-1, *array.shape[1:])


def constrain(x: T, mesh: Mesh | None, *axes: Any) -> T:
  """Tells the compiler the layout of a value; does nothing without a mesh.

  Args:
    x: array or tree of arrays of any shape.
    mesh: the mesh, or None.
    *axes: for each leading dimension the axes that it goes over, or None.

  Returns:
    The same value.
  """
  if mesh is None:
    return x
  return jax.lax.with_sharding_constraint(x, spec(mesh, *axes))


def constrain_last(x: jax.Array, mesh: Mesh | None) -> jax.Array:
  """`constrain` with the last dimension of [..., b] over all devices."""
  if mesh is None:
    return x
  return constrain(x, mesh, *[None] * (x.ndim - 1), mesh.axis_names)


def shard_map(
  function: Callable, mesh: Mesh, in_specs: Any, out_specs: Any
) -> Callable:
  """JAX's `shard_map`, under the name and arguments of any version.

  The check of replication is off, since loops and decompositions have no rule
  for it. The caller ensures that outputs are replicated where `out_specs` says
  so.

  Args:
    function: from parts on one device to parts on one device; sums and
      gathers over the mesh are `jax.lax` collectives inside.
    out_specs: how the results were cut.

  Returns:
    A function of whole arrays.
  """
  options: dict[str, Any] = {_CHECK: False}
  return _shard_map(
    function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options
  )


def _array_to_host(x):
  if not isinstance(x, jax.Array) or x.is_fully_addressable:
    return np.asarray(x)
  if x.is_fully_replicated:
    return np.asarray(x.addressable_data(0))
  sharding = x.sharding
  if not isinstance(sharding, NamedSharding):
    raise TypeError(f"an array laid out by {sharding} cannot be gathered")
  n, block = x.shape[0], max(1, _BLOCK_BYTES // max(1, x.nbytes // x.shape[0]))
  size, whole = min(block, n), np.empty(x.shape, x.dtype)
  for start in range(0, n, size):
    begin = min(start, n - size)  # the last block ends with the array
    part = _replicated_slice(sharding.mesh)(x, np.int32(begin), size)
    whole[begin : begin + size] = np.asarray(part.addressable_data(0))
  return whole


@functools.cache
def _replicated_slice(mesh):
  return jax.jit(
    lambda x, start, size: jax.lax.dynamic_slice_in_dim(x, start, size),
    static_argnums=2,
    out_shardings=spec(mesh),
  )

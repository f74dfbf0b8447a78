"""Programs to compile, and arguments that are shapes: no array is made."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import (
  Mesh,
  NamedSharding,
  PartitionSpec,
  SingleDeviceSharding,
)

WHOLE = PartitionSpec()


class Program(NamedTuple):
  """A program to compile.

  Attributes:
    name: as a user calls it.
    lower: gives JAX's lowered program, which has `compile`.
    shared: whether a mesh of devices can share it.
  """

  name: str
  lower: Callable[[], Any]
  shared: bool = True


class Shapes(NamedTuple):
  """Makes shapes of arguments on one device, or over a mesh.

  Attributes:
    mesh: the mesh, or None.
    device: the device, where there is no mesh.
  """

  mesh: Mesh | None
  device: Any

  def __call__(
    self,
    shape: tuple[int, ...],
    dtype: Any = jnp.float32,
    axes: PartitionSpec = WHOLE,
  ) -> Any:
    """An array sharded over axes of the mesh; absent axes are ignored."""
    where: Any = SingleDeviceSharding(self.device)
    if self.mesh is not None:
      where = NamedSharding(self.mesh, axes)
    return jax.ShapeDtypeStruct(shape, dtype, sharding=where)

  def ids(self, *shape: int) -> Any:
    """Whole numbers, the same on every device."""
    return self(shape, jnp.int32)

  def like(self, tree: Any) -> Any:
    """The shapes of a tree, whole on every device."""
    return jax.tree.map(lambda x: self(jnp.shape(x), jnp.result_type(x)), tree)

  def key(self, count: int | None = None) -> Any:
    """A random key, or as many as are asked for."""
    lead = () if count is None else (count,)
    return self(lead, jax.eval_shape(lambda: jax.random.key(0)).dtype)

"""The programs of experiments as shapes: what `launch.compile` compiles.

No array is made, and no data is read: sizes come as flags.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse as sp
from jax.sharding import (
  Mesh,
  NamedSharding,
  PartitionSpec,
  SingleDeviceSharding,
)

from repr_jax import kb, setexp
from repr_jax.errors import InputError
from repr_jax.kb import rescal_als
from repr_jax.multiview import gcca, sharding, streaming
from repr_jax.ops import mesh as meshes
from repr_jax.ops import sharded, sparse
from repr_jax.ops.svd_updates import IncrementalSVD
from repr_jax.setexp import batches
from repr_jax.setexp import sharding as vae_placement
from repr_jax.setexp import train as vae_training

SIZES = {
  "words": (100_000, "mvlsa: words, N."),
  "columns": (14_336, "mvlsa: columns of a view."),
  "entries": (9_000_000, "mvlsa: nonzero counts of a view."),
  "views": (8, "mvlsa: views that are combined."),
  "m": (300, "mvlsa: rank of each view's SVD."),
  "k": (300, "mvlsa: dimension of the vectors."),
  "features": (105_448, "nvse: features, F."),
  "hidden": (500, "nvse: width of the first layer."),
  "dim": (50, "nvse: numbers in a concept."),
  "batch_size": (64, "nvse: entities in a step."),
  "touched": (8192, "nvse: distinct features of a batch."),
  "entities": (16_255, "rescal: entities."),
  "rank": (400, "rescal: numbers per entity."),
}
EXPERIMENTS = ("mvlsa", "nvse", "rescal")
_BLOCKS = 16
_FEW = 7919  # features of a small problem; no other size is this
_WHOLE = PartitionSpec()


class Program(NamedTuple):
  """A function to compile, and the shapes of its arguments."""

  name: str
  lower: Callable[[], Any]


def programs(
  experiment: str, sizes: dict[str, int], mesh: str | None, devices: list[Any]
) -> Iterator[Program]:
  """The programs of one experiment.

  Args:
    experiment: one of `EXPERIMENTS`.
    sizes: value of each of `SIZES`.
    mesh: as the experiment's --mesh; None for one device.
    devices: to compile for.
  """
  if experiment == "mvlsa":
    yield from _mvlsa(
      sizes, meshes.make_mesh(mesh, sharding.AXES, devices), devices[0]
    )
  elif experiment == "nvse":
    yield _vae(
      sizes, meshes.make_mesh(mesh, vae_placement.AXES, devices), devices[0]
    )
  else:
    if mesh:
      raise InputError("--mesh: rescal runs on one device; leave it out")
    yield _rescal(sizes, devices[0])


class _Shapes(NamedTuple):
  """Arguments on one device, or over a mesh."""

  mesh: Mesh | None
  device: Any

  def __call__(self, shape, dtype=jnp.float32, axes=_WHOLE) -> Any:
    where: Any = SingleDeviceSharding(self.device)
    if self.mesh is not None:
      where = NamedSharding(self.mesh, axes)
    return jax.ShapeDtypeStruct(shape, dtype, sharding=where)

  def like(self, tree: Any) -> Any:
    """The shapes of a tree, whole on every device."""
    return jax.tree.map(lambda x: self(x.shape, x.dtype), tree)

  def key(self) -> Any:
    """A random key."""
    return self.like(jax.eval_shape(lambda: jax.random.key(0)))


def _mvlsa(size, mesh: Mesh | None, device) -> Iterator[Program]:
  n, d, m, k = (size[x] for x in ("words", "columns", "m", "k"))
  shape = _Shapes(mesh, device)
  shards = 1 if mesh is None else mesh.size
  n = meshes.padded_size(n, shards)
  axes = PartitionSpec(sharding.AXES)
  rows = n // shards
  capacity = sparse.bucket_size(-(-size["entries"] // shards // _BLOCKS))
  lead: tuple[int, ...] = () if mesh is None else (shards,)
  values = shape((*lead, _BLOCKS, capacity), jnp.float32, axes)
  indices = shape((*lead, _BLOCKS, capacity), jnp.int32, axes)
  by_row = shape((*lead, _BLOCKS, -(-rows // _BLOCKS) + 1), jnp.int32, axes)
  by_column = shape((*lead, _BLOCKS, d + 1), jnp.int32, axes)
  view: Any = sparse.Sparse(
    values, indices, by_row, values, indices, by_column, (rows, d)
  )
  if mesh is not None:
    view = sharded.Sharded(view, (n, d), mesh, sharding.AXES)
  factor = jax.jit(gcca.factor_view, static_argnums=1)
  weights = shape((n,), jnp.float32, axes)
  yield Program(
    "factor a view", lambda: factor.lower(view, m, weights, shape.key())
  )
  block = shape((n, m), jnp.float32, axes)
  if mesh is None:
    factors = [
      gcca.ViewFactor(block, shape((m,)), shape((d, m)), shape((d,)), weights)
      for _ in range(size["views"])
    ]
    combine = jax.jit(gcca.combine, static_argnums=1)
    yield Program(
      "combine the views", lambda: combine.lower(factors, k, shape.key())
    )
  else:
    whole = shape((n, size["views"] * m), jnp.float32, axes)
    yield Program(
      "combine the views",
      lambda: sharding.combine.lower(mesh, m, k, whole, shape.key()),
    )
  left = shape((n, k), jnp.float32, axes)
  state = IncrementalSVD(left, shape((k,)), shape(()), shape(()))
  yield Program(
    "or merge a view as a stream",
    lambda: jax.jit(streaming.stream_update).lower(state, block),
  )


def _vae(size, mesh: Mesh | None, device) -> Program:
  config = setexp.Config(dim=size["dim"], hidden=(size["hidden"],))
  b, u = size["batch_size"], size["touched"]
  init, _ = setexp.vae(config)
  small = setexp.statistics_from_scipy(config, sp.eye_array(_FEW, format="csr"))
  shape = _Shapes(mesh, device)
  features = size["features"]
  if mesh is not None:
    features = meshes.padded_size(features, mesh.shape["features"])
    if b % mesh.shape["batch"]:
      raise InputError(
        f"--batch_size={b} cannot be shared by {mesh.shape['batch']} devices; "
        f"{meshes.padded_size(b, mesh.shape['batch'])} can"
      )
  abstract = jax.eval_shape(init, jax.random.key(0), small)

  def long(x):
    table = x.ndim and x.shape[0] == _FEW
    wide = (features, *x.shape[1:]) if table else x.shape
    over = PartitionSpec("features") if table and x.ndim > 1 else _WHOLE
    return shape(wide, x.dtype, over)

  state = jax.tree.map(long, abstract)
  cells = 4 * u
  packed = batches.Batch(
    shape((1, u), jnp.int32), shape((1, cells), jnp.int32), shape((1, cells)),
    shape((1, b), jnp.float32, PartitionSpec(None, "batch")),
    shape((1, 0), jnp.int32), shape((1, 0)),
  )  # fmt: skip
  noise = shape(
    (1, 1, b, size["dim"]), jnp.float32, PartitionSpec(None, None, "batch")
  )
  return Program(
    "a step of training",
    lambda: vae_training.run.lower(
      config, optax.adam, state, packed, noise, setexp.Hyper()
    ),
  )


def _rescal(size, device) -> Program:
  shape = _Shapes(None, device)
  v, d = size["entities"], size["rank"]
  # A tree: each vertex but the root has one parent.
  child = np.arange(1, v)
  edges = sp.csr_array((np.ones(v - 1), (child, (child - 1) // 2)), (v, v))
  slices = kb.make_slices([sp.csr_matrix(edges)])
  start = functools.partial(rescal_als.init, rank=d, start="random")
  state = jax.eval_shape(
    lambda s, key: start(s, key=key), slices, jax.random.key(0)
  )
  return Program(
    "an update",
    lambda: rescal_als.update.lower(shape.like(slices), shape.like(state)),
  )

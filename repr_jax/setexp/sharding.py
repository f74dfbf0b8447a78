"""The autoencoder over many devices: where its state and batches live.

On a mesh with axes "batch" and "features", the compiler partitions the step of
one device (`train.step`). Entities of a batch are sharded over "batch". The two
tables with a row for each feature, the encoder's first layer and the decoder,
are sharded over "features" with their optimizer state; all else is replicated.
A batch lists its features by shard (`batches.by_shard`), so that a device reads
and writes only rows of its own shard. Devices along "features" exchange sums
of [b, h] and, for the softmax, a maximum and a sum of [b]. Gradients of the
rows [u, h] are summed over "batch".

Dropout masks depend on the order of the listed features, so runs on different
meshes drop different inputs. All else agrees with one device up to rounding.

Features are padded to a multiple of the axis with rows of bias -1e30, whose
probability and gradient are zero.
"""

import jax
import numpy as np
from jax.sharding import Mesh

from repr_jax.errors import InputError
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import autoencoder, train
from repr_jax.setexp.batches import Batch, by_shard

AXES = ("batch", "features")
_NEVER = -1e30


def place_state(
  mesh: Mesh, state: train.State, smoothing: float | None = None
) -> train.State:
  """Places a training state on a mesh.

  Args:
    mesh: with axes "batch" and "features".
    state: as `train.init_state` gives it, rows [F, n h].

  Returns:
    The same with F padded to a multiple of the axis "features".
  """
  if tuple(mesh.axis_names) != AXES:
    raise InputError(f"the mesh has axes {mesh.axis_names}, not {AXES}")
  features = state.decoder.shape[0]
  more = meshes.padded_size(features, mesh.shape["features"]) - features
  if more and smoothing is not None:
    raise InputError(
      f"{features} features do not divide by {mesh.shape['features']} "
      "devices, and label smoothing has no place for padding; choose another "
      "mesh or no smoothing"
    )
  never = np.zeros((more, state.decoder.shape[1]), np.float32)
  never[:, -1] = _NEVER

  def long(x):
    return meshes.place(np.pad(x, ((0, more), (0, 0))), mesh, "features")

  decoder = np.concatenate([np.asarray(state.decoder), never])
  return train.State(
    long(state.rows),
    jax.tree.map(lambda x: meshes.place(x, mesh), state.encoder),
    meshes.place(decoder, mesh, "features"),
    tuple(
      long(x) if x.shape == state.decoder.shape else meshes.place(x, mesh)
      for x in state.optimizer
    ),
    autoencoder.Inputs(*(meshes.place(x, mesh) for x in state.inputs)),
  )


def place_batches(
  mesh: Mesh, packed: Batch, noise: jax.Array, features: int
) -> tuple[Batch, jax.Array]:
  """Places packed batches on a mesh.

  Args:
    mesh: with axes "batch" and "features".
    packed: batches, with a leading axis of steps.
    noise: standard normal, [steps, samples, b, d].
    features: F, without padding.

  Returns:
    Both; entities are sharded over "batch", lists over "features".
  """
  entities, parts = noise.shape[2], mesh.shape["batch"]
  if entities % parts:
    raise InputError(
      f"a batch of {entities} entities cannot be shared by {parts} devices; "
      f"choose a multiple of {parts}, or a mesh with fewer in the axis batch"
    )
  axes: dict[str, tuple[str | None, ...]] = {"weights": (None, "batch")}
  if mesh.shape["features"] > 1:
    packed = by_shard(packed, features, mesh.shape["features"])
    axes |= {"features": (None, "features"), "samples": (None, "features")}
  placed = {
    name: meshes.place(x, mesh, *axes.get(name, ()))
    for name, x in packed._asdict().items()
  }
  return Batch(**placed), meshes.place(noise, mesh, None, None, "batch")


def on_host(params: autoencoder.Params, features: int) -> autoencoder.Params:
  """Parameters on the host without the padding, tables [features, ...]."""
  whole = meshes.to_host(params)
  return whole._replace(
    table=whole.table[:features], decoder=whole.decoder[:features]
  )

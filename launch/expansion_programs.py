"""Programs of `nvse` as shapes, and the autoencoder that `cmr` trains too."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse as sp
from jax.sharding import PartitionSpec

from launch.shapes import WHOLE, Program, Shapes
from repr_jax import setexp
from repr_jax.errors import InputError
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import batches, train
from repr_jax.setexp.baselines import sgns

_FEW = 7919  # features of a small problem; no other size equals it
_SOME = 7907  # and its entities
_CELLS = 4  # counts of a batch for each of its distinct features


def nvse(size: Mapping[str, int], shape: Shapes) -> Iterator[Program]:
  """Programs of `experiments.nvse`.

  Yields:
    The programs; over a mesh the step of training alone.
  """
  yield vae_step(size, shape)
  if shape.mesh is None:
    yield from _expand(size, shape)
    yield _word2vecf(size, shape)


def vae_step(size: Mapping[str, int], shape: Shapes) -> Program:
  """A step of the autoencoder, tables over the axis "features".

  Args:
    size: features, hidden, dim, batch_size and touched.
  """
  config = setexp.Config(dim=size["dim"], hidden=(size["hidden"],))
  b, u = size["batch_size"], size["touched"]
  init, _ = setexp.vae(config)
  small = setexp.statistics_from_scipy(config, sp.eye_array(_FEW, format="csr"))
  features, mesh = size["features"], shape.mesh
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
    over = PartitionSpec("features") if table and x.ndim > 1 else WHOLE
    return shape(wide, x.dtype, over)

  state = jax.tree.map(long, abstract)
  cells = _CELLS * u
  listed = shape.ids(1, u)
  if mesh is not None and mesh.shape["features"] > 1:
    shards = mesh.shape["features"]  # each has an equal share of the features
    listed = shape(
      (1, shards, -(-u // shards)), jnp.int32, PartitionSpec(None, "features")
    )
  packed = batches.Batch(
    listed, shape.ids(1, cells), shape((1, cells)),
    shape((1, b), jnp.float32, PartitionSpec(None, "batch")),
    shape(
      (*listed.shape[:-1], 0), jnp.int32, listed.sharding.spec
    ) if mesh is not None else shape.ids(1, 0),
    shape((1, 0)),
  )  # fmt: skip
  noise = shape(
    (1, 1, b, size["dim"]), jnp.float32, PartitionSpec(None, None, "batch")
  )
  return Program(
    "a step of training",
    lambda: train.run.lower(
      config, optax.adam, state, packed, noise, setexp.Hyper()
    ),
  )


def _expand(size: Mapping[str, int], shape: Shapes) -> Iterator[Program]:
  """The program that expands a batch of queries, by any ranking."""
  config = setexp.Config(dim=size["dim"], hidden=(size["hidden"],))
  rows = setexp.Rows(
    jax.ShapeDtypeStruct((_SOME, size["row"]), jnp.int32),
    jax.ShapeDtypeStruct((_SOME, size["row"]), jnp.float32),
  )
  small = setexp.statistics_from_scipy(config, sp.eye_array(_FEW, format="csr"))

  def make(key, rows):
    params = setexp.init(config, key, small)
    return setexp.make_model(config, params, small.inputs, rows)

  abstract = jax.eval_shape(make, jax.random.key(0), rows)
  longer = {_FEW: size["features"], _SOME: size["entities"]}
  longer[_SOME * size["row"]] = size["entities"] * size["row"]
  longer[_FEW + 1] = size["features"] + 1
  longer[_SOME + 1] = size["entities"] + 1

  def long(x):
    return shape(tuple(longer.get(n, n) for n in x.shape), x.dtype)

  model = jax.tree.map(long, abstract)
  few = setexp.Rows(
    np.zeros((2, size["row"]), np.int32), np.ones((2, size["row"]), np.float32)
  )
  query = setexp.query_of_rows(few, np.arange(2), np.ones(2, np.float32))
  queries: Any = jax.tree.map(
    lambda x: shape((size["queries"], *jnp.shape(x)), jnp.result_type(x)), query
  )
  best = min(100, size["entities"])
  ranking = shape.like(setexp.make_ranking())
  yield Program(
    "expand queries", lambda: setexp.expand.lower(model, queries, ranking, best)
  )


def _word2vecf(size: Mapping[str, int], shape: Shapes) -> Program:
  config = sgns.Config(dim=size["dim"])
  features, b = size["features"], config.batch_size
  noise = sgns.Noise(shape((features,)), shape.ids(features))
  state = sgns.State(
    shape((size["entities"], config.dim)),
    shape((features, config.dim)),
    shape.key(),
  )
  pairs = sgns.Batch(
    shape.ids(1, b), shape.ids(1, b), shape((1, b)), shape((1,))
  )
  return Program(
    "a step of word2vecf", lambda: sgns.train.lower(config, noise, state, pairs)
  )

"""Set expansion with the entities over the devices of a mesh."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from repr_jax.errors import InputError
from repr_jax.ops import mesh as meshes
from repr_jax.ops import sharded, topk
from repr_jax.setexp import rows as row_lib
from repr_jax.setexp.expansion import (
  Expansion,
  Model,
  PaddedQuery,
  Ranking,
  cosine_side,
  query_members,
  score_entities,
)


def expand_sharded(
  model: Model, mesh: Mesh, queries: PaddedQuery, ranking: Ranking, k: int
) -> Expansion:
  """`expand` with the entities over the devices of a mesh.

  >>> import jax, numpy as np, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics_from_scipy(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> model = setexp.model_from_scipy(config, params, statistics.inputs, counts)
  >>> queries = setexp.pad_queries(model, [setexp.make_query(counts, [1])])
  >>> mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("entities",))
  >>> placed = setexp.place_model(model, mesh)
  >>> ranking = setexp.make_ranking("xi")
  >>> setexp.expand_sharded(placed, mesh, queries, ranking, 1).ids.tolist()
  [[0]]

  Args:
    model: the model, from `place_model` unless there is one device.
    mesh: the devices, all axes together (static).
    queries: n queries.
    ranking: weights of the scores.
    k: entities for each (static).

  Returns:
    The entities, on all devices.
  """
  axes, size = mesh.axis_names, model.features.place.shape[0]
  table = model.features.blocks
  if mesh.size > 1 and not isinstance(table, sharded.Sharded):
    raise InputError("the model is on one device: lay it out by place_model")
  members = jax.vmap(lambda query: query_members(model, query))(queries)
  cosine = cosine_side(model)._replace(inputs=None)
  # Members come as vectors, since their rows may be on other devices.
  asked = queries._replace(
    ids=jnp.full_like(jnp.asarray(queries.ids), -1), encoded=members
  )
  features = model.features
  whole, cut = PartitionSpec(), PartitionSpec(None, axes)
  rows = PartitionSpec(axes)
  of_table: Any = whole
  if isinstance(table, sharded.Sharded):
    parts: Any = table.parts
    over: Any = rows
    features = row_lib.Table((), (), features.place, parts)
    of_table = row_lib.Table((), (), whole, over)

  def local(rest, side, cosine, features, asked, ids, ranking):
    if features.blocks is not None and not features.indices:
      part = jax.tree.map(lambda x: x[0], features.blocks)
      features = features._replace(blocks=part)
    here = dataclasses.replace(
      rest, side=side, cosine=cosine, features=features
    )
    width = side.constants.shape[1]
    start = lax.axis_index(axes) * width

    def one(query, ids):
      scores = score_entities(here, query, ranking)
      own = jnp.where(ids < start, width, ids - start)
      scores = scores.at[own].set(-jnp.inf, mode="drop")
      scores = jnp.where(start + jnp.arange(width) < size, scores, -jnp.inf)
      values, places = topk.top_k(scores, min(k, width))
      return values, start + places

    values, places = jax.vmap(one)(asked, ids)
    return topk.collected_top_k(values, places, k, axes)

  nothing: Any = None
  rest = dataclasses.replace(model, side=nothing, features=nothing, cosine=None)
  of_cosine: Any = jax.tree.map(lambda _: whole, cosine)
  of_cosine = of_cosine._replace(lengths=rows, crowding=rows)
  specs = (whole, cut, of_cosine, of_table, whole, whole, whole)
  values, ids = meshes.shard_map(local, mesh, specs, (whole, whole))(
    rest, model.side, cosine, features, asked, jnp.asarray(queries.ids),
    jax.tree.map(jnp.asarray, ranking),
  )  # fmt: skip
  return Expansion(ids, values)


def place_model(model: Model, mesh: Mesh) -> Model:
  """Shards the entities of a model over a mesh, all its axes together.

  >>> import jax, numpy as np, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics_from_scipy(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> model = setexp.model_from_scipy(config, params, statistics.inputs, counts)
  >>> mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("entities",))
  >>> setexp.place_model(model, mesh).entities.xi.shape
  (2, 2)

  Args:
    model: the model of X entities.
    mesh: the devices.

  Returns:
    The model for `expand_sharded`. X is padded to a multiple of the number of
    devices. Each device has its entities' Gaussians and features; all have the
    parameters.
  """
  size = model.side.constants.shape[1]
  more = meshes.padded_size(size, mesh.size) - size
  axes = mesh.axis_names

  def entities(x):
    # Ones keep the logarithms of padding finite.
    last = [(0, 0)] * (np.ndim(x) - 1) + [(0, more)]
    padded = np.pad(np.asarray(x), last, constant_values=1)
    return meshes.place(padded, mesh, *[None] * (np.ndim(x) - 1), axes)

  nothing: Any = None
  cosine = cosine_side(model)
  table = sharded.from_host(
    row_lib.table_to_scipy(model.features, model.params.decoder.shape[0]),
    mesh, axes, mesh.size, dealt=False, name="features of the entities",
  )  # fmt: skip
  everywhere = dataclasses.replace(
    model,
    side=nothing,
    features=row_lib.Table((), (), np.asarray(model.features.place), None),
    cosine=cosine._replace(inputs=None, lengths=nothing, crowding=nothing),
  )
  placed = jax.tree.map(lambda x: meshes.place(x, mesh), everywhere)
  return dataclasses.replace(
    placed,
    side=jax.tree.map(entities, model.side),
    features=placed.features._replace(blocks=table),
    cosine=placed.cosine._replace(
      lengths=entities(cosine.lengths), crowding=entities(cosine.crowding)
    ),
  )

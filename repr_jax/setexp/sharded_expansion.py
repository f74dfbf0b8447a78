"""Set expansion with the entities over the devices of a mesh."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from repr_jax.ops import mesh as meshes
from repr_jax.ops import topk
from repr_jax.setexp import gaussian_scores
from repr_jax.setexp.expansion import (
  GAUSSIAN,
  Expansion,
  Model,
  PaddedQuery,
  Ranking,
  query_posterior,
)


def expand_sharded(
  model: Model, mesh: Mesh, queries: PaddedQuery, ranking: Ranking, k: int
) -> Expansion:
  """`expand` by Gaussian scores, the entities over the devices of a mesh.

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
    model: the model; from `place_model`, X padded.
    mesh: the devices, all axes together (static).
    queries: n queries.
    ranking: what to rank by; "features" and "cosine" are left out.
    k: entities for each (static).

  Returns:
    The entities, on all devices.
  """
  axes, size = mesh.axis_names, model.features.place.shape[0]
  prior = model.config.prior_variance
  posteriors = jax.vmap(
    lambda query: query_posterior(model, query, ranking.normalize)
  )(queries)

  def local(side, weights, posteriors, ids):
    width = side.constants.shape[1]
    start = lax.axis_index(axes) * width

    def one(posterior, ids):
      scores = gaussian_scores.scores(weights, prior, posterior, side)
      here = jnp.where(ids < start, width, ids - start)
      scores = scores.at[here].set(-jnp.inf, mode="drop")
      scores = jnp.where(start + jnp.arange(width) < size, scores, -jnp.inf)
      values, places = topk.top_k(scores, min(k, width))
      return values, start + places

    values, places = jax.vmap(one)(posteriors, ids)
    return topk.collected_top_k(values, places, k, axes)

  whole, cut = PartitionSpec(), PartitionSpec(None, axes)
  specs = (cut, whole, whole, whole)
  values, ids = meshes.shard_map(local, mesh, specs, (whole, whole))(
    model.side, jnp.asarray(ranking.scores[GAUSSIAN]), posteriors, queries.ids
  )
  return Expansion(ids, values)


def place_model(model: Model, mesh: Mesh) -> Model:
  """Lays the entities of a model out on a mesh, all its axes together.

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
    The model; X is padded to a multiple of the devices.
  """
  size = model.side.constants.shape[1]
  more = meshes.padded_size(size, mesh.size) - size
  # Ones keep the logarithms of padding finite.
  fields = [
    np.pad(np.asarray(x), ((0, 0), (0, more)), constant_values=1)
    for x in model.side
  ]
  axes = mesh.axis_names
  placed = [meshes.place(x, mesh, None, axes) for x in fields]
  return dataclasses.replace(model, side=gaussian_scores.Side(*placed))

"""Set expansion by the autoencoder: encode all entities once, then ask.

A query's Gaussian is the product of its members' (thesis 4.5, 4.6); entities
are ranked by a score between Gaussians; the decoder at the query's mean is
its rationale (thesis 4.4). Queries are padded to few sizes, so that each size
is compiled once. Members that are in the table come from it; new ones are
encoded from their features.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from repr_jax import errors
from repr_jax.ops import gaussian, topk
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import autoencoder, batches
from repr_jax.setexp import gaussian_scores as ranking
from repr_jax.setexp.query import Query

# Rows encoded at a time, and queries scored at a time.
_ROWS, _QUERIES = 4096, 64
# Log-variances are kept here, so that squares of xi stay within float32.
_LOG_VARIANCE = 30.0


class Model(NamedTuple):
  """A trained model with its entities encoded.

  Attributes:
    config: the configuration.
    params: the parameters.
    inputs: statistics for the weighting of inputs.
    entities: natural parameters of all entities, fields [d, X].
    ranking: one of `ranking.RANKINGS`.
    normalize: whether weights are divided by the sum of their sizes.
    matrix: of the ranking score, [k, X].
    constants: of the ranking score, [X].
  """

  config: autoencoder.Config
  params: autoencoder.Params
  inputs: autoencoder.Inputs
  entities: gaussian.Natural
  ranking: str
  normalize: bool
  matrix: jax.Array
  constants: jax.Array


class Answer(NamedTuple):
  """Best entities of a query and its rationale.

  Attributes:
    ids: rows of the entities, best first, int32 [k]; never the query's own.
    scores: float32 [k].
    features: the rationale's first features, int32 [m].
    weights: their weights, float32 [m].
  """

  ids: np.ndarray
  scores: np.ndarray
  features: np.ndarray
  weights: np.ndarray


def build(
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  counts: sp.csr_array,
  score: str = "xi",
  normalize: bool = False,
) -> Model:
  """Encodes all entities.

  Args:
    config: the configuration.
    params: the parameters.
    inputs: statistics of the training counts.
    counts: features of the entities to rank, [X, F].
    score: the ranking score.
    normalize: see `with_ranking`.

  Returns:
    The model.
  """
  if counts.shape[1] != params.table.shape[0]:
    raise errors.InputError(
      f"the table has {counts.shape[1]} features, the model "
      f"{params.table.shape[0]}: they belong to different corpora"
    )
  autoencoder.check_finite(params)
  autoencoder.check_finite(inputs)
  params = jax.tree.map(jnp.asarray, params)
  found = encode_rows(config, params, inputs, counts)
  entities = gaussian.Natural(
    *(jnp.asarray(np.ascontiguousarray(x.T)) for x in found)
  )
  empty = jnp.zeros(0)
  model = Model(config, params, inputs, entities, "", False, empty, empty)
  return with_ranking(model, score, normalize)


def with_ranking(model: Model, score: str, normalize: bool = False) -> Model:
  """The same model with another ranking score.

  Args:
    model: the model.
    score: one of `ranking.RANKINGS`.
    normalize: divide the weights of a query by the sum of their sizes: xi_Q
      becomes a mean, whose length does not grow with the query, and q_Q the
      geometric mean of the members' densities.

  Returns:
    The model; entities are not encoded again.
  """
  score = ranking.check(score)
  matrix, constants = _entity_side(score, model.entities)
  return model._replace(
    ranking=score, normalize=normalize, matrix=matrix, constants=constants
  )


def encode_rows(
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  rows: sp.csr_array,
) -> gaussian.Natural:
  """Natural parameters of entities, of the table or new (thesis eq. 4.5).

  Args:
    config: the configuration.
    params: the parameters.
    inputs: statistics of the training counts.
    rows: features, [s, F].

  Returns:
    The parameters on the host, fields [s, d].
  """
  rows = sp.csr_array(rows).astype(np.float32)
  if not np.isfinite(rows.data).all() or (rows.data < 0).any():
    raise errors.InputError("feature counts must be finite and not negative")
  sizes = np.diff(rows.indptr)
  length = np.repeat(np.asarray(rows.sum(axis=1)), sizes)
  idf = np.asarray(inputs.idf)[rows.indices]
  data = autoencoder.weigh(
    config, rows.data, idf, length, np.asarray(inputs[1])
  )
  weighted = sp.csr_array((data, rows.indices, rows.indptr), rows.shape)
  table = np.asarray(params.table)
  found: list[Any] = []
  for start in range(0, rows.shape[0], _ROWS):
    # The product by rows on the host reads only what the rows have.
    sums = weighted[start : start + _ROWS] @ table
    size = batches.padded_length(len(sums), 1)
    padded = np.zeros((size, table.shape[1]), table.dtype)
    padded[: len(sums)] = sums
    natural = _natural(config, params.encoder, padded)
    found.append([np.asarray(x)[: len(sums)] for x in natural])
  if not found:
    empty = np.zeros((0, config.latent), table.dtype)
    found = [[empty, empty]]
  whole: list[Any] = [np.concatenate(x) for x in zip(*found)]
  return gaussian.Natural(*whole)


def score(model: Model, query: Query) -> np.ndarray:
  """Scores of all entities, the query's own among them.

  Args:
    model: the model.
    query: the query.

  Returns:
    float32 [X], finite, higher is better.
  """
  return score_batch(model, [query])[0]


def score_batch(model: Model, queries: Sequence[Query]) -> np.ndarray:
  """`score` of several queries.

  Args:
    model: the model.
    queries: n queries.

  Returns:
    float32 [n, X].
  """
  found = [np.zeros((0, model.constants.shape[0]), np.float32)]
  for members, weights, _, count in _blocks(model, queries):
    part = _scores(*_statics(model), *_arrays(model), members, weights)
    found.append(np.asarray(part)[:count])
  return np.concatenate(found)


def score_rows(model: Model, query: Query, rows: sp.csr_array) -> np.ndarray:
  """Scores of entities or sentences that are not in the table.

  Args:
    model: the model.
    query: the query.
    rows: features, [s, F].

  Returns:
    float32 [s], comparable with `score`.
  """
  natural = encode_rows(model.config, model.params, model.inputs, rows)
  count = rows.shape[0]
  size = batches.padded_length(max(count, 1), 1)
  shape = (model.config.latent, size)
  columns: list[Any] = [np.ones(shape, np.float32), np.ones(shape, np.float32)]
  for column, x in zip(columns, natural):
    column[:, :count] = x.T
  side = _entity_side(model.ranking, gaussian.Natural(*columns))
  ((members, weights, _, _),) = _blocks(model, [query])
  found = _scores(*_statics(model), *side, members, weights)
  return np.asarray(found)[0, :count]


def rationale(model: Model, query: Query, relative: bool = False) -> np.ndarray:
  """Weight of each feature in the concept of a query (thesis 4.4).

  Args:
    model: the model.
    query: the query.
    relative: p log(p / p0), with p0 the probability at the prior's mean,
      instead of p: what a feature adds to the divergence of the two, so that
      words that all entities share do not fill the rationale.

  Returns:
    float32 [F], from the decoder at the query's mean.
  """
  members, weights, _ = _alone(model, query)
  decoder = model.config.decoder
  table = model.params.decoder
  return np.asarray(_rationale(decoder, relative, table, members, weights))


def expand(
  model: Model,
  query: Query,
  k: int = 100,
  features: int = 10,
  relative: bool = False,
) -> Answer:
  """The best entities for a query and the first features of its rationale.

  Args:
    model: the model.
    query: the query.
    k: entities, at most; fewer where there are not so many.
    features: of the rationale.
    relative: see `rationale`.

  Returns:
    The answer.
  """
  k = max(1, min(k, model.constants.shape[0]))
  features = max(1, min(features, model.params.decoder.shape[0]))
  found = _answer(
    *_statics(model),
    model.config.decoder,
    relative,
    k,
    features,
    *_arrays(model),
    model.params.decoder,
    *_alone(model, query),
  )
  values, best, mass, chosen = (np.asarray(x) for x in found)
  there = values > -np.inf
  return Answer(best[there], values[there], chosen, mass)


class Spread(NamedTuple):
  """The entities' side of a ranking score over many devices.

  Attributes:
    mesh: the devices.
    matrix: [k, X'], X padded to a multiple of the devices.
    constants: [X'].
  """

  mesh: Mesh
  matrix: jax.Array
  constants: jax.Array


def spread(model: Model, mesh: Mesh) -> Spread:
  """Lays the entities of a model out on a mesh, all its axes together.

  Args:
    model: the model, matrix [k, X].
    mesh: the devices.

  Returns:
    What `expand_batch` takes.
  """
  matrix, constants = (np.asarray(x) for x in _arrays(model))
  size = constants.shape[0]
  more = meshes.padded_size(size, mesh.size) - size
  # Ones keep the logarithms of what is not there finite.
  matrix = np.pad(matrix, ((0, 0), (0, more)), constant_values=1)
  constants = np.pad(constants, (0, more))
  axes = mesh.axis_names
  return Spread(
    mesh,
    meshes.place(matrix, mesh, None, axes),
    meshes.place(constants, mesh, axes),
  )


def expand_batch(
  model: Model,
  queries: Sequence[Query],
  k: int = 100,
  over: Spread | None = None,
) -> list[Answer]:
  """`expand` of several queries, without rationales.

  Args:
    model: the model.
    queries: the queries.
    k: entities for each.
    over: the model's entities on a mesh, from `spread`; None for one device.

  Returns:
    The answers, in order; their features are empty.
  """
  size = model.constants.shape[0]
  k = max(1, min(k, size))
  top = functools.partial(_top, *_statics(model), k, *_arrays(model))
  if over is not None:
    top = functools.partial(_top_over, *_statics(model), k, size, *over)
  found, none = [], np.zeros(0, np.int32)
  for members, weights, ids, count in _blocks(model, queries):
    part = top(members, weights, ids)
    for values, best in zip(*(np.asarray(x)[:count] for x in part)):
      there = values > -np.inf
      answer = Answer(best[there], values[there], none, none.astype(np.float32))
      found.append(answer)
  return found


def _statics(model):
  return model.ranking, model.normalize, model.config.prior_variance


def _arrays(model):
  return model.matrix, model.constants


def _blocks(model, queries):
  """Padded queries: members [n, q, d], weights [n, q], ids [n, q], count."""
  outside = model.constants.shape[0]
  natural = [np.asarray(x) for x in model.entities]
  for start in range(0, len(queries), _QUERIES):
    block = queries[start : start + _QUERIES]
    n = batches.padded_length(len(block), 1)
    q = batches.padded_length(max(len(x.weights) for x in block), 4)
    shape = (n, q, model.config.latent)
    members: list[Any] = [
      np.ones(shape, np.float32),
      np.ones(shape, np.float32),
    ]
    weights = np.zeros((n, q), np.float32)
    ids = np.full((n, q), outside, np.int32)
    for i, query in enumerate(block):
      size = len(query.weights)
      weights[i, :size] = query.weights
      old = query.ids >= 0
      ids[i, :size] = np.where(old, query.ids, outside)
      new = None
      if not old.all():
        new = encode_rows(
          model.config, model.params, model.inputs, query.rows[~old]
        )
      for j, x in enumerate(members):
        x[i, :size][old] = natural[j][:, query.ids[old]].T
        if new is not None:
          x[i, :size][~old] = new[j]
    yield gaussian.Natural(*members), weights, ids, len(block)


def _alone(model, query):
  """One padded query: members [q, d], weights [q], ids [q]."""
  ((*padded, _),) = _blocks(model, [query])
  return jax.tree.map(lambda x: x[0], padded)


@functools.partial(jax.jit, static_argnums=0)
def _natural(config, encoder, sums):
  posterior = jax.vmap(functools.partial(autoencoder.encode, config, encoder))(
    sums
  )
  spread = jnp.clip(posterior.log_variance, -_LOG_VARIANCE, _LOG_VARIANCE)
  return gaussian.to_natural(posterior.mean, jnp.exp(spread))


_entity_side = jax.jit(ranking.entity_side, static_argnums=0)


def _query(normalize, members, weights):
  """The query's Gaussian, fields [d], of members [q, d], weights [q]."""
  if normalize:
    # Devices take the least of numbers for zero.
    total = jnp.sum(jnp.abs(weights))
    weights = weights / jnp.where(total > 0, total, 1)
  return gaussian.product_of_experts(members, weights)


def _score_one(score, normalize, prior, matrix, constants, members, weights):
  query = _query(normalize, members, weights)
  return ranking.scores(score, prior, query, matrix, constants)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _scores(score, normalize, prior, matrix, constants, members, weights):
  one = functools.partial(
    _score_one, score, normalize, prior, matrix, constants
  )
  return jax.vmap(one)(members, weights)


def _top_one(score, normalize, prior, k, matrix, constants, *padded):
  members, weights, ids = padded
  found = _score_one(
    score, normalize, prior, matrix, constants, members, weights
  )
  found = found.at[ids].set(-jnp.inf, mode="drop")
  return topk.top_k(found, k)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _top(score, normalize, prior, k, matrix, constants, *padded):
  one = functools.partial(
    _top_one, score, normalize, prior, k, matrix, constants
  )
  return jax.vmap(one)(*padded)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 4, 5))
def _top_over(
  score, normalize, prior, k, size, mesh, matrix, constants, *padded
):
  """`_top` with entities over the devices of a mesh."""
  axes = mesh.axis_names

  def local(matrix, constants, members, weights, ids):
    one = functools.partial(
      _score_one, score, normalize, prior, matrix, constants
    )
    found = jax.vmap(one)(members, weights)
    width = constants.shape[0]
    start = lax.axis_index(axes) * width
    here = jnp.where(ids < start, width, ids - start)
    found = jax.vmap(lambda x, i: x.at[i].set(-jnp.inf, mode="drop"))(
      found, here
    )
    found = jnp.where(start + jnp.arange(width) < size, found, -jnp.inf)
    best = functools.partial(topk.top_k, k=min(k, width))
    values, places = jax.vmap(best)(found)
    return topk.collected_top_k(values, start + places, k, axes)

  whole = PartitionSpec()
  cut = (PartitionSpec(None, axes), PartitionSpec(axes), whole, whole, whole)
  return meshes.shard_map(local, mesh, cut, (whole, whole))(
    matrix, constants, *padded
  )


@functools.partial(jax.jit, static_argnums=(0, 1))
def _rationale(decoder, relative, table, members, weights):
  mean, _ = gaussian.to_moments(_query(False, members, weights))
  logits = table @ autoencoder.with_one(mean)
  bernoulli = decoder == "multilabel"
  if relative:
    logs = jax.nn.log_sigmoid if bernoulli else jax.nn.log_softmax
    found = logs(logits)
    return jnp.exp(found) * (found - logs(table[:, -1]))
  return jax.nn.sigmoid(logits) if bernoulli else jax.nn.softmax(logits)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 4, 5, 6))
def _answer(score, normalize, prior, decoder, relative, k, features, *arrays):
  matrix, constants, table, members, weights, ids = arrays
  best = _top_one(
    score, normalize, prior, k, matrix, constants, members, weights, ids
  )
  mass = _rationale(decoder, relative, table, members, weights)
  return *best, *topk.top_k(mass, features)

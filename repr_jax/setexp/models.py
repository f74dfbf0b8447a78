"""Models and queries from padded rows, in pure JAX.

`from_scipy` makes the same from sparse matrices of any size.
"""

import dataclasses

import jax
import jax.numpy as jnp

from repr_jax.ops import gaussian
from repr_jax.setexp import autoencoder, cosine_scores, gaussian_scores
from repr_jax.setexp import rows as row_lib
from repr_jax.setexp.expansion import Model, PaddedQuery, lexical_row
from repr_jax.setexp.feature_scores import Entries
from repr_jax.setexp.rows import Rows


def make_model(
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  rows: Rows,
) -> Model:
  """Encodes all entities.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> counts = jnp.array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> rows = setexp.rows_from_dense(counts)
  >>> model = setexp.make_model(config, params, statistics.inputs, rows)
  >>> model.entities.xi.shape
  (2, 2)

  Args:
    config: the configuration (static).
    params: the parameters.
    inputs: statistics of the training counts.
    rows: features of the entities, fields [X, m].

  Returns:
    The model.
  """
  features = params.table.shape[0]
  valid = (rows.indices >= 0) & (rows.indices < features)
  counts = jnp.where(valid, rows.counts, 0).astype(params.table.dtype)
  place = jnp.where(valid, rows.indices, features)
  rows = Rows(place, counts)

  def natural(row):
    posterior = autoencoder.encode(config, params, inputs, row)
    return autoencoder.natural_parameters(posterior)

  encoded = jax.vmap(natural)(rows)
  size = counts.shape[0]
  df = jnp.zeros(features, counts.dtype)
  df = df.at[place].add((counts > 0).astype(df.dtype), mode="drop")
  lexical = autoencoder.Inputs(
    jnp.log1p((size - df + 0.5) / (df + 0.5)),
    jnp.maximum(counts.sum() / size, 1e-6),
  )
  weighted = jax.vmap(lambda row: lexical_row(lexical, row))(rows)
  side = gaussian_scores.entity_side(gaussian.Natural(*(x.T for x in encoded)))
  held = None
  if config.linear:
    own = jax.vmap(lambda row: autoencoder.encoder_inputs(config, inputs, row))(
      rows
    )
    held = row_lib.table_from_rows(own, features)
  return Model(
    params,
    inputs,
    side,
    row_lib.table_from_rows(weighted, features),
    lexical,
    config,
    cosine_scores.prepare(side.mean, held),
  )


def fit_cosine(
  model: Model, reliability: jax.Array | float, hubness: jax.Array | float
) -> Model:
  """Fits the cosine score's weights of dimensions and its hub correction.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> counts = jnp.array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0], [1.0, 1.0, 1.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> rows = setexp.rows_from_dense(counts)
  >>> model = setexp.make_model(config, params, statistics.inputs, rows)
  >>> setexp.fit_cosine(model, 2.0, 0.5).cosine.crowding.shape
  (3,)

  Args:
    model: the model.
    reliability: exponent of the weights v / (v + s) of dimensions, v the
      variance of posterior means over the entities, s the mean posterior
      variance; 0 weights all equally.
    hubness: factor h; h times an entity's mean cosine to its nearest neighbors
      is subtracted from its score; 0 for none.

  Returns:
    The model; scores other than the cosine are unchanged.
  """
  side = model.cosine or cosine_scores.prepare(model.side.mean)
  side = cosine_scores.fit(side, model.side, reliability, hubness)
  return dataclasses.replace(model, cosine=side)


def query_of_rows(
  rows: Rows, ids: jax.Array, weights: jax.Array
) -> PaddedQuery:
  """A query of entities of a table.

  >>> import jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> rows = setexp.rows_from_dense(jnp.eye(3))
  >>> query = setexp.query_of_rows(rows, jnp.array([2]), jnp.array([1.0]))
  >>> query.entries.count.tolist()
  [0.0, 0.0, 1.0]

  Args:
    rows: features of all entities, fields [X, m].
    ids: rows of the members, int32 [q]; any row for padding.
    weights: of the members, [q]; 0 for padding.

  Returns:
    The query, with q m entries.
  """
  own = Rows(*(x[ids] for x in rows))
  member = jnp.arange(ids.shape[0], dtype=jnp.int32)[:, None]
  entries = Entries(
    jnp.broadcast_to(member, own.indices.shape).ravel(),
    own.indices.ravel(),
    own.counts.ravel(),
  )
  ids = jnp.where(weights != 0, ids, -1)
  return PaddedQuery(ids, weights, entries, None)

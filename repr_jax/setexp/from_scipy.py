"""Models and queries from scipy matrices, made on the host.

Rows are padded to few lengths, and queries to few sizes, so that few programs
are compiled.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax import errors
from repr_jax.ops import gaussian
from repr_jax.setexp import autoencoder, cosine_scores, gaussian_scores
from repr_jax.setexp.expansion import Model, PaddedQuery
from repr_jax.setexp.feature_scores import Entries
from repr_jax.setexp.query import Query
from repr_jax.setexp.rows import (
  Rows,
  by_length,
  check_values,
  padded_length,
  rows_from_scipy,
  table_from_scipy,
)

_NUMBERS = 1 << 22  # numbers of the first layer gathered at a time
_SHORTEST = 32


def model_from_scipy(
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  counts: sp.csr_array,
) -> Model:
  """Encodes all entities.

  >>> import jax, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics_from_scipy(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> model = setexp.model_from_scipy(config, params, statistics.inputs, counts)
  >>> model.entities.xi.shape
  (2, 2)

  Args:
    config: the configuration.
    params: the parameters.
    inputs: statistics of the training counts.
    counts: features of the entities to rank, [X, F].

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
  params, inputs = jax.tree.map(jnp.asarray, (params, inputs))
  counts = check_rows(counts)
  encoded = encode_rows(config, params, inputs, counts)
  entities = gaussian.Natural(
    *(jnp.asarray(np.ascontiguousarray(x.T)) for x in encoded)
  )
  lexical = autoencoder.statistics_from_scipy(config, counts).inputs
  lengths = np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
  weighted = autoencoder.bm25_weights(
    counts.data, lexical.idf[counts.indices], lengths, lexical.mean_length
  )
  table = sp.csr_array(
    (weighted.astype(np.float32), counts.indices, counts.indptr), counts.shape
  )
  side = jax.jit(gaussian_scores.entity_side)(entities)
  held = None
  if config.linear:
    held = table_from_scipy(encoder_rows(config, inputs, counts))
  return Model(
    params,
    inputs,
    side,
    table_from_scipy(table),
    jax.tree.map(jnp.asarray, lexical),
    config,
    jax.jit(cosine_scores.prepare)(side.mean, held),
  )


def encoder_rows(
  config: autoencoder.Config, inputs: autoencoder.Inputs, counts: sp.csr_array
) -> sp.csr_array:
  """The encoder's inputs of all entities, on the host.

  Args:
    counts: float32 CSR [X, F].

  Returns:
    float32 CSR [X, F].
  """
  sizes = np.diff(counts.indptr)
  values = autoencoder.weigh(
    config,
    counts.data,
    np.asarray(inputs.idf)[counts.indices],
    np.repeat(counts.sum(axis=1), sizes),
    np.asarray(inputs.mean_length),
  ).astype(np.float32)
  if config.unit_inputs:
    owner = np.repeat(np.arange(counts.shape[0]), sizes)
    squares = np.bincount(owner, values.astype(np.float64) ** 2, len(sizes))
    values = values / np.sqrt(np.where(squares > 0, squares, 1))[owner]
  return sp.csr_array(
    (values.astype(np.float32), counts.indices, counts.indptr), counts.shape
  )


def check_rows(rows: sp.csr_array) -> sp.csr_array:
  """Feature counts as float32 CSR [s, F]; refuses negative and non-finite."""
  rows = sp.csr_array(rows).astype(np.float32)
  check_values(rows.data)
  return rows


def encode_rows(
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  rows: sp.csr_array,
) -> gaussian.Natural:
  """Natural parameters of entities, of the table or new (thesis eq. 4.5).

  Args:
    inputs: statistics of the training counts.
    rows: features, [s, F].

  Returns:
    The parameters on the host, fields [s, d].
  """
  rows = check_rows(rows)
  dtype = np.asarray(params.decoder[:0]).dtype
  natural: list[Any] = [
    np.zeros((rows.shape[0], config.dim), dtype) for _ in range(2)
  ]
  params, inputs = jax.tree.map(jnp.asarray, (params, inputs))
  for chosen, group in by_length(rows, _SHORTEST):
    width = group.indices.shape[1]
    most = max(1, _NUMBERS // (width * params.table.shape[1]))
    size = min(most, padded_length(len(chosen), 1))
    for start in range(0, len(chosen), size):
      block = slice(start, start + size)
      part = pad_rows(Rows(*(x[block] for x in group)), size, rows.shape[1])
      encoded = _encode(config, params, inputs, part)
      for whole, x in zip(natural, encoded):
        whole[chosen[block]] = np.asarray(x)[: len(chosen[block])]
  return gaussian.Natural(*natural)


def pad_rows(rows: Rows, size: int, features: int) -> Rows:
  """Rows [s, m] followed by empty ones, [size, m]."""
  more = ((0, size - rows.indices.shape[0]), (0, 0))
  return Rows(
    np.pad(rows.indices, more, constant_values=features),
    np.pad(rows.counts, more),
  )


def padded_rows(
  rows: sp.csr_array, size: int | None = None, shortest: int = _SHORTEST
) -> Rows:
  """Rows of sentences or new entities in one of few shapes.

  Args:
    rows: features, [s, F].
    size: rows to pad to; by default the next size of `padded_length`.
    shortest: least number of features to pad to, see `padded_length`.

  Returns:
    Rows on the host, fields [size, m].
  """
  rows = check_rows(rows)
  longest = int(np.diff(rows.indptr).max(initial=1))
  wide = rows_from_scipy(rows, padded_length(longest, shortest))
  size = padded_length(max(rows.shape[0], 1), 1) if size is None else size
  return pad_rows(wide, size, rows.shape[1])


def pad_queries(
  model: Model,
  queries: Sequence[Query],
  *,
  size: int | None = None,
  members: int = 4,
  entries: int = 64,
) -> PaddedQuery:
  """Queries in fixed shapes; new members are encoded.

  >>> import jax, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics_from_scipy(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> model = setexp.model_from_scipy(config, params, statistics.inputs, counts)
  >>> query = setexp.make_query(counts, [1])
  >>> setexp.pad_queries(model, [query]).weights.tolist()
  [[1.0, 0.0, 0.0, 0.0]]

  Args:
    model: the model.
    queries: the queries.
    size: number of queries to pad to by empty queries; by default no padding.
    members: least number of members to pad to, see `rows.padded_length`.
    entries: least number of counts to pad to; larger sizes are 4, 16, ...
      times as many.

  Returns:
    The queries on the host, with a leading axis.
  """

  def encode(rows: sp.csr_array) -> gaussian.Natural:
    return encode_rows(model.config, model.params, model.inputs, rows)

  return pad_members(
    queries, encode, size=size, members=members, entries=entries
  )


def pad_members(
  queries: Sequence[Query],
  encode: Callable[[sp.csr_array], Any] | None = None,
  *,
  size: int | None = None,
  members: int = 4,
  entries: int = 64,
) -> PaddedQuery:
  """Queries in fixed shapes, for any system.

  Args:
    queries: one or more.
    encode: from features [r, F] of new members to arrays of r rows; None for a
      system that reads features alone.
    size: see `pad_queries`.
    members: see `pad_queries`.
    entries: see `pad_queries`.

  Returns:
    The queries on the host, with a leading axis.
  """
  n = max(len(queries), size or 0)
  features = queries[0].rows.shape[1]
  q = padded_length(max((len(x.ids) for x in queries), default=1), members)
  while entries < max((x.rows.nnz for x in queries), default=1):
    entries *= 4
  ids = np.full((n, q), -1, np.int32)
  weights = np.zeros((n, q), np.float32)
  held = Entries(
    np.zeros((n, entries), np.int32),
    np.full((n, entries), features, np.int32),
    np.zeros((n, entries), np.float32),
  )
  new: list[tuple[int, np.ndarray, Any]] = []
  for i, query in enumerate(queries):
    own, nnz = len(query.ids), query.rows.nnz
    ids[i, :own], weights[i, :own] = query.ids, query.weights
    sizes = np.diff(query.rows.indptr)
    held.member[i, :nnz] = np.repeat(np.arange(own, dtype=np.int32), sizes)
    held.feature[i, :nnz] = query.rows.indices
    held.count[i, :nnz] = query.rows.data
    outside = np.flatnonzero(query.ids < 0)
    if outside.size and encode is not None:
      new.append((i, outside, encode(sp.csr_array(query.rows[outside]))))
  if not new:
    return PaddedQuery(ids, weights, held, None)

  def field(*parts: np.ndarray) -> np.ndarray:
    whole = np.ones((n, q, parts[0].shape[1]), np.float32)
    for (i, outside, _), part in zip(new, parts):
      whole[i, outside] = part
    return whole

  encoded = jax.tree.map(field, *(x for _, _, x in new))
  return PaddedQuery(ids, weights, held, encoded)


@functools.partial(jax.jit, static_argnums=0)
def _encode(config, params, inputs, rows):
  def one(row):
    posterior = autoencoder.encode(config, params, inputs, row)
    return autoencoder.natural_parameters(posterior)

  return jax.vmap(one)(rows)

"""Latent semantic analysis: entities by the SVD of their weighted features.

Rows of counts are weighted as in BM25 (with the positive IDF) and scaled to
length 1, A = U S V'. With P = V S^(power - 1), an entity is z_x = a_x P (U
S^power for entities of the table), and

    score(Q, x) = cos(z_x, sum over the query of tau_q z_q / |z_q|).

`fit` accepts any other P, such as that of generalized CCA.
`hubness` times an entity's mean cosine to its nearest neighbors is subtracted
from its score.
The score is linear in the features of x up to its length, so it splits over
them: feature i adds a_x[i] (P[i] . q) / |z_x|, where q has length 1.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax import ops
from repr_jax.errors import InputError
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp.baselines import bm25
from repr_jax.setexp.baselines import postings as posting_lib
from repr_jax.setexp.baselines.baseline import (
  Baseline,
  member_vectors,
  of_features,
  read_counts,
)
from repr_jax.setexp.baselines.postings import Postings
from repr_jax.setexp.expansion import PaddedQuery
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.from_scipy import padded_rows
from repr_jax.setexp.hubness import crowding
from repr_jax.setexp.rows import Rows

RANK, POWER = 100, 1.0
_TOLERANCE = 1e-2  # of the singular values; cosines change in the 4th digit


class Model(NamedTuple):
  """A factored table.

  Attributes:
    weighting: statistics that weigh new rows.
    rows: the entities' weighted rows of length 1, [X, F].
    projection: P, [F, r].
    entities: unit vectors of the entities, [X, r]; 0 for one without features.
    lengths: |z_x|, [X]; 1 for an entity without features.
    hubness: factor of the crowding that is subtracted, [].
    crowding: see `hubness.crowding`, [X]; 0 if `hubness` is 0.
  """

  weighting: bm25.Index
  rows: Postings
  projection: Any
  entities: Any
  lengths: Any
  hubness: Any
  crowding: Any


@functools.partial(jax.jit, static_argnums=1)
def factor(
  rows: Any, rank: int, power: Any, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Projection and entities of weighted rows.

  Args:
    rows: the rows of length 1, dense or `ops.Sparse`, [X, F].
    rank: r (static).
    power: exponent of the singular values.
    key: random key of the SVD's start.

  Returns:
    P = V S^(power - 1), [F, r], and Z = U S^power, [X, r].
  """
  svd, _ = ops.truncated_svd(rows, rank, key, tolerance=_TOLERANCE)
  s = jnp.maximum(svd.s, 1e-6 * svd.s[0])
  return svd.v * s ** (power - 1), svd.u * s**power


def unit_rows(counts: Any) -> tuple[bm25.Index, sp.csr_array]:
  """The BM25 index, and A: BM25-weighted rows of length 1, [X, F]."""
  counts = read_counts(counts, "LSA")
  index = bm25.fit(counts, positive=True)
  return index, _unit_rows(bm25.weigh_rows(index, counts))


def fit(
  counts: Any,
  *,
  projection: Any = None,
  rank: int = RANK,
  power: float = POWER,
  hubness: float = 0.0,
  seed: int = 0,
) -> Model:
  """Factors the table.

  >>> import scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 1.0], [0.0, 1.0], [1.0, 3.0]])
  >>> setexp.lsa_fit(counts, rank=1).entities.shape
  (3, 1)

  Args:
    counts: feature counts, [X, F], not negative.
    projection: P, [F, r], in place of the SVD's; `rank` and `power` are then
      ignored.
    rank: singular vectors, r; fewer if the table is smaller.
    power: exponent of the singular values; 0 weights all dimensions equally.
    hubness: factor h; h times an entity's mean cosine to its nearest neighbors
      is subtracted from its score.
    seed: of the SVD's start.

  Returns:
    The model.
  """
  if rank < 1:
    raise InputError(f"LSA needs a rank of 1 or more, not {rank}")
  if not np.isfinite(power):
    raise InputError(f"LSA needs a finite power, not {power}")
  if not 0 <= hubness < np.inf:
    raise InputError(f"LSA needs a hubness of 0 or more, not {hubness}")
  index, rows = unit_rows(counts)
  if projection is None:
    projection, latent = factor(
      ops.from_scipy(rows), min(rank, *rows.shape), power, jax.random.key(seed)
    )
  else:
    projection = jnp.asarray(projection, jnp.float32)
    if projection.ndim != 2 or projection.shape[0] != rows.shape[1]:
      raise InputError(
        f"a projection of shape {projection.shape} has no row for each of "
        f"{rows.shape[1]} features"
      )
    if not jnp.isfinite(projection).all():
      raise InputError("the projection has a value that is not finite")
    latent = ops.matmat(ops.from_scipy(rows), projection)
  nonempty = (np.diff(rows.indptr) > 0)[:, None]
  latent, lengths = _unit(jnp.where(nonempty, latent, 0))
  # New rows are weighted by the statistics alone; the postings are not read.
  none = posting_lib.from_scipy(sp.csr_array((rows.shape[1], rows.shape[0])))
  return Model(
    index._replace(postings=none),
    posting_lib.from_scipy(rows),
    projection,
    latent,
    lengths,
    np.float32(hubness),
    _crowding(latent) if hubness else jnp.zeros_like(lengths),
  )


@chosen_products
def score(model: Model, query: PaddedQuery) -> jax.Array:
  """Scores all entities.

  >>> import jax.numpy as jnp, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.5]])
  >>> model = setexp.lsa_fit(counts, rank=2)
  >>> rows = setexp.rows_from_dense(counts.toarray())
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> setexp.lsa_score(model, query).argsort().tolist()
  [1, 2, 0]

  Args:
    model: from `fit`.
    query: members with weights; new ones are projected (`encode`).

  Returns:
    Cosines less `hubness` times the crowding, [X].
  """
  cosines = model.entities @ query_vector(model, query)
  return cosines - model.hubness * model.crowding


@chosen_products
def query_vector(model: Model, query: PaddedQuery) -> jax.Array:
  """The weighted sum of the members, scaled to length 1, [r]."""
  members = member_vectors(query, model.entities)
  weights = jnp.asarray(query.weights).astype(members.dtype)
  # Scaled first, so that no square overflows.
  weights = weights / jnp.maximum(jnp.max(jnp.abs(weights)), 1e-30)
  total = weights @ members
  return total / jnp.maximum(jnp.linalg.norm(total), 1e-30)


@chosen_products
def score_rows(model: Model, query: PaddedQuery, rows: Rows) -> jax.Array:
  """Scores [s] of rows that are not in the table, such as sentences."""
  latent, _ = _unit(project(model, rows))
  cosines = latent @ query_vector(model, query)
  crowded = jax.lax.cond(
    model.hubness != 0,
    lambda: crowding(latent, model.entities, jnp.full(cosines.shape, -1)),
    lambda: jnp.zeros_like(cosines),
  )
  return cosines - model.hubness * crowded


@chosen_products
def project(model: Model, rows: Rows) -> jax.Array:
  """Vectors z of rows of feature counts, fields [s, m], [s, r]."""
  rows = bm25.weigh(model.weighting, rows)
  weights, _ = _unit(rows.counts)

  def one(row):
    return row[1] @ model.projection[row[0]]

  # One row at a time: all at once would gather [s, m, r].
  return jax.lax.map(one, (rows.indices, weights))


def encode(model: Model, rows: sp.csr_array) -> np.ndarray:
  """Unit vectors of new entities from their features [s, F], [s, r]."""
  latent, _ = _unit(_project(model, padded_rows(rows)))
  return np.asarray(latent)[: rows.shape[0]]


def contributions(
  model: Model, query: PaddedQuery, entity: jax.Array
) -> Contributions:
  """Splits the cosine of an entity over its features.

  >>> import jax.numpy as jnp, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.5]])
  >>> model = setexp.lsa_fit(counts, rank=2)
  >>> rows = setexp.rows_from_dense(counts.toarray())
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> parts = setexp.lsa_contributions(model, query, 2)
  >>> score = setexp.lsa_score(model, query)[2]
  >>> bool(jnp.isclose(parts.total, score, rtol=1e-2))
  True

  Args:
    model: from `fit`.
    query: the query.
    entity: its row, int32 [].

  Returns:
    a_x[i] (P[i] . q) / |z_x|: a sum over the entity's features, and a constant
    for its crowding.
  """
  row = posting_lib.take_row(model.rows, entity)
  inside = jnp.minimum(row.indices, model.projection.shape[0] - 1)
  own = jnp.sum(model.projection[inside] * query_vector(model, query), axis=1)
  parts = of_features(row.indices, row.counts * own / model.lengths[entity])
  return parts._replace(constant=-model.hubness * model.crowding[entity])


@chosen_products
def rationale(model: Model, query: PaddedQuery) -> jax.Array:
  """P[i] . q, [F]: the score that a unit of a feature's weight adds."""
  return model.projection @ query_vector(model, query)


def _unit_rows(rows: sp.csr_array) -> sp.csr_array:
  squares = np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
  lengths = np.sqrt(np.where(squares > 0, squares, 1))
  values = rows.data / np.repeat(lengths, np.diff(rows.indptr))
  return sp.csr_array(
    (values.astype(np.float32), rows.indices, rows.indptr), rows.shape
  )


def _unit(vectors: jax.Array) -> tuple[jax.Array, jax.Array]:
  """Vectors of length 1, [X, r], and their lengths, [X]; 1 for a zero."""
  lengths = jnp.linalg.norm(vectors, axis=1)
  lengths = jnp.where(lengths > 0, lengths, 1)
  return vectors / lengths[:, None], lengths


@jax.jit
def _crowding(latent: jax.Array) -> jax.Array:
  return crowding(latent, latent, jnp.arange(latent.shape[0]))


_project = jax.jit(project)

LSA = Baseline(
  "lsa",
  lambda counts, seed: fit(counts, seed=seed),
  score,
  score_rows,
  contributions,
  rationale,
  encode,
)

"""Latent semantic analysis: entities by the SVD of their weighted features.

Rows of counts are weighted as in BM25 (with the positive IDF) and scaled to
length 1, A = U S V'. With P = V S^(power - 1), an entity is z_x = a_x P, which
is U S^power for those of the table, and

    score(Q, x) = cos(z_x, sum over the query of tau_q z_q / |z_q|).

The score is linear in the features of x up to its length, so that it splits
over them: feature i adds a_x[i] (P[i] . q) / |z_x|, where q has length 1.
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
from repr_jax.setexp.baselines.baseline import Baseline, of_features
from repr_jax.setexp.baselines.bm25 import Index, weigh_rows
from repr_jax.setexp.baselines.bm25 import fit as fit_index
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.query import Query

RANK, POWER = 100, 1.0
_MEMBERS = 128  # Queries are padded to it, so that few shapes are compiled.
_TOLERANCE = 1e-2  # of the singular values; cosines change in the 4th digit


class Model(NamedTuple):
  """A factored table.

  Attributes:
    weighting: statistics that weigh new rows.
    rows: the entities' weighted rows of length 1, CSR [X, F].
    projection: P, a numpy array [F, r].
    entities: unit vectors of the entities, [X, r]; 0 for one without features.
    lengths: |z_x|, [X]; 1 for an entity without features.
  """

  weighting: Index
  rows: sp.csr_array
  projection: np.ndarray
  entities: Any
  lengths: np.ndarray


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


@jax.jit
@chosen_products
def score_vectors(
  entities: jax.Array, members: jax.Array, weights: jax.Array
) -> jax.Array:
  """Cosine of entities to the weighted sum of members.

  Args:
    entities: unit vectors, [X, r].
    members: unit vectors, [q, r].
    weights: signed, [q].

  Returns:
    [X]; 0 for an entity of length 0.
  """
  return entities @ query_vector(members, weights)


@chosen_products
def query_vector(members: Any, weights: Any) -> jax.Array:
  """The weighted sum of members [q, r], scaled to length 1, [r]."""
  total = weights @ members
  return total / jnp.maximum(jnp.linalg.norm(total), 1e-30)


_query_vector = jax.jit(query_vector)


def fit(
  counts: sp.csr_array,
  *,
  rank: int = RANK,
  power: float = POWER,
  seed: int = 0,
) -> Model:
  """Factors the table.

  Args:
    counts: feature counts, [X, F], not negative.
    rank: singular vectors, r; fewer if the table is smaller.
    power: exponent of the singular values; 0 gives all the same weight.
    seed: of the SVD's start.

  Returns:
    The model.
  """
  if rank < 1:
    raise InputError(f"LSA needs a rank of 1 or more, not {rank}")
  if not np.isfinite(power):
    raise InputError(f"LSA needs a finite power, not {power}")
  index = fit_index(counts, positive=True)
  rows = _unit_rows(weigh_rows(index, counts))
  rank = min(rank, *rows.shape)
  projection, latent = factor(
    ops.from_scipy(rows), rank, power, jax.random.key(seed)
  )
  latent, lengths = _unit(np.asarray(latent) * _nonempty(rows))
  projection = np.asarray(projection)
  return Model(index, rows, projection, jnp.asarray(latent), lengths)


def score(model: Model, query: Query) -> np.ndarray:
  """Scores all entities.

  Args:
    model: from `fit`.
    query: members with weights; new ones are projected.

  Returns:
    Cosines, float32 [X].
  """
  return np.asarray(score_vectors(model.entities, *_members(model, query)))


def score_rows(model: Model, query: Query, rows: sp.csr_array) -> np.ndarray:
  """Scores rows that are not in the table, such as sentences.

  Args:
    model: from `fit`.
    query: the query.
    rows: feature counts, [s, F].

  Returns:
    Cosines, float32 [s].
  """
  latent, _ = _unit(project(model, rows))
  return np.asarray(score_vectors(latent, *_members(model, query)))


def project(model: Model, rows: sp.csr_array) -> np.ndarray:
  """Vectors z of rows of feature counts [s, F], float32 [s, r]."""
  weighted = _unit_rows(weigh_rows(model.weighting, rows))
  return np.asarray(weighted @ model.projection, np.float32)


def contributions(model: Model, query: Query, entity: int) -> Contributions:
  """Splits the cosine of an entity over its features.

  Args:
    model: from `fit`.
    query: the query.
    entity: its row.

  Returns:
    a_x[i] (P[i] . q) / |z_x|: a sum over the entity's features.
  """
  start, end = model.rows.indptr[entity : entity + 2]
  features = model.rows.indices[start:end]
  own = np.asarray(model.projection[features]) @ _direction(model, query)
  parts = model.rows.data[start:end] * own / model.lengths[entity]
  return of_features(features, parts)


def rationale(model: Model, query: Query) -> np.ndarray:
  """How far each feature lies in the query's direction, [F].

  Args:
    model: from `fit`.
    query: the query.

  Returns:
    P[i] . q: what a unit of the feature's weight adds.
  """
  return np.asarray(model.projection) @ _direction(model, query)


def _direction(model: Model, query: Query) -> np.ndarray:
  return np.asarray(_query_vector(*_members(model, query)))


def _members(model: Model, query: Query) -> tuple[np.ndarray, np.ndarray]:
  """Unit vectors of the members, [q, r], and weights, 0 for padding, [q]."""
  size = len(query.ids)
  room = max(1, -(-size // _MEMBERS)) * _MEMBERS
  # Indexing on the device would compile a program for each number of members.
  known = np.asarray(model.entities)
  vectors = np.zeros((room, known.shape[1]), np.float32)
  vectors[:size] = known[np.maximum(query.ids, 0)]
  new = np.flatnonzero(query.ids < 0)
  if new.size:
    vectors[new] = _unit(project(model, query.rows[new]))[0]
  weights = np.zeros(room, np.float32)
  weights[:size] = query.weights
  return vectors, weights


def _nonempty(rows: sp.csr_array) -> np.ndarray:
  return (np.diff(rows.indptr) > 0)[:, None]


def _unit_rows(rows: sp.csr_array) -> sp.csr_array:
  squares = np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
  lengths = np.sqrt(np.where(squares > 0, squares, 1))
  values = rows.data / np.repeat(lengths, np.diff(rows.indptr))
  return sp.csr_array(
    (values.astype(np.float32), rows.indices, rows.indptr), rows.shape
  )


def _unit(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Vectors of length 1, [X, r], and their lengths before, [X]."""
  lengths = np.linalg.norm(vectors, axis=1)
  lengths = np.where(lengths > 0, lengths, 1).astype(np.float32)
  return (vectors / lengths[:, None]).astype(np.float32), lengths


LSA = Baseline(
  "lsa",
  lambda counts, seed: fit(counts, seed=seed),
  score,
  score_rows,
  contributions,
  rationale,
)

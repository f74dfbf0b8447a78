"""BM25 with weighted queries, by postings (thesis 4.3.1).

    score(Q, x) = sum_i IDF[i] f_Q[i] f_x[i] (k1 + 1)
                        / (f_x[i] + k1 (1 - b + b |f_x| / avgdl)),

where f_Q = sum of tau_x f_x over the query. All but f_Q is known beforehand,
so the index holds the product for every feature of every entity ("eager"
scores), by feature; a query adds up the postings of its own features.

IDF[i] = log((X - DF + .5) / (DF + .5)) is negative for a feature that more
than half of the entities have; sharing it would count against an entity. Such
a value is raised to `floor`, 0 by default: the feature is then ignored. If a
table has few kinds of entities, half of the entities may share a feature of one
kind. `positive` takes log(1 + (X - DF + .5) / (DF + .5)) instead, which keeps
such features and the order of all features.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp.autoencoder import bm25_weights
from repr_jax.setexp.baselines import postings as posting_lib
from repr_jax.setexp.baselines.baseline import (
  Baseline,
  clean_rows,
  of_features,
  query_counts,
  read_counts,
)
from repr_jax.setexp.baselines.postings import Postings
from repr_jax.setexp.expansion import PaddedQuery
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.rows import Rows


class Index(NamedTuple):
  """Eager scores by feature.

  Attributes:
    postings: score that a unit of a feature's weight adds to each entity,
      [F, X].
    idf: inverse document frequency with its floor, [F].
    average: mean total count of an entity, [].
    k1: saturation of counts, [].
    b: how much long entities are discounted, 0 to 1, [].
  """

  postings: Postings
  idf: Any
  average: Any
  k1: Any
  b: Any


def fit(
  counts: Any,
  *,
  k1: float = 1.5,
  b: float = 0.75,
  floor: float = 0.0,
  positive: bool = False,
) -> Index:
  """Builds the index, on the host.

  >>> import scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
  >>> bool(setexp.bm25_fit(counts).idf[1] == 0)  # most entities have it
  True

  Args:
    counts: feature counts of the entities, [X, F], not negative.
    k1: saturation of counts, 0 or more.
    b: discount of length, 0 to 1.
    floor: lowest inverse document frequency; `-inf` keeps negative values.
    positive: use the IDF with log(1 + ...), above 0 for every feature.

  Returns:
    The index.
  """
  if not k1 >= 0 or not 0 <= b <= 1:
    raise InputError(
      f"BM25 needs k1 of 0 or more and b from 0 to 1, not {k1} and {b}"
    )
  table = read_counts(counts, "BM25")
  total = float(table.sum(dtype=np.float64))
  size = table.shape[0]
  by_feature = sp.csr_array(table.T)
  frequency = np.diff(by_feature.indptr)
  odds = (size - frequency + 0.5) / (frequency + 0.5)
  idf = np.log1p(odds) if positive else np.log(odds)
  idf = np.maximum(idf, floor).astype(np.float32)
  length = table.sum(axis=1, dtype=np.float64)[by_feature.indices]
  scale = np.repeat(idf, frequency)
  by_feature.data = _eager(by_feature.data, scale, length, total / size, k1, b)
  numbers = (np.float32(x) for x in (total / size, k1, b))
  return Index(posting_lib.from_scipy(by_feature), jnp.asarray(idf), *numbers)


def score(index: Index, query: PaddedQuery) -> jax.Array:
  """Scores all entities.

  >>> import jax.numpy as jnp, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0]])
  >>> index = setexp.bm25_fit(counts, positive=True)
  >>> rows = setexp.rows_from_dense(counts.toarray())
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> setexp.bm25_score(index, query).argsort().tolist()
  [1, 2, 0]

  Args:
    index: from `fit`.
    query: members with weights; negative ones lower scores by shared features.

  Returns:
    Scores, [X].
  """
  features, total = query_counts(query, index.idf.shape[0])
  return score_features(index, features, total[features])


def score_features(
  index: Index, features: jax.Array, weights: jax.Array
) -> jax.Array:
  """Scores all entities for weighted features, such as a text query's.

  Args:
    index: from `fit`.
    features: columns, int32 [m]; F for padding.
    weights: of each, [m].

  Returns:
    Scores, [X].
  """
  return posting_lib.add_rows(
    index.postings, features, weights.astype(index.idf.dtype)
  )


@chosen_products
def score_rows(index: Index, query: PaddedQuery, rows: Rows) -> jax.Array:
  """Scores [s] of rows outside the index; 0 for one without features."""
  _, total = query_counts(query, index.idf.shape[0])
  rows = weigh(index, rows)
  return jnp.sum(rows.counts * total[rows.indices], axis=-1)


def weigh(index: Index, rows: Rows) -> Rows:
  """Scores that the features of rows add for a unit of query weight.

  Args:
    index: from `fit`.
    rows: feature counts, fields [..., m].

  Returns:
    The rows, padding at feature 0 with 0.
  """
  rows = clean_rows(rows, index.idf.shape[0])
  length = rows.counts.sum(axis=-1, keepdims=True)
  weights = bm25_weights(
    rows.counts, index.idf[rows.indices], length, index.average, index.k1,
    index.b,
  )  # fmt: skip
  return Rows(rows.indices, jnp.where(rows.counts > 0, weights, 0))


def weigh_rows(index: Index, rows: sp.csr_array) -> sp.csr_array:
  """`weigh` of sparse rows [s, F] on the host, computed in float64."""
  rows = sp.csr_array(rows, dtype=np.float32)
  length = np.repeat(rows.sum(axis=1, dtype=np.float64), np.diff(rows.indptr))
  idf = np.asarray(index.idf)[rows.indices]
  numbers = (float(x) for x in (index.average, index.k1, index.b))
  values = _eager(rows.data, idf, length, *numbers)
  return sp.csr_array((values, rows.indices, rows.indptr), rows.shape)


def contributions(
  index: Index, query: PaddedQuery, entity: jax.Array
) -> Contributions:
  """Splits the score of an entity over the query's features.

  >>> import jax.numpy as jnp, scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 1.0], [0.0, 1.0], [1.0, 3.0]])
  >>> index = setexp.bm25_fit(counts, positive=True)
  >>> rows = setexp.rows_from_dense(counts.toarray())
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> parts = setexp.bm25_contributions(index, query, 2)
  >>> bool(jnp.isclose(parts.total, setexp.bm25_score(index, query)[2]))
  True

  Args:
    index: from `fit`.
    query: the query.
    entity: its row, int32 [].

  Returns:
    One part for each feature i, f_Q[i] times its value in the index.
  """
  features, total = query_counts(query, index.idf.shape[0])
  values = posting_lib.look_up(index.postings, features, entity)
  inside = jnp.minimum(features, index.idf.shape[0] - 1)
  return of_features(features, values * total[inside])


def rationale(
  index: Index, query: PaddedQuery, *, idf: bool = True
) -> jax.Array:
  """The weight of each feature in a query, for any entity.

  Args:
    index: from `fit`.
    idf: f_Q[i] IDF[i], the features' order of influence on scores; False for
      the thesis' f_Q[i] (4.3.1).

  Returns:
    [F].
  """
  _, total = query_counts(query, index.idf.shape[0])
  return total * index.idf if idf else total


def _eager(counts, idf, length, average, k1, b) -> np.ndarray:
  """Scores for a unit of query weight, float32 [nnz], on the host."""
  wide = np.asarray(counts, np.float64)
  weights = bm25_weights(wide, idf, length, average, k1, b)
  return np.where(wide > 0, weights, 0).astype(np.float32)


BM25 = Baseline(
  "bm25",
  lambda counts, seed: fit(counts),
  score,
  score_rows,
  contributions,
  rationale,
  batched=False,
)

"""BM25 with weighted queries, by postings (thesis 4.3.1).

    score(Q, x) = sum_i IDF[i] f_Q[i] f_x[i] (k1 + 1)
                        / (f_x[i] + k1 (1 - b + b |f_x| / avgdl)),

where f_Q = sum of tau_x f_x over the query. All but f_Q is known beforehand,
so the index holds the product for every feature of every entity ("eager"
scores), by feature; a query adds up the postings of its own features. This
runs on the host: it touches few, scattered numbers, and XLA's scatter-add is
slower there. `score_on_device` is the same sum for accelerators, as a product
of the sparse matrix with many queries at once.

IDF[i] = log((X - DF + .5) / (DF + .5)) is negative for a feature that more
than half of the entities have; sharing it would count against an entity. Such
a value is raised to `floor`, 0 by default: the feature then counts nothing.
Where few kinds of entities share a table, a feature of one whole kind may be
in half of them; `positive` takes log(1 + (X - DF + .5) / (DF + .5)) instead,
which keeps such features and the order among all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.ops import sparse
from repr_jax.setexp.query import Query, query_features


class Index(NamedTuple):
  """Eager scores by feature; plain arrays, one index for each field.

  Attributes:
    starts: where the postings of each feature start, int64 [F + 1].
    entities: entities that have the feature, int32 [nnz].
    values: what a unit of query weight adds to their scores, float32 [nnz].
    idf: inverse document frequency with its floor, float32 [F].
    average: mean total count of an entity.
    k1: how soon more of the same feature stops to count.
    b: how much long entities are discounted, 0 to 1.
    size: the number of entities X.
  """

  starts: np.ndarray
  entities: np.ndarray
  values: np.ndarray
  idf: np.ndarray
  average: float
  k1: float
  b: float
  size: int


def fit(
  counts: sp.csr_array,
  *,
  k1: float = 1.5,
  b: float = 0.75,
  floor: float = 0.0,
  positive: bool = False,
) -> Index:
  """Builds the index.

  Args:
    counts: feature counts of the entities, [X, F], not negative.
    k1: saturation of counts, 0 or more.
    b: discount of length, 0 to 1.
    floor: lowest inverse document frequency; `-inf` keeps negative ones.
    positive: take the frequencies' form that is above 0 for every feature.

  Returns:
    The index.
  """
  if not k1 >= 0 or not 0 <= b <= 1:
    raise InputError(
      f"BM25 needs k1 of 0 or more and b from 0 to 1, not {k1} and {b}"
    )
  table = sp.csr_array(counts, dtype=np.float32)
  if not np.isfinite(table.data).all() or (table.data < 0).any():
    raise InputError("BM25 needs counts that are finite and not negative")
  total = float(table.sum(dtype=np.float64))
  if total == 0:
    raise InputError("no entity has any feature: there is nothing to index")
  size = table.shape[0]
  postings = table.tocsc()
  postings.eliminate_zeros()
  frequency = np.diff(postings.indptr)
  odds = (size - frequency + 0.5) / (frequency + 0.5)
  idf = np.log1p(odds) if positive else np.log(odds)
  index = Index(
    starts=postings.indptr.astype(np.int64),
    entities=postings.indices.astype(np.int32),
    values=np.zeros(0, np.float32),
    idf=np.maximum(idf, floor).astype(np.float32),
    average=total / size,
    k1=k1,
    b=b,
    size=size,
  )
  features = np.repeat(np.arange(len(idf)), frequency)
  length = table.sum(axis=1, dtype=np.float64)[index.entities]
  return index._replace(values=_eager(index, features, postings.data, length))


def score(index: Index, query: Query) -> np.ndarray:
  """Scores all entities.

  Args:
    index: from `fit`.
    query: members with weights; negative ones count against what they have.

  Returns:
    Scores, float32 [X].
  """
  weights = query_features(query)
  features = np.flatnonzero(weights)
  return score_features(index, features, weights[features])


def score_features(
  index: Index, features: np.ndarray, weights: np.ndarray
) -> np.ndarray:
  """Scores all entities for features with weights, the way of text queries.

  Args:
    index: from `fit`.
    features: columns, int [m].
    weights: of each, float32 [m].

  Returns:
    Scores, float32 [X].
  """
  scores = np.zeros(index.size, np.float32)
  for feature, weight in zip(features, np.asarray(weights, np.float32)):
    lo, hi = index.starts[feature], index.starts[feature + 1]
    np.add.at(scores, index.entities[lo:hi], index.values[lo:hi] * weight)
  return scores


def score_batch(index: Index, queries: Sequence[Query]) -> np.ndarray:
  """Scores all entities for each of n queries, float32 [n, X]."""
  return np.stack([score(index, query) for query in queries])


def score_rows(index: Index, query: Query, rows: sp.csr_array) -> np.ndarray:
  """Scores rows that are not in the index, such as sentences.

  Args:
    index: from `fit`.
    query: the query.
    rows: feature counts, [s, F].

  Returns:
    Scores, float32 [s]; a row without features gets 0.
  """
  eager = weigh_rows(index, rows)
  return np.asarray(eager @ query_features(query), np.float32)


def weigh_rows(index: Index, rows: sp.csr_array) -> sp.csr_array:
  """What each feature of a row adds to its score, for a unit of query weight.

  Args:
    index: from `fit`.
    rows: feature counts, [s, F].

  Returns:
    CSR float32 [s, F].
  """
  rows = sp.csr_array(rows, dtype=np.float32)
  length = np.repeat(rows.sum(axis=1, dtype=np.float64), np.diff(rows.indptr))
  values = _eager(index, rows.indices, rows.data, length)
  return sp.csr_array((values, rows.indices, rows.indptr), rows.shape)


def rationale(index: Index, query: Query) -> np.ndarray:
  """The summed query features times their IDF, float32 [F]."""
  return query_features(query) * index.idf


def to_device(index: Index) -> sparse.Sparse:
  """Eager scores as a sparse matrix [X, F] for `score_on_device`."""
  shape = (index.size, len(index.idf))
  table = sp.csc_array((index.values, index.entities, index.starts), shape)
  return sparse.from_scipy(table.tocsr(), name="the BM25 index")


@jax.jit
def score_on_device(table: sparse.Sparse, weights: jax.Array) -> jax.Array:
  """Scores all entities for n queries in one product.

  Args:
    table: from `to_device`, [X, F].
    weights: `query_features` of each query, [n, F].

  Returns:
    Scores, [n, X].
  """
  return sparse.matmat(table, jnp.swapaxes(weights, 0, 1)).T


def _eager(
  index: Index, features: np.ndarray, counts: np.ndarray, length: np.ndarray
) -> np.ndarray:
  """What each count adds to a score, for a unit of query weight, [nnz]."""
  norm = index.k1 * (1 - index.b + index.b * length / index.average)
  counts = counts.astype(np.float64)
  kept = counts / np.maximum(counts + norm, np.finfo(np.float64).tiny)
  return (index.idf[features] * (index.k1 + 1) * kept).astype(np.float32)

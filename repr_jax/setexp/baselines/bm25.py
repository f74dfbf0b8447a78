"""BM25 with weighted queries, by postings (thesis 4.3.1).

    score(Q, x) = sum_i IDF[i] f_Q[i] f_x[i] (k1 + 1)
                        / (f_x[i] + k1 (1 - b + b |f_x| / avgdl)),

where f_Q = sum of tau_x f_x over the query. All but f_Q is known beforehand,
so the index holds the product for every feature of every entity ("eager"
scores), by feature; a query adds up the postings of its own features. This
runs on the host: it touches few, scattered numbers, and XLA's scatter-add is
slower there. On an accelerator the feature score of `expansion` with a member
share of 1 is the same search.

IDF[i] = log((X - DF + .5) / (DF + .5)) is negative for a feature that more
than half of the entities have; sharing it would count against an entity. Such
a value is raised to `floor`, 0 by default: the feature then counts nothing.
Where few kinds of entities share a table, a feature of one whole kind may be
in half of them; `positive` takes log(1 + (X - DF + .5) / (DF + .5)) instead,
which keeps such features and the order among all of them.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.setexp.baselines.baseline import Baseline, of_features
from repr_jax.setexp.explain import Contributions
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


def contributions(index: Index, query: Query, entity: int) -> Contributions:
  """What each feature of the query added to the score of an entity.

  Args:
    index: from `fit`.
    query: the query.
    entity: its row.

  Returns:
    f_Q[i] times the value of feature i in the index: a sum over features.
  """
  weights = query_features(query)
  features, parts = [], []
  for feature in np.flatnonzero(weights):
    lo, hi = index.starts[feature], index.starts[feature + 1]
    place = lo + np.searchsorted(index.entities[lo:hi], entity)
    if place < hi and index.entities[place] == entity:
      features.append(feature)
      parts.append(index.values[place] * weights[feature])
  return of_features(np.array(features, np.int64), np.array(parts, np.float32))


def rationale(index: Index, query: Query, *, idf: bool = True) -> np.ndarray:
  """The weight of each feature in a query, whatever the entity.

  Args:
    index: from `fit`.
    query: the query.
    idf: f_Q[i] IDF[i], which orders features as they count in a score; False
      for the thesis' f_Q[i] (4.3.1).

  Returns:
    float32 [F].
  """
  weights = query_features(query)
  return weights * index.idf if idf else weights


def _eager(
  index: Index, features: np.ndarray, counts: np.ndarray, length: np.ndarray
) -> np.ndarray:
  """What each count adds to a score, for a unit of query weight, [nnz]."""
  norm = index.k1 * (1 - index.b + index.b * length / index.average)
  counts = counts.astype(np.float64)
  kept = counts / np.maximum(counts + norm, np.finfo(np.float64).tiny)
  return (index.idf[features] * (index.k1 + 1) * kept).astype(np.float32)


BM25 = Baseline(
  "bm25",
  lambda counts, seed: fit(counts),
  score,
  score_rows,
  contributions,
  rationale,
)

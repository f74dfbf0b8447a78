"""A query: a few entities with signed weights, from the table or new.

Every system of this package, the variational model and the baselines, scores
the same `Query` (thesis 4.2 and 4.6): the members' features, their weights and,
if they are in the table, their rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.ops import inputs

_BLOCK = 64
_LARGEST_COUNT = 1e30  # weighted sums of counts stay finite in float32
_LARGEST_WEIGHT = 1e6


class Query(NamedTuple):
  """Members of a set to expand.

  Attributes:
    rows: features of the members, float32 [q, F].
    weights: signed influence of each member, float32 [q].
    ids: row of each member in the table, int32 [q]; -1 for a new entity.
  """

  rows: sp.csr_array
  weights: np.ndarray
  ids: np.ndarray


def make_query(
  counts: sp.csr_array,
  ids: Sequence[int] | np.ndarray,
  weights: Sequence[float] | np.ndarray | None = None,
  new_rows: sp.csr_array | None = None,
) -> Query:
  """Builds a query and checks that it can be answered.

  >>> import scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> setexp.make_query(counts, [1]).ids.tolist()
  [1]

  Args:
    counts: features of all entities, [X, F]; CSR is not copied.
    ids: rows of the members that are in the table, [m]; may be empty where
      `new_rows` is given.
    weights: signed influence of each member, members of the table first, then
      new ones, [m + r]; 1 each by default.
    new_rows: features of members that are not in the table, [r, F].

  Returns:
    The query, q = m + r members.

  Raises:
    InputError: no member, an id outside the table, an entity twice, a weight
      or feature that is not finite or too large, weights that are all zero,
      a negative count, or a member without features.
  """
  if not isinstance(counts, (sp.csr_array, sp.csr_matrix)):
    counts = sp.csr_array(inputs.read_matrix(counts, "counts"))
  ids = _check_ids(np.asarray(ids), counts.shape[0])
  new = _check_new(new_rows, counts.shape[1])
  if ids.size + new.shape[0] == 0:
    raise InputError("the query has no member: give at least one entity")
  rows = _take(counts, ids)
  if new.shape[0]:
    rows = sp.csr_array(sp.vstack([rows, new], format="csr"), dtype=np.float32)
  if not (rows.has_canonical_format and rows.data.all()):
    rows.sum_duplicates()
    rows.eliminate_zeros()
  full = np.concatenate([ids, np.full(new.shape[0], -1, np.int32)])
  _check_rows(rows, full)
  return Query(rows, _check_weights(weights, full.size), full)


def exclude(scores: np.ndarray, query: Query) -> np.ndarray:
  """Scores with -inf for the query's own members, so that they never return.

  Args:
    scores: score of each entity, [X].

  Returns:
    A copy, [X].
  """
  scores = np.array(scores)
  scores[query.ids[query.ids >= 0]] = -np.inf
  return scores


def best(scores: np.ndarray, k: int) -> np.ndarray:
  """Rows of the k highest scores, best first, ties by row number.

  Only scores that reach the k-th highest block maximum are sorted: this maximum
  is at most the k-th highest score.

  Args:
    scores: score of each entity, [X]; -inf for one that must not return.
    k: how many to return, at least 1.

  Returns:
    The rows, int64 [at most k]; none with a score of -inf.

  Raises:
    InputError: a score is NaN.
  """
  inputs.check_whole(1, k=k)
  if np.isnan(scores).any():
    bad = int(np.argmax(np.isnan(scores)))
    raise InputError(f"the score of row {bad} is not a number")
  whole = len(scores) // _BLOCK * _BLOCK
  rows = np.arange(len(scores))
  if whole >= k * _BLOCK:
    maxima = scores[:whole].reshape(-1, _BLOCK).max(axis=1)
    rows = np.flatnonzero(scores >= np.partition(maxima, -k)[-k])
  rows = rows[np.argsort(-scores[rows], kind="stable")[:k]]
  return rows[scores[rows] > -np.inf]


def _take(counts: sp.csr_array, ids: np.ndarray) -> sp.csr_array:
  """Rows of some entities, float32; three times as fast as scipy's indexing.

  Args:
    counts: [X, F].
    ids: rows, [m].
  """
  starts = counts.indptr[ids]
  lengths = counts.indptr[ids + 1] - starts
  indptr = np.zeros(len(ids) + 1, counts.indptr.dtype)
  np.cumsum(lengths, out=indptr[1:])
  place = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
  data = counts.data[place].astype(np.float32)
  shape = len(ids), counts.shape[1]
  return sp.csr_array((data, counts.indices[place], indptr), shape)


def _check_ids(ids: np.ndarray, size: int) -> np.ndarray:
  if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
    raise InputError("the query's entities must be a list of row numbers")
  outside = ids[(ids < 0) | (ids >= size)]
  if outside.size:
    raise InputError(
      f"the query names row {outside[0]}, but the table has rows 0 to "
      f"{size - 1}"
    )
  values, counts = np.unique(ids, return_counts=True)
  if (counts > 1).any():
    raise InputError(
      f"the query names the entity of row {values[counts > 1][0]} twice; "
      "name it once and raise its weight"
    )
  return ids.astype(np.int32)


def _check_new(rows: sp.csr_array | None, width: int) -> sp.csr_array:
  if rows is None:
    return sp.csr_array((0, width), dtype=np.float32)
  if rows.shape[1] != width:
    raise InputError(
      f"a new entity has {rows.shape[1]} features, the table has {width}: "
      "featurize it with this table"
    )
  return sp.csr_array(rows)


def _check_rows(rows: sp.csr_array, ids: np.ndarray) -> None:
  if not ((rows.data >= 0) & (rows.data <= _LARGEST_COUNT)).all():
    raise InputError(
      "a feature of a member is negative, not finite or above "
      f"{_LARGEST_COUNT:g}"
    )
  empty = np.flatnonzero(np.diff(rows.indptr) == 0)
  if empty.size:
    which = empty[0]
    name = f"of row {ids[which]}" if ids[which] >= 0 else "that is new"
    raise InputError(
      f"member {which + 1} of the query, the entity {name}, has no features "
      "(none of its own are left after pruning): leave it out or give it "
      "more sentences"
    )


def _check_weights(
  weights: Sequence[float] | np.ndarray | None, size: int
) -> np.ndarray:
  if weights is None:
    return np.ones(size, np.float32)
  values = np.asarray(weights, np.float32)
  if values.shape != (size,):
    raise InputError(
      f"the query has {size} members but weights of shape {values.shape}"
    )
  if not (np.abs(values) <= _LARGEST_WEIGHT).all():
    raise InputError(
      f"a weight of the query is not finite or beyond {_LARGEST_WEIGHT:g}"
    )
  if not values.any():
    raise InputError("all weights of the query are zero: nothing to look for")
  return values

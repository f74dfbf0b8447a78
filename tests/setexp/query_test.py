"""Queries: what is built, what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.setexp import query as query_lib


@pytest.fixture
def counts():
  dense = np.array([[1, 0, 2], [0, 3, 0], [0, 0, 0], [1, 1, 1]], np.float32)
  return sp.csr_array(dense)


def test_members_come_from_the_table_then_new(counts):
  new = sp.csr_array(np.array([[0.0, 5.0, 1.0]]))
  query = query_lib.make_query(counts, [3, 0], [1.0, -2.0, 0.5], new)
  np.testing.assert_array_equal(
    query.rows.toarray(), [[1, 1, 1], [1, 0, 2], [0, 5, 1]]
  )
  np.testing.assert_array_equal(query.ids, [3, 0, -1])
  assert query.rows.dtype == np.float32 and query.ids.dtype == np.int32
  np.testing.assert_allclose(
    query.weights @ query.rows, [-1.0, 3.5, -2.5], rtol=1e-6
  )


def test_default_weights_are_one(counts):
  assert query_lib.make_query(counts, [0, 1]).weights.tolist() == [1.0, 1.0]


def test_only_new_members(counts):
  query = query_lib.make_query(counts, [], new_rows=counts[[1]])
  assert query.ids.tolist() == [-1]


def test_exclude_hides_own_members_only(counts):
  scores = np.arange(4, dtype=np.float32)
  query = query_lib.make_query(counts, [1], new_rows=counts[[3]])
  hidden = query_lib.exclude(scores, query)
  assert np.isneginf(hidden[1]) and np.isfinite(hidden[[0, 2, 3]]).all()
  assert scores[1] == 1.0


@pytest.mark.parametrize("size, k", [(7, 3), (7, 20), (1000, 10), (6401, 100)])
def test_best_is_a_stable_sort(size, k):
  rng = np.random.default_rng(0)
  scores = rng.integers(50, size=size).astype(np.float32)
  scores[rng.random(size) < 0.2] = -np.inf
  wanted = np.argsort(-scores, kind="stable")[:k]
  wanted = wanted[np.isfinite(scores[wanted])]
  np.testing.assert_array_equal(query_lib.best(scores, k), wanted)


def test_best_needs_a_number():
  with pytest.raises(InputError, match="k must be a whole number, 1 or more"):
    query_lib.best(np.zeros(3), 0)


@pytest.mark.parametrize(
  "ids, weights, message",
  [
    ([], None, "no member"),
    ([4], None, "rows 0 to 3"),
    ([-1], None, "rows 0 to 3"),
    ([0.5], None, "row numbers"),
    ([0, 0], None, "twice"),
    ([2], None, "no features"),
    ([0, 1], [0.0, 0.0], "all weights"),
    ([0, 1], [1.0], "2 members"),
    ([0, 1], [1.0, np.nan], "not finite"),
  ],
)
def test_bad_queries_are_refused(counts, ids, weights, message):
  with pytest.raises(InputError, match=message):
    query_lib.make_query(counts, ids, weights)


@pytest.mark.parametrize(
  "row, message",
  [
    ([[1.0, 2.0]], "2 features"),
    ([[1.0, np.inf, 0.0]], "not finite"),
    ([[0.0, -1.0, 0.0]], "negative"),
    ([[0.0, 0.0, 0.0]], "that is new"),
  ],
)
def test_bad_new_members_are_refused(counts, row, message):
  with pytest.raises(InputError, match=message):
    query_lib.make_query(counts, [0], new_rows=sp.csr_array(np.array(row)))

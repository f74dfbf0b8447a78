"""Parts that all baselines share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from jax.experimental import sparse as bcoo

from repr_jax.errors import InputError
from repr_jax.setexp import from_scipy
from repr_jax.setexp.baselines import baseline
from repr_jax.setexp.query import make_query
from repr_jax.setexp.rows import Rows

_COUNTS = sp.csr_array([[1.0, 0, 2, 0], [0, 3, 1, 0], [4, 0, 0, 0]])


def _one(query, **settings):
  padded = from_scipy.pad_members([query], **settings)
  return jax.tree.map(lambda x: jnp.asarray(x[0]), padded)


def test_the_counts_of_a_query_are_the_weighted_sum():
  query = make_query(_COUNTS, [0, 1], [2.0, -1.0])
  features, total = baseline.query_counts(_one(query), 4)
  np.testing.assert_array_equal(total, query.weights @ query.rows)
  assert sorted(x for x in features.tolist() if x < 4) == [0, 1, 2]


def test_sums_that_would_overflow_are_cut_off():
  huge = sp.csr_array([[1e30, 1.0], [1e30, 1.0]])
  query = make_query(huge, [0, 1], [1e6, -1e6])
  assert not baseline.query_counts(_one(query), 2)[1].any()
  query = make_query(huge, [0, 1], [1e6, 1e6])
  total = baseline.query_counts(_one(query), 2)[1]
  np.testing.assert_allclose(total, [1e30, 2e6], rtol=1e-6)


def test_new_members_have_their_own_vectors():
  vectors = jnp.arange(6.0).reshape(3, 2)
  query = make_query(_COUNTS, [2], [1.0, 1.0], _COUNTS[[0]])
  padded = _one(query, encode=lambda rows: np.full((rows.shape[0], 2), 9.0))
  members = baseline.member_vectors(padded, vectors)
  np.testing.assert_array_equal(members, [[4, 5], [9, 9], [0, 0], [0, 0]])


def test_padding_of_rows_counts_nothing():
  rows = baseline.clean_rows(
    Rows(jnp.array([[1, 4, -1]]), jnp.array([[2.0, np.nan, 5.0]])), 4
  )
  assert rows.indices.tolist() == [[1, 0, 0]]
  assert rows.counts.tolist() == [[2.0, 0.0, 0.0]]


def test_parts_of_features_have_no_other_parts():
  parts = baseline.of_features(jnp.array([3]), jnp.array([2.0]))
  assert float(parts.total) == 2.0 and parts.by_feature(4).tolist() == [
    0, 0, 0, 2,
  ]  # fmt: skip


def test_counts_of_any_kind_are_read():
  sparse = bcoo.BCOO.fromdense(jnp.asarray(_COUNTS.toarray()))
  for counts in (sparse, _COUNTS.toarray(), _COUNTS.tocsc()):
    table = baseline.read_counts(counts, "it")
    np.testing.assert_array_equal(table.toarray(), _COUNTS.toarray())
  with pytest.raises(InputError, match="it needs counts"):
    baseline.read_counts(-np.ones((2, 2)), "it")

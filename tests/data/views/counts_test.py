"""Checks of counts on the host."""

import numpy as np
import pytest
import scipy.sparse

from repr_jax.data.views import counts as count_checks
from repr_jax.errors import InputError


def test_duplicates_and_stored_zeros_are_cleared():
  messy = scipy.sparse.csr_array(
    (np.array([1, 2, 0], np.float32), [1, 1, 0], [0, 2, 3]), shape=(2, 2)
  )
  clean = count_checks.validate(messy)
  assert clean.nnz == 1 and clean[0, 1] == 3
  assert messy.nnz == 3


def test_the_float_type_is_as_told():
  counts = np.array([[3.0, 0.0]])
  assert count_checks.validate(counts).dtype == np.float32
  assert count_checks.validate(counts, dtype=np.float64).dtype == np.float64


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_bad_count_is_named(value):
  with pytest.raises(InputError, match="view text: row 1, column 0 holds"):
    count_checks.validate(np.array([[1.0, 2], [value, 0]]), "text")


def test_frequent_columns_and_observed_rows():
  counts = scipy.sparse.csr_array(np.array([[1.0, 5, 5], [0, 0, 0], [2, 0, 0]]))
  totals = count_checks.column_totals(counts)
  np.testing.assert_array_equal(totals, [3, 5, 5])
  np.testing.assert_array_equal(count_checks.top_columns(totals, 2), [1, 2])
  np.testing.assert_array_equal(count_checks.top_columns(totals, 1), [1])
  counts.data[:] = [0, 0, 0, 2]
  np.testing.assert_array_equal(
    count_checks.observed(counts), [False, False, True]
  )


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_rows_that_are_all_alike(kind):
  same = np.array([[1.0, 0, 2], [0, 0, 0], [1, 0, 2]])
  assert count_checks.is_constant(kind(same))
  for row, value in ((0, 3.0), (2, 0.0)):
    other = same.copy()
    other[row, 0] = value
    assert not count_checks.is_constant(kind(other))
  moved = np.array([[1.0, 0], [0, 1]])
  assert not count_checks.is_constant(kind(moved))

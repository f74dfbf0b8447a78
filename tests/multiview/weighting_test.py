"""Weightings against dense formulas; what must be refused is refused."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from repr_jax import errors, multiview, ops
from repr_jax.data.views import counts as count_checks
from repr_jax.multiview import host_views, weighting

_COUNTS = hnp.arrays(
  np.float32,
  hnp.array_shapes(min_dims=2, max_dims=2, max_side=7),
  elements=st.sampled_from([0.0, 0.0, 1.0, 2.0, 7.0, 1e6]),
)


def _dense_ppmi(counts, smoothing):
  result = np.zeros(counts.shape)
  columns = counts.sum(0, dtype=np.float64) ** smoothing
  for i, c in zip(*np.nonzero(counts)):
    joint = counts[i, c] / counts.sum(dtype=np.float64)
    row = counts[i].sum(dtype=np.float64) / counts.sum(dtype=np.float64)
    column = columns[c] / columns.sum()
    result[i, c] = max(0, np.log(joint / (row * column)))
  return result


@settings(max_examples=50, deadline=None)
@given(counts=_COUNTS)
def test_elementwise_weightings(counts):
  sparse = scipy.sparse.csr_array(counts)
  before = sparse.data.copy()
  expected = {
    weighting.Weighting("identity"): counts,
    weighting.Weighting("log"): np.log1p(counts),
    weighting.Weighting("power", 0.25): counts**0.25,
    weighting.Weighting("power", 0.12): counts**0.12,
  }
  for how, want in expected.items():
    got = host_views.weigh(sparse, how)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got.toarray(), want, rtol=1e-5)
  np.testing.assert_array_equal(sparse.data, before)


@settings(max_examples=50, deadline=None)
@given(counts=_COUNTS, smoothing=st.sampled_from([1.0, 0.75]))
def test_ppmi(counts, smoothing):
  how = weighting.Weighting("ppmi", smoothing=smoothing)
  got = host_views.weigh(counts, how)
  want = _dense_ppmi(counts, smoothing)
  np.testing.assert_allclose(got.toarray(), want, rtol=1e-4, atol=1e-5)
  assert np.all(got.data > 0)


def test_ppmi_of_independent_counts_is_zero():
  counts = np.outer([1.0, 2, 4], [8, 1, 2, 16])
  got = host_views.weigh(counts, weighting.Weighting("ppmi"))
  assert abs(got).max() < 1e-6


def test_arrays_sparse_matrices_and_the_host_agree():
  """One formula, three containers; new rows use the totals of the old."""
  counts = np.random.default_rng(0).poisson(0.4, (60, 9)).astype(np.float32)
  counts[3] = 0
  packed = ops.from_scipy(counts)
  for function, how in (
    (weighting.log_counts, weighting.Weighting("log")),
    (weighting.power_counts, weighting.Weighting("power")),
    (
      lambda x: multiview.ppmi(x, 0.75),
      weighting.Weighting("ppmi", smoothing=0.75),
    ),
  ):
    dense = np.asarray(function(jnp.asarray(counts)))
    sparse = ops.to_scipy(function(packed)).toarray()
    host = host_views.weigh(counts, how)
    np.testing.assert_allclose(sparse, dense, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(host.toarray(), dense, rtol=1e-5, atol=1e-6)
    csr = count_checks.validate(counts)
    columns = host_views.columns_of(csr, how)
    some = host_views.weigh(counts[5:9], how, columns=columns)
    np.testing.assert_allclose(some.toarray(), dense[5:9], rtol=1e-5, atol=1e-6)
  totals = jnp.asarray(counts.sum(axis=0))
  new = multiview.ppmi(jnp.asarray(counts[5:9]), 0.75, totals)
  np.testing.assert_allclose(new, dense[5:9], rtol=1e-5, atol=1e-6)
  for function in (weighting.row_weights, weighting.observed_rows):
    np.testing.assert_allclose(
      function(packed), function(jnp.asarray(counts)), rtol=1e-6
    )


@settings(max_examples=50, deadline=None)
@given(counts=_COUNTS, keep=st.integers(1, 8))
def test_truncation_keeps_the_largest_columns(counts, keep):
  how = weighting.Weighting("identity", columns=keep)
  got = host_views.weigh(counts, how).toarray()
  totals = counts.sum(0, dtype=np.float64)
  assert got.shape == (len(counts), min(keep, counts.shape[1]))
  kept = np.sort(got.sum(0, dtype=np.float64))[::-1]
  np.testing.assert_array_equal(kept, np.sort(totals)[::-1][:keep])
  places = count_checks.top_columns(counts.sum(axis=0), keep)
  np.testing.assert_array_equal(counts[:, places], got)


@settings(max_examples=50, deadline=None)
@given(counts=_COUNTS)
def test_observed_support_and_row_weights(counts):
  sparse = scipy.sparse.csr_array(counts)
  sparse.data[:1] = 0  # a stored zero is no observation
  dense = sparse.toarray()
  want = (dense != 0).any(1)
  np.testing.assert_array_equal(count_checks.observed(sparse), want)
  np.testing.assert_array_equal(count_checks.observed(dense), want)
  np.testing.assert_array_equal(multiview.observed_rows(dense), want)
  totals = dense.sum(1, dtype=np.float64)
  weights = multiview.row_weights(dense)
  top = max(totals.max(), 1e-30)
  np.testing.assert_allclose(weights, (totals / top) ** 0.75, rtol=1e-5)
  capped = multiview.row_weights(dense, maximum=5.0)
  np.testing.assert_allclose(
    capped, np.minimum(1, (totals / 5) ** 0.75), rtol=1e-5
  )


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_counts_name_view_and_row(value):
  counts = np.array([[1, 0, 2], [0, 0, 0], [0, value, 3]], np.float32)
  with pytest.raises(errors.InputError, match="view text: row 2, column 1"):
    host_views.weigh(counts, weighting.Weighting(), name="text")


@pytest.mark.parametrize(
  "options", [{"kind": "cube"}, {"power": 0}, {"smoothing": -1}, {"columns": 0}]
)
def test_bad_options_are_refused(options):
  with pytest.raises(errors.InputError):
    weighting.Weighting(**options)

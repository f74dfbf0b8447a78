"""Generated matrices have the properties that they promise."""

import numpy as np
import pytest
import scipy.linalg

from repr_jax import errors
from repr_jax.data import synthetic


def _angle(a, b):
  """The largest angle between two column spaces."""
  return scipy.linalg.subspace_angles(a, b).max()


def test_shared_views_span_the_signal():
  rng = np.random.default_rng(0)
  got = synthetic.shared_views(rng, 60, [5, 8], 3, noise=0.0)
  for view in got.views:
    assert view.dtype == np.float32
    basis = np.linalg.svd(view.astype(np.float64))[0][:, :3]
    assert _angle(basis, got.signal) < 1e-4
    assert np.linalg.matrix_rank(view, tol=1e-3) == 3
  np.testing.assert_allclose(got.signal.T @ got.signal, np.eye(3), atol=1e-5)
  assert got.observed.all()


@pytest.mark.parametrize(
  "make", [synthetic.shared_views, synthetic.count_views]
)
def test_missing_rows_are_zero_and_no_row_is_lost(make):
  got = make(np.random.default_rng(1), 200, [6, 7, 9], 2, missing=0.6)
  assert got.observed.any(axis=0).all()
  assert 0.3 < got.observed.mean() < 0.75
  for view, seen in zip(got.views, got.observed):
    dense = view if isinstance(view, np.ndarray) else view.toarray()
    assert not dense[~seen].any()
    assert dense[seen].any()


def test_count_views_share_their_span():
  rng = np.random.default_rng(2)
  got = synthetic.count_views(rng, 80, [300, 400], 3, mean_count=1e4)
  for view in got.views:
    dense = view.toarray().astype(np.float64)
    assert (dense == np.round(dense)).all() and (dense >= 0).all()
    basis = np.linalg.svd(dense, full_matrices=False)[0][:, :3]
    assert _angle(basis, got.signal) < 0.1


def test_spectrum():
  values = [1.0, 3.0, 2.0]
  got = synthetic.with_spectrum(np.random.default_rng(3), 9, 7, values)
  s = np.linalg.svd(got.matrix, compute_uv=False)
  np.testing.assert_allclose(s[:3], [3, 2, 1])
  np.testing.assert_allclose(s[3:], 0, atol=1e-12)
  np.testing.assert_allclose(got.matrix @ got.v, got.u * got.s, atol=1e-12)


@pytest.mark.parametrize(
  ("n", "d", "nnz"),
  [(50, 20, 300), (50, 20, 1000), (50, 20, 7), (50, 20, 0), (3, 2, 5)],
)
def test_zipf_counts_are_exact(n, d, nnz, monkeypatch):
  monkeypatch.setattr(synthetic, "_BLOCK", 64)
  got = synthetic.zipf_counts(np.random.default_rng(4), n, d, nnz)
  assert got.shape == (n, d)
  assert got.nnz == nnz
  assert np.count_nonzero(got.toarray()) == nnz
  assert got.dtype == np.float32
  assert (got.data == np.round(got.data)).all()


def test_zipf_profile():
  got = synthetic.zipf_counts(np.random.default_rng(5), 4000, 500, 60_000)
  columns = np.bincount(got.indices, minlength=500)
  assert columns[0] <= 4000 and (np.diff(columns) <= 0).all()
  free = columns[(columns < 4000) & (columns > 20)]
  rank = np.arange(500)[(columns < 4000) & (columns > 20)] + 1
  slope = np.polyfit(np.log(rank), np.log(free), 1)[0]
  assert abs(slope + 1) < 0.1
  rows = np.diff(got.indptr)
  assert rows[:400].mean() > 2 * rows[-400:].mean()


def test_ppca_sample_has_its_covariance():
  got = synthetic.ppca_sample(np.random.default_rng(6), 200_000, 5, 2, 0.3)
  expected = got.loadings @ got.loadings.T + 0.3 * np.eye(5)
  np.testing.assert_allclose(np.cov(got.data.T), expected, atol=0.05)
  np.testing.assert_allclose(got.data.mean(axis=0), got.mean, atol=0.05)


def test_the_seed_decides():
  one, two = (np.random.default_rng(7) for _ in range(2))
  a = synthetic.zipf_counts(one, 30, 10, 90)
  b = synthetic.zipf_counts(two, 30, 10, 90)
  assert (a != b).nnz == 0
  assert (a != synthetic.zipf_counts(one, 30, 10, 90)).nnz > 0


def test_impossible_requests():
  rng = np.random.default_rng(8)
  for call in [
    lambda: synthetic.shared_views(rng, 10, [5, 2], 3),
    lambda: synthetic.shared_views(rng, 10, [5, 5], 3, missing=1.0),
    lambda: synthetic.count_views(rng, 10, [5], 11),
    lambda: synthetic.with_spectrum(rng, 3, 2, [1, 1, 1]),
    lambda: synthetic.with_spectrum(rng, 3, 3, [-1]),
    lambda: synthetic.zipf_counts(rng, 3, 2, 7),
    lambda: synthetic.zipf_counts(rng, 0, 2, 0),
    lambda: synthetic.ppca_sample(rng, 3, 2, 2),
    lambda: synthetic.ppca_sample(rng, 3, 2, 1, 0.0),
  ]:
    with pytest.raises(errors.InputError):
      call()

"""Generated matrices have the properties that they promise."""

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import synthetic


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


def test_the_seed_decides():
  one, two = (np.random.default_rng(7) for _ in range(2))
  a = synthetic.zipf_counts(one, 30, 10, 90)
  b = synthetic.zipf_counts(two, 30, 10, 90)
  assert (a != b).nnz == 0
  assert (a != synthetic.zipf_counts(one, 30, 10, 90)).nnz > 0
  assert (a != synthetic.zipf_counts(7, 30, 10, 90)).nnz == 0
  with pytest.raises(errors.InputError, match="rng must be"):
    synthetic.zipf_counts("7", 30, 10, 90)


def test_impossible_requests():
  rng = np.random.default_rng(8)
  for call in [
    lambda: synthetic.with_spectrum(rng, 3, 2, [1, 1, 1]),
    lambda: synthetic.with_spectrum(rng, 3, 3, [-1]),
    lambda: synthetic.zipf_counts(rng, 3, 2, 7),
    lambda: synthetic.zipf_counts(rng, 0, 2, 0),
  ]:
    with pytest.raises(errors.InputError):
      call()

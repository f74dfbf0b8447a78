"""Baselines against dense linear algebra."""

import numpy as np
import pytest
import scipy.sparse

from repr_jax.errors import InputError
from repr_jax.multiview import host_views, lsa
from repr_jax.multiview.weighting import Weighting


def _counts(n=80, d=30, seed=0):
  rng = np.random.default_rng(seed)
  rate = rng.gamma(0.5, size=(n, 4)) @ rng.gamma(0.5, size=(4, d))
  counts = rng.poisson(3 * rate).astype(np.float32)
  counts[7] = 0
  return counts


@pytest.mark.parametrize("center", [False, True])
def test_lsa_keeps_the_inner_products_of_the_best_rank_k(center):
  counts = _counts()
  found = lsa.lsa(scipy.sparse.csr_array(counts), 5, power=1, center=center)
  seen = counts.any(axis=1)
  x = counts.astype(np.float64)
  if center:
    x = np.where(seen[:, None], x - x[seen].mean(axis=0), 0)
  u, s, _ = np.linalg.svd(x, full_matrices=False)
  best = (u[:, :5] * s[:5] ** 2) @ u[:, :5].T
  np.testing.assert_allclose(found @ found.T, best, rtol=1e-3, atol=1e-2)


def test_power_0_gives_orthonormal_columns():
  found = lsa.lsa(scipy.sparse.csr_array(_counts()), 4, power=0)
  np.testing.assert_allclose(found.T @ found, np.eye(4), atol=1e-4)


def test_ppmi_svd_factors_the_definition():
  counts = _counts().astype(np.float64)
  total = counts.sum()
  context = counts.sum(axis=0) ** 0.75
  context /= context.sum()
  with np.errstate(divide="ignore", invalid="ignore"):
    share = counts / total / (counts.sum(axis=1, keepdims=True) / total)
    pmi = np.log(share / context)
  ppmi = np.where(counts > 0, np.maximum(pmi, 0), 0)
  u, s, _ = np.linalg.svd(ppmi, full_matrices=False)
  best = (u[:, :6] * s[:6]) @ u[:, :6].T
  how = Weighting("ppmi", smoothing=0.75)
  weights = host_views.weigh(counts.astype(np.float32), how)
  found = lsa.lsa(weights, 6, power=0.5, center=False)
  np.testing.assert_allclose(found @ found.T, best, rtol=1e-3, atol=1e-2)


def test_views_side_by_side():
  a, b = scipy.sparse.csr_array(_counts()), scipy.sparse.csr_array(_counts(d=9))
  both = lsa.concatenated([a, b])
  np.testing.assert_array_equal(both.toarray()[:, 30:], b.toarray())
  with pytest.raises(InputError, match=r"\[40, 80\]"):
    lsa.concatenated([a, scipy.sparse.csr_array(_counts(n=40))])
  with pytest.raises(InputError, match="no view"):
    lsa.concatenated([])


def test_too_many_dimensions_are_refused():
  with pytest.raises(InputError, match="k = 31"):
    lsa.lsa(scipy.sparse.csr_array(_counts()), 31)

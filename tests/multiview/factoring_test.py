"""Driven factoring: dense views in one program, sparse ones one by one."""

import jax
import numpy as np
import scipy.sparse

from repr_jax.multiview import factoring, gcca, host_views


def _counts(seed, d):
  return np.random.default_rng(seed).poisson(1.0, (60, d)).astype(np.float32)


def test_views_of_all_kinds_come_in_order(monkeypatch):
  views = [_counts(0, 9), _counts(1, 9), _counts(2, 7), _counts(3, 11)]
  views[3] = scipy.sparse.csr_array(views[3])
  views.append(_counts(4, 9))
  hosts = host_views.open_views(views)
  weights, _ = host_views.observe(hosts)
  stacked = []
  original = factoring._factor_stacked

  def counted(x, *arguments, **named):
    stacked.append(x.shape[0])
    return original(x, *arguments, **named)

  monkeypatch.setattr(factoring, "_factor_stacked", counted)
  key = jax.random.key(0)
  made = list(factoring.factor_views(hosts, 5, weights, key, tolerance=1e-6))
  assert stacked == [2, 1, 1]  # equal shapes that stand together
  for (factor, error), view in zip(made, views):
    dense = view.toarray() if scipy.sparse.issparse(view) else view
    s = np.linalg.svd(dense - dense.mean(axis=0), compute_uv=False)[:5]
    np.testing.assert_allclose(factor.s, s, rtol=1e-4)
    assert factor.right.shape == (dense.shape[1], 5)  # without padding
    assert factor.mean.shape == (dense.shape[1],) and error < 1e-4


def test_stacks_are_bounded(monkeypatch):
  monkeypatch.setattr(factoring, "_STACKED_BYTES", 2 * 60 * 9 * 4)
  views = [_counts(seed, 9) for seed in range(5)]
  hosts = host_views.open_views(views)
  weights, _ = host_views.observe(hosts)
  key = jax.random.key(0)
  keys = jax.random.split(key, 5)
  for j, (factor, _) in enumerate(
    factoring.factor_views(hosts, 3, weights, key)
  ):
    alone, _ = gcca.factor_view(views[j], 3, weights[j], keys[j])
    np.testing.assert_allclose(factor.s, alone.s, rtol=1e-4)

"""The whole fit against brute force: missing rows, weights, both methods."""

import numpy as np
import pytest
import scipy.sparse

from repr_jax.errors import InputError
from repr_jax.multiview import mvlsa
from repr_jax.multiview.weighting import Weighting

_N, _K, _RIDGE = 150, 3, 0.5


def _views(seed=0):
  """Three sparse views of shared structure, each lacking some rows."""
  rng = np.random.default_rng(seed)
  signal = rng.random((_N, 3))
  views = []
  for d in (11, 12, 12):
    counts = rng.poisson(signal @ (3 * rng.random((3, d))))
    counts[:, 0] += 1
    counts[rng.random(_N) < 0.3] = 0
    views.append(scipy.sparse.csr_array(counts.astype(np.float32)))
  return views


def _brute_force(views, weights, ridge):
  """Eigenpairs of K^(-1/2) (sum W P W) K^(-1/2), with centered X."""
  support = sum(w**2 for w in weights)
  scale = np.where(support > 0, 1 / np.sqrt(np.maximum(support, 1e-30)), 0)
  total = np.zeros((_N, _N))
  for view, w in zip(views, weights):
    y = view.toarray().astype(np.float64)
    seen = w > 0
    x = np.where(seen[:, None], y - y[seen].mean(axis=0), 0)
    wx = w[:, None] * x
    p = wx @ np.linalg.solve(wx.T @ wx + ridge * np.eye(x.shape[1]), wx.T)
    total += w[:, None] * p * w
  values, vectors = np.linalg.eigh(scale[:, None] * total * scale)
  return values[::-1][:_K], vectors[:, ::-1][:, :_K], scale


def _loss(views, weights, g, projections, ridge):
  """sum_j ||W_j K_j (G - X_j U_j)||^2 + r ||U_j||^2, term by term."""
  total = 0.0
  for view, w, u in zip(views, weights, projections):
    y = view.toarray().astype(np.float64)
    seen = w > 0
    x = np.where(seen[:, None], y - y[seen].mean(axis=0), 0)
    total += ((w[:, None] * (g - x @ u)) ** 2).sum()
    total += ridge * (np.asarray(u) ** 2).sum()
  return total


def _observed(views):
  return [(v.toarray() != 0).any(axis=1).astype(np.float64) for v in views]


@pytest.mark.parametrize("method", ["memory", "stream"])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_equals_brute_force(method, weighted):
  views = _views()
  weights = _observed(views)
  given = None
  if weighted:
    rng = np.random.default_rng(5)
    given = [rng.random(_N).astype(np.float32) + 0.1 for _ in views]
    weights = [w * g for w, g in zip(weights, given)]
  found = mvlsa.fit(
    views,
    _K if method == "memory" else 35,
    m=20,
    ridge=_RIDGE,
    row_weights=given,
    normalization="generalized",
    method=method,
    tolerance=1e-6,
  )
  found = found.truncate(_K)
  values, vectors, scale = _brute_force(views, weights, _RIDGE)
  np.testing.assert_allclose(found.model.values, values, rtol=1e-3)
  expected = scale[:, None] * vectors
  sign = np.sign(np.sum(expected * np.asarray(found.model.embedding), axis=0))
  np.testing.assert_allclose(
    found.model.embedding, expected * sign, atol=2e-3 * np.abs(expected).max()
  )
  loss = _loss(
    views,
    weights,
    np.asarray(found.model.embedding, np.float64),
    found.model.projections,
    _RIDGE,
  )
  np.testing.assert_allclose(found.model.objective, loss, rtol=1e-3)
  assert np.all((found.model.shares > 0) & (found.model.shares < 1))


@pytest.mark.parametrize("normalization", ["unit", "generalized"])
def test_training_rows_transform_to_themselves(normalization):
  views = _views()
  found = mvlsa.fit(
    views, _K, m=20, normalization=normalization, tolerance=1e-6
  )
  again = found.transform([view[:25] for view in views])
  np.testing.assert_allclose(again, found.model.embedding[:25], atol=2e-4)


def test_a_fit_to_earlier_factors_transforms_too():
  views = _views()
  how = Weighting("ppmi", columns=10)
  options = {"m": 20, "weighting": how, "tolerance": 1e-6}
  earlier = mvlsa.fit(views, 5, **options, keep_factors=True)
  fitted = mvlsa.fit((), _K, m=20, factors=earlier)
  rows = [view[:25] for view in views]
  expected = mvlsa.fit(views, _K, **options).transform(rows)
  np.testing.assert_allclose(fitted.transform(rows), expected, atol=2e-4)
  bare = mvlsa.fit((), _K, m=20, factors=earlier.factors)
  with pytest.raises(InputError, match="bare factors"):
    bare.transform(rows)
  with pytest.raises(InputError, match="has no factors"):
    mvlsa.fit((), _K, factors=fitted)


def test_an_earlier_fit_spares_other_settings_the_products(monkeypatch):
  views = _views()
  earlier = mvlsa.fit(views, _K, m=20, keep_factors=True)
  change = {"m": 10, "ridge": 3.0}
  weights = [2.0] + [1.0] * (len(views) - 1)
  other = mvlsa.fit((), _K, **change, factors=earlier, view_weights=weights)
  bare = mvlsa.fit(
    (), _K, **change, factors=earlier.factors, view_weights=weights
  )
  np.testing.assert_array_equal(other.model.values, bare.model.values)
  expected = mvlsa.fit((), _K, **change, factors=earlier.factors)
  monkeypatch.setattr(mvlsa.gcca, "view_products", None)
  again = mvlsa.fit((), _K, **change, factors=earlier)
  np.testing.assert_array_equal(again.model.values, expected.model.values)


@pytest.mark.parametrize("method", ["memory", "stream"])
@pytest.mark.parametrize(
  ("option", "message"),
  [
    ({"weighting": "log"}, "Weighting or None, not 'log'"),
    ({"weighting": ["log"] * 3}, "Weighting or None, not 'log'"),
    ({"ridge": [0.1, 0.2]}, r"ridge has shape \(2,\).*3 views"),
  ],
)
def test_settings_of_views_that_do_not_fit_are_named(method, option, message):
  with pytest.raises(InputError, match=message):
    mvlsa.fit(_views(), _K, m=5, method=method, **option)


def test_perturbing_the_solution_raises_the_objective():
  views, weights = _views(), _observed(_views())
  found = mvlsa.fit(
    views, _K, m=20, ridge=0.0, normalization="generalized", tolerance=1e-6
  )
  g = np.asarray(found.model.embedding, np.float64)
  best = _loss(views, weights, g, found.model.projections, 0.0)
  support = sum(weights)
  rng = np.random.default_rng(0)
  for _ in range(5):
    other = g + 0.02 * rng.standard_normal(g.shape)
    other *= (support > 0)[:, None]
    # Back onto the constraint G' K G = I.
    factor = np.linalg.cholesky(other.T @ (support[:, None] * other))
    other = other @ np.linalg.inv(factor).T
    refit = []
    for view, w in zip(views, weights):
      y = view.toarray().astype(np.float64)
      x = np.where(w[:, None] > 0, y - y[w > 0].mean(axis=0), 0)
      refit.append(np.linalg.lstsq(x, w[:, None] * other, rcond=None)[0])
    assert _loss(views, weights, other, refit, 0.0) > best - 1e-6


def test_support_threshold_drops_rows():
  views = _views()
  support = np.sum(_observed(views), axis=0)
  found = mvlsa.fit(views, _K, m=20, min_support=3)
  np.testing.assert_array_equal(found.support, support)
  np.testing.assert_array_equal(found.kept, support >= 3)
  np.testing.assert_array_equal(found.model.embedding[support < 3], 0)
  sub = [view[support >= 3] for view in views]
  alone = mvlsa.fit(sub, _K, m=20)
  np.testing.assert_allclose(
    np.abs(found.model.embedding[support >= 3]),
    np.abs(alone.model.embedding),
    atol=2e-3,
  )


def test_a_cut_fit_is_the_smaller_fit():
  views = _views()
  large = mvlsa.fit(views, 5, m=20, tolerance=1e-6).truncate(2)
  small = mvlsa.fit(views, 2, m=20, tolerance=1e-6)
  np.testing.assert_allclose(
    large.model.embedding, small.model.embedding, atol=1e-3
  )
  np.testing.assert_allclose(
    large.model.objective, small.model.objective, rtol=1e-3
  )


def test_views_may_be_loaded_when_needed():
  views = _views()
  lazy = [lambda view=view: view for view in views]
  one = mvlsa.fit(views, 2, m=10, method="stream")
  two = mvlsa.fit(lazy, 2, m=10, method="stream")
  np.testing.assert_array_equal(one.model.embedding, two.model.embedding)
  assert 0 < one.lost < 1


def test_dense_views_join_sparse_ones():
  views = _views()
  mixed = [views[0], views[1].toarray(), views[2]]
  one = mvlsa.fit(views, 2, m=10, tolerance=1e-6)
  two = mvlsa.fit(mixed, 2, m=10, tolerance=1e-6)
  np.testing.assert_allclose(
    one.model.embedding, two.model.embedding, atol=1e-3
  )


def _never(view, error):
  raise AssertionError(f"view {view} was decomposed before the check")


def test_bad_input():
  views = _views()
  empty = scipy.sparse.csr_array((_N, 4), dtype=np.float32)
  with pytest.raises(InputError, match="view 1 is empty"):
    mvlsa.fit([views[0], empty], 2)
  with pytest.raises(InputError, match="view 1 has 149 rows"):
    mvlsa.fit([views[0], views[1][:-1]], 2)
  with pytest.raises(InputError, match="neither"):
    mvlsa.fit(views, 2, method="disk")
  for method in ("memory", "stream"):
    with pytest.raises(InputError, match="k = 40"):
      mvlsa.fit(views, 40, m=5, method=method, report=_never)
  with pytest.raises(InputError, match="no view"):
    mvlsa.fit([], 2)
  broken = views[0].toarray()
  broken[7, 0] = np.nan
  with pytest.raises(InputError, match="row 7"):
    mvlsa.fit([broken, views[1]], 2)
  with pytest.raises(InputError, match="only"):
    mvlsa.fit(views, 2, min_support=4)
  one = scipy.sparse.csr_array(np.ones((_N, 1), np.float32))
  with pytest.raises(InputError, match="rank"):
    mvlsa.fit([one, one], 2, center=False)

"""Unseen rows, missing views and shares against least squares."""

import jax.numpy as jnp
import numpy as np
import planted_views
import pytest

from repr_jax import multiview, ops
from repr_jax.errors import InputError
from repr_jax.multiview.mvlsa import fit


def test_training_rows_transform_to_themselves():
  views = [jnp.asarray(v) for v in planted_views.views()]
  model = multiview.gcca_exact(views, 3)
  again = multiview.gcca_transform(model, [v[:20] for v in views])
  np.testing.assert_allclose(again, model.embedding[:20], atol=1e-4)
  plain = multiview.gcca_transform(
    model, [v[:20] for v in views], calibrate=False
  )
  np.testing.assert_allclose(plain, again * model.values, atol=1e-5)


def test_masked_rows_do_not_count_in_transform():
  views = [jnp.asarray(v) for v in planted_views.views()]
  model = multiview.gcca_exact(views, 3)
  weights = jnp.ones((3, 10)).at[1].set(0).at[:, 4].set(0)
  rows = [v[:10] for v in views]
  expected = multiview.gcca_transform(model, rows, weights)
  garbage = [rows[0], rows[1] + 1e3, rows[2]]
  found = multiview.gcca_transform(model, garbage, weights)
  np.testing.assert_array_equal(found, expected)
  np.testing.assert_array_equal(found[4], 0)


def test_sparse_rows_are_embedded_like_dense_ones():
  views = [jnp.asarray(v) for v in planted_views.views()]
  model = multiview.gcca_exact(views, 3)
  rows = [v[:20] for v in views]
  packed = [ops.from_scipy(np.asarray(x)) for x in rows]
  np.testing.assert_allclose(
    multiview.gcca_transform(model, packed),
    multiview.gcca_transform(model, rows),
    atol=1e-5,
  )


@pytest.mark.parametrize("ridge", [0.0, 5.0])
def test_loadings_regress_a_view_on_the_embedding(ridge):
  views = planted_views.views()
  model = multiview.gcca_exact([jnp.asarray(v) for v in views], 3, ridge=ridge)
  g = np.asarray(model.embedding, np.float64)
  for view, mean, c in zip(views, model.means, model.loadings):
    best = np.linalg.lstsq(g, view - mean, rcond=None)[0]
    np.testing.assert_allclose(c, best, atol=1e-3)


@pytest.mark.parametrize("normalization", ["unit", "generalized"])
@pytest.mark.parametrize("method", ["memory", "stream"])
def test_loadings_of_views_with_missing_rows(normalization, method):
  views = planted_views.views()
  rng = np.random.default_rng(3)
  weights = [(rng.random(200) + 0.2) * (rng.random(200) < 0.8) for _ in views]
  c = [1.0, 2.0, 0.5]
  fitted = fit(
    views, 3, m=8, ridge=0.7, row_weights=weights, view_weights=c,
    normalization=normalization, method=method, tolerance=1e-6,
  )  # fmt: skip
  support = sum(a * w**2 for a, w in zip(c, weights))
  root = np.sqrt(sum(c))
  # The regression is on G, whatever the embedding's normalization.
  g = np.asarray(fitted.model.embedding, np.float64) * root
  if normalization == "unit":
    g = (
      g / np.sqrt(np.maximum(support, 1e-30))[:, None] * (support > 0)[:, None]
    )
  scale = root if normalization == "generalized" else 1
  for view, w, mean, own in zip(
    views, weights, fitted.model.means, fitted.model.loadings
  ):
    seen = w > 0
    np.testing.assert_allclose(mean, view[seen].mean(axis=0), rtol=1e-3)
    x = w[:, None] * (view - np.asarray(mean))
    best = np.linalg.lstsq(w[:, None] * g, x, rcond=None)[0]
    np.testing.assert_allclose(own, best * scale, atol=2e-2)


def test_a_missing_view_is_predicted_from_the_others():
  views = [jnp.asarray(v) for v in planted_views.views(shared=3)]
  model = multiview.gcca_exact(views, 3)
  garbage = [views[0], jnp.full_like(views[1], jnp.nan), views[2]]
  predicted = np.asarray(multiview.predict_view(model, garbage, 1))
  truth = np.asarray(views[1])
  error = ((predicted - truth) ** 2).sum() / (
    (truth - truth.mean(0)) ** 2
  ).sum()
  assert error < 0.5  # the noise of the views is about a third
  none = jnp.zeros((3, 200))
  np.testing.assert_allclose(
    multiview.predict_view(model, garbage, 1, none),
    np.tile(model.means[1], (200, 1)),
  )
  with pytest.raises(InputError, match="view 3 of 3"):
    multiview.predict_view(model, views, 3)


def test_shares_of_training_rows_are_those_of_the_fit():
  views = [jnp.asarray(v) for v in planted_views.views()]
  model = multiview.gcca_exact(views, 3)
  np.testing.assert_allclose(
    multiview.explained_shares(model, views), model.shares, atol=1e-4
  )
  with pytest.raises(InputError, match="view 1 has 5 columns; the fit had 6"):
    multiview.explained_shares(model, [views[0], views[1][:, :5], views[2]])

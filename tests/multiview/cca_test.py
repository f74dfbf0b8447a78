"""CCA against scikit-learn and its own invariances."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import cross_decomposition

from repr_jax import multiview
from repr_jax.errors import InputError


@pytest.fixture(scope="module")
def views():
  rng = np.random.default_rng(0)
  shared = rng.standard_normal((400, 3))
  x = shared @ rng.standard_normal((3, 6)) + rng.standard_normal((400, 6))
  y = shared @ rng.standard_normal((3, 5)) + rng.standard_normal((400, 5))
  return x.astype(np.float32) + 2, y.astype(np.float32) - 1


def test_correlations_match_scikit_learn(views):
  x, y = views
  ours = multiview.cca_fit(jnp.asarray(x), jnp.asarray(y), 3)
  theirs = cross_decomposition.CCA(3, max_iter=5000, tol=1e-10).fit(x, y)
  a, b = theirs.transform(x, y)
  expected = [np.corrcoef(a[:, i], b[:, i])[0, 1] for i in range(3)]
  np.testing.assert_allclose(ours.correlations, expected, rtol=1e-3)


def test_projections_are_white_and_correlated(views):
  x, y = (jnp.asarray(v) for v in views)
  model = multiview.cca_fit(x, y, 3)
  a, b = multiview.cca_transform(model, x, y)
  n = len(x)
  np.testing.assert_allclose(a.T @ a / n, np.eye(3), atol=1e-3)
  np.testing.assert_allclose(b.T @ b / n, np.eye(3), atol=1e-3)
  np.testing.assert_allclose(
    a.T @ b / n, np.diag(model.correlations), atol=1e-3
  )


def test_invariance_to_affine_maps_of_a_view(views):
  x, y = views
  rng = np.random.default_rng(1)
  mapped = (x @ rng.standard_normal((6, 6)) + 5).astype(np.float32)
  one = multiview.cca_fit(jnp.asarray(x), jnp.asarray(y), 2)
  two = multiview.cca_fit(jnp.asarray(mapped), jnp.asarray(y), 2)
  np.testing.assert_allclose(one.correlations, two.correlations, atol=1e-3)
  a = np.asarray(multiview.cca_transform(one, x, y)[0])
  b = np.asarray(multiview.cca_transform(two, mapped, y)[0])
  np.testing.assert_allclose(np.abs(a), np.abs(b), atol=2e-2)


def test_collinear_columns_and_ridge_are_finite(views):
  x, y = views
  doubled = jnp.asarray(np.hstack([x, x]))
  one = multiview.cca_fit(doubled, jnp.asarray(y), 2)
  two = multiview.cca_fit(jnp.asarray(x), jnp.asarray(y), 2)
  np.testing.assert_allclose(one.correlations, two.correlations, atol=1e-3)
  shrunk = multiview.cca_fit(jnp.asarray(x), jnp.asarray(y), 2, ridge=1.0)
  assert float(shrunk.correlations[0]) < float(two.correlations[0])


def test_bad_shapes(views):
  x, y = (jnp.asarray(v) for v in views)
  with pytest.raises(InputError, match="400 rows, the second 399"):
    multiview.cca_fit(x, y[:-1], 2)
  with pytest.raises(InputError, match="k = 6"):
    multiview.cca_fit(x, y, 6)

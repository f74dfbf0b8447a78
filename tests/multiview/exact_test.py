"""Exact GCCA against brute force with the N x N matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import planted_views
import pytest

from repr_jax import multiview
from repr_jax.errors import InputError
from repr_jax.multiview import exact
from repr_jax.ops import precision


@pytest.mark.parametrize("ridge", [0.0, 5.0, (1.0, 0.0, 20.0)])
def test_exact_equals_brute_force(ridge):
  views = planted_views.views()
  model = multiview.gcca_exact([jnp.asarray(v) for v in views], 3, ridge=ridge)
  ridges = ridge if isinstance(ridge, tuple) else (ridge,) * 3
  centered = [(v - v.mean(axis=0)).astype(np.float64) for v in views]
  total = sum(planted_views.projector(x, r) for x, r in zip(centered, ridges))
  values, vectors = np.linalg.eigh(total)
  np.testing.assert_allclose(3 * model.values, values[::-1][:3], rtol=1e-4)
  planted_views.same_space(model.embedding, vectors[:, ::-1][:, :3], 1e-4)
  np.testing.assert_allclose(
    model.embedding.T @ model.embedding, np.eye(3), atol=1e-4
  )
  g = np.asarray(model.embedding, np.float64)
  loss = 0.0
  for x, u, r, share in zip(centered, model.projections, ridges, model.shares):
    best = np.linalg.solve(x.T @ x + r * np.eye(x.shape[1]), x.T @ g)
    np.testing.assert_allclose(u, best, atol=1e-4)
    loss += ((g - x @ u) ** 2).sum() + r * (np.asarray(u) ** 2).sum()
    np.testing.assert_allclose(
      share, np.trace(g.T @ planted_views.projector(x, r) @ g) / 3, rtol=1e-4
    )
  np.testing.assert_allclose(model.objective, loss, rtol=1e-3)


def test_two_views_agree_with_cca():
  x, y = (jnp.asarray(v) for v in planted_views.views(widths=(7, 6)))
  model = multiview.gcca_exact([x, y], 3)
  correlations = multiview.cca_fit(x, y, 3).correlations
  # The eigenvalues of P_1 + P_2 are 1 + the canonical correlations.
  np.testing.assert_allclose(2 * model.values, 1 + correlations, rtol=1e-4)


def test_row_blocks_change_nothing():
  views = [jnp.asarray(v) for v in planted_views.views()]
  one = multiview.gcca_exact(views, 2)
  two = multiview.gcca_exact(views, 2, rows_per_block=37)
  np.testing.assert_allclose(one.values, two.values, rtol=1e-5)
  planted_views.same_space(one.embedding, two.embedding, 1e-4)


def test_collinear_and_duplicate_views_are_finite():
  x = planted_views.views()[0]
  views = [jnp.asarray(np.hstack([x, x])), jnp.asarray(x), jnp.asarray(x)]
  model = multiview.gcca_exact(views, 3)
  assert bool(jnp.isfinite(model.embedding).all())
  np.testing.assert_allclose(model.values, 1, rtol=1e-4)


def test_float64_and_jit():
  with precision.enable_x64(True):
    views = [jnp.asarray(v) for v in planted_views.views(dtype=np.float64)]
    fit = jax.jit(exact.gcca_exact, static_argnames=("k", "center"))
    model = fit(views, 3)
    assert model.embedding.dtype == jnp.float64
    np.testing.assert_allclose(
      model.embedding.T @ model.embedding, np.eye(3), atol=1e-12
    )


@pytest.mark.parametrize(
  "views, k, message",
  [
    ([], 1, "no view"),
    ([jnp.ones((5, 2)), jnp.ones((6, 2))], 1, "view 1 has 6 rows"),
    ([jnp.ones((5, 2))], 3, "k = 3"),
    ([jnp.ones((5, 2)), jnp.ones((5, 0))], 1, "view 1 has no column"),
  ],
)
def test_bad_views(views, k, message):
  with pytest.raises(InputError, match=message):
    multiview.gcca_exact(views, k)


@pytest.mark.parametrize("kind", [tuple, np.asarray, jnp.asarray])
def test_a_ridge_for_each_view_is_not_one_for_each_column(kind):
  """Views with as many columns as there are views took it for columns."""
  views = [jnp.asarray(v) for v in planted_views.views(widths=(3, 3, 3))]
  ridges = (0.0, 100.0, 10_000.0)
  model = multiview.gcca_exact(views, 2, ridge=kind(ridges))
  g = np.asarray(model.embedding, np.float64)
  total = 0
  for view, r, share in zip(views, ridges, model.shares):
    x = np.asarray(view, np.float64)
    p = planted_views.projector(x - x.mean(axis=0), r)
    np.testing.assert_allclose(share, np.trace(g.T @ p @ g) / 2, rtol=1e-3)
    total = total + p
  values, vectors = np.linalg.eigh(total)
  np.testing.assert_allclose(3 * model.values, values[::-1][:2], rtol=1e-3)
  planted_views.same_space(g, vectors[:, ::-1][:, :2], 1e-3)
  with pytest.raises(InputError, match=r"ridge has shape \(2,\)"):
    multiview.gcca_exact(views, 2, ridge=[1.0, 2.0])

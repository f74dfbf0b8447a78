"""Factors and their combination against brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import planted_views
import pytest

from repr_jax import multiview
from repr_jax.errors import InputError
from repr_jax.multiview import gcca, streaming


def test_scalable_parts_equal_exact_at_full_rank():
  views = [jnp.asarray(v) for v in planted_views.views()]
  whole = multiview.gcca_exact(views, 3, ridge=2.0)
  weights = jnp.ones((3, 200))
  scale = multiview.support_scale(weights)
  factors, blocks = [], []
  factor_view = jax.jit(gcca.factor_view, static_argnames="m")
  for j, view in enumerate(views):
    key = jax.random.key(j)
    factor, _ = factor_view(view, 50, weights[j], key)
    factors.append(factor)
    blocks.append(multiview.view_block(factor, scale, 2.0))
  combined = multiview.combine(factors, 3, jax.random.key(9), ridge=2.0)
  v, values = combined.v, combined.values
  np.testing.assert_allclose(values, whole.values, rtol=1e-4)
  planted_views.same_space(v, whole.embedding, 1e-4)
  state = multiview.stream_init(200, 22)
  update = jax.jit(streaming.stream_update)
  for block in blocks:
    state = update(state, block)
  np.testing.assert_allclose(state.s[:3] ** 2, values, rtol=1e-4)
  planted_views.same_space(state.u[:, :3], v, 1e-3)


def _factored(views, m=50, weights=None):
  n = views[0].shape[0]
  weights = np.ones((len(views), n)) if weights is None else weights
  return [
    multiview.factor_view(jnp.asarray(x), m, jnp.asarray(w), jax.random.key(j))[
      0
    ]
    for j, (x, w) in enumerate(zip(views, weights))
  ]


def test_views_are_factored_stacked():
  views = planted_views.views(widths=(90, 90, 90))
  keys = jax.random.split(jax.random.key(0), 3)
  weights = np.ones((3, 200), np.float32)
  weights[1, :50] = 0

  @jax.jit
  def factor_view(x, weights, key):
    return multiview.factor_view(x, 4, weights, key, tolerance=1e-5)

  stacked, info = jax.jit(jax.vmap(factor_view))(np.stack(views), weights, keys)
  assert info.estimate.shape == (3, 4)
  for j, factor in enumerate(gcca.unstacked(stacked)):
    alone, _ = factor_view(views[j], weights[j], keys[j])
    np.testing.assert_allclose(factor.s, alone.s, rtol=1e-4)
    planted_views.same_space(factor.left, alone.left, 1e-3)
  one = multiview.combine(stacked, 3, keys[0])
  two = multiview.combine(gcca.unstacked(stacked), 3, keys[0])
  np.testing.assert_array_equal(one.v, two.v)


def test_a_sweep_over_ridge_weights_and_rank_is_one_program(compilations):
  factors = _factored(planted_views.views())
  ones = np.ones(3, np.float32)

  @jax.jit
  def values(ridge, weights, rank):
    return multiview.combine(
      factors, 2, jax.random.key(0), ridge=ridge, view_weights=weights,
      rank=rank,
    ).values  # fmt: skip

  jax.block_until_ready(values(0.1, ones, 6))
  many = [(0.5, ones, 6), (0.1, 2 * ones, 6), (0.1, ones, 3)]
  assert compilations.during(lambda: [values(*x) for x in many]) == 0
  cut = [f._replace(left=f.left[:, :3], s=f.s[:3]) for f in factors]
  expected = multiview.combine(cut, 2, jax.random.key(0), ridge=0.1)
  np.testing.assert_allclose(values(0.1, ones, 3), expected.values, rtol=1e-4)


def test_coordinates_are_those_of_the_rows():
  """T_j A_j' W_j K^(-1/2) V, for views that weigh nothing too."""
  weights = np.random.default_rng(1).uniform(0, 1, (3, 200)).round(1)
  factors = _factored(planted_views.views(), weights=np.float32(weights))
  c = np.array([1.0, 0.0, 3.0], np.float32)
  found = gcca.combine(factors, 3, jax.random.key(0), ridge=2.0, view_weights=c)
  scale = gcca.support_scale(jnp.stack([f.row_weights for f in factors]), c)
  for factor, inside in zip(factors, found.coordinates):
    block = gcca.view_block(factor, scale, 2.0)
    np.testing.assert_allclose(inside, block.T @ found.v, atol=1e-5)
  products = gcca.view_products(factors, c)
  again = gcca.combine(
    factors, 3, jax.random.key(0), ridge=2.0, view_weights=c,
    products=products,
  )  # fmt: skip
  np.testing.assert_array_equal(again.v, found.v)


def test_weights_of_views():
  """0 leaves a view out, 2 counts it twice, and a scale changes nothing."""
  factors = _factored(planted_views.views())
  key = jax.random.key(0)
  chosen = multiview.combine(factors, 2, key, view_weights=[1.0, 0.0, 1.0])
  without = multiview.combine([factors[0], factors[2]], 2, key)
  np.testing.assert_allclose(chosen.values, without.values, rtol=1e-4)
  planted_views.same_space(chosen.v, without.v, 1e-3)
  np.testing.assert_allclose(chosen.shares[::2], without.shares, rtol=1e-3)
  doubled = multiview.combine(factors, 2, key, view_weights=[1.0, 2.0, 1.0])
  twice = multiview.combine([*factors, factors[1]], 2, key)
  np.testing.assert_allclose(doubled.values, twice.values, rtol=1e-4)
  scaled = multiview.combine(factors, 2, key, view_weights=[5.0] * 3)
  plain = multiview.combine(factors, 2, key)
  np.testing.assert_allclose(scaled.v, plain.v, atol=1e-4)


def test_a_relative_ridge_is_in_units_of_the_mean_square():
  factors = _factored(planted_views.views())
  key = jax.random.key(0)
  squares = [float((np.asarray(f.s) ** 2).mean()) for f in factors]
  relative = multiview.combine(factors, 2, key, ridge=0.3, relative_ridge=True)
  plain = multiview.combine(factors, 2, key, ridge=0.3 * np.array(squares))
  np.testing.assert_allclose(relative.values, plain.values, rtol=1e-4)
  scaled = _factored([10 * v for v in planted_views.views()])
  same = multiview.combine(scaled, 2, key, ridge=0.3, relative_ridge=True)
  np.testing.assert_allclose(same.values, relative.values, rtol=1e-3)


def test_wide_combinations_go_through_several_blocks(monkeypatch):
  factors = _factored(planted_views.views())
  one = gcca.combine(factors, 2, jax.random.key(0))
  monkeypatch.setattr(gcca, "_WIDE", 1)
  many = gcca.combine(factors, 2, jax.random.key(0))
  np.testing.assert_allclose(many.values, one.values, rtol=1e-5)
  np.testing.assert_allclose(many.v, one.v, atol=1e-4)
  with pytest.raises(InputError, match="k = 23 dimensions asked of views"):
    gcca.combine(factors, 23, jax.random.key(0))

"""Agreement of views against regressions, and its null distribution."""

import jax
import numpy as np

from repr_jax import multiview


def _factored(views, weights, m=50):
  keys = jax.random.split(jax.random.key(0), len(views))
  return [
    multiview.factor_view(
      np.where(w[:, None] > 0, v, 0).astype(np.float32), m,
      w.astype(np.float32), k, tolerance=1e-6,
    )[0]
    for v, w, k in zip(views, weights, keys)
  ]  # fmt: skip


def _problem(n=150, seed=0):
  """Two views of one signal, one with gaps, and a view of noise."""
  rng = np.random.default_rng(seed)
  z = rng.normal(size=(n, 3))
  views = [
    z @ rng.normal(size=(3, 5)) + 0.3 * rng.normal(size=(n, 5)),
    z @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(n, 4)),
    rng.normal(size=(n, 5)),
  ]
  weights = np.ones((3, n))
  weights[1, : n // 5] = 0
  return views, weights


def test_direction_agreement_is_the_adjusted_r2_of_a_regression():
  views, weights = _problem()
  factors = _factored(views, weights)
  tables = multiview.direction_agreement(factors)
  for j, one in enumerate(factors):
    for by, other in enumerate(factors):
      if by == j:
        assert not np.asarray(tables[j][by]).any()
        continue
      rows = weights[by] > 0
      y = np.asarray(one.left, np.float64)[rows]
      x = np.asarray(other.left, np.float64)[rows]
      fitted = x @ np.linalg.lstsq(x, y, rcond=None)[0]
      r2 = (fitted**2).sum(axis=0) / (y**2).sum(axis=0)
      chance = x.shape[1] / rows.sum()
      expected = np.maximum((r2 - chance) / (1 - chance), 0)
      np.testing.assert_allclose(tables[j][by], expected, atol=2e-4)


def test_noise_agrees_with_nothing_and_gets_the_least_weight():
  factors = _factored(*_problem())
  agreement = np.asarray(multiview.view_agreement(factors))
  assert agreement[2] < 0.05 < agreement[:2].min()
  weights = np.asarray(multiview.agreement_weights(agreement))
  assert weights.max() == 1 and weights[2] < 0.1
  equal = multiview.agreement_weights(np.zeros(3, np.float32))
  np.testing.assert_array_equal(equal, np.ones(3))


def test_agreement_does_not_see_rotations_within_a_view():
  views, weights = _problem()
  rotation = np.linalg.qr(np.random.default_rng(4).normal(size=(5, 5)))[0]
  turned = [views[0] @ rotation, *views[1:]]
  one, two = (
    multiview.view_agreement(_factored(v, weights)) for v in (views, turned)
  )
  np.testing.assert_allclose(one, two, atol=1e-4)


def test_permuted_factors_keep_rows_and_lose_agreement():
  factors = _factored(*_problem(n=400))
  mixed = multiview.permuted_factors(factors, jax.random.key(3))
  for before, after in zip(factors, mixed):
    np.testing.assert_array_equal(before.row_weights > 0, after.row_weights > 0)
    rows = before.row_weights > 0
    np.testing.assert_array_equal(
      np.sort(before.left[rows], axis=0), np.sort(after.left[rows], axis=0)
    )
    assert np.any(np.asarray(before.left) != np.asarray(after.left))
  assert float(multiview.view_agreement(mixed).max()) < 0.05
  key = jax.random.key(0)
  real = multiview.combine(factors, 3, key).values
  null = multiview.combine(mixed, 3, key).values
  assert float(real[2]) > float(null[0])


def test_energy_weights_give_views_equal_traces():
  """c_j trace(P_j) is the same for all views, with P_j as matrices."""
  rng = np.random.default_rng(0)
  views = [rng.normal(size=(60, d)) * rng.uniform(0.2, 3, d) for d in (3, 9)]
  factors = [
    multiview.factor_view(x, 9, np.ones(60), jax.random.key(0), tolerance=1e-6)[
      0
    ]
    for x in views
  ]
  for relative in (False, True):
    weights = multiview.energy_weights(
      factors, ridge=0.7, relative_ridge=relative
    )
    traces = []
    for x, factor in zip(views, factors):
      x = x - x.mean(axis=0)
      r = 0.7 * np.mean(np.asarray(factor.s) ** 2) if relative else 0.7
      gram = x.T @ x
      traces.append(
        np.trace(gram @ np.linalg.inv(gram + r * np.eye(len(gram))))
      )
    share = np.asarray(weights) * traces
    np.testing.assert_allclose(share, min(traces), rtol=1e-3)

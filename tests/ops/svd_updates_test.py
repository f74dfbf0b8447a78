"""SVD updates against decompositions from scratch."""

import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax.ops import svd_updates
from repr_jax.ops.spectral import SVD


def _svd(x, k):
  u, s, vt = np.linalg.svd(x, full_matrices=False)
  return SVD(
    *(jnp.asarray(a, jnp.float32) for a in (u[:, :k], s[:k], vt[:k].T))
  )


@pytest.mark.parametrize("masked", [False, True])
def test_rank_one_update_centers_a_complete_svd(masked):
  rng = np.random.default_rng(0)
  y = rng.poisson(2, (60, 12)).astype(np.float64)
  rows = np.ones(60)
  if masked:
    rows[::4] = 0
    y[rows == 0] = 0
  mean = rows @ y / rows.sum()
  updated = svd_updates.rank_one_update(
    _svd(y, 12), jnp.asarray(-rows, jnp.float32), jnp.asarray(mean, jnp.float32)
  )
  centered = y - rows[:, None] * mean
  np.testing.assert_allclose(
    (updated.u * updated.s) @ updated.v.T, centered, atol=1e-4
  )
  np.testing.assert_allclose(
    updated.s, np.linalg.svd(centered, compute_uv=False), atol=1e-4
  )
  np.testing.assert_allclose(updated.v.T @ updated.v, np.eye(12), atol=1e-5)


def test_rank_one_update_adds_a_direction():
  rng = np.random.default_rng(1)
  low = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 20))
  a, b = rng.standard_normal(40), rng.standard_normal(20)
  four = _svd(low, 4)  # room for one more
  updated = svd_updates.rank_one_update(
    four, jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)
  )
  np.testing.assert_allclose(
    (updated.u * updated.s) @ updated.v.T, low + np.outer(a, b), atol=2e-4
  )


def test_stream_without_truncation_is_exact():
  rng = np.random.default_rng(2)
  x = rng.standard_normal((200, 24)).astype(np.float32)
  state = svd_updates.incremental_init(200, 24)
  for start in range(0, 24, 8):
    state = svd_updates.incremental_update(state, x[:, start : start + 8])
  np.testing.assert_allclose(
    state.s, np.linalg.svd(x, compute_uv=False), rtol=1e-4
  )
  assert float(state.lost) < 1e-4 * float(state.total)
  np.testing.assert_allclose(state.total, (x**2).sum(), rtol=1e-5)
  projected = state.u @ (state.u.T @ x)
  np.testing.assert_allclose(projected, x, atol=1e-3)


def test_truncation_error_is_reported_and_bounds_the_values():
  rng = np.random.default_rng(3)
  x = rng.standard_normal((150, 40)).astype(np.float32)
  x *= 0.9 ** np.arange(40, dtype=np.float32)
  state = svd_updates.incremental_init(150, 10)
  for start in range(0, 40, 10):
    state = svd_updates.incremental_update(state, x[:, start : start + 10])
  values = np.linalg.svd(x, compute_uv=False)
  assert state.u.shape == (150, 10)
  assert float(state.lost) > 0
  gap = np.abs(np.asarray(state.s) - values[:10])
  assert np.all(gap <= np.sqrt(float(state.lost)))
  kept = float(jnp.sum(state.s**2))
  np.testing.assert_allclose(
    kept + float(state.lost), float(state.total), rtol=1e-4
  )

"""Views that come and go, against the SVD of the blocks that remain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import multiview


def _blocks(seed=0, n=80, widths=(5, 7, 4)):
  rng = np.random.default_rng(seed)
  shared = rng.standard_normal((n, 2))
  return [
    shared @ rng.standard_normal((2, w)) + 0.3 * rng.standard_normal((n, w))
    for w in widths
  ]


def _streamed(blocks, k, dtype=jnp.float32):
  state = multiview.stream_init(80, k, dtype)
  for block in blocks:
    state = multiview.stream_update(state, block)
  return state


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_removal_is_exact_where_nothing_was_dropped(removed):
  blocks = _blocks()
  state = _streamed(blocks, 16)
  without = multiview.stream_remove(state, blocks[removed])
  rest = [b for j, b in enumerate(blocks) if j != removed]
  u, s, _ = np.linalg.svd(np.hstack(rest), full_matrices=False)
  np.testing.assert_allclose(without.s[: len(s)], s, rtol=2e-3)
  np.testing.assert_allclose(without.s[len(s) :], 0, atol=0.02 * s[0])
  mine = np.asarray(without.u[:, :2])
  np.testing.assert_allclose(mine @ mine.T, u[:, :2] @ u[:, :2].T, atol=1e-3)
  energy = sum((b**2).sum() for b in rest)
  np.testing.assert_allclose(without.total, energy, rtol=1e-4)


@pytest.mark.parametrize("k", [3, 6, 10])
def test_what_holds_after_truncation(k):
  blocks = _blocks()
  state = _streamed(blocks, k)
  without = multiview.stream_remove(state, blocks[1])
  rest = np.hstack([blocks[0], blocks[2]])
  s = np.linalg.svd(rest, compute_uv=False)
  s = np.pad(s, (0, max(0, k - len(s))))[:k]
  lost = float(state.lost)
  assert lost > 0
  ours = np.asarray(without.s, np.float64)
  slack = 1e-3 * s[0]
  assert (ours <= s + slack).all()
  assert (np.sqrt(ours**2 + lost) >= s - np.sqrt(lost) - slack).all()


def test_a_removed_view_changes_the_scale_of_rows():
  """Rows that the removed view lacks weigh more in those that remain."""
  rng = np.random.default_rng(1)
  weights = (rng.random((3, 80)) < 0.8).astype(np.float32)
  weights[0] = 1
  plain = [np.linalg.qr(b)[0].astype(np.float32) for b in _blocks()]
  before = np.asarray(multiview.support_scale(jnp.asarray(weights)))
  after = np.asarray(multiview.support_scale(jnp.asarray(weights[:2])))
  scaled = [(w * before)[:, None] * b for w, b in zip(weights, plain)]
  state = _streamed(scaled, 16)
  without = multiview.stream_remove(state, scaled[2], after / before)
  expected = np.hstack(
    [(w * after)[:, None] * b for w, b in zip(weights, plain[:2])]
  )
  s = np.linalg.svd(expected, compute_uv=False)
  np.testing.assert_allclose(without.s[:8], s[:8], rtol=5e-3)


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_removal_is_a_refit_of_the_other_views(removed):
  """Largest angle between the subspaces, with gaps, against `combine`."""
  weights = np.ones((3, 80), np.float32)
  weights[1, :15] = weights[2, 40:50] = 0
  key = jax.random.key(0)
  factors = [
    multiview.factor_view(
      np.where(w[:, None] > 0, b, 0).astype(np.float32), 4, w, key,
      tolerance=1e-6,
    )[0]
    for b, w in zip(_blocks(), weights)
  ]  # fmt: skip
  before = multiview.support_scale(weights)
  blocks = [multiview.view_block(f, before, 1e-8) for f in factors]
  state = _streamed(blocks, 12)
  rest = [j for j in range(3) if j != removed]
  after = multiview.support_scale(weights[np.array(rest)])
  without = multiview.stream_remove(state, blocks[removed], after / before)
  refit = multiview.combine([factors[j] for j in rest], 2, key)
  ours = np.linalg.qr(np.asarray(without.u[:, :2], np.float64))[0]
  theirs = np.linalg.qr(np.asarray(refit.v, np.float64))[0]
  apart = np.linalg.norm(ours - theirs @ (theirs.T @ ours), 2)
  assert np.arcsin(min(apart, 1)) < 1e-4
  np.testing.assert_allclose(without.s[:2] ** 2, refit.values, rtol=1e-4)

"""Weights fitted to targets, against the vectors that they weigh."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import multiview
from repr_jax.multiview import learned_weights

_KEY = jax.random.key(0)


def _factored(views, weights=None, m=4):
  ones = np.ones((len(views), len(views[0])), np.float32)
  weights = ones if weights is None else weights
  return [
    multiview.factor_view(
      np.where(w[:, None] > 0, v, 0).astype(np.float32), m, w, _KEY,
      tolerance=1e-6,
    )[0]
    for v, w in zip(views, weights)
  ]  # fmt: skip


def _cosine(x, y):
  lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
  return (x * y).sum(axis=1) / lengths


def test_cosines_are_those_of_the_whole_common_space():
  """All dimensions, columns times the roots of their eigenvalues."""
  rng = np.random.default_rng(0)
  weights = np.ones((3, 40), np.float32)
  weights[1, :9] = 0
  factors = _factored(rng.normal(size=(3, 40, 5)), weights, m=3)
  c = jnp.array([1.0, 0.3, 2.0])
  combined = multiview.combine(factors, 9, _KEY, view_weights=c)
  vectors = np.asarray(combined.v) * np.sqrt(np.asarray(combined.values))
  x, y = rng.integers(40, size=(2, 30))
  blocks = learned_weights._blocks(factors, 1e-8)
  parts = learned_weights._of_pairs(blocks, x, y)
  np.testing.assert_allclose(
    learned_weights._cosines(parts, c), _cosine(vectors[x], vectors[y]),
    atol=1e-4,
  )  # fmt: skip


def test_label_weights_are_those_that_made_the_labels():
  rng = np.random.default_rng(1)
  factors = _factored(rng.normal(size=(3, 60, 6)))
  truth = np.array([0.2, 1.0, 5.0])
  vectors = np.hstack(
    [np.sqrt(c) * np.asarray(f.left) for c, f in zip(truth, factors)]
  )
  pairs = rng.integers(60, size=(2, 300, 2))
  targets = np.stack(
    [_cosine(vectors[p[:, 0]], vectors[p[:, 1]]) for p in pairs]
  )
  pairs[1, 250:] = -1
  weights = multiview.label_weights(factors, pairs, targets, strength=0.0)
  np.testing.assert_allclose(weights, truth, rtol=0.1)
  pulled = multiview.label_weights(factors, pairs, targets, strength=10.0)
  np.testing.assert_allclose(pulled, np.ones(3), atol=0.1)


def test_noise_that_views_of_one_source_share_is_not_rewarded():
  """Two views of one text share noise; agreement prefers them."""
  rng = np.random.default_rng(2)
  truth, noise = rng.normal(size=(2, 300, 4))
  views = [noise, noise + 0.01 * truth, truth + 0.3 * noise, 2 * truth]
  factors = _factored(views)
  rows, sources = np.arange(100), np.array([0, 0, 0, 1])
  weights = multiview.heldout_weights(factors, sources, rows)
  assert weights[2] > 3 * max(weights[:2])
  agreed = multiview.view_agreement(factors)
  assert agreed[2] < 1.5 * agreed[0]


@pytest.mark.parametrize("sources", [[0, 0, 0], [0, 1, 2]])
def test_held_out_weights_without_another_source_or_signal(sources):
  factors = _factored(np.random.default_rng(3).normal(size=(3, 200, 3)))
  weights = multiview.heldout_weights(
    factors, np.array(sources), np.arange(80), strength=1.0
  )
  np.testing.assert_allclose(weights, np.ones(3), atol=0.1)

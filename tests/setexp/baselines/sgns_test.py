"""Skip-gram with negative sampling: a step, its gradient, its negatives."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax.ops import precision
from repr_jax.setexp.baselines import sgns

_update = jax.jit(sgns.update, static_argnums=0)
_CONFIG = sgns.Config(dim=5, num_negatives=3, shared=4, batch_size=6)


def _state(seed=0, entities=7, contexts=9):
  first, second, key = jax.random.split(jax.random.key(seed), 3)
  return sgns.State(
    jax.random.normal(first, (entities, 5)),
    jax.random.normal(second, (contexts, 5)),
    key,
  )


def _sigmoid(x):
  return 1 / (1 + math.exp(-x))


def _scalar_step(state, batch, negatives, ratio):
  """One step, pair by pair and number by number, from the old tables."""
  old_v, old_u = np.array(state.entities), np.array(state.contexts)
  new_v, new_u = old_v.copy(), old_u.copy()
  rate, total = float(batch.rate), 0.0
  for x, c, w in zip(batch.entities, batch.contexts, batch.weights):
    targets = [(int(c), 1.0, float(w))]
    targets += [(int(n), 0.0, float(w) * ratio) for n in negatives]
    for context, label, weight in targets:
      dot = sum(a * b for a, b in zip(old_v[x], old_u[context]))
      sign = 1 if label else -1
      total -= weight * math.log(_sigmoid(sign * dot))
      slope = weight * (_sigmoid(dot) - label)
      for k in range(5):
        new_v[x, k] -= rate * slope * old_u[context, k]
        new_u[context, k] -= rate * slope * old_v[x, k]
  return new_v, new_u, total / float(np.sum(batch.weights))


def test_a_step_is_the_scalar_loop():
  state = _state()
  noise = sgns.make_noise(np.arange(1.0, 10.0))
  batch = sgns.Batch(
    jnp.array([0, 1, 1, 3, 6, 0]),
    jnp.array([2, 2, 8, 0, 4, 0]),
    jnp.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]),
    jnp.array(0.3),
  )
  _, draw = jax.random.split(state.key)
  negatives = np.asarray(sgns.draw_negatives(draw, noise, 4))
  v, u, value = _scalar_step(state, batch, negatives, 3 / 4)
  new, loss = _update(_CONFIG, noise, state, batch)
  np.testing.assert_allclose(new.entities, v, atol=1e-5)
  np.testing.assert_allclose(new.contexts, u, atol=1e-5)
  np.testing.assert_allclose(loss, value, rtol=1e-5)


def test_untouched_rows_stay():
  state = _state()
  noise = sgns.make_noise(np.eye(9)[5] + 1e-12)
  pair = jnp.array([2])
  batch = sgns.Batch(pair, pair, jnp.ones(1), jnp.array(0.1))
  new, _ = _update(_CONFIG, noise, state, batch)
  changed = np.flatnonzero((new.entities != state.entities).any(axis=1))
  assert changed.tolist() == [2]
  changed = np.flatnonzero((new.contexts != state.contexts).any(axis=1))
  assert changed.tolist() == [2, 5]


def test_gradient_is_that_of_finite_differences():
  rng = np.random.default_rng(0)
  with precision.enable_x64(True):
    shapes = ((4, 3), (4, 3), (5, 3))
    parts = [jnp.asarray(rng.normal(size=shape)) for shape in shapes]
    weights = jnp.asarray(rng.random(4))
    slopes = jax.jit(jax.grad(sgns.loss, argnums=(0, 1, 2)))(
      *parts, weights, 0.6
    )
    for i, slope in enumerate(slopes):
      direction = rng.normal(size=slope.shape)

      def along(t, i=i, direction=direction):
        moved = [*parts]
        moved[i] = parts[i] + t * direction
        return sgns.loss(*moved, weights, 0.6)

      wanted = (along(1e-5) - along(-1e-5)) / 2e-5
      np.testing.assert_allclose((slope * direction).sum(), wanted, rtol=1e-7)


def test_negatives_follow_their_distribution():
  frequency = np.array([8.0, 1.0, 0.0, 4.0, 2.0, 1.0])
  noise = sgns.make_noise(frequency)
  # Exactly: what each column keeps plus what others give to it.
  share = np.asarray(noise.keep, float)
  np.add.at(share, np.asarray(noise.other), 1 - np.asarray(noise.keep, float))
  np.testing.assert_allclose(share / 6, frequency / 16, atol=1e-6)
  drawn = np.asarray(sgns.draw_negatives(jax.random.key(0), noise, 20_000))
  seen = np.bincount(drawn, minlength=6) / 20_000
  np.testing.assert_allclose(seen, frequency / 16, atol=0.02)


def test_pairs_are_the_counts():
  counts = sp.csr_array(np.array([[2.0, 0.0, 1.0], [0.0, 4.0, 0.0]]))
  config = sgns.Config(batch_size=4)
  x, c, w = sgns.pairs(counts, np.random.default_rng(0), config)
  assert x.shape == c.shape == w.shape == (2, 4)
  again = np.zeros((2, 3))
  np.add.at(again, (x.ravel(), c.ravel()), w.ravel())
  np.testing.assert_array_equal(again, counts.toarray())

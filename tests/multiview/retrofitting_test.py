"""Retrofitting against its optimality condition, counter-fitting's terms."""

import jax.numpy as jnp
import numpy as np

from repr_jax import multiview


def test_retrofit_reaches_the_solution_of_its_linear_system():
  rng = np.random.default_rng(0)
  n = 12
  x = rng.normal(size=(n, 4)).astype(np.float32)
  pairs = np.array([(i, j) for i in range(6) for j in range(6) if i != j])
  weights = (rng.random(len(pairs)) + 0.1).astype(np.float32)
  near = np.zeros((n, n))
  near[pairs[:, 0], pairs[:, 1]] = weights
  degree = near.sum(axis=1, keepdims=True)
  near = near / np.where(degree > 0, degree, 1)
  alpha = 0.5
  own = np.diag(np.where(degree[:, 0] > 0, alpha, 1.0))
  both = np.diag(np.where(degree[:, 0] > 0, alpha + 1, 1.0))
  expected = np.linalg.solve(both - near, own @ x)
  made = multiview.retrofit(x, pairs, weights, alpha=alpha, iterations=200)
  np.testing.assert_allclose(made, expected, atol=1e-5)
  np.testing.assert_array_equal(made[6:], x[6:])


def test_counterfit_moves_synonyms_and_antonyms_as_told():
  rng = np.random.default_rng(1)
  x = rng.normal(size=(30, 5)).astype(np.float32)
  unit = x / np.linalg.norm(x, axis=1, keepdims=True)
  synonyms, antonyms = jnp.array([[0, 1], [2, 3]]), jnp.array([[4, 5]])
  kept = jnp.array([[6, 7], [0, 8]])
  made = np.asarray(multiview.counterfit(x, synonyms, antonyms, kept))
  np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, rtol=1e-5)
  np.testing.assert_allclose(made[9:], unit[9:], atol=1e-6)
  np.testing.assert_allclose(made[6:8], unit[6:8], atol=1e-6)
  for a, b in synonyms.tolist():
    assert made[a] @ made[b] > unit[a] @ unit[b]
  assert made[4] @ made[5] <= max(unit[4] @ unit[5], 0) + 1e-6


def test_counterfit_of_antonyms_ends_at_the_margin():
  x = jnp.array([[1.0, 0.1], [1.0, 0.0]])
  none = jnp.zeros((0, 2), int)
  made = multiview.counterfit(
    x,
    none,
    jnp.array([[0, 1]]),
    none,
    margin=0.5,
    iterations=2000,
    learning_rate=0.01,
  )
  assert 0.4 < float(made[0] @ made[1]) < 0.51

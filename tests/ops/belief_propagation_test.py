"""Belief propagation against brute force, and what absence must not change."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import ops
from repr_jax.ops import belief_propagation, precision

_max_product = jax.jit(
  belief_propagation.max_product, static_argnames=("iterations", "damping")
)


@pytest.fixture(autouse=True)
def _double():
  with precision.enable_x64():
    yield


def _model(rng, m, c):
  unary = rng.standard_normal((m, c))
  upper = rng.standard_normal((m, m, c, c))
  pairwise = upper + upper.transpose(1, 0, 3, 2)
  sizes = rng.integers(1, c + 1, m)
  mask = np.arange(c) < sizes[:, None]
  return unary, pairwise, mask


def _tree(rng, m):
  edges = np.zeros((m, m), bool)
  for child in range(1, m):
    parent = rng.integers(child)
    edges[child, parent] = edges[parent, child] = True
  return edges


def _max_marginals(unary, pairwise, mask, edges):
  """The best score with each state, by going through all assignments."""
  m, c = unary.shape
  best = np.full((m, c), -np.inf)
  for states in itertools.product(*(range(int(row.sum())) for row in mask)):
    value = sum(unary[i, a] for i, a in enumerate(states))
    for i, j in itertools.combinations(range(m), 2):
      if edges[i, j]:
        value += pairwise[i, j, states[i], states[j]]
    for i, a in enumerate(states):
      best[i, a] = max(best[i, a], value)
  return best


def _same_up_to_a_constant(beliefs, exact, mask, tolerance):
  for row, truth, there in zip(np.asarray(beliefs), exact, mask):
    row, truth = row[there], truth[there]
    np.testing.assert_allclose(
      row - row.max(), truth - truth.max(), atol=tolerance
    )


@pytest.mark.parametrize("seed", range(8))
def test_trees_have_exact_max_marginals(seed):
  rng = np.random.default_rng(seed)
  m = 6
  unary, pairwise, mask = _model(rng, m, 3)
  edges = _tree(rng, m)
  exact = _max_marginals(unary, pairwise, mask, edges)
  run = functools.partial(_max_product, unary, pairwise, mask, edges)
  _same_up_to_a_constant(run(iterations=m, damping=0.0), exact, mask, 1e-9)
  # Damping changes the way there, not where it ends.
  _same_up_to_a_constant(run(iterations=120, damping=0.5), exact, mask, 1e-6)


def test_one_message_is_what_the_formula_says():
  rng = np.random.default_rng(0)
  unary, pairwise, _ = _model(rng, 2, 3)
  mask = np.ones((2, 3), bool)
  mask[1, 2] = False
  found = ops.max_product(unary, pairwise, mask, iterations=1, damping=0.25)
  message = (unary[0][:, None] + pairwise[0, 1])[:, :2].max(axis=0)
  probability = np.exp(message) / np.exp(message).sum()
  score = unary[1, :2] + np.log(0.25 * 0.5 + 0.75 * probability)
  expected = score - np.log(np.exp(score).sum())
  np.testing.assert_allclose(found[1], [*expected, 0], atol=1e-12)


def test_loops_agree_with_brute_force_on_the_best_state():
  right = 0
  for seed in range(20):
    rng = np.random.default_rng(seed)
    unary, pairwise, mask = _model(rng, 5, 3)
    pairwise *= 0.2
    edges = ~np.eye(5, dtype=bool)
    exact = _max_marginals(unary, pairwise, mask, edges)
    found = _max_product(unary, pairwise, mask)
    found = np.where(mask, found, -np.inf)
    right += (found.argmax(1) == exact.argmax(1)).all()
  assert right >= 18


def test_masked_places_change_nothing():
  rng = np.random.default_rng(3)
  unary, pairwise, mask = _model(rng, 5, 4)
  mask[2] = False  # a variable without states
  pair = mask[:, None, :, None] & mask[None, :, None]
  pair &= ~np.eye(5, dtype=bool)[..., None, None]

  def loss(unary, pairwise):
    beliefs = ops.max_product(unary, pairwise, mask)
    return jnp.sum(jnp.sin(beliefs) * mask), beliefs

  run = jax.jit(jax.value_and_grad(loss, argnums=(0, 1), has_aux=True))
  (_, clean), slope = run(unary, pairwise)
  for garbage in (1e30, -1e30, np.nan, np.inf):
    dirty = np.where(mask, unary, garbage), np.where(pair, pairwise, garbage)
    (_, same), same_slope = run(*dirty)
    np.testing.assert_array_equal(clean, same)
    for a, b in zip(slope, same_slope):
      np.testing.assert_array_equal(a, b)
      assert np.isfinite(a).all()
  assert not np.asarray(clean)[~mask].any()


def test_one_variable_keeps_its_scores():
  unary = np.array([[1.0, 3.0, 9.0]])
  mask = np.array([[True, True, False]])
  found = ops.max_product(unary, np.zeros((1, 1, 3, 3)), mask)
  expected = unary[0, :2] - np.log(np.exp(unary[0, :2]).sum())
  np.testing.assert_allclose(found[0], [*expected, 0], atol=1e-12)


def test_extreme_scores_stay_finite():
  rng = np.random.default_rng(0)
  unary, pairwise, mask = _model(rng, 4, 3)

  def loss(scale):
    beliefs = ops.max_product(scale * unary, scale * pairwise, mask)
    return jnp.sum(jnp.exp(beliefs) * mask)

  run = jax.jit(jax.value_and_grad(loss))
  for scale in (0.0, 1e4):
    value, slope = run(scale)
    assert np.isfinite(value) and np.isfinite(slope)


def test_gradients_equal_finite_differences():
  rng = np.random.default_rng(1)
  unary, pairwise, mask = _model(rng, 4, 3)
  target = rng.standard_normal(unary.shape) * mask

  @jax.jit
  def loss(unary, pairwise, damping):
    beliefs = belief_propagation.max_product(
      unary, pairwise, mask, damping=damping
    )
    return jnp.sum(target * beliefs)

  point = unary, pairwise, 0.3
  slopes = jax.grad(loss, argnums=(0, 1, 2))(*point)
  for at, slope in enumerate(slopes):
    direction = rng.standard_normal(np.shape(point[at]))

    def moved(step, at=at, direction=direction):
      inputs = list(point)
      inputs[at] = inputs[at] + step * direction
      return loss(*inputs)

    numeric = (moved(1e-6) - moved(-1e-6)) / 2e-6
    np.testing.assert_allclose(np.sum(slope * direction), numeric, rtol=1e-6)


@pytest.mark.parametrize("damping", [0.0, 1.0])
def test_damping_has_no_derivative_where_it_ends(damping):
  rng = np.random.default_rng(1)
  unary, pairwise, mask = _model(rng, 4, 3)
  target = rng.standard_normal(unary.shape) * mask

  @jax.jit
  def loss(unary, damping):
    beliefs = belief_propagation.max_product(
      unary, pairwise, mask, iterations=2, damping=damping
    )
    return jnp.sum(target * beliefs)

  slope, of_damping = jax.grad(loss, argnums=(0, 1))(unary, damping)
  direction = rng.standard_normal(unary.shape)
  ends = [loss(unary + step * direction, damping) for step in (1e-6, -1e-6)]
  numeric = (ends[0] - ends[1]) / 2e-6
  np.testing.assert_allclose(np.sum(slope * direction), numeric, rtol=1e-6)
  assert np.isnan(of_damping)  # a zero would say that damping does nothing

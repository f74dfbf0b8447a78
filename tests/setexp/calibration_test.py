"""Chances of results: another fit, the identity of F1, calibration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from repr_jax import setexp
from repr_jax.setexp import calibration


def _world(queries=30, size=40, seed=0):
  rng = np.random.default_rng(seed)
  scores = rng.normal(size=(queries, size)).astype(np.float32)
  members = np.zeros_like(scores)
  members[:, :2] = 1.0
  scores[:, :2] += rng.uniform(1, 3, (queries, 1))
  relevant = rng.uniform(size=scores.shape) < 1 / (1 + np.exp(2 - 2 * scores))
  return scores, members, relevant


def test_the_fit_is_that_of_another_optimizer():
  scores, members, relevant = _world()
  fitted = setexp.fit_chances(scores, members, relevant)
  phi = np.asarray(
    jax.jit(jax.vmap(calibration.evidence))(scores, members), np.float64
  )
  outside = members == 0

  def loss(weights):
    logits = phi @ weights
    each = np.logaddexp(0, logits) - relevant * logits
    return (each * outside).sum() / len(scores) + 0.005 * weights @ weights

  wanted = scipy.optimize.minimize(loss, np.zeros(5), method="BFGS")
  assert abs(loss(np.asarray(fitted, np.float64)) - wanted.fun) < 1e-4
  np.testing.assert_allclose(fitted, wanted.x, atol=0.02)


def test_chances_sum_to_the_number_of_answers():
  # The intercept of a logistic regression without a ridge makes them equal.
  scores, members, relevant = _world(queries=60)
  weights = setexp.fit_chances(scores, members, relevant)
  given = jax.jit(jax.vmap(setexp.chances, (None, 0, 0)))(
    weights, scores, members
  )
  answers = relevant[members == 0].sum()
  assert abs(float(given.sum()) - answers) < 0.02 * answers
  assert not np.any(np.asarray(given)[members != 0])


def test_evidence_does_not_see_the_scale_of_scores():
  scores, members, _ = _world(queries=1)
  one = calibration.evidence(scores[0], members[0])
  other = calibration.evidence(3 * scores[0] - 7, members[0])
  np.testing.assert_allclose(one, other, atol=1e-4)


def test_negative_members_do_not_make_a_set_tight():
  scores, members, _ = _world(queries=1)
  with_one = jnp.asarray(members[0]).at[5].set(-1.0)
  phi = calibration.evidence(jnp.asarray(scores[0]).at[5].set(-50.0), with_one)
  alone = calibration.evidence(
    jnp.delete(scores[0], 5), jnp.delete(members[0], 5)
  )
  np.testing.assert_allclose(
    np.delete(np.asarray(phi), 5, 0)[:, :4], alone[:, :4], atol=1e-4
  )


def test_the_cut_is_the_best_of_all():
  for seed in range(5):
    p = np.random.default_rng(seed).uniform(0, 1, 9) ** 2
    values = [
      2 * sum(sorted(p)[::-1][:n]) / (n + p.sum()) for n in range(1, 10)
    ]
    assert int(setexp.expected_cut(jnp.asarray(p))) == 1 + np.argmax(values)


def test_certain_chances_are_cut_after_the_last_sure_one():
  for answers in itertools.islice(
    itertools.product([0.0, 1.0], repeat=4), 1, 16
  ):
    assert int(setexp.expected_cut(jnp.array(answers))) == sum(answers)


def test_equal_scores_have_chances_that_fall_with_the_rank():
  weights = jnp.array([-1.0, 2.0, 0.1, 0.1, -0.5])
  given = setexp.chances(weights, jnp.ones(4), jnp.array([1.0, 0, 0, 0]))
  assert given[0] == 0  # a member
  assert 1 > given[1] > given[2] > given[3] > 0

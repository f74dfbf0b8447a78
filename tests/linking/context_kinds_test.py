"""Scores by kind of title: loops, parts that add up, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from repr_jax import linking
from repr_jax.linking import context_kinds
from repr_jax.linking.context_kinds import KindConfig, KindParams


@pytest.fixture(scope="module")
def params():
  rng = np.random.default_rng(0)
  return KindParams(
    *(jnp.asarray(rng.standard_normal(s), jnp.float32)
      for s in ((6, 3), (5, 3), (5,), ()))
  )  # fmt: skip


_CONTEXTS = jnp.asarray([4, 0, -1])
_KINDS = jnp.asarray([[1, 2], [3, -1], [-1, -1]])


def test_scores_are_those_of_the_definition(params):
  expected = np.zeros(3)
  for row, kinds in enumerate(_KINDS.tolist()):
    for kind in kinds:
      if kind >= 0:
        expected[row] += params.bias[kind]
        for feature in (4, 0):
          expected[row] += params.contexts[feature] @ params.kinds[kind]
  got = linking.kind_scores(params, _CONTEXTS, _KINDS)
  np.testing.assert_allclose(got, expected, rtol=1e-5)
  parts = linking.kind_parts(params, _CONTEXTS, _KINDS)
  assert parts.shape == (4, 3)
  np.testing.assert_allclose(parts.sum(axis=0), got, rtol=1e-6)
  assert (parts[2] == 0).all()  # padding


def test_features_are_the_score_and_its_log_probability(params):
  mask, links = jnp.asarray([True, True, False]), jnp.asarray([3.0, 1, 9])
  made = linking.kind_features(params, _CONTEXTS, _KINDS, links, mask)
  scores = linking.kind_scores(params, _CONTEXTS, _KINDS)[:2]
  np.testing.assert_allclose(made[:2, 0], scores, rtol=1e-5)
  np.testing.assert_allclose(made[:2, 1], scores - scores.max(), rtol=1e-5)
  joint = scores + params.links * links[:2]
  expected = joint - jax.nn.logsumexp(joint)
  np.testing.assert_allclose(made[:2, 2], expected, rtol=1e-4)
  assert (made[2] == 0).all()


def test_training_fits_a_context_that_tells_the_kind():
  rng = np.random.default_rng(1)
  gold = rng.integers(2, size=64)
  batch = context_kinds.KindArrays(
    gold[:, None], np.tile([[0], [1]], (64, 1, 1)), np.zeros((64, 2)),
    np.ones((64, 2), bool), gold,
  )  # fmt: skip
  init, update = context_kinds.kind_ranker(KindConfig(2, 2, 4), optax.adam(0.1))
  state = init(jax.random.key(0))
  for _ in range(40):
    state, loss = update(state, batch)
  assert float(loss) < 0.05
  empty = batch._replace(gold=np.full(64, -1))
  assert context_kinds.kind_loss(state.params, empty) == 0


def test_the_loss_is_minus_the_log_probability(params):
  batch = context_kinds.KindArrays(
    _CONTEXTS[None], _KINDS[None], jnp.asarray([[3.0, 1, 9]]),
    jnp.asarray([[True, True, False]]), jnp.asarray([1]),
  )  # fmt: skip
  made = linking.kind_features(params, *(x[0] for x in batch[:4]))
  loss = context_kinds.kind_loss(params, batch)
  np.testing.assert_allclose(loss, -made[1, 2], rtol=1e-4)

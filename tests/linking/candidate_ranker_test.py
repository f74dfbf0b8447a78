"""The ranker: likelihood, gradients, and parts that add up."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.test_util import check_grads

from repr_jax import linking
from repr_jax.linking import candidate_ranker


def _params(seed, size, hidden=3):
  rng = np.random.default_rng(seed)
  shapes = [(size,), (size,), (size,), (size, hidden), (hidden,), (hidden,)]
  params = [jnp.asarray(rng.standard_normal(s), jnp.float32) for s in shapes]
  params[1] = jnp.abs(params[1]) + 0.5
  return linking.RankerParams(*params)


def _batch(seed=0, n=5, c=4, f=3):
  rng = np.random.default_rng(seed)
  mask = np.ones((n, c), bool)
  mask[:, -1] = [True, False] * (n // 2) + [True] * (n % 2)
  features = rng.standard_normal((n, c, f)).astype(np.float32)
  return features, mask, rng.integers(c - 1, size=n)


def test_scores_by_numpy():
  features, mask, _ = _batch()
  params = _params(1, 3)
  x = (features - np.asarray(params.mean)) / np.asarray(params.scale)
  hidden = np.maximum(x @ np.asarray(params.inner) + np.asarray(params.bias), 0)
  expected = x @ np.asarray(params.linear) + hidden @ np.asarray(params.outer)
  got = linking.candidate_scores(params, features, mask)
  np.testing.assert_allclose(got[mask], expected[mask], rtol=1e-4, atol=1e-5)
  assert (np.asarray(got)[~mask] < -1e8).all()


def test_loss_is_the_likelihood_of_the_gold_candidates():
  features, mask, gold = _batch()
  gold[0] = -1
  params = _params(2, 3)
  scores = np.asarray(linking.candidate_scores(params, features, mask))
  logs = [
    scores[i, g] - np.log(np.exp(scores[i][mask[i]]).sum())
    for i, g in enumerate(gold)
    if g >= 0
  ]
  loss = candidate_ranker.likelihood_loss(params, features, mask, gold)
  assert loss == pytest.approx(-np.mean(logs), rel=1e-5)
  check_grads(
    lambda p: candidate_ranker.likelihood_loss(p, features, mask, gold),
    (params,), order=1, modes=["rev"], rtol=2e-2, atol=2e-2,
  )  # fmt: skip


def test_init_standardizes_what_is_there():
  features, mask, _ = _batch()
  features[~mask] = np.nan
  init, _ = linking.ranker(linking.RankerConfig(2), optax.sgd(0.1))
  params = init(jax.random.key(0), features, mask).params
  np.testing.assert_allclose(params.mean, features[mask].mean(0), atol=1e-5)
  np.testing.assert_allclose(params.scale, features[mask].std(0), rtol=1e-4)


def test_training_keeps_the_scale_and_lowers_the_loss():
  features, mask, gold = _batch(n=40)
  gold = np.where(mask, features[..., 0], -9).argmax(1)
  init, update = linking.ranker(
    linking.RankerConfig(4), optax.adamw(0.05, weight_decay=0.1)
  )
  state = start = init(jax.random.key(0), features, mask)
  losses = []
  for _ in range(60):
    state, loss = update(state, features, mask, gold)
    losses.append(float(loss))
  assert losses[-1] < 0.3 * losses[0]
  np.testing.assert_array_equal(state.params.mean, start.params.mean)
  np.testing.assert_array_equal(state.params.scale, start.params.scale)


def test_parts_add_up_to_the_scores_in_any_grouping():
  features, mask, _ = _batch()
  params = _params(3, 3)
  scores = linking.candidate_scores(params, features, mask)
  for groups in ([0, 1, 2], [2, 0, 0], [1, 1, 1]):
    parts = linking.score_parts(
      params, features, jnp.asarray(groups), mask, num_groups=3
    )
    np.testing.assert_allclose(
      parts.sum(-1)[mask], scores[mask], rtol=1e-4, atol=1e-5
    )
  assert not np.asarray(parts)[~mask].any()


def test_a_group_without_features_has_no_part():
  features, mask, _ = _batch()
  parts = linking.score_parts(
    _params(3, 3), features, jnp.asarray([0, 0, 2]), mask, num_groups=3
  )
  assert not np.asarray(parts[..., 1]).any()
  assert np.abs(parts[..., 2]).max() > 0.1


def test_memory_is_linear_in_the_number_of_candidates():
  # 128 mentions are the most of a part; longer documents are cut.
  def needed(top, width=128, size=8):
    nodes = width * top

    def weights(n):
      shapes = (n,), (n,), (n,), (n, 4), (4,), (4,)
      return linking.RankerParams(
        *(jax.ShapeDtypeStruct(x, np.float32) for x in shapes)
      )

    evidence = linking.Evidence(
      *(
        jax.ShapeDtypeStruct(shape, dtype)
        for shape, dtype in (
          ((width, top, size), np.float32), ((width, top), np.int32),
          ((4 * nodes, 2), np.int32), ((width,), np.int32),
          ((width, top), np.int32), ((nodes,), np.float32),
          ((width,), np.int32),
        )
      )
    )  # fmt: skip
    compiled = (
      jax.jit(linking.rank_document)
      .lower(weights(size), weights(size + 16), evidence)
      .compile()
    )
    return compiled.memory_analysis().temp_size_in_bytes

  quarter, most = needed(250), needed(1000)
  assert most < 4.5 * quarter
  assert most < 4e9  # an adjacency matrix of all candidates has 66 GB

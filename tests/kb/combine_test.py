"""The choice between two systems."""

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.linear_model

from repr_jax import kb
from repr_jax.kb import combine, link_prediction


def test_logistic_equals_scikit_learn():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(200, 4)).astype(np.float32)
  y = (x @ [1, -2, 0.5, 0] + rng.normal(size=200) > 0).astype(np.float32)
  weights = rng.uniform(size=200).astype(np.float32)
  got = kb.fit_logistic(x, y, weights, ridge=0.5)
  peer = sklearn.linear_model.LogisticRegression(
    C=2.0, fit_intercept=False, tol=1e-8
  ).fit(x, y, weights)
  np.testing.assert_allclose(got, peer.coef_[0], atol=2e-3)


def _system(seed, model="T"):
  params = kb.init_params(model, jax.random.key(seed), 20, 3, 4, 1.0)
  facts = np.random.default_rng(0).integers(20, size=(11, 3))
  facts[:, 1] %= 3
  heads, tails = link_prediction.scorers(model, params)
  ranks = link_prediction.rank(heads, tails, facts, facts, block=4)
  return params, facts, ranks


def test_merged_ranks_come_from_the_chosen_system():
  _, facts, first = _system(0)
  _, _, second = _system(1)
  heads = np.arange(len(facts)) % 2 == 0
  merged = combine.merge_ranks(first, second, heads, ~heads)
  for side, chosen in (("head", heads), ("tail", ~heads)):
    got = getattr(merged, side).filtered.realistic
    want = np.where(
      chosen,
      getattr(first, side).filtered.realistic,
      getattr(second, side).filtered.realistic,
    )
    np.testing.assert_array_equal(got, want)
  labels, weights = combine.better(first, second, "tail")
  one, two = (r.tail.filtered.realistic for r in (first, second))
  assert np.all(labels[one < two] == 1) and np.all(weights[one == two] == 0)


def test_sureness_equals_a_plain_count():
  params, facts, _ = _system(2)
  got = combine.sureness("T", params, facts, "tail", block=4)
  e, r = (np.asarray(x) for x in params)
  for (h, k, _), (height, lead) in zip(facts, got):
    values = -np.sum((r[k] - (e[h] - e)) ** 2, axis=1)
    top = np.sort(values)[::-1]
    spread = values.std()
    np.testing.assert_allclose(
      height, (top[0] - values.mean()) / spread, rtol=1e-3
    )
    np.testing.assert_allclose(
      lead, (top[0] - top[1]) / spread, rtol=1e-2, atol=1e-4
    )
  features = combine.choice_features(facts, 3, got, got)
  assert features.shape == (len(facts), 3 + 5)
  assert jnp.isfinite(features).all()

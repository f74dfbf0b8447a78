"""Bayesian Sets against marginal likelihoods by numerical integration."""

import asked
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import integrate, special, stats

from repr_jax.data import synthetic_corpora
from repr_jax.errors import InputError
from repr_jax.setexp.baselines import bayesian_sets
from repr_jax.setexp.query import best, exclude, make_query

_FORMS = ("bernoulli", "poisson", "gaussian")


_score = asked.score(bayesian_sets.BERNOULLI)
_score_rows = asked.score_rows(bayesian_sets.BERNOULLI)
_rationale = asked.rationale(bayesian_sets.BERNOULLI)
_contributions = asked.contributions(bayesian_sets.BERNOULLI)


def _counts(seed=0, entities=12, features=4):
  rng = np.random.default_rng(seed)
  dense = rng.poisson(0.8, (entities, features)).astype(np.float32)
  dense[0] = 0
  dense[:, -1] = 0  # a feature that no entity has
  dense[1] += np.eye(features, dtype=np.float32)[0]
  return sp.csr_array(dense)


def _marginal_bernoulli(prior, j, sample, weights):
  """log of the integral of prior times the weighted likelihood."""
  ones, total = float(weights @ sample), float(weights.sum())
  alpha, beta = prior.alpha[j], prior.beta[j]
  return special.betaln(alpha + ones, beta + total - ones) - special.betaln(
    alpha, beta
  )


def _marginal_poisson(prior, j, sample, weights):
  """Over the logarithm of the rate, where the trapezoid rule is sharp."""
  alpha, beta = prior.alpha[j], prior.beta[j]
  u = np.linspace(-700.0, 6.0, 70_601)
  rate = np.exp(u)
  logs = stats.gamma(alpha, scale=1 / beta).logpdf(rate) + u
  for x, w in zip(sample, weights):
    logs = logs + w * (x * u - rate - special.gammaln(x + 1))
  return np.log(integrate.trapezoid(np.exp(logs), u))


def _marginal_gaussian(prior, j, sample, weights):
  """Over the logarithm of the precision and the mean, both on grids."""
  del prior, j
  u = np.linspace(-12.0, 4.0, 321)[:, None]
  deviation = np.exp(-u / 2)
  center = weights @ sample / (2 + weights.sum())
  mean = center + deviation * np.linspace(-9, 9, 361)
  logs = stats.gamma(2.0).logpdf(np.exp(u)) + u
  logs = logs + stats.norm(0, deviation / np.sqrt(2)).logpdf(mean)
  for x, w in zip(sample, weights):
    logs = logs + w * stats.norm(mean, deviation).logpdf(x)
  inner = integrate.trapezoid(np.exp(logs), mean, axis=1)
  return np.log(integrate.trapezoid(inner, u[:, 0]))


_MARGINAL = {
  "bernoulli": _marginal_bernoulli,
  "poisson": _marginal_poisson,
  "gaussian": _marginal_gaussian,
}


def _transformed(model, dense):
  """Counts as the form sees them, written out again."""
  form, size = model.prior.form, len(dense)
  if form == "poisson":
    return dense
  if form == "bernoulli":
    threshold = dense.mean(0) + 0.5 * dense.std(0)
    return (dense > threshold).astype(float)
  root = np.sqrt(dense + 3 / 8)
  deviation = root.std(0)
  assert size
  return (root - root.mean(0)) / np.where(deviation > 1e-12, deviation, 1)


def _brute_force(model, dense, members, weights, entity):
  """log p(x, Q) - log p(x) - log p(Q), feature by feature."""
  marginal = _MARGINAL[model.prior.form]
  table = _transformed(model, dense)
  one, total = np.ones(1), 0.0
  for j in range(dense.shape[1]):
    x, sample = table[[entity], j], table[members, j]
    both = np.append(sample, x), np.append(weights, one)
    total += marginal(model.prior, j, *both)
    total -= marginal(model.prior, j, x, one)
    total -= marginal(model.prior, j, sample, np.asarray(weights))
  return total


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("weights", [[1.0, 1.0], [0.5, 2.0]])
def test_scores_are_ratios_of_marginal_likelihoods(form, weights):
  counts = _counts()
  model = bayesian_sets.fit(counts, form)
  members = [2, 5]
  scores = _score(model, make_query(counts, members, weights))
  dense = counts.toarray().astype(float)
  for entity in (0, 1, 7):
    wanted = _brute_force(model, dense, members, np.array(weights), entity)
    np.testing.assert_allclose(scores[entity], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", _FORMS)
def test_sparse_paths_agree(form):
  """Kept totals, other totals and rows outside the table are one formula."""
  counts = _counts()
  kept = bayesian_sets.fit(counts, form)
  bare = bayesian_sets.fit(counts, form, totals=())
  query = make_query(counts, [1, 3, 6], [1.0, 2.0, -1.5])
  scores = _score(kept, query)
  for other in (_score(bare, query), _score_rows(kept, query, counts)):
    np.testing.assert_allclose(scores, other, rtol=1e-5, atol=1e-5)
  for entity in (0, 1, 11):
    parts = _contributions(kept, query, entity)
    np.testing.assert_allclose(
      parts.total, scores[entity], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("form", _FORMS)
def test_parts_of_many_features_with_heavy_tails_add_up(form):
  """Within 1e-5 of the score, or of the parts where these cancel."""
  rng = np.random.default_rng(0)
  dense = np.ceil(rng.pareto(1.2, (200, 300))) * (rng.random((200, 300)) < 0.1)
  counts = sp.csr_array(dense.astype(np.float32))
  model = bayesian_sets.fit(counts, form)
  query = make_query(counts, [1, 3, 6], [1.0, 2.0, -1.5])
  scores = _score(model, query)
  for entity in (1, 6, *np.argsort(scores)[[0, 100, -1]]):
    parts = _contributions(model, query, entity)
    size = max(abs(scores[entity]), np.abs(parts.features).max())
    assert abs(parts.total - scores[entity]) <= 1e-5 * size


@pytest.mark.parametrize("form", _FORMS)
def test_weight_two_is_naming_twice(form):
  counts = _counts()
  model = bayesian_sets.fit(counts, form)
  twice = _score(model, make_query(counts, [4], new_rows=counts[[4]]))
  weighted = _score(model, make_query(counts, [4], [2.0]))
  np.testing.assert_allclose(twice, weighted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", _FORMS)
def test_negative_members_are_a_second_query(form):
  counts = _counts()
  model = bayesian_sets.fit(counts, form)
  both = make_query(counts, [4, 6], [1.0, -3.0])
  for_, against = make_query(counts, [4]), make_query(counts, [6], [3.0])
  np.testing.assert_allclose(
    _score(model, both),
    _score(model, for_) - _score(model, against),
    rtol=1e-4,
    atol=1e-4,
  )


def test_bernoulli_score_is_a_product_with_the_rationale():
  counts = _counts()
  model = bayesian_sets.fit(counts)
  query = make_query(counts, [4, 6, 7])
  dense = _transformed(model, counts.toarray().astype(float))
  linear = dense @ _rationale(model, query)
  rest = _score(model, query) - linear
  np.testing.assert_allclose(rest, rest[0], atol=1e-4)
  prior = model.prior
  first = dense[[4, 6, 7]].sum(0)
  wanted = np.log(
    (prior.alpha + first)
    * prior.beta
    / (prior.alpha * (prior.beta + 3 - first))
  )
  np.testing.assert_allclose(_rationale(model, query), wanted, rtol=1e-5)


@pytest.mark.parametrize("form", _FORMS)
def test_clusters_are_recovered(form):
  world = synthetic_corpora.entity_sets(np.random.default_rng(0))
  model = bayesian_sets.fit(world.counts, form)
  query = make_query(world.counts, [0, 1, 2])
  scores = _score(model, query)
  found = best(exclude(scores, query), 10)
  assert (world.cluster[found] == world.cluster[0]).mean() >= 0.9
  top = np.argsort(-_rationale(model, query))[:10]
  assert (world.feature_cluster[top] == world.cluster[0]).mean() >= 0.8


@pytest.mark.parametrize("form", _FORMS)
def test_extremes_stay_finite(form):
  counts = _counts()
  counts.data[counts.indptr[3]] = 1e30  # in the row of a member
  model = bayesian_sets.fit(counts, form)
  for weights in ([1.0, 1.0], [-1.0, -1.0], [1e6, -1e-6], [1.0, -1e6]):
    query = make_query(counts, [2, 3], weights)
    assert np.isfinite(_score(model, query)).all()
    assert np.isfinite(_rationale(model, query)).all()


@pytest.mark.parametrize(
  "counts, options, message",
  [
    (np.zeros((2, 3)), {}, "cannot be fitted"),
    (-np.ones((2, 3)), {}, "0 or more"),
    (np.ones((2, 3)), {"form": "normal"}, "no form 'normal'"),
    (np.ones((2, 3)), {"spread": -1.0}, "spread"),
    (np.ones((2, 3)), {"concentration": 0.0}, "concentration"),
  ],
)
def test_bad_input_is_refused(counts, options, message):
  with pytest.raises(InputError, match=message):
    bayesian_sets.fit(sp.csr_array(counts), **options)

"""Predictive log-ratios under conjugate priors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special, stats

from repr_jax.errors import InputError
from repr_jax.setexp.baselines import bayesian_sets, conjugate
from repr_jax.setexp.feature_scores import Entries

_statistics, _added, _at_zero, _log_rising = map(
  jax.jit,
  (
    conjugate.statistics,
    conjugate.added,
    conjugate.at_zero,
    conjugate._log_rising,
  ),
)
_FORMS = ("bernoulli", "poisson", "gaussian")


def _counts(entities, features):
  rng = np.random.default_rng(0)
  return sp.csr_array(rng.poisson(0.8, (entities, features)) * 1.0)


@pytest.mark.parametrize("form", _FORMS)
def test_predictive_sums_to_one(form):
  """exp(h) times the prior predictive is a distribution over counts."""
  counts = _counts(entities=30, features=6)
  prior = bayesian_sets.fit(counts, form).prior
  rows = counts[[4, 6]].tocoo()
  entries = Entries(*map(jnp.asarray, (*rows.coords, rows.data)))
  members = _statistics(prior, entries, jnp.array([1.0, 0.7]))
  j = 1
  if form == "gaussian":
    values = np.linspace(-400, 400, 400_001)
    scale = np.sqrt(3 / 4)
    weight = stats.t(4, 0, scale).pdf(values) * (values[1] - values[0])
  elif form == "poisson":
    values = np.arange(2000.0)
    a, b = prior.alpha[j], prior.beta[j]
    weight = stats.nbinom(a, b / (1 + b)).pmf(values)
  else:
    values = np.arange(2.0)
    share = prior.alpha[j] / (prior.alpha[j] + prior.beta[j])
    weight = np.array([1 - share, share])
  features = jnp.full(len(values), j)
  added = _added(prior, members, features, jnp.asarray(values))
  zero = _at_zero(prior, members, jnp.array([j]))
  np.testing.assert_allclose(weight @ np.exp(added + zero), 1, rtol=1e-4)


@pytest.mark.parametrize("form", _FORMS)
def test_no_members_change_nothing(form):
  prior = bayesian_sets.fit(_counts(20, 5), form).prior
  none = conjugate.empty_statistics(prior, jnp.float32(0))
  every, one = jnp.arange(5), jnp.ones(5)
  np.testing.assert_allclose(_at_zero(prior, none, every), 0, atol=1e-6)
  np.testing.assert_allclose(_added(prior, none, every, one), 0, atol=1e-6)


@pytest.mark.parametrize("x", [1e-3, 0.7, 7.99, 8.0, 300.0, 1e6])
@pytest.mark.parametrize("n", [0.0, 0.5, 3.0, 40.0])
def test_rising_powers_keep_their_digits(x, n):
  wanted = special.gammaln(x + n) - special.gammaln(x)
  value = _log_rising(jnp.float32(x), jnp.float32(n))
  np.testing.assert_allclose(value, wanted, rtol=3e-6, atol=3e-6)


def test_an_unknown_form_is_refused():
  with pytest.raises(InputError, match="no form"):
    conjugate.make_prior(sp.csc_array(np.eye(2)), "normal", 0.5, 2.0)

"""The softmax over all features, exact and sampled."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from repr_jax import errors
from repr_jax.ops import normalize, precision
from repr_jax.setexp import autoencoder, softmax


def _log_partition(z, table):
  return normalize.log_sum_products(table, z, None)


@pytest.fixture
def double():
  with precision.enable_x64(True):
    yield


def _bias(z, table, own, proposal, rng, size, repeats):
  """Sampled log-partition less the exact one, [repeats, b]."""
  exact = jax.nn.logsumexp(z @ table.T, axis=1)
  mask, estimate = (
    np.ones(len(own), bool),
    jax.jit(softmax.sampled_log_partition),
  )
  sampled = []
  for _ in range(repeats):
    ids, weights = softmax.draw(proposal, rng, size, own)
    rows = table[np.minimum(ids, len(table) - 1)]
    sampled.append(estimate(z, table[own], mask, rows, weights))
  return np.stack(sampled) - np.asarray(exact)


@pytest.mark.parametrize(
  "function", [_log_partition, softmax.log_partition_bernoulli]
)
def test_partition_gradients_by_finite_differences(double, function):
  rng = np.random.default_rng(0)
  z, table = rng.standard_normal((3, 4)), rng.standard_normal((11, 4))
  check_grads(function, (z, table), order=1, modes=["rev"], atol=1e-6)


def test_partitions_are_what_they_say(double):
  rng = np.random.default_rng(1)
  z, table = rng.standard_normal((3, 4)), rng.standard_normal((11, 4))
  logits = z @ table.T
  np.testing.assert_allclose(
    _log_partition(z, table), np.log(np.exp(logits).sum(axis=1)), rtol=1e-6
  )
  np.testing.assert_allclose(
    softmax.log_partition_bernoulli(z, table),
    np.log1p(np.exp(logits)).sum(axis=1),
    rtol=1e-6,
  )
  huge = _log_partition(1e4 * jnp.asarray(z), table)
  np.testing.assert_allclose(huge, 1e4 * logits.max(axis=1), rtol=1e-6)


def test_only_one_matrix_of_batch_by_features_is_kept():
  """The gradient holds the exponentials, not logits or targets as well."""
  z, table = jnp.ones((32, 5)), jnp.ones((20_000, 5))

  def memory(function):
    slope = jax.jit(jax.grad(lambda z, t: function(z, t).sum(), (0, 1)))
    analysis = slope.lower(z, table).compile().memory_analysis()
    return analysis.temp_size_in_bytes

  whole = 32 * 20_000 * 4
  assert memory(_log_partition) < 2.5 * whole


def test_sampled_sum_is_unbiased_and_its_log_nearly():
  rng = np.random.default_rng(0)
  z = np.concatenate([rng.standard_normal((2, 3)), np.ones((2, 1))], axis=1)
  table = rng.standard_normal((300, 4)).astype(np.float32)
  own = np.array([3, 10, 200])
  totals = rng.poisson(3, 300)
  for kind in ("unigram", "log_uniform"):
    proposal = softmax.make_proposal(kind, totals)
    np.testing.assert_allclose(proposal.probability.sum(), 1)
    bias = _bias(z, table, own, proposal, rng, 60, 400)
    # Z_sampled / Z has mean 1; so has its logarithm minus half the variance.
    ratio = np.exp(bias)
    error = ratio.std(axis=0) / 20
    assert (np.abs(ratio.mean(axis=0) - 1) < 4 * error).all()
    large = _bias(z, table, own, proposal, rng, 6000, 20)
    assert np.abs(large).mean() < np.abs(bias).mean() / 4


def test_draws_are_distinct_and_outside_the_batch():
  proposal = softmax.make_proposal("unigram", np.arange(20))
  own = np.array([17, 19])
  features, weights = softmax.draw(proposal, np.random.default_rng(0), 30, own)
  real = features[features < 20]
  assert len(set(real)) == len(real) and not set(real) & set(own)
  assert np.isfinite(weights[: len(real)]).all()
  assert (weights[len(real) :] == -np.inf).all()


def test_log_uniform_follows_the_rank():
  proposal = softmax.make_proposal("log_uniform", np.array([1, 9, 4]))
  expected = np.log([4 / 3, 2, 3 / 2]) / np.log(4)
  np.testing.assert_allclose(proposal.probability, expected)
  with pytest.raises(errors.InputError, match="proposal"):
    softmax.make_proposal("zipf", np.ones(3))


@pytest.mark.parametrize("decoder", ["multinomial", "multilabel"])
@pytest.mark.parametrize("smoothing", [None, 0.2])
def test_the_likelihood_is_that_of_dense_logits(decoder, smoothing):
  rng = np.random.default_rng(2)
  z, table = rng.normal(size=(2, 3)), rng.normal(size=(6, 3))
  counts = rng.poisson(1.0, (2, 6)).astype(np.float32)
  parts = types.SimpleNamespace(
    decoder=jnp.asarray(table), targets=jnp.asarray(table), samples=None
  )
  value = softmax.log_likelihood(
    autoencoder.Config(decoder=decoder), parts, None, None,
    jnp.asarray(counts), jnp.asarray(z), smoothing,
  )  # fmt: skip
  logits, share = jnp.asarray(z @ table.T), smoothing or 0.0
  if decoder == "multilabel":
    target = (1 - share) * (counts > 0) + share * 0.5
    terms = target * logits - jax.nn.softplus(logits)
  else:
    total = counts.sum(axis=1, keepdims=True)
    target = (1 - share) * counts + share * total / 6
    terms = target * jax.nn.log_softmax(logits)
  np.testing.assert_allclose(value, terms.sum(axis=1), rtol=1e-4)

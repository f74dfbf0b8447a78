"""Diagonal Gaussians against scipy and numeric integration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from repr_jax import ops
from repr_jax.ops import gaussian, precision


@pytest.fixture(autouse=True)
def _double():
  with precision.enable_x64():
    yield


def _pair(seed: int, d: int):
  rng = np.random.default_rng(seed)
  mean = rng.standard_normal((2, d))
  variance = rng.uniform(0.2, 0.9, (2, d))
  return mean[0], variance[0], mean[1], variance[1]


def _density(mean, variance):
  return lambda z: scipy.stats.norm.pdf(z, mean, np.sqrt(variance))


def _integral(function):
  return scipy.integrate.quad(function, -12, 12, epsabs=1e-12, limit=200)[0]


def test_natural_parameters_there_and_back():
  mean, variance, *_ = _pair(0, 5)
  natural = ops.to_natural(jnp.asarray(mean), jnp.asarray(variance))
  back = ops.to_moments(natural)
  np.testing.assert_allclose(back[0], mean)
  np.testing.assert_allclose(back[1], variance)


@pytest.mark.parametrize("xi", [0.0, 3.0, -1e300])
def test_no_precision_gives_finite_moments(xi):
  natural = gaussian.Natural(jnp.full(2, xi), jnp.zeros(2))
  mean, variance = ops.to_moments(natural)
  assert np.isfinite(mean).all() and np.isfinite(variance).all()
  assert (np.sign(mean) == np.sign(xi)).all() and (variance > 1e9).all()


def test_product_is_the_normalized_product_of_densities():
  mean, variance, other_mean, other_variance = _pair(1, 1)
  members = ops.to_natural(
    jnp.asarray([mean, other_mean]), jnp.asarray([variance, other_variance])
  )
  weights = np.array([2.0, 0.5])
  found = ops.to_moments(ops.product_of_experts(members, jnp.asarray(weights)))
  p, q = _density(mean, variance), _density(other_mean, other_variance)

  def product(z):
    return (p(z) ** weights[0] * q(z) ** weights[1]).item()

  total = _integral(product)
  expected = _integral(lambda z: z * product(z)) / total
  spread = _integral(lambda z: (z - expected) ** 2 * product(z)) / total
  np.testing.assert_allclose(found[0], expected, rtol=1e-8)
  np.testing.assert_allclose(found[1], spread, rtol=1e-8)


def test_negative_weight_moves_away_and_adds_certainty():
  natural = gaussian.Natural(jnp.ones((2, 3)), jnp.full((2, 3), 2.0))
  found = ops.product_of_experts(natural, jnp.asarray([1.0, -3.0]))
  np.testing.assert_allclose(found.xi, -2.0)
  np.testing.assert_allclose(found.precision, 8.0)


@pytest.mark.parametrize("garbage", [1e30, np.nan, np.inf])
def test_padding_changes_nothing(garbage):
  rng = np.random.default_rng(2)
  xi, precision = rng.standard_normal((2, 3, 4)), rng.random((2, 3, 4)) + 1
  weights = np.array([1.0, -0.5, 0.0])
  for array in (xi, precision):
    array[:, 2] = garbage
  whole = ops.product_of_experts(
    gaussian.Natural(jnp.asarray(xi[0]), jnp.asarray(precision[0])),
    jnp.asarray(weights),
  )
  short = ops.product_of_experts(
    gaussian.Natural(jnp.asarray(xi[0, :2]), jnp.asarray(precision[0, :2])),
    jnp.asarray(weights[:2]),
  )
  np.testing.assert_array_equal(whole.xi, short.xi)
  np.testing.assert_array_equal(whole.precision, short.precision)


def test_kl_is_the_integral():
  mean_p, variance_p, mean_q, variance_q = _pair(3, 1)
  p, q = _density(mean_p, variance_p), _density(mean_q, variance_q)
  expected = _integral(lambda z: (p(z) * np.log(p(z) / q(z))).item())
  found = ops.kl(*map(jnp.asarray, _pair(3, 1)))
  np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_kl_to_the_prior_is_a_kl():
  mean, variance, *_ = _pair(4, 6)
  found = ops.kl_to_prior(jnp.asarray(mean), jnp.log(variance), 2.5)
  expected = ops.kl(
    jnp.asarray(mean), jnp.asarray(variance), jnp.zeros(6), jnp.full(6, 2.5)
  )
  np.testing.assert_allclose(found, expected, rtol=1e-12)
  same = ops.kl_to_prior(jnp.zeros(6), jnp.log(jnp.full(6, 2.5)), 2.5)
  np.testing.assert_allclose(same, 0, atol=1e-12)


def test_product_kernel_is_the_integral():
  mean_p, variance_p, mean_q, variance_q = _pair(5, 1)
  p, q = _density(mean_p, variance_p), _density(mean_q, variance_q)
  expected = np.log(_integral(lambda z: (p(z) * q(z)).item()))
  found = ops.log_product_kernel(*map(jnp.asarray, _pair(5, 1)))
  np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_evidence_ratio_is_the_integral_in_two_dimensions():
  moments = _pair(6, 2)
  prior = 1.7
  expected = 0.0
  # Independent coordinates: the integral is a product.
  for j in range(2):
    p = _density(moments[0][j], moments[1][j])
    q = _density(moments[2][j], moments[3][j])
    base = _density(0.0, prior)
    expected += np.log(
      _integral(lambda z, p=p, q=q, base=base: p(z) * q(z) / base(z))
    )
  natural = [
    ops.to_natural(*map(jnp.asarray, x)) for x in (moments[:2], moments[2:])
  ]
  found = ops.log_evidence_ratio(*natural, prior)
  np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_evidence_ratio_of_a_conjugate_model():
  """Two noisy readings of z: the ratio of evidences is known in full."""
  prior, noise = 1.3, 0.6
  x, y = 0.7, -0.4
  joint = scipy.stats.multivariate_normal(
    [0, 0], [[prior + noise, prior], [prior, prior + noise]]
  ).logpdf([x, y])
  alone = scipy.stats.norm(0, np.sqrt(prior + noise)).logpdf([x, y]).sum()
  posteriors = [
    gaussian.Natural(
      jnp.array([value / noise]), jnp.array([1 / prior + 1 / noise])
    )
    for value in (x, y)
  ]
  found = ops.log_evidence_ratio(*posteriors, prior)
  np.testing.assert_allclose(found, joint - alone, rtol=1e-10)


def test_evidence_ratio_stays_finite_where_the_integral_does_not_exist():
  wide = gaussian.Natural(jnp.ones(3), jnp.full(3, 0.1))
  assert np.isfinite(ops.log_evidence_ratio(wide, wide, 1.0))


def test_reparameterized_samples_have_the_moments():
  mean, log_variance = jnp.array([1.0, -2.0]), jnp.log(jnp.array([4.0, 0.25]))
  keys = jax.random.split(jax.random.key(0), 20_000)
  draw = jax.vmap(gaussian.reparameterize, (None, None, 0))
  samples = np.asarray(draw(mean, log_variance, keys))
  np.testing.assert_allclose(samples.mean(0), mean, atol=0.06)
  np.testing.assert_allclose(samples.var(0), jnp.exp(log_variance), rtol=0.05)


def test_reparameterized_sample_is_the_noise_moved_and_stretched():
  mean, log_variance, key = jnp.ones(3), jnp.full(3, 2.0), jax.random.key(1)
  noise = ops.reparameterize(jnp.zeros(3), jnp.zeros(3), key)
  sample = ops.reparameterize(mean, log_variance, key)
  np.testing.assert_allclose(sample, 1 + np.e * noise, rtol=1e-12)
  slope = jax.grad(lambda m: ops.reparameterize(m, log_variance, key)[0])
  np.testing.assert_array_equal(slope(mean), [1, 0, 0])

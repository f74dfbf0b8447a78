"""Diagonal Gaussians: natural parameters, products, divergences, kernels.

A Gaussian of independent coordinates is given by its mean and variance, or
by its natural parameters: the precision (1 / variance) and xi (mean times
precision), which add when densities are multiplied (thesis 4.5). Functions
take one Gaussian, or one pair, and are vmapped by callers.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp


class Natural(NamedTuple):
  """Natural parameters.

  Attributes:
    xi: the mean times the precision, [..., d].
    precision: one over the variance, not negative, [..., d].
  """

  xi: jax.Array
  precision: jax.Array


def to_natural(mean: jax.Array, variance: jax.Array) -> Natural:
  """Natural parameters of a Gaussian (thesis eq. 4.5).

  Args:
    mean: [..., d].
    variance: positive, [..., d].

  Returns:
    The parameters, fields [..., d].
  """
  chex.assert_equal_shape([mean, variance])
  return Natural(mean / variance, 1 / variance)


def to_moments(natural: Natural) -> tuple[jax.Array, jax.Array]:
  """Mean and variance; a precision of 0 counts as the smallest there is.

  Args:
    natural: the parameters, fields [..., d].

  Returns:
    Mean and variance, both [..., d], finite for finite parameters.
  """
  chex.assert_equal_shape(natural)
  tiny = jnp.sqrt(jnp.finfo(natural.precision.dtype).tiny)
  precision = jnp.maximum(natural.precision, tiny)
  bound = jnp.sqrt(jnp.finfo(natural.xi.dtype).max)
  mean = jnp.clip(natural.xi / precision, -bound, bound)
  return mean, 1 / precision


def product_of_experts(natural: Natural, weights: jax.Array) -> Natural:
  """Posterior of a weighted query: natural parameters add (thesis eq. 4.12).

  xi_Q = sum tau xi and precision_Q = sum |tau| precision: a member with a
  negative weight draws the mean away from its own, and adds certainty all
  the same.

  Args:
    natural: the members' parameters, fields [q, d].
    weights: signed influence of each member, [q]; 0 for padding, whose
      parameters may hold anything, NaN too.

  Returns:
    The query's parameters, fields [d].
  """
  chex.assert_rank([natural.xi, natural.precision, weights], [2, 2, 1])
  there = (weights != 0)[:, None]
  xi = jnp.where(there, natural.xi, 0)
  precision = jnp.where(there, natural.precision, 0)
  return Natural(weights @ xi, jnp.abs(weights) @ precision)


def kl(
  mean_p: jax.Array,
  variance_p: jax.Array,
  mean_q: jax.Array,
  variance_q: jax.Array,
) -> jax.Array:
  """Kullback-Leibler divergence KL(p || q) in nats.

  Args:
    mean_p: [d].
    variance_p: [d].
    mean_q: [d].
    variance_q: [d].

  Returns:
    Scalar, not negative.
  """
  arrays = [mean_p, variance_p, mean_q, variance_q]
  chex.assert_rank(arrays, 1)
  ratio = variance_p / variance_q
  distance = (mean_p - mean_q) ** 2 / variance_q
  return 0.5 * jnp.sum(ratio - jnp.log(ratio) + distance - 1)


def kl_to_prior(
  mean: jax.Array, log_variance: jax.Array, prior_variance: float
) -> jax.Array:
  """KL(N(mean, exp(log_variance)) || N(0, prior_variance)) in nats.

  Args:
    mean: [d].
    log_variance: [d].
    prior_variance: the same in every coordinate.

  Returns:
    Scalar, not negative.
  """
  chex.assert_rank([mean, log_variance], 1)
  log_ratio = log_variance - jnp.log(prior_variance).astype(mean.dtype)
  distance = mean**2 / prior_variance
  return 0.5 * jnp.sum(jnp.expm1(log_ratio) - log_ratio + distance)


def log_product_kernel(
  mean_p: jax.Array,
  variance_p: jax.Array,
  mean_q: jax.Array,
  variance_q: jax.Array,
) -> jax.Array:
  """Log of the probability product kernel, log int p(z) q(z) dz.

  It equals log N(mean_p - mean_q; 0, variance_p + variance_q), whose
  log-determinant has the factor 1/2 that the thesis' appendix leaves out.

  Args:
    mean_p: [d].
    variance_p: [d].
    mean_q: [d].
    variance_q: [d].

  Returns:
    Scalar.
  """
  chex.assert_rank([mean_p, variance_p, mean_q, variance_q], 1)
  variance = variance_p + variance_q
  distance = (mean_p - mean_q) ** 2 / variance
  return -0.5 * jnp.sum(distance + jnp.log(2 * jnp.pi * variance))


def log_evidence_ratio(
  p: Natural, q: Natural, prior_variance: float
) -> jax.Array:
  """Log of int p(z) q(z) / prior(z) dz, with prior = N(0, prior_variance).

  If p and q are the posteriors of z given two observations that are
  independent given z, this is log p(a, b) - log p(a) - log p(b): by Bayes'
  rule p(a | z) = p(z | a) p(a) / p(z), so
    p(a, b) = int p(z) p(a|z) p(b|z) dz = p(a) p(b) int p(z|a) p(z|b)/p(z) dz.
  With A(xi, g) = (xi^2 / g - log g) / 2 for each coordinate, the integral is
  A(xi_p + xi_q, g_p + g_q - 1/s2) - A(xi_p, g_p) - A(xi_q, g_q) + A(0, 1/s2).
  It exists where g_p + g_q > 1/s2, which holds for true posteriors under a
  log-concave likelihood (each is at least as precise as the prior); below
  1e-3 / s2 the sum's precision is raised to that, so the result is finite.

  Args:
    p: natural parameters of one posterior, fields [d].
    q: of the other, fields [d].
    prior_variance: s2.

  Returns:
    Scalar.
  """
  chex.assert_rank([*p, *q], 1)
  prior = 1 / prior_variance
  both = jnp.maximum(p.precision + q.precision - prior, 1e-3 * prior)

  def normalizer(xi, precision):
    return 0.5 * (xi * xi / precision - jnp.log(precision))

  terms = (
    normalizer(p.xi + q.xi, both)
    - normalizer(*p)
    - normalizer(*q)
    - 0.5 * jnp.log(prior).astype(both.dtype)
  )
  return jnp.sum(terms)

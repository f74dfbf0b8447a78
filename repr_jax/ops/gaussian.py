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

from repr_jax.ops.precision import exact_products


class Natural(NamedTuple):
  """Natural parameters.

  Attributes:
    xi: the mean times the precision, [..., d].
    precision: one over the variance, not negative, [..., d].
  """

  xi: jax.Array
  precision: jax.Array


def to_natural(mean: jax.Array, variance: jax.Array) -> Natural:
  """Natural parameters: xi = mean / variance, precision = 1 / variance.

  Thesis eq. 4.5.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> ops.to_natural(jnp.array([3.0]), jnp.array([2.0])).xi
  Array([1.5], dtype=float32)

  Args:
    mean: [..., d].
    variance: positive, [..., d].

  Returns:
    The parameters, fields [..., d].
  """
  chex.assert_equal_shape([mean, variance])
  return Natural(mean / variance, 1 / variance)


def to_moments(natural: Natural) -> tuple[jax.Array, jax.Array]:
  """Mean xi / precision and variance 1 / precision.

  A precision of 0 counts as the smallest positive one, so that the results
  stay finite.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> ops.to_moments(ops.Natural(jnp.array([1.5]), jnp.array([0.5])))
  (Array([3.], dtype=float32), Array([2.], dtype=float32))

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


@exact_products
def product_of_experts(natural: Natural, weights: jax.Array) -> Natural:
  """Multiplies the members' Gaussians into the query's (thesis eq. 4.12).

  Natural parameters add: xi_Q = sum tau xi, precision_Q = sum |tau| precision.
  A member with a negative weight draws the mean away from its own and still
  adds precision.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> members = ops.Natural(jnp.ones((2, 1)), jnp.ones((2, 1)))
  >>> query = ops.product_of_experts(members, jnp.array([1.0, 1.0]))
  >>> ops.to_moments(query)  # mean, variance
  (Array([1.], dtype=float32), Array([0.5], dtype=float32))

  Args:
    natural: the members' parameters, fields [q, d].
    weights: signed weight of each member, [q]; 0 marks padding, whose
      parameters may have any value, NaN included.

  Returns:
    The query's parameters, fields [d].
  """
  chex.assert_rank([natural.xi, natural.precision, weights], [2, 2, 1])
  there = (weights != 0)[:, None]
  xi = jnp.where(there, natural.xi, 0)
  precision = jnp.where(there, natural.precision, 0)
  return Natural(weights @ xi, jnp.abs(weights) @ precision)


def reparameterize(
  mean: jax.Array, log_variance: jax.Array, key: jax.Array
) -> jax.Array:
  """Samples z = mean + exp(log_variance / 2) * noise, noise ~ N(0, 1).

  The gradient passes through mean and log_variance (thesis 4.4; Kingma and
  Welling 2014). For several samples, vmap over keys.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import ops
  >>> mean, log_variance = jnp.ones(2), jnp.full(2, -jnp.inf)
  >>> ops.reparameterize(mean, log_variance, jax.random.key(0))
  Array([1., 1.], dtype=float32)

  Args:
    mean: [..., d].
    log_variance: [..., d].
    key: random key.

  Returns:
    A sample, [..., d].
  """
  chex.assert_equal_shape([mean, log_variance])
  noise = jax.random.normal(key, mean.shape, mean.dtype)
  return mean + jnp.exp(log_variance / 2) * noise


def kl(
  mean_p: jax.Array,
  variance_p: jax.Array,
  mean_q: jax.Array,
  variance_q: jax.Array,
) -> jax.Array:
  """Kullback-Leibler divergence KL(p || q) in nats.

  1/2 sum_i (r_i - log r_i - 1 + (mean_p - mean_q)_i^2 / variance_q_i) with
  r = variance_p / variance_q.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> one = jnp.ones(3)
  >>> ops.kl(2 * one, one, one, one)
  Array(1.5, dtype=float32)

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
  mean: jax.Array, log_variance: jax.Array, prior_variance: float | jax.Array
) -> jax.Array:
  """KL(N(mean, exp(log_variance)) || N(0, prior_variance)) in nats.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> ops.kl_to_prior(jnp.ones(2), jnp.zeros(2), 1.0)
  Array(1., dtype=float32)

  Args:
    mean: [d].
    log_variance: [d].
    prior_variance: the same in every coordinate, scalar.

  Returns:
    Scalar, not negative.
  """
  chex.assert_rank([mean, log_variance], 1)
  prior_variance = jnp.asarray(prior_variance, mean.dtype)
  log_ratio = log_variance - jnp.log(prior_variance)
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

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> zero, half = jnp.zeros(1), jnp.full(1, 0.5)
  >>> round(float(ops.log_product_kernel(zero, half, zero, half)), 4)
  -0.9189

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
  p: Natural, q: Natural, prior_variance: float | jax.Array
) -> jax.Array:
  """Log of int p(z) q(z) / prior(z) dz, with prior = N(0, prior_variance).

  If p and q are the posteriors of z given two observations that are
  independent given z, this is log p(a, b) - log p(a) - log p(b): by Bayes'
  rule p(a | z) = p(z | a) p(a) / p(z), so
    p(a, b) = int p(z) p(a|z) p(b|z) dz = p(a) p(b) int p(z|a) p(z|b)/p(z) dz.
  With A(xi, g) = (xi^2 / g - log g) / 2 for each coordinate, the integral is
  A(xi_p + xi_q, g_p + g_q - 1/s2) - A(xi_p, g_p) - A(xi_q, g_q) + A(0, 1/s2).
  It exists where g_p + g_q > 1/s2, which holds for true posteriors under a
  log-concave likelihood (each is at least as precise as the prior). The
  precision g_p + g_q - 1/s2 is clipped from below at 1e-3 / s2, so the result
  is finite.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> prior = ops.Natural(jnp.zeros(2), jnp.ones(2))
  >>> ops.log_evidence_ratio(prior, prior, 1.0)  # nothing observed
  Array(0., dtype=float32)

  Args:
    p: natural parameters of one posterior, fields [d].
    q: of the other, fields [d].
    prior_variance: s2, scalar.

  Returns:
    Scalar.
  """
  chex.assert_rank([*p, *q], 1)
  prior = 1 / jnp.asarray(prior_variance, p.xi.dtype)
  both = jnp.maximum(p.precision + q.precision - prior, 1e-3 * prior)

  def normalizer(xi, precision):
    return 0.5 * (xi * xi / precision - jnp.log(precision))

  terms = (
    normalizer(p.xi + q.xi, both)
    - normalizer(*p)
    - normalizer(*q)
    - 0.5 * jnp.log(prior)
  )
  return jnp.sum(terms)

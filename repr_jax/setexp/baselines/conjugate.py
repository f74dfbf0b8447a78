"""Predictive log-ratios of single features under conjugate priors.

For one feature, h(t) = log p(t | members) - log p(t): Beta-Bernoulli,
Gamma-Poisson (the predictive is negative binomial) and normal-gamma (it is
Student's t). `bayesian_sets` sums them over the features of an entity.
Priors are made on the host; all else is pure JAX.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from repr_jax.errors import InputError
from repr_jax.setexp.feature_scores import Entries

_LOCATION, _STRENGTH, _SHAPE, _RATE = 0.0, 2.0, 2.0, 1.0
_LARGE = 8.0  # Stirling's series has 7 digits from here on


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Prior:
  """A form with its prior and its transform of counts.

  Attributes:
    alpha: first parameter, of Beta or Gamma, [F].
    beta: second parameter, [F].
    shift: threshold (Bernoulli) or mean of square roots (Gaussian), [F].
    scale: deviation of square roots, [F].
    zero: transformed count of 0, [F].
    form: "bernoulli", "poisson" or "gaussian", static.
  """

  alpha: Any
  beta: Any
  shift: Any
  scale: Any
  zero: Any
  form: str = dataclasses.field(metadata={"static": True})


class Statistics(NamedTuple):
  """Weighted sums over the members of a query.

  Attributes:
    total: sum of weights, [].
    first: sum of weight * transformed count, [F].
    second: sum of weight * squared transformed count, [F].
  """

  total: Any
  first: Any
  second: Any


def make_prior(
  table: sp.csc_array, form: str, spread: float, concentration: float
) -> Prior:
  """Sets the prior from all entities; see `bayesian_sets`.

  Args:
    table: counts, [X, F].
    form: "bernoulli", "poisson" or "gaussian".
    spread: see `bayesian_sets.fit`.
    concentration: see `bayesian_sets.fit`.

  Returns:
    The prior. A mean of 0 (or, for Bernoulli, 1) is moved inwards by half a
    count among all entities, so that every logarithm exists.
  """
  if form not in ("bernoulli", "poisson", "gaussian"):
    raise InputError(
      f"no form {form!r} of Bayesian Sets: bernoulli, poisson or gaussian"
    )
  if not spread >= 0 or not concentration > 0:
    raise InputError(
      "Bayesian Sets need a spread of 0 or more and a concentration above 0, "
      f"not {spread} and {concentration}"
    )
  size, width = table.shape
  zeros, ones = np.zeros(width), np.ones(width)
  if form == "gaussian":
    # Anscombe's root; absent entries hold its value at 0.
    origin = np.sqrt(0.375)
    mean, deviation = _moments(table, np.sqrt(table.data + 0.375) - origin)
    mean, scale = mean + origin, np.where(deviation > 0, deviation, 1.0)
    return Prior(zeros, ones, mean, scale, (origin - mean) / scale, form)
  mean, deviation = _moments(table, table.data)
  if form == "poisson":
    alpha = concentration * np.maximum(mean, 0.5 / size)
    return Prior(alpha, concentration * ones, zeros, ones, zeros, form)
  threshold = mean + spread * deviation
  columns = np.repeat(np.arange(width), np.diff(table.indptr))
  share, _ = _moments(table, (table.data > threshold[columns]).astype(float))
  share = np.clip(share, 0.5 / size, 1 - 0.5 / size)
  alpha, beta = concentration * share, concentration * (1 - share)
  return Prior(alpha, beta, threshold, ones, zeros, form)


def transform(
  prior: Prior, features: jax.Array, counts: jax.Array
) -> jax.Array:
  """Counts as the form sees them.

  Args:
    prior: the form.
    features: columns, int [n].
    counts: counts of these features, [n].

  Returns:
    Transformed counts, [n].
  """
  if prior.form == "bernoulli":
    return (counts > prior.shift[features]).astype(prior.shift.dtype)
  if prior.form == "poisson":
    return counts.astype(prior.shift.dtype)
  root = jnp.sqrt(counts.astype(prior.shift.dtype) + 0.375)
  return (root - prior.shift[features]) / prior.scale[features]


def statistics(
  prior: Prior, entries: Entries, weights: jax.Array
) -> Statistics:
  """Sufficient statistics of weighted members.

  Args:
    prior: the form.
    entries: counts of the members, from `feature_scores.clean_entries`,
      fields [n].
    weights: of the members, 0 or more, [q].

  Returns:
    The statistics.
  """
  features = prior.zero.shape[0]
  inside = jnp.minimum(entries.feature, features - 1)
  own = weights.astype(prior.zero.dtype)[entries.member]
  values, zero = transform(prior, inside, entries.count), prior.zero[inside]
  none = empty_statistics(prior, jnp.sum(weights).astype(prior.zero.dtype))
  # Members without the feature have its value at zero.
  return Statistics(
    none.total,
    none.first.at[entries.feature].add(own * (values - zero), mode="drop"),
    none.second.at[entries.feature].add(
      own * (values - zero) * (values + zero), mode="drop"
    ),
  )


def empty_statistics(prior: Prior, total: jax.Array) -> Statistics:
  """Statistics of members that have no feature at all, total weight []."""
  first = total * prior.zero
  return Statistics(total, first, first * prior.zero)


def added(
  prior: Prior, members: Statistics, features: jax.Array, values: jax.Array
) -> jax.Array:
  """h_j(t) - h_j(0): parts of a log-ratio of features with these values.

  Args:
    prior: the form.
    members: statistics of the query.
    features: columns j, int [n].
    values: transformed counts t, [n].

  Returns:
    The difference for each, [n].
  """
  at_value = _log_ratio(prior, members, features, values)
  return at_value - at_zero(prior, members, features)


def at_zero(
  prior: Prior, members: Statistics, features: jax.Array
) -> jax.Array:
  """h_j(0): parts of the log-ratio of features that are absent.

  Args:
    prior: the form.
    members: statistics of the query.
    features: columns j, int [n].

  Returns:
    The part of each, [n].
  """
  return _log_ratio(prior, members, features, None)


def _log_ratio(prior, members, features, values):
  """h_j(t) of transformed counts t; None for those of 0."""
  total = members.total
  first, second = members.first[features], members.second[features]
  if prior.form == "gaussian":
    values = prior.zero[features] if values is None else values
    return _gaussian(total, first, second, values)
  alpha, beta = prior.alpha[features], prior.beta[features]
  first = jnp.maximum(first, 0)
  if prior.form == "bernoulli":
    # The sum can exceed the total by rounding alone.
    has_not = jnp.log1p(jnp.maximum(total - first, 0.0) / beta)
    ratio = has_not
    if values is not None:
      ratio = jnp.where(values > 0, jnp.log1p(first / alpha), has_not)
    return ratio - jnp.log1p(total / (alpha + beta))
  return _poisson(alpha, beta, total, first, values)


def _poisson(alpha, beta, total, first, values):
  """Ratio of negative binomials; C(x + a - 1, x) by gamma functions."""
  alpha2, beta2 = alpha + first, beta + total
  constant = alpha * jnp.log1p(1 / beta) - alpha2 * jnp.log1p(1 / beta2)
  if values is None:
    return constant
  rising = _log_rising(alpha2, values) - _log_rising(alpha, values)
  return rising + constant - values * jnp.log((1 + beta2) / (1 + beta))


def _log_rising(x, n):
  """Log of Gamma(x + n) / Gamma(x), for a large x by Stirling's series.

  The difference of two large logarithms has few digits in single precision.
  """
  large = jnp.maximum(x, _LARGE)
  rest = _series(large + n) - _series(large)
  power = (large - 0.5) * jnp.log1p(n / large) + n * jnp.log(large + n) - n
  small = jnp.minimum(x, _LARGE)
  plain = lax.lgamma(small + n) - lax.lgamma(small)
  return jnp.where(x >= _LARGE, power + rest, plain)


def _series(x):
  return 1 / (12 * x) - 1 / (360 * x * x * x)


def _gaussian(total, first, second, values):
  """Ratio of Student densities, posterior over prior."""
  mean = first / jnp.where(total > 0, total, 1)
  strength = _STRENGTH + total
  location = (_STRENGTH * _LOCATION + first) / strength
  shape = _SHAPE + total / 2
  within = jnp.maximum(second - total * mean**2, 0.0)
  between = _STRENGTH * total / strength * (mean - _LOCATION) ** 2
  rate = _RATE + (within + between) / 2
  posterior = _log_student(values, location, rate, shape, strength)
  prior = _log_student(
    values, _LOCATION, _RATE, jnp.full_like(shape, _SHAPE), _STRENGTH
  )
  return posterior - prior


def _log_student(values, location, rate, shape, strength):
  """Student's t with 2 shape degrees of freedom."""
  square = rate * (strength + 1) / (shape * strength)
  degrees = 2 * shape
  constant = _log_rising(shape, jnp.full_like(shape, 0.5))
  constant = constant - 0.5 * jnp.log(np.pi * degrees * square)
  inside = (values - location) ** 2 / (degrees * square)
  return constant - (shape + 0.5) * jnp.log1p(inside)


def _moments(
  table: sp.csc_array, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Mean and deviation of columns whose stored entries are `values`, [F]."""
  columns = np.repeat(np.arange(table.shape[1]), np.diff(table.indptr))
  size, width = table.shape
  mean = np.bincount(columns, values, width) / size
  # Two passes: squares of large counts would cancel.
  apart = np.bincount(columns, (values - mean[columns]) ** 2, width)
  absent = size - np.diff(table.indptr)
  return mean, np.sqrt((apart + absent * mean**2) / size)

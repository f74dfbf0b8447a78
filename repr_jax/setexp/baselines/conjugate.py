"""Predictive log-ratios of single features under conjugate priors.

For one feature, h(t) = log p(t | members) - log p(t): Beta-Bernoulli,
Gamma-Poisson (the predictive is negative binomial) and normal-gamma (the
predictive is Student's t). `bayesian_sets` sums them over the features of an
entity. `make_prior` runs on the host; all else is pure JAX.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from repr_jax.errors import InputError
from repr_jax.setexp.feature_scores import Entries

# Prior of the Gaussian form, whose location is 0.
_STRENGTH, _SHAPE, _RATE = 2.0, 2.0, 1.0
_RISING = math.lgamma(_SHAPE + 0.5) - math.lgamma(_SHAPE)
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
    within: sum of weight * squared distance to the members' mean, [F].
  """

  total: Any
  first: Any
  within: Any


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
  """Transforms counts for the prior's form.

  Args:
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
  # Members without the feature have the value of count 0, so only distances to
  # this value are summed. Squared distances to the mean do not cancel.
  apart = values - zero

  def add_up(parts):
    return (
      jnp.zeros_like(prior.zero).at[entries.feature].add(parts, mode="drop")
    )

  first, present = add_up(own * apart), add_up(own)
  mean = first / jnp.where(none.total > 0, none.total, 1)
  within = add_up(own * (apart - mean[inside]) ** 2)
  within += jnp.maximum(none.total - present, 0) * mean**2
  return Statistics(none.total, none.first + first, within)


def empty_statistics(prior: Prior, total: jax.Array) -> Statistics:
  """Statistics of members that have no feature at all, total weight []."""
  return Statistics(total, total * prior.zero, jnp.zeros_like(prior.zero))


def added(
  prior: Prior, members: Statistics, features: jax.Array, values: jax.Array
) -> jax.Array:
  """h_j(t) - h_j(0): parts of a log-ratio of features with these values.

  Args:
    features: columns j, int [n].
    values: transformed counts t, [n].

  Returns:
    The difference for each, [n].
  """
  alpha, beta = prior.alpha[features], prior.beta[features]
  total, first = members.total, jnp.maximum(members.first[features], 0)
  # Terms that h_j(t) and h_j(0) share are left out, not subtracted.
  if prior.form == "bernoulli":
    one = jnp.log1p(first / alpha) - _log_absent(beta, total, first)
    return jnp.where(values > 0, one, 0)
  if prior.form == "poisson":
    rising = _log_rising(alpha + first, values) - _log_rising(alpha, values)
    return rising - values * jnp.log1p(total / (1 + beta))
  zero = prior.zero[features]
  after, _ = _student(members, features)
  return _change(after, values, zero) - _change(_BEFORE, values, zero)


def at_zero(
  prior: Prior, members: Statistics, features: jax.Array
) -> jax.Array:
  """h_j(0): parts of the log-ratio of features that are absent.

  Args:
    features: columns j, int [n].

  Returns:
    The part of each, [n].
  """
  alpha, beta = prior.alpha[features], prior.beta[features]
  total, first = members.total, jnp.maximum(members.first[features], 0)
  if prior.form == "bernoulli":
    return _log_absent(beta, total, first) - jnp.log1p(total / (alpha + beta))
  if prior.form == "poisson":
    # Negative binomials.
    more = alpha * jnp.log1p(total / (beta * (1 + beta + total)))
    return more - first * jnp.log1p(1 / (beta + total))
  zero, strength = prior.zero[features], _STRENGTH + total
  after, more = _student(members, features)
  # All features share this number, so its rounding errors would add up.
  shared = _log_rising(after.shape, 0.5) - _RISING
  shared -= 0.5 * jnp.log1p(-total / (strength * (_STRENGTH + 1)))
  own = _change(after, zero, after.location) - _change(_BEFORE, zero, 0.0)
  return shared + own - 0.5 * jnp.log1p(more / _RATE)


def _log_absent(beta, total, first):
  """log1p of the weight of members without the feature, divided by beta."""
  # The sum can exceed the total by rounding alone.
  return jnp.log1p(jnp.maximum(total - first, 0.0) / beta)


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


class _Student(NamedTuple):
  """Student's t with 2 `shape` degrees of freedom."""

  location: Any
  shape: Any
  width: Any  # degrees of freedom times the squared scale


_BEFORE = _Student(0.0, _SHAPE, 2 * _RATE * (_STRENGTH + 1) / _STRENGTH)


def _student(members, features):
  """The predictive given the members, and the rate that they add."""
  total = members.total
  mean = members.first[features] / jnp.where(total > 0, total, 1)
  strength = _STRENGTH + total
  between = _STRENGTH * total / strength * mean**2
  more = (members.within[features] + between) / 2
  width = 2 * (_RATE + more) * (strength + 1) / strength
  return _Student(total / strength * mean, _SHAPE + total / 2, width), more


def _change(student, value, start):
  """Log density at a value minus that at a start, without cancellation."""
  location, shape, width = student
  more = (value - start) * ((value - location) + (start - location))
  return -(shape + 0.5) * jnp.log1p(more / (width + (start - location) ** 2))


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

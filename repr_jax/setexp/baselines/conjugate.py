"""Predictive log-ratios of single features under conjugate priors.

For one feature, h(t) = log p(t | members) - log p(t): Beta-Bernoulli,
Gamma-Poisson (the predictive is negative binomial) and normal-gamma (it is
Student's t). `bayesian_sets` sums them over the features of an entity. Only
features that some member has are listed in `Statistics`: of the others all
members have the count 0, and their statistics follow from the total weight.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy import special

from repr_jax.errors import InputError

_LOCATION, _STRENGTH, _SHAPE, _RATE = 0.0, 2.0, 2.0, 1.0


class Prior(NamedTuple):
  """A form with its prior and its transform of counts.

  Attributes:
    form: "bernoulli", "poisson" or "gaussian".
    alpha: first parameter, of Beta or Gamma, [F].
    beta: second parameter, [F].
    shift: threshold (Bernoulli) or mean of square roots (Gaussian), [F].
    scale: deviation of square roots, [F].
    zero: what a count of 0 is transformed to, [F].
  """

  form: str
  alpha: np.ndarray
  beta: np.ndarray
  shift: np.ndarray
  scale: np.ndarray
  zero: np.ndarray


class Statistics(NamedTuple):
  """Weighted sums over the members of a query.

  Attributes:
    total: sum of weights.
    features: features that a member has, sorted, int [t].
    first: sum of weight * transformed count, [t].
    second: sum of weight * squared transformed count, [t].
  """

  total: float
  features: np.ndarray
  first: np.ndarray
  second: np.ndarray


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
    # Anscombe's root; its value at 0 is what absent entries hold.
    origin = np.sqrt(0.375)
    mean, deviation = _moments(table, np.sqrt(table.data + 0.375) - origin)
    mean, scale = mean + origin, np.where(deviation > 0, deviation, 1.0)
    return Prior(form, zeros, ones, mean, scale, (origin - mean) / scale)
  mean, deviation = _moments(table, table.data)
  if form == "poisson":
    alpha = concentration * np.maximum(mean, 0.5 / size)
    return Prior(form, alpha, concentration * ones, zeros, ones, zeros)
  threshold = mean + spread * deviation
  columns = np.repeat(np.arange(width), np.diff(table.indptr))
  share, _ = _moments(table, (table.data > threshold[columns]).astype(float))
  share = np.clip(share, 0.5 / size, 1 - 0.5 / size)
  alpha, beta = concentration * share, concentration * (1 - share)
  return Prior(form, alpha, beta, threshold, ones, zeros)


def transform(
  prior: Prior, features: np.ndarray, counts: np.ndarray
) -> np.ndarray:
  """Counts as the form sees them.

  Args:
    prior: the form.
    features: columns, int [n].
    counts: counts of these features, [n].

  Returns:
    Transformed counts, float64 [n].
  """
  if prior.form == "bernoulli":
    return (counts > prior.shift[features]).astype(np.float64)
  if prior.form == "poisson":
    return np.asarray(counts, np.float64)
  return (np.sqrt(counts + 0.375) - prior.shift[features]) / prior.scale[
    features
  ]


def statistics(
  prior: Prior, rows: sp.csr_array, weights: np.ndarray
) -> Statistics:
  """Sufficient statistics of weighted members.

  Args:
    prior: the form.
    rows: counts of the members, [q, F].
    weights: positive weights, [q].

  Returns:
    The statistics.
  """
  features, where = np.unique(rows.indices, return_inverse=True)
  member = np.repeat(np.arange(len(weights)), np.diff(rows.indptr))
  values = transform(prior, rows.indices, rows.data)
  total = float(weights.sum())
  zero, size = prior.zero[features], len(features)
  # Members without the feature have its value at zero.
  absent = total - np.bincount(where, weights[member], size)
  first = np.bincount(where, weights[member] * values, size)
  second = np.bincount(where, weights[member] * values**2, size)
  first, second = first + absent * zero, second + absent * zero**2
  return Statistics(total, features, first, second)


def empty_statistics(total: float) -> Statistics:
  """Statistics of members that have no feature at all."""
  return Statistics(total, np.zeros(0, int), np.zeros(0), np.zeros(0))


def added(
  prior: Prior,
  members: Statistics,
  features: np.ndarray,
  values: np.ndarray,
) -> np.ndarray:
  """h_j(t) - h_j(0): what features with these values add to a log-ratio.

  Args:
    prior: the form.
    members: statistics of the query.
    features: columns j, int [n].
    values: transformed counts t, [n].

  Returns:
    The difference for each, float64 [n].
  """
  at_value = _log_ratio(prior, members, features, values)
  return at_value - _log_ratio(prior, members, features, prior.zero[features])


def at_zero(
  prior: Prior, members: Statistics, features: np.ndarray | None = None
) -> np.ndarray:
  """h_j(0): what features contribute to the log-ratio where they are absent.

  Args:
    prior: the form.
    members: statistics of the query.
    features: columns j, int [n]; all by default.

  Returns:
    The contribution of each, float64 [n].
  """
  if features is None:
    features = np.arange(len(prior.zero))
  return _log_ratio(prior, members, features, prior.zero[features])


def _log_ratio(
  prior: Prior, members: Statistics, features: np.ndarray, values: np.ndarray
) -> np.ndarray:
  total = members.total
  first = total * prior.zero[features]
  second = first * prior.zero[features]
  if members.features.size:
    where = np.searchsorted(members.features, features)
    where = np.minimum(where, members.features.size - 1)
    own = members.features[where] == features
    first = np.where(own, members.first[where], first)
    second = np.where(own, members.second[where], second)
  if prior.form == "gaussian":
    return _gaussian(total, first, second, values)
  alpha, beta = prior.alpha[features], prior.beta[features]
  if prior.form == "bernoulli":
    has = np.log1p(first / alpha)
    # The sum can exceed the total by rounding alone.
    has_not = np.log1p(np.maximum(total - first, 0.0) / beta)
    return np.where(values > 0, has, has_not) - np.log1p(total / (alpha + beta))
  return _poisson(alpha, beta, total, first, values)


def _poisson(alpha, beta, total, first, values):
  """Ratio of negative binomials; C(x + a - 1, x) by gamma functions."""
  alpha2, beta2 = alpha + first, beta + total
  rising = special.gammaln(values + alpha2) - special.gammaln(alpha2)
  rising -= special.gammaln(values + alpha) - special.gammaln(alpha)
  constant = alpha * np.log1p(1 / beta) - alpha2 * np.log1p(1 / beta2)
  return rising + constant - values * np.log((1 + beta2) / (1 + beta))


def _gaussian(total, first, second, values):
  """Ratio of Student densities, posterior over prior."""
  mean = first / total
  strength = _STRENGTH + total
  location = (_STRENGTH * _LOCATION + first) / strength
  shape = _SHAPE + total / 2
  within = np.maximum(second - total * mean**2, 0.0)
  between = _STRENGTH * total / strength * (mean - _LOCATION) ** 2
  rate = _RATE + (within + between) / 2
  posterior = _log_student(values, location, rate, shape, strength)
  return posterior - _log_student(values, _LOCATION, _RATE, _SHAPE, _STRENGTH)


def _log_student(values, location, rate, shape, strength):
  """Student's t with 2 shape degrees of freedom."""
  square = rate * (strength + 1) / (shape * strength)
  degrees = 2 * shape
  constant = special.gammaln(shape + 0.5) - special.gammaln(shape)
  constant = constant - 0.5 * np.log(np.pi * degrees * square)
  inside = (values - location) ** 2 / (degrees * square)
  return constant - (shape + 0.5) * np.log1p(inside)


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

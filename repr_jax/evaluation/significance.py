"""Whether a difference between two systems is real (thesis 3.4.1).

MRDS is the minimum required difference for significance. It depends on a test
set and on a correlation r between systems: systems that correlate by r and
differ by more than MRDS differ significantly, whatever their figures. A
smaller difference can be significant too, mostly if the systems correlate by
more than r. `williams_test` tests one pair of systems.
Correlations and accuracies are fractions here; tables show them times 100.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

_SIGMA_STEP = 1e-3
_CORRELATION_STEP = 1e-2
_THETA_STEP = 1e-2
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
# Accuracies are reported to 0.01%; smaller differences count as equal.
_RESOLUTION = 1e-4


class Difference(NamedTuple):
  """A paired comparison of two systems over the same queries.

  Attributes:
    value: mean of b minus mean of a.
    lower: lower end of the confidence interval, NaN where there is none.
    upper: upper end of the confidence interval, NaN where there is none.
    p_value: two-sided, under the hypothesis of no difference; NaN where there
      are too few queries to tell.
  """

  value: float
  lower: float
  upper: float
  p_value: float


def williams_test(
  r_at: float, r_bt: float, r_ab: float, n: int, *, lost: int = 2
) -> tuple[float, float]:
  """Steiger's test (Williams' t) of two correlations that share a variable.

  Args:
    r_at: correlation of system a with the truth.
    r_bt: correlation of system b with the truth.
    r_ab: correlation between the systems.
    n: number of items, more than 3.
    lost: degrees of freedom are n - lost; 2 gives the thesis' thresholds,
      3 is Williams' own choice.

  Returns:
    t, positive if b is better, and its one-tailed p. Equally good systems
    give 0 and 1/2. Both are NaN if no three variables can have these
    correlations.
  """
  if n <= 3:
    raise ValueError(f"the test needs more than 3 items, not {n}")
  t = _williams_t(np.float64(r_at), np.float64(r_bt), np.float64(r_ab), n)
  return float(t), float(special.stdtr(n - lost, -t))


def williams_pairs(
  r_at: float, r_bt: float, r_ab: float, *, p0: float = 0.05, power: float = 0.8
) -> float:
  """Number of items for which Williams' test finds a gain.

  This is the smallest n with t(n) >= z_(1 - p0) + z_power. t(n) is the
  statistic of these correlations; z are quantiles of the normal distribution.

  Args:
    r_at: correlation of system a with the truth.
    r_bt: correlation of system b with the truth.
    r_ab: correlation between the systems.
    p0: threshold of the one-tailed p.
    power: chance of p < p0 on another set of n items.

  Returns:
    n, at least 4; infinite if b is no better than a, or if more than a
    billion are needed; NaN if no three variables can have these correlations.
  """
  if not (0 < p0 < power < 1):
    raise ValueError(f"needs 0 < p0 < power < 1: {p0}, {power}")
  wanted = special.ndtri(1 - p0) + special.ndtri(power)

  def t(n: int) -> float:
    return float(_williams_t(np.float64(r_at), np.float64(r_bt), r_ab, n))

  low, high = 3, 10**9
  if math.isnan(t(high)):
    return math.nan
  if t(high) < wanted:
    return math.inf
  while high - low > 1:
    middle = (low + high) // 2
    low, high = (low, middle) if t(middle) >= wanted else (middle, high)
  return float(high)


def _williams_t(r_at: Any, r_bt: Any, r_ab: float, n: int) -> Any:
  """Williams' t of broadcast correlations; NaN where they are impossible."""
  determinant = 1 - r_at**2 - r_bt**2 - r_ab**2 + 2 * r_at * r_bt * r_ab
  spread = (
    2 * (n - 1) / (n - 3) * determinant
    + ((r_at + r_bt) / 2) ** 2 * (1 - r_ab) ** 3
  )
  with np.errstate(invalid="ignore", divide="ignore"):
    t = (r_bt - r_at) * np.sqrt((n - 1) * (1 + r_ab) / spread)
  # Equal systems: the spread is 0, or negative by rounding.
  return np.where((r_at == r_bt) & (determinant > -1e-12), 0.0, t)


def spearman_interval(
  value: float, n: int, level: float = 0.95
) -> tuple[float, float]:
  """Interval of a rank correlation: Fisher's z, spread of Bonett and Wright.

  Args:
    value: the correlation, in [-1, 1].
    n: number of items, more than 3.
    level: of the interval.

  Returns:
    Its two ends: tanh(atanh(r) -+ q sqrt((1 + r^2 / 2) / (n - 3))).
  """
  if n <= 3:
    raise ValueError(f"an interval needs more than 3 items, not {n}")
  if abs(value) > 1 + 1e-9:
    raise ValueError(f"a correlation is from -1 to 1, not {value}")
  # At 1 and -1 the transform is infinite and the interval a point.
  inner = np.clip(value, -1 + 1e-15, 1 - 1e-15)
  quantile = special.ndtri((1 + level) / 2)
  spread = quantile * np.sqrt((1 + value**2 / 2) / (n - 3))
  lower, upper = np.tanh(np.arctanh(inner) + np.array([-spread, spread]))
  return float(lower), float(upper)


@functools.lru_cache(maxsize=1024)
def mrds_correlation(n: int, p0: float = 0.05, r: float = 0.9) -> float:
  """MRDS of a similarity set, sigma_{p0}^r of the thesis' list of test sets.

  The largest difference, on a grid of 0.001, for which some correlation of
  the weaker system (0, 0.01, ... below 1 - difference) still has p > p0 when
  the systems correlate by r.

  Args:
    n: pairs in the set, more than 3.
    p0: threshold of the one-tailed p.
    r: correlation between the systems, -1 < r < 1.

  Returns:
    The difference, as a fraction.
  """
  if n <= 3:
    raise ValueError(f"MRDS needs more than 3 pairs, not {n}")
  if not (0 < p0 < 1 and -1 < r < 1):
    raise ValueError(f"p0 must be in (0, 1) and r in (-1, 1): {p0}, {r}")
  steps = np.arange(1, round(1 / _SIGMA_STEP))
  sigma = (steps * _SIGMA_STEP)[:, None]
  weaker = (np.arange(round(1 / _CORRELATION_STEP)) * _CORRELATION_STEP)[None]
  t = _williams_t(weaker, weaker + sigma, r, n)
  # A NaN (impossible correlations) compares false: it is not p > p0.
  possible = (weaker < 1 - sigma - 1e-9) & (special.stdtr(n - 2, -t) > p0)
  able = np.flatnonzero(possible.any(axis=1))
  return float(sigma[able[-1], 0]) if able.size else 0.0


def beta_inferiority(
  correct_a: np.ndarray | float,
  correct_b: np.ndarray | float,
  n: int,
  *,
  prior: float = 1.0,
  margin: float = 0.0,
) -> np.ndarray:
  """Posterior P(theta_b <= theta_a + margin) under Beta(prior, prior) priors.

  The integral of a's density times b's distribution function, by
  Gauss-Legendre quadrature where a's density is not negligible.

  Args:
    correct_a: right answers of a, any shape, need not be whole; broadcast with
      `correct_b`.
    correct_b: right answers of b.
    n: questions.
    prior: both parameters of the prior; 1 is flat.
    margin: by how much b must be better to count as better.

  Returns:
    Probabilities of the broadcast shape.
  """
  a, b = np.broadcast_arrays(
    np.asarray(correct_a, float), np.asarray(correct_b, float)
  )
  if (a < 0).any() or (b < 0).any() or (a > n).any() or (b > n).any():
    raise ValueError(f"right answers must be between 0 and {n}")
  a1, a0 = a + prior, n - a + prior
  b1, b0 = b + prior, n - b + prior
  # Quantiles, since a tail can be exponential (a full or an empty score).
  low = special.betaincinv(a1, a0, 1e-14)[..., None]
  high = special.betainccinv(a1, a0, 1e-14)[..., None]
  x = low + (high - low) * (_NODES + 1) / 2
  log_density = special.xlogy(a1[..., None] - 1, x) + special.xlog1py(
    a0[..., None] - 1, -x
  )
  peak = log_density.max(axis=-1, keepdims=True)
  mass = np.exp(log_density - peak) * _WEIGHTS
  below = special.betainc(
    b1[..., None], b0[..., None], np.minimum(x + margin, 1)
  )
  return (mass * below).sum(-1) / mass.sum(-1)


@functools.lru_cache(maxsize=1024)
def mrds_accuracy(
  n: int, p0: float = 0.05, *, theta: str = "favorable", prior: float = 1.0
) -> float:
  """MRDS of an accuracy set, sigma_{p0} of the thesis' list of test sets.

  The smallest difference sigma with P(theta_b <= theta_a) < p0 after
  observing accuracies theta and theta + sigma on n questions.

  Args:
    n: questions.
    p0: threshold of the posterior probability.
    theta: the weaker accuracy. "favorable", which gives the published
      figures: some theta of 0.75, 0.76, ... 0.9 is enough, right answers are
      whole numbers, accuracies that agree to 0.01% count as equal, and sigma
      is on a grid of 0.001%. "worst", the definition that the thesis states:
      every theta in steps of 0.01 up to min(1 - sigma, 0.9), exactly.
    prior: both parameters of the Beta prior.

  Returns:
    The difference, as a fraction; 1.0 if none is enough.
  """
  if theta not in ("favorable", "worst"):
    raise ValueError(f'theta must be "favorable" or "worst", not {theta!r}')
  if n < 1 or not 0 < p0 < 1:
    raise ValueError(f"needs questions and p0 in (0, 1): {n}, {p0}")
  if theta == "favorable":
    return _favorable_sigma(n, p0, prior)
  return _worst_sigma(n, p0, prior)


def _favorable_sigma(n: int, p0: float, prior: float) -> float:
  theta = np.arange(75, 91) / 100
  weaker = np.floor(n * theta + 0.5 + 1e-9)
  # Smallest whole number of right answers of b that is enough, for each
  # theta at once; n + 1 where none is.
  low, high = weaker.copy(), np.full_like(weaker, n + 1)
  while (high - low > 1).any():
    middle = np.floor((low + high) / 2)
    p = beta_inferiority(weaker, middle, n, prior=prior, margin=_RESOLUTION / 2)
    low, high = np.where(p < p0, low, middle), np.where(p < p0, middle, high)
  sigma = (high - 0.5) / n - theta
  sigma = np.ceil(sigma[high <= n] * 1e5 - 1e-6) / 1e5
  if sigma.size:
    return float(sigma.min())
  # Few questions: only a full score of b is far enough from a.
  below = np.arange(n)
  p = beta_inferiority(below, n, n, prior=prior, margin=_RESOLUTION / 2)
  enough = np.flatnonzero(p < p0)
  return float(1 - enough[-1] / n) if enough.size else 1.0


def _worst_sigma(n: int, p0: float, prior: float) -> float:
  def enough(sigma: float) -> bool:
    top = min(1 - sigma, 0.9)
    weaker = np.append(np.arange(0, top, _THETA_STEP), top)
    stronger = np.minimum(weaker + sigma, 1)
    p = beta_inferiority(n * weaker, n * stronger, n, prior=prior)
    return bool(p.max() < p0)

  if not enough(1.0):
    return 1.0
  low, high = 0.0, 1.0
  while high - low > 1e-6:
    middle = (low + high) / 2
    low, high = (low, middle) if enough(middle) else (middle, high)
  return high


def paired_bootstrap(
  a: np.ndarray,
  b: np.ndarray,
  rng: np.random.Generator,
  *,
  samples: int = 10_000,
  level: float = 0.95,
) -> Difference:
  """Bootstrap over queries of the difference of two means.

  Args:
    a: a figure of system a for each query, [n].
    b: figures of system b for the same queries, [n].
    rng: source of the resamples.
    samples: how many resamples.
    level: of the percentile interval.

  Returns:
    The difference with its interval. p is twice the smaller share of
    resamples on one side of zero; those at zero count on both sides. With a
    single query the interval is a point and p is NaN.
  """
  differences = _paired(a, b)
  means = np.concatenate(
    [
      rng.choice(differences, (size, differences.size)).mean(axis=1)
      for size in _chunks(samples, differences.size)
    ]
  )
  tail = (1 - level) / 2
  lower, upper = np.quantile(means, [tail, 1 - tail])
  side = min((means <= 0).sum(), (means >= 0).sum())
  p_value = min(1.0, 2 * (side + 1) / (samples + 1))
  if differences.size < 2:
    p_value = float("nan")
  return Difference(
    float(differences.mean()), float(lower), float(upper), float(p_value)
  )


def paired_permutation(
  a: np.ndarray,
  b: np.ndarray,
  rng: np.random.Generator,
  *,
  samples: int = 10_000,
) -> Difference:
  """Permutation test: swaps the systems' figures at random for each query.

  Exact, over all sign patterns, if there are at most `samples` of them.

  Args:
    a: a figure of system a for each query, [n].
    b: figures of system b for the same queries, [n].
    rng: source of the permutations.
    samples: how many to draw.

  Returns:
    The difference and its two-sided p; no interval.
  """
  differences = _paired(a, b)
  n = differences.size
  observed = abs(differences.mean())
  tolerance = 1e-12 * max(1.0, float(np.abs(differences).max()))
  if 2**n <= samples:
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    p_value = (np.abs(signs @ differences / n) >= observed - tolerance).mean()
  else:
    extreme = 0
    for size in _chunks(samples, n):
      signs = rng.integers(0, 2, (size, n)) * 2.0 - 1.0
      extreme += (np.abs(signs @ differences / n) >= observed - tolerance).sum()
    p_value = (extreme + 1) / (samples + 1)
  return Difference(
    float(differences.mean()), float("nan"), float("nan"), float(p_value)
  )


def _paired(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  a, b = np.asarray(a, float), np.asarray(b, float)
  if a.ndim != 1 or a.shape != b.shape or not a.size:
    raise ValueError(
      f"two rows of equal length are needed, not {a.shape} and {b.shape}"
    )
  if not (np.isfinite(a).all() and np.isfinite(b).all()):
    raise ValueError("a figure is not finite")
  return b - a


def _chunks(samples: int, n: int) -> list[int]:
  """Sizes of batches of resamples that hold at most 4M numbers each."""
  size = max(1, min(samples, (1 << 22) // n))
  whole, rest = divmod(samples, size)
  return [size] * whole + ([rest] if rest else [])

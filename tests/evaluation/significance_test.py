"""MRDS against the published figures; tests of pairs against references."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from repr_jax.evaluation import significance

# The thesis' list of test sets: p0 = .01 at r = .5 .7 .9, then p0 = .05.
_PUBLISHED = {
  3000: (4.2, 3.2, 1.8, 3.0, 2.3, 1.3),
  2034: (5.1, 3.9, 2.3, 3.6, 2.8, 1.6),
  2003: (5.1, 4.0, 2.3, 3.6, 2.8, 1.6),
  999: (7.3, 5.7, 3.2, 5.2, 4.0, 2.3),
  353: (12.3, 9.5, 5.5, 8.7, 6.7, 3.9),
  287: (13.7, 10.6, 6.1, 9.7, 7.5, 4.3),
  252: (14.6, 11.3, 6.5, 10.3, 8.0, 4.6),
  203: (16.2, 12.6, 7.3, 11.5, 8.9, 5.1),
  65: (28.6, 22.3, 12.9, 20.6, 16.0, 9.2),
  30: (41.7, 32.7, 19.0, 30.6, 23.9, 13.8),
}


def _half_up(value, digits):
  return math.floor(value * 10**digits + 0.5 + 1e-9) / 10**digits


@pytest.mark.parametrize("n", _PUBLISHED)
def test_all_published_correlation_thresholds(n):
  columns = itertools.product((0.01, 0.05), (0.5, 0.7, 0.9))
  got = [100 * significance.mrds_correlation(n, p, r) for p, r in columns]
  np.testing.assert_allclose(got, _PUBLISHED[n], atol=1e-9)


@pytest.mark.parametrize(
  "n, p0, published",
  [
    (10675, 0.01, 0.95),
    (10675, 0.05, 0.68),
    (8869, 0.01, 1.03),
    (8869, 0.05, 0.74),
    (80, 0.01, 8.13),
    (80, 0.05, 6.63),
  ],
)
def test_all_published_accuracy_thresholds(n, p0, published):
  assert _half_up(100 * significance.mrds_accuracy(n, p0), 2) == published


def test_published_effect_of_the_prior():
  # A footnote: Beta(.5, .5) gives 6.38 for TOEFL and changes nothing else.
  mrds = significance.mrds_accuracy
  assert _half_up(100 * mrds(80, 0.05, prior=0.5), 2) == 6.38
  for n in (8869, 10675):
    assert mrds(n, 0.05, prior=0.5) == mrds(n, 0.05)


@pytest.mark.parametrize("p0", [0.01, 0.05])
@pytest.mark.parametrize("n", [40, 80, 2000])
def test_worst_theta_definition_holds(n, p0):
  sigma = significance.mrds_accuracy(n, p0, theta="worst")
  assert sigma > significance.mrds_accuracy(n, p0)
  theta = np.linspace(0, min(1 - sigma, 0.9), 1000)

  def worst(sigma):
    return significance.beta_inferiority(
      n * theta, np.minimum(n * (theta + sigma), n), n
    ).max()

  assert worst(sigma) < p0 * 1.001
  assert worst(sigma - 1e-3) > p0


def test_too_few_questions_need_everything():
  assert significance.mrds_accuracy(1, 0.01) == 1.0
  assert significance.mrds_accuracy(1, 0.01, theta="worst") == 1.0
  assert significance.mrds_accuracy(10, 0.05) < 1.0


@pytest.mark.parametrize(
  "a, b, n", [(0, 0, 3), (40, 47, 80), (72, 79, 80), (0, 500, 500), (9, 9, 9)]
)
def test_posterior_against_closed_form_and_quadrature(a, b, n):
  got = float(significance.beta_inferiority(a, b, n))
  # P(theta_a > theta_b) for whole parameters: a finite sum over a's answers.
  i = np.arange(a + 1)
  terms = (
    special.betaln(b + 1 + i, (n - b + 1) + (n - a + 1))
    - np.log(n - a + 1 + i)
    - special.betaln(1 + i, n - a + 1)
    - special.betaln(b + 1, n - b + 1)
  )
  assert got == pytest.approx(np.exp(terms).sum(), rel=1e-7, abs=1e-12)
  first, second = stats.beta(a + 1, n - a + 1), stats.beta(b + 1, n - b + 1)
  numeric, _ = integrate.quad(
    lambda x: first.pdf(x) * second.cdf(x), 0, 1, limit=500, points=[b / n]
  )
  assert got == pytest.approx(numeric, abs=1e-6)


def test_posterior_against_simulation():
  rng = np.random.default_rng(0)
  theta_a = rng.beta(61, 21, 400_000)
  theta_b = rng.beta(66, 16, 400_000)
  for margin in (0.0, 0.05):
    got = float(significance.beta_inferiority(60, 65, 80, margin=margin))
    assert got == pytest.approx((theta_b <= theta_a + margin).mean(), abs=4e-3)


def test_posterior_is_complementary():
  a, b = np.array([0, 3, 50, 77]), np.array([10, 3, 41, 80])
  one = significance.beta_inferiority(a, b, 80)
  other = significance.beta_inferiority(b, a, 80)
  np.testing.assert_allclose(one + other, 1, atol=1e-9)


def test_williams_by_hand():
  # |R| = 1 - .16 - .25 - .36 + 2 * .4 * .5 * .6 = .47, mean r = .45,
  # t = .1 * sqrt(102 * 1.6 / (2 * 102 / 100 * .47 + .2025 * .064)).
  t, p = significance.williams_test(0.4, 0.5, 0.6, 103, lost=3)
  assert t == pytest.approx(
    0.1 * math.sqrt(163.2 / (0.9588 + 0.01296)), rel=1e-12
  )
  assert p == pytest.approx(stats.t.sf(t, 100), rel=1e-12)
  swapped, q = significance.williams_test(0.5, 0.4, 0.6, 103, lost=3)
  assert swapped == pytest.approx(-t) and q == pytest.approx(1 - p)


def test_williams_holds_its_level():
  rng = np.random.default_rng(1)
  covariance = np.array([[1, 0.7, 0.5], [0.7, 1, 0.5], [0.5, 0.5, 1]])
  draws = rng.multivariate_normal(np.zeros(3), covariance, (2000, 80))
  rejected = 0
  for sample in draws:
    r = np.corrcoef(sample.T)
    rejected += (
      significance.williams_test(r[0, 2], r[1, 2], r[0, 1], 80)[1] < 0.05
    )
  assert 0.03 < rejected / 2000 < 0.07


def test_a_set_of_the_needed_size_sees_the_gain():
  n = significance.williams_pairs(0.5, 0.6, 0.7)
  rng = np.random.default_rng(2)
  covariance = np.array([[1, 0.7, 0.5], [0.7, 1, 0.6], [0.5, 0.6, 1]])
  draws = rng.multivariate_normal(np.zeros(3), covariance, (2000, int(n)))
  seen = 0
  for sample in draws:
    r = np.corrcoef(sample.T)
    p = significance.williams_test(r[0, 2], r[1, 2], r[0, 1], int(n))[1]
    seen += p < 0.05
  assert 0.77 < seen / 2000 < 0.83


def test_needed_sizes_grow_as_gains_shrink():
  pairs = significance.williams_pairs
  sizes = [pairs(0.5, 0.5 + gain, 0.9) for gain in (0.1, 0.05, 0.02)]
  assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
  assert pairs(0.5, 0.55, 0.9, power=0.95) > sizes[1]
  assert pairs(0.5, 0.55, 0.9, p0=0.01) > sizes[1]
  assert pairs(0.5, 0.5, 0.9) == math.inf == pairs(0.6, 0.5, 0.9)


def test_impossible_correlations_are_nan():
  t, p = significance.williams_test(0.0, 0.99, 0.99, 100)
  assert math.isnan(t) and math.isnan(p)
  assert math.isnan(significance.williams_pairs(0.0, 0.99, 0.99))


def test_permutation_exact_and_sampled():
  rng = np.random.default_rng(2)
  a = rng.random(10)
  b = a + rng.normal(0.05, 0.1, 10)
  exact = significance.paired_permutation(a, b, rng)
  reference = stats.permutation_test(
    (b - a,), np.mean, permutation_type="samples", n_resamples=np.inf
  )
  assert exact.p_value == pytest.approx(reference.pvalue)
  sampled = significance.paired_permutation(a, b, rng, samples=1000)
  assert sampled.p_value == pytest.approx(exact.p_value, abs=0.06)
  assert exact.value == pytest.approx((b - a).mean())


def test_bootstrap_interval_against_scipy():
  rng = np.random.default_rng(3)
  a = rng.random(200)
  b = a + rng.normal(0.02, 0.1, 200)
  got = significance.paired_bootstrap(a, b, rng, samples=20_000)
  interval = stats.bootstrap(
    (b - a,), np.mean, method="percentile", rng=0, n_resamples=20_000
  ).confidence_interval
  assert got.lower == pytest.approx(interval.low, abs=1e-3)
  assert got.upper == pytest.approx(interval.high, abs=1e-3)
  assert (got.p_value < 0.05) == (got.lower > 0)


def test_one_query_has_no_p():
  rng = np.random.default_rng(0)
  one = significance.paired_bootstrap(np.zeros(1), np.ones(1), rng)
  assert one.value == 1 and np.isnan(one.p_value)
  two = significance.paired_bootstrap(np.zeros(2), np.ones(2), rng)
  assert two.p_value < 1


def test_no_difference_is_not_significant():
  rng = np.random.default_rng(4)
  a = rng.random(50)
  assert significance.paired_bootstrap(a, a, rng).p_value == 1.0
  assert significance.paired_permutation(a, a, rng).p_value == 1.0


@pytest.mark.parametrize(
  "call",
  [
    lambda: significance.mrds_correlation(3),
    lambda: significance.mrds_correlation(30, 0.0),
    lambda: significance.mrds_correlation(30, 0.05, 1.0),
    lambda: significance.mrds_accuracy(0),
    lambda: significance.mrds_accuracy(9, theta="best"),
    lambda: significance.beta_inferiority(5, 11, 10),
    lambda: significance.williams_test(0.1, 0.2, 0.3, 3),
    lambda: significance.williams_pairs(0.1, 0.2, 0.3, p0=0.9),
    lambda: significance.paired_bootstrap(
      np.ones(3), np.ones(4), np.random.default_rng(0)
    ),
    lambda: significance.paired_permutation(
      np.ones(2), np.array([1, np.nan]), np.random.default_rng(0)
    ),
  ],
)
def test_bad_arguments_are_refused(call):
  with pytest.raises(ValueError, match=r"\d|finite|theta"):
    call()


@pytest.mark.parametrize("rho", [0.0, 0.6, -0.8])
def test_intervals_of_rank_correlations_cover(rho):
  rng = np.random.default_rng(3)
  n, runs = 200, 400
  latent = rng.standard_normal((runs, 2, n))
  latent[:, 1] = rho * latent[:, 0] + np.sqrt(1 - rho**2) * latent[:, 1]
  truth = 6 / np.pi * np.arcsin(rho / 2)  # of bivariate normals
  found = [stats.spearmanr(x, y).statistic for x, y in latent]
  ends = [significance.spearman_interval(r, n) for r in found]
  share = np.mean([lower <= truth <= upper for lower, upper in ends])
  assert 0.91 < share < 0.985
  # The other sign mirrors it, more items narrow it, 1 stays a correlation.
  lower, upper = significance.spearman_interval(0.3, 50)
  assert significance.spearman_interval(-0.3, 50) == (-upper, -lower)
  narrow = significance.spearman_interval(0.3, 500)
  assert lower < narrow[0] < 0.3 < narrow[1] < upper
  assert significance.spearman_interval(1.0, 10)[1] <= 1
  with pytest.raises(ValueError, match="3 items"):
    significance.spearman_interval(0.5, 3)

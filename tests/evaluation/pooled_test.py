"""The gain over several sets at once, with its interval."""

import numpy as np
import pytest
from scipy import stats

from repr_jax.evaluation import pooled

_COVARIANCE = [[1, 0.7, 0.6], [0.7, 1, 0.5], [0.6, 0.5, 1]]  # b, a, truth


def _drawn(rng, n, first=0):
  b, a, truth = rng.multivariate_normal(np.zeros(3), _COVARIANCE, n).T
  return pooled.ScoredSet(range(first, first + n), truth, a, b)


def test_the_gain_is_the_mean_of_differences():
  rng = np.random.default_rng(0)
  sets = [_drawn(rng, 40), _drawn(rng, 25, 40)]
  sets[0] = sets[0]._replace(truth=np.round(sets[0].truth))  # ties
  expected = np.mean([
    stats.spearmanr(s.b, s.truth)[0] - stats.spearmanr(s.a, s.truth)[0]
    for s in sets
  ])  # fmt: skip
  got = pooled.pooled_gain(sets, rng, samples=50)
  assert got.value == pytest.approx(expected)
  assert got.lower < got.value < got.upper


def test_a_resample_equals_a_set_with_repeated_items():
  rng = np.random.default_rng(1)
  one = _drawn(rng, 30)
  counts = rng.multinomial(30, np.full(30, 1 / 30))
  twice = np.repeat(np.arange(30), counts)
  expected = (
    stats.spearmanr(one.b[twice], one.truth[twice])[0]
    - stats.spearmanr(one.a[twice], one.truth[twice])[0]
  )
  got = pooled._mean_gain([one], [np.arange(30)], counts[None].astype(float))
  assert got[0] == pytest.approx(expected)


def test_the_interval_covers_the_true_gain():
  rng = np.random.default_rng(2)
  normal = np.array([0.6, 0.5])
  true = np.subtract(*(6 / np.pi * np.arcsin(normal / 2)))
  covered = seen = 0
  for _ in range(300):
    sets = [_drawn(rng, 60), _drawn(rng, 40, 60)]
    got = pooled.pooled_gain(sets, rng, samples=300)
    covered += got.lower <= true <= got.upper
    seen += got.p_value < 0.05
  assert 0.91 < covered / 300 < 0.98
  assert 0.2 < seen / 300 < 0.8


def test_constant_scores_have_no_correlation():
  rng = np.random.default_rng(5)
  one = _drawn(rng, 40)._replace(a=np.ones(40))
  got = pooled.pooled_gain([one], rng, samples=50)
  assert got.value == pytest.approx(stats.spearmanr(one.b, one.truth)[0])
  assert got.lower < got.value < got.upper
  same = pooled.pooled_gain([one._replace(b=one.a)], rng, samples=50)
  assert same == (0, 0, 0, 1)


def test_a_copy_of_a_set_adds_no_evidence():
  rng = np.random.default_rng(3)
  one = _drawn(rng, 60)

  def width(sets):
    got = pooled.pooled_gain(sets, np.random.default_rng(4), samples=2000)
    return got.upper - got.lower

  alone = width([one])
  assert width([one, one]) == pytest.approx(alone, rel=1e-9)
  other = one._replace(items=range(60, 120))
  assert width([one, other]) < 0.8 * alone


@pytest.mark.parametrize("change", [
  {"b": np.array([1.0, np.nan, 2.0])}, {"b": np.ones(2)}, {"items": "a"},
])  # fmt: skip
def test_bad_sets_are_refused(change):
  one = pooled.ScoredSet("abc", np.arange(3.0), np.arange(3.0), np.arange(3.0))
  with pytest.raises(ValueError, match=r"finite|2 items"):
    pooled.pooled_gain([one._replace(**change)], np.random.default_rng(0))
  with pytest.raises(ValueError, match="not 0"):
    pooled.pooled_gain([], np.random.default_rng(0))

"""Similarity and choice figures against scipy, gensim and hand cases."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from repr_jax import errors
from repr_jax.data import testsets
from repr_jax.evaluation import similarity


def _set(pairs, scores, name="S"):
  return testsets.SimilaritySet(name, pairs, np.array(scores, float))


@settings(max_examples=60, deadline=None)
@given(
  n=st.integers(3, 60), levels=st.integers(2, 50), seed=st.integers(0, 2**16)
)
def test_spearman_equals_scipy(n, levels, seed):
  rng = np.random.default_rng(seed)
  x, y = rng.integers(0, levels, (2, n))
  if np.ptp(x) and np.ptp(y):
    expected = stats.spearmanr(x, y).statistic
    assert similarity.spearman(x, y) == pytest.approx(expected, abs=1e-12)
  else:
    assert similarity.spearman(x, y) == 0.0


def test_spearman_sees_only_order():
  x = np.array([3.0, 1.0, 2.0, 10.0])
  assert similarity.spearman(x, np.exp(x)) == 1.0
  assert similarity.spearman(x, -(x**3)) == -1.0
  with pytest.raises(ValueError, match="not finite"):
    similarity.spearman(x, np.array([1, 2, np.nan, 3]))
  with pytest.raises(ValueError, match="equal length"):
    similarity.spearman(x, x[:3])


@pytest.mark.parametrize("convert", [np.asarray, jnp.asarray])
def test_similarity_against_gensim(convert):
  models = pytest.importorskip("gensim.models")
  test_set = testsets.read_similarity(testsets.bundled("wordsim353.tsv"))
  rng = np.random.default_rng(0)
  words = sorted({w for pair in test_set.pairs for w in pair})[::3]
  words += sorted({w for pair in test_set.pairs for w in pair})[1::3]
  array = rng.standard_normal((len(words), 20)).astype(np.float32)
  peer = models.KeyedVectors(20)
  peer.add_vectors(words, array)
  _, spearman, unknown = peer.evaluate_word_pairs(
    str(testsets.bundled("wordsim353.tsv"))
  )
  got = similarity.evaluate_similarity(
    convert(array), similarity.index_words(words), test_set
  )
  assert got.value == pytest.approx(100 * spearman.statistic, abs=1e-3)
  assert 100 * (1 - got.coverage) == pytest.approx(unknown)
  assert (got.total, got.scored) == (353, int((~np.isnan(got.scores)).sum()))


def test_missing_and_zero_vectors_are_counted():
  array = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
  index = similarity.index_words(["a", "b", "zero", "d"])
  pairs = [("a", "b"), ("a", "zero"), ("a", "x"), ("b", "d"), ("a", "a")]
  test_set = _set(pairs, [3, 1, 5, 3, 9])
  skip = similarity.evaluate_similarity(array, index, test_set)
  assert (skip.scored, skip.total, skip.zero) == (4, 5, 1)
  assert skip.coverage == 0.8
  root = np.sqrt(0.5)
  np.testing.assert_allclose(skip.scores, [root, 0, np.nan, root, 1])
  assert skip.value == pytest.approx(100)
  zero = similarity.evaluate_similarity(array, index, test_set, missing="zero")
  expected = stats.spearmanr([root, 0, 0, root, 1], test_set.scores).statistic
  assert zero.scored == 5 and zero.value == pytest.approx(100 * expected)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e200])
def test_cosine_does_not_depend_on_scale(scale):
  rng = np.random.default_rng(0)
  array = rng.standard_normal((6, 4))
  index = similarity.index_words("abcdef")
  pairs = [("a", "b"), ("c", "d"), ("e", "f")]
  got = similarity.evaluate_similarity(
    array * scale, index, _set(pairs, [1, 2, 3])
  )
  unit = array / np.linalg.norm(array, axis=1, keepdims=True)
  np.testing.assert_allclose(got.scores, (unit[::2] * unit[1::2]).sum(1))


def test_no_known_word():
  array, index = np.eye(2), {"a": 0, "b": 1}
  nothing = _set([("x", "y"), ("a", "z")], [1, 2], "MEN")
  with pytest.raises(errors.InputError, match="MEN: only 0 of 2"):
    similarity.evaluate_similarity(array, index, nothing)
  with pytest.warns(UserWarning, match="MEN: only 0 of 2"):
    got = similarity.evaluate_similarity(array, index, nothing, empty="warn")
  assert np.isnan(got.value) and got.coverage == 0


def test_vectors_that_are_not_finite_are_refused():
  array = np.array([[1.0, np.nan], [0.0, 1.0]])
  test_set = _set([("a", "b"), ("b", "a")], [1, 2])
  with pytest.raises(errors.InputError, match="not finite"):
    similarity.evaluate_similarity(array, {"a": 0, "b": 1}, test_set)


def test_choices_by_hand():
  words = ["q", "near", "far", "zero"]
  array = np.array([[1.0, 0.2], [1.0, 0.0], [-1.0, 0.3], [0.0, 0.0]])
  test_set = testsets.ChoiceSet(
    "TOEFL",
    ["q", "q", "x", "zero", "q", "q"],
    [
      ("far", "near", "zero", "x"),  # right
      ("near", "far", "zero", "x"),  # wrong
      ("near", "far", "zero", "x"),  # unknown question
      ("near", "far", "zero", "x"),  # three candidates tie
      ("x", "y", "z", "w"),  # no known candidate
      ("x", "far", "y", "z"),  # the right candidate is unknown
    ],
    np.array([1, 1, 0, 0, 0, 0], np.int32),
  )
  index = similarity.index_words(words)
  got = similarity.evaluate_choices(array, index, test_set)
  np.testing.assert_allclose(got.scores, [1, 0, np.nan, 1 / 3, np.nan, 0])
  assert (got.scored, got.total) == (4, 6)
  assert got.value == pytest.approx(100 * (4 / 3) / 4)
  wrong = similarity.evaluate_choices(array, index, test_set, missing="wrong")
  assert wrong.value == pytest.approx(100 * (4 / 3) / 6)
  with pytest.raises(errors.InputError, match="TOEFL: only 0 of 6"):
    similarity.evaluate_choices(array, {}, test_set)


def test_correlation_between_systems():
  rng = np.random.default_rng(3)
  index = similarity.index_words("abcdefgh")
  pairs = [(a, b) for a in "abcd" for b in "efgh"]
  test_set = _set(pairs, rng.random(16))
  first, second = rng.standard_normal((2, 8, 5))
  a = similarity.evaluate_similarity(first, index, test_set)
  b = similarity.evaluate_similarity(
    second, {w: r for w, r in index.items() if w != "a"}, test_set
  )
  expected = stats.spearmanr(a.scores[4:], b.scores[4:]).statistic
  assert similarity.system_correlation(a, b) == pytest.approx(expected)
  assert similarity.system_correlation(a, a) == 1.0
  other = similarity.evaluate_similarity(
    first, index, _set(pairs, range(16), "T")
  )
  with pytest.raises(ValueError, match="different sets"):
    similarity.system_correlation(a, other)


def test_unknown_options_are_refused():
  test_set = _set([("a", "b")] * 2, [1, 2])
  index = similarity.index_words("ab")
  with pytest.raises(ValueError, match="missing must be"):
    similarity.evaluate_similarity(np.eye(2), index, test_set, missing="drop")
  with pytest.raises(ValueError, match="empty must be"):
    similarity.evaluate_similarity(np.eye(2), {}, test_set, empty="ignore")

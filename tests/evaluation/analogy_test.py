"""Analogies against brute force and gensim."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import testsets
from repr_jax.evaluation import analogy, similarity
from repr_jax.ops import precision


def _brute(array, rows, method):
  array = np.asarray(array, np.float64)
  norm = np.linalg.norm(array, axis=1, keepdims=True)
  unit = array / np.where(norm > 0, norm, 1)
  answers = []
  for a, b, c in rows:
    to_a, to_b, to_c = (unit @ unit[i] for i in (a, b, c))
    if method == "add":
      scores = to_b + to_c - to_a
    else:
      scores = (1 + to_b) / 2 * (1 + to_c) / 2 / ((1 + to_a) / 2 + 1e-6)
    scores[[a, b, c]] = -np.inf
    answers.append(scores.argmax())
  return np.array(answers)


@pytest.mark.parametrize("method", ["add", "mul"])
@pytest.mark.parametrize("block_words", [7, 100, 2048])
@pytest.mark.parametrize("block_questions", [1, 16])
def test_equals_brute_force(method, block_words, block_questions):
  rng = np.random.default_rng(0)
  array = rng.standard_normal((230, 12)).astype(np.float32)
  array[5] = 0
  # Distinct words: with a = b and c = 0 every score is equal but for rounding.
  rows = rng.permuted(np.tile(np.arange(40), (75, 1)), axis=1)[:, :3]
  terms, questions = np.unique(rows, return_inverse=True)
  got = analogy.solve_analogies(
    jnp.asarray(array),
    terms.astype(np.int32),
    questions.reshape(-1, 3).astype(np.int32),
    method=method,
    block_words=block_words,
    block_questions=block_questions,
  )
  np.testing.assert_array_equal(got, _brute(array, rows, method))


@pytest.mark.parametrize("block_words", [8, 8192])
def test_equal_scores_give_the_lowest_row(block_words):
  array = jnp.ones((9000, 3))
  got = analogy.solve_analogies(
    array, jnp.array([0, 1, 3]), jnp.array([[0, 1, 2]]),
    block_words=block_words,
  )  # fmt: skip
  assert int(got[0]) == 2


@pytest.mark.parametrize("method", ["add", "mul"])
def test_tiles_give_the_answers_of_narrow_blocks(method):
  rng = np.random.default_rng(2)
  # Rows repeat, so that the best score of a question stands in many tiles.
  array = rng.standard_normal((3000, 4))[rng.integers(0, 3000, 9000)]
  given = (
    jnp.asarray(array, jnp.float32),
    rng.choice(9000, 20, replace=False).astype(np.int32),
    rng.integers(0, 20, (50, 3)).astype(np.int32),
  )
  wide, narrow = (
    analogy.solve_analogies(*given, method=method, block_words=size)
    for size in (8192, 2048)
  )
  np.testing.assert_array_equal(wide, narrow)


def _questions_and_vectors():
  test_set = testsets.read_analogies(testsets.bundled("questions-words.txt"))
  chosen = range(0, len(test_set.questions), 40)
  test_set = testsets.AnalogySet(
    "AN",
    [test_set.questions[i] for i in chosen],
    [test_set.sections[i] for i in chosen],
  )
  words = sorted({w for four in test_set.questions for w in four})[:700]
  rng = np.random.default_rng(1)
  array = dict(zip(words, rng.standard_normal((len(words), 10))))
  # Some regularity, so that right answers occur.
  for a, b, c, d in test_set.questions[::2]:
    if {a, b, c, d} <= array.keys():
      array[d] = array[b] + array[c] - array[a]
  return test_set, words, np.array(list(array.values()), np.float32)


def test_equals_gensim(tmp_path):
  models = pytest.importorskip("gensim.models")
  test_set, words, array = _questions_and_vectors()
  path = tmp_path / "questions.txt"
  previous, lines = None, []
  for section, four in zip(test_set.sections, test_set.questions):
    if section != previous:
      lines.append(f": {section}")
      previous = section
    lines.append(" ".join(four))
  path.write_text("\n".join(lines) + "\n")
  peer = models.KeyedVectors(array.shape[1])
  peer.add_vectors(words, array)
  accuracy, sections = peer.evaluate_word_analogies(
    str(path), case_insensitive=False
  )
  index = similarity.index_words(words)
  got = analogy.evaluate_analogies(array, index, test_set)
  assert 0.05 < accuracy < 0.95
  assert got.value == pytest.approx(100 * accuracy)
  for part in sections[:-1]:
    count = len(part["correct"]) + len(part["incorrect"])
    if count:
      assert got.sections[part["section"]] == pytest.approx(
        100 * len(part["correct"]) / count
      )
  assert got.scored == sum(
    all(w in index for w in four) for four in test_set.questions
  )
  four = next(q for q in test_set.questions if all(w in index for w in q))
  mul = analogy.evaluate_analogies(array, index, test_set, method="mul")
  best = peer.most_similar_cosmul(
    positive=[four[1], four[2]], negative=[four[0]], topn=1
  )[0][0]
  assert words[mul.answers[test_set.questions.index(four)]] == best


def test_missing_words():
  test_set = testsets.AnalogySet(
    "AN", [("a", "b", "c", "d"), ("a", "b", "c", "x")], ["s", "t"]
  )
  array = np.array([[1.0, 0], [1, 1], [0.2, 0.1], [0.2, 1.0], [-1, 0]])
  index = similarity.index_words("abcde")
  got = analogy.evaluate_analogies(array, index, test_set)
  assert (got.value, got.scored, got.coverage) == (100.0, 1, 0.5)
  assert got.sections == {"s": 100.0}
  np.testing.assert_array_equal(got.answers, [3, -1])
  wrong = analogy.evaluate_analogies(array, index, test_set, missing="wrong")
  assert (wrong.value, wrong.sections) == (50.0, {"s": 100.0, "t": 0.0})
  with pytest.raises(errors.InputError, match="AN: only 0 of 2"):
    analogy.evaluate_analogies(array, {}, test_set)
  with pytest.warns(UserWarning, match="AN: only 0 of 2"):
    nothing = analogy.evaluate_analogies(array, {}, test_set, empty="warn")
  assert np.isnan(nothing.value)


def test_zero_vectors_are_counted_and_others_refused():
  test_set = testsets.AnalogySet("AN", [("a", "b", "c", "d")], [""])
  index = similarity.index_words("abcd")
  array = np.eye(4)
  array[0] = 0
  assert analogy.evaluate_analogies(array, index, test_set).zero == 1
  array[3, 3] = np.inf
  with pytest.raises(errors.InputError, match="not finite"):
    analogy.evaluate_analogies(array, index, test_set)
  with pytest.raises(ValueError, match="method must be"):
    analogy.evaluate_analogies(np.eye(4), index, test_set, method="cos")


def test_memory_is_an_argument_and_no_second_compilation():
  n, t, q = 40_000, 64, 512
  args = (
    jax.ShapeDtypeStruct((n, 16), jnp.float32),
    jax.ShapeDtypeStruct((t,), jnp.int32),
    jax.ShapeDtypeStruct((q, 3), jnp.int32),
  )
  compiled = analogy.solve_analogies.lower(
    *args, block_words=512, block_questions=32
  ).compile()
  # All scores would be 40,000 * 512 * 4 bytes = 82 MB.
  assert compiled.memory_analysis().temp_size_in_bytes < 2e6
  rng = np.random.default_rng(0)
  for seed in range(2):
    array = jax.random.normal(jax.random.key(seed), (100, 4))
    questions = rng.integers(0, 9, (20, 3)).astype(np.int32)
    analogy.solve_analogies(array, np.arange(9, dtype=np.int32), questions)
    if not seed:
      size = analogy.solve_analogies._cache_size()
  assert analogy.solve_analogies._cache_size() == size


def test_double_precision():
  rng = np.random.default_rng(2)
  array = rng.standard_normal((60, 5))
  rows = np.array([[0, 1, 2], [3, 4, 40]])
  with precision.enable_x64(True):
    got = analogy.solve_analogies(
      jnp.asarray(array), np.arange(60), rows, block_words=16
    )
    assert jnp.asarray(array).dtype == jnp.float64
  np.testing.assert_array_equal(got, _brute(array, rows, "add"))

"""The aligner against sums over all alignments, written out in Python."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import errors
from repr_jax.multiview import alignment
from repr_jax.ops import precision


@pytest.fixture(autouse=True)
def _float64():
  with precision.enable_x64(True):
    yield


def _bitext(seed):
  """Few short sentences over few words, some of them repeated."""
  rng = np.random.default_rng(seed)
  return [
    tuple(rng.integers(0, 5, rng.integers(1, 5)).tolist() for _ in range(2))
    for _ in range(5)
  ]


def _corpus(pairs, **options):
  source = [np.array(e, np.int32) for e, _ in pairs]
  target = [np.array(f, np.int32) for _, f in pairs]
  return alignment.prepare(source, target, **options)


def _table(state, corpus):
  keys = zip(corpus.source.tolist(), corpus.target.tolist())
  table = dict(zip(keys, np.asarray(state.translation).tolist()))
  beyond = corpus.source.max()  # the padding's word
  return {key: value for key, value in table.items() if key[0] < beyond}


def _prior(i, j, m, n, tension, null):
  if j == 0:
    return null
  weights = [np.exp(-tension * abs(i / m - k / n)) for k in range(1, n + 1)]
  return (1 - null) * weights[j - 1] / sum(weights)


def _brute(pairs, table, tension, null):
  """log p(f | e) as a sum over every alignment, and posterior counts."""
  total, counts, distance = 0.0, dict.fromkeys(table, 0.0), 0.0
  for e, f in pairs:
    words, m, n = [0, *(w + 1 for w in e)], len(f), len(e)
    weights = {}
    for a in itertools.product(range(n + 1), repeat=m):
      p = 1.0
      for i, j in enumerate(a, 1):
        p *= _prior(i, j, m, n, tension, null) * table[words[j], f[i - 1]]
      weights[a] = p
    evidence = sum(weights.values())
    total += np.log(evidence)
    for a, p in weights.items():
      for i, j in enumerate(a, 1):
        counts[words[j], f[i - 1]] += p / evidence
        distance += (j > 0) * p / evidence * abs(i / m - j / max(n, 1))
  return total, counts, distance


@pytest.mark.parametrize("seed, tension", [(0, 0.0), (1, 4.0), (2, 8.0)])
def test_likelihood_and_counts_equal_the_sum_over_alignments(seed, tension):
  pairs = _bitext(seed)
  corpus = _corpus(pairs)
  state = alignment.init(corpus, tension, jnp.float64)
  random = np.random.default_rng(seed).uniform(0.1, 1, len(corpus.source))
  state = state._replace(
    translation=alignment._normalized(jnp.array(random), corpus.source)
  )
  new, info = alignment.update(state, corpus, null=0.2)
  table = _table(state, corpus)
  total, counts, _ = _brute(pairs, table, tension, 0.2)
  np.testing.assert_allclose(info.log_likelihood, total, rtol=1e-9)
  sums = {}
  for (e, _), count in counts.items():
    sums[e] = sums.get(e, 0.0) + count
  want = {key: count / sums[key[0]] for key, count in counts.items()}
  got = _table(new, corpus)
  for key, value in want.items():
    np.testing.assert_allclose(got[key], value, rtol=1e-7, atol=1e-12)


def test_a_pair_worked_by_hand():
  # One source word, one target word: the target word comes from nothing with
  # probability null and from the source word otherwise; both tables give it
  # probability 1, so the likelihood is 1 whatever null is.
  corpus = _corpus([([0], [0])])
  state = alignment.init(corpus, 4.0, jnp.float64)
  _, info = alignment.update(state, corpus, null=0.25)
  np.testing.assert_allclose(info.log_likelihood, 0.0, atol=1e-12)
  # Two words each, no tension: each place has prior .25 + 2 x .375, and all
  # tables are 1/2, so each word has probability 1/2.
  corpus = _corpus([([0, 1], [0, 1])])
  state = alignment.init(corpus, 0.0, jnp.float64)
  _, info = alignment.update(state, corpus, null=0.25)
  np.testing.assert_allclose(info.log_likelihood, 2 * np.log(0.5), rtol=1e-12)


@pytest.mark.parametrize("seed, tension", [(3, 0.0), (4, 4.0), (5, 30.0)])
def test_likelihood_never_falls(seed, tension):
  pairs = _bitext(seed)
  corpus = _corpus(pairs)
  state = alignment.init(corpus, tension, jnp.float64)
  values = []
  for _ in range(8):
    state, info = alignment.update(state, corpus)
    values.append(info.log_likelihood)
  assert np.all(np.diff(values) >= -1e-9)
  assert 0 <= float(state.tension) <= 60


def test_tension_step_is_optimal():
  rng = np.random.default_rng(0)
  pairs = []
  for _ in range(40):
    e = rng.integers(0, 12, rng.integers(2, 7)).tolist()
    pairs.append((e, [w for w in e for _ in range(rng.integers(1, 3))][:7]))
  corpus = _corpus(pairs)
  state = alignment.init(corpus, 1.0, jnp.float64)
  for _ in range(3):
    state, _ = alignment.update(state, corpus)
  frozen, _ = alignment.update(state, corpus, fit_tension=False)
  new, _ = alignment.update(state, corpus)
  np.testing.assert_array_equal(new.translation, frozen.translation)
  table = _table(state, corpus)

  def expected_log_prior(tension):
    total = 0.0
    for e, f in pairs:
      words, m, n = [0, *(w + 1 for w in e)], len(f), len(e)
      for i, word in enumerate(f, 1):
        old = float(state.tension)
        joint = [
          _prior(i, j, m, n, old, 0.08) * table[words[j], word]
          for j in range(n + 1)
        ]
        for j in range(1, n + 1):
          log_prior = np.log(_prior(i, j, m, n, tension, 0.08))
          total += joint[j] / sum(joint) * log_prior
    return total

  best = float(new.tension)
  assert 0 < best < 60
  middle = expected_log_prior(best)
  for step in (0.01, 0.3):
    assert middle >= expected_log_prior(best + step)
    assert middle >= expected_log_prior(best - step)


def test_batching_and_padding_change_nothing():
  rng = np.random.default_rng(1)
  pairs = [
    (rng.integers(0, 9, rng.integers(1, 15)).tolist(),
     rng.integers(0, 9, rng.integers(1, 15)).tolist())
    for _ in range(30)
  ]  # fmt: skip
  results = []
  for cells in (1, 300, 1 << 20):
    corpus = _corpus(pairs, cells=cells)
    state = alignment.init(corpus, dtype=jnp.float64)
    for _ in range(3):
      state, info = alignment.update(state, corpus)
    links = alignment.best_links(state, corpus)
    results.append((info.log_likelihood, state.translation, links))
  for other in results[1:]:
    for one, two in zip(results[0], other):
      np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_links_find_a_known_permutation():
  rng = np.random.default_rng(2)
  pairs = []
  for _ in range(200):
    e = rng.permutation(20)[: rng.integers(2, 8)]
    pairs.append((e.tolist(), (e[::-1] + 100).tolist()))
  corpus = _corpus(pairs)
  state = alignment.init(corpus, 0.0, jnp.float64)
  for _ in range(8):
    state, _ = alignment.update(state, corpus, fit_tension=False)
  links = alignment.best_links(state, corpus)
  for s, i, j in links.tolist():
    assert pairs[s][0][i] + 100 == pairs[s][1][j]
  assert len(links) == sum(len(e) for e, _ in pairs)


def test_symmetrize():
  forward = np.array([[0, 0, 0], [0, 1, 2], [1, 0, 0]], np.int32)
  backward = np.array([[0, 0, 0], [0, 2, 1], [1, 1, 0]], np.int32)
  both = alignment.symmetrize(forward, backward)
  np.testing.assert_array_equal(both, [[0, 0, 0], [0, 1, 2]])
  union = alignment.symmetrize(forward, backward, "union")
  assert len(union) == 4
  with pytest.raises(errors.InputError, match="union"):
    alignment.symmetrize(forward, backward, "grow")


def test_long_and_empty_sentences_are_counted():
  corpus = _corpus([([0], [1]), ([], [1]), ([0] * 5, [1])], longest=4)
  assert corpus.skipped == 2
  with pytest.raises(errors.InputError, match="no pair of sentences"):
    _corpus([([], [1])])
  with pytest.raises(errors.InputError, match="no pair of sentences"):
    _corpus([])
  with pytest.raises(errors.InputError, match="translations"):
    alignment.prepare([np.array([1])], [])


def test_a_second_update_does_not_compile_again():
  corpus = _corpus([([0, 1], [2, 3]), ([1], [3])])
  state = alignment.init(corpus, dtype=jnp.float32)
  state, _ = alignment.update(state, corpus)
  before = alignment._accumulate._cache_size()
  state, _ = alignment.update(state, corpus, null=0.1)
  assert alignment._accumulate._cache_size() == before

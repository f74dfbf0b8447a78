"""Two-field search against loops over documents; re-ranking by hand."""

import numpy as np
import pytest

from repr_jax import linking
from repr_jax.data.documents import mentions
from repr_jax.data.entities import Sentence
from repr_jax.errors import InputError
from repr_jax.linking import mention_retrieval as retrieval


def _bm25(counts, row, word_column):
  """One term of BM25, from the definition."""
  dense = counts.toarray().astype(float)
  n, df = len(dense), (dense[:, word_column] > 0).sum()
  idf = max(np.log((n - df + 0.5) / (df + 0.5)), 0)
  length, mean = dense[row].sum(), dense.sum() / n
  f = dense[row, word_column]
  return idf * f * 2.5 / (f + 1.5 * (0.25 + 0.75 * length / mean))


def _search(fields, tokens, k, exclude=None, *weights):
  index, words = retrieval.index_mentions(fields)
  queries = retrieval.make_queries(words, tokens, *weights)
  own = np.full(len(tokens), -1) if exclude is None else exclude
  return retrieval.search_batch(index, queries, own, k)


@pytest.mark.parametrize("weight", [0.0, 0.1, 1.0])
def test_scores_are_the_weighted_sum_of_both_fields(found, fields, weight):
  ranking = _search(fields, [found[3].words], len(found), None, weight)
  expected = np.zeros(len(found))
  for field, share in zip(fields, (1.0, weight)):
    counts, words = mentions.word_part(field)
    for word in found[3].words:
      column = words.index(word)
      for row in range(len(found)):
        expected[row] += share * _bm25(counts, row, column)
  order = np.lexsort((np.arange(len(found)), -expected))
  order = order[expected[order] > 1e-9]
  got = ranking.ids[0][ranking.ids[0] >= 0]
  assert sorted(got) == sorted(order)
  np.testing.assert_allclose(
    ranking.scores[0][: len(order)], expected[order], rtol=1e-5
  )


def test_a_word_of_many_mentions_has_several_chunks():
  """200 mentions of one word, each in a sentence of another length."""
  sentences = [
    Sentence("", ("name", *["w"] * (i % 7)), ((0, 1, "e"),)) for i in range(200)
  ]
  sentences += [Sentence("", (f"x{i}",), ((0, 1, "f"),)) for i in range(300)]
  fields = mentions.featurize(mentions.collect(sentences))
  _, words = retrieval.index_mentions(fields)
  assert len(retrieval.make_queries(words, [["name"]]).chunks[0]) == 8
  ranking = _search(fields, [["name"], ["x7"]], 500)
  assert sorted(ranking.ids[0][:200]) == list(range(200))
  assert (ranking.ids[0][200:] == -1).all()
  assert ranking.ids[1].tolist() == [207] + [-1] * 499
  assert (np.diff(ranking.scores[0][:200]) <= 0).all()


def test_a_batch_is_as_its_queries_alone(found, fields):
  index, words = retrieval.index_mentions(fields)
  rows = np.array([0, 7, 20, 71])
  tokens = [[*found[i].words, *(f"w{j}" for j in range(i))] for i in rows]
  queries = retrieval.make_queries(words, tokens, 0.3)
  batch = retrieval.search_batch(index, queries, rows, 10)
  for i, row in enumerate(rows):
    query = retrieval.Query(*(x[i] for x in queries))
    alone = linking.search(index, query, row, k=10)
    np.testing.assert_array_equal(batch.ids[i], alone.ids)
    np.testing.assert_allclose(batch.scores[i], alone.scores, rtol=1e-6)
    assert row not in batch.ids[i]


def test_a_cut_list_is_the_head_of_the_whole_one(found, fields):
  rows = np.arange(20)
  tokens = [found[i].words for i in rows]
  whole = _search(fields, tokens, len(found) + 5, rows)
  assert (whole.ids[:, len(found) - 1 :] == -1).all()
  for k in (1, 3, 10):
    cut = _search(fields, tokens, k, rows)
    np.testing.assert_array_equal(cut.ids, whole.ids[:, :k])
    np.testing.assert_array_equal(cut.scores, whole.scores[:, :k])


def test_unknown_words_find_nothing(fields):
  ranking = _search(fields, [("nobody",), ("the",), ()], 4)
  assert (ranking.ids == -1).all()
  assert np.isneginf(ranking.scores).all()
  _, words = retrieval.index_mentions(fields)
  for weights in ((-1, 1), (0.1, -1), (0, 0), (np.nan, 1), (0, np.inf)):
    with pytest.raises(InputError, match="weights of the fields"):
      retrieval.make_queries(words, [("a",)], *weights)


def test_each_field_has_its_weight(found, fields):
  tokens = [found[3].words]

  def scores(*weights):
    ranking = _search(fields, tokens, len(found), None, *weights)
    dense = np.zeros(len(found))
    known = ranking.ids[0] >= 0
    dense[ranking.ids[0][known]] = ranking.scores[0][known]
    return dense

  both, first, second = scores(0.5, 3), scores(0, 1), scores(1, 0)
  np.testing.assert_allclose(both, 3 * first + 0.5 * second, rtol=1e-5)
  assert first.any() and second.any()


def test_a_search_for_nothing_is_refused(fields):
  with pytest.raises(InputError, match="1 mention or more"):
    _search(fields, [("n0",)], 0)


def test_rerank_gives_cosines_and_ignores_padding():
  rng = np.random.default_rng(0)
  vectors = rng.normal(size=(9, 4)).astype(np.float32)
  queries = np.array([2, 5])
  candidates = np.array([[1, 3, -1], [0, 8, 5]])
  got = np.asarray(retrieval.rerank_batch(vectors, queries, candidates))
  for i, q in enumerate(queries):
    for j, c in enumerate(candidates[i]):
      if c < 0:
        assert np.isneginf(got[i, j])
        continue
      a, b = vectors[q].astype(float), vectors[c].astype(float)
      cosine = a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)
      assert np.isclose(got[i, j], cosine, atol=1e-5)


def test_an_ensemble_is_the_mean_on_one_scale():
  scores = np.array([[3.0, 1, -np.inf], [10, 30, -np.inf]], np.float32)
  got = linking.ensemble(scores, np.array([3.0, 1]))
  np.testing.assert_allclose(got, [0.75, 0.25, -np.inf])
  constant = np.array([[2.0, 2, 2], [0, 5, 10]], np.float32)
  got = linking.ensemble(constant, np.array([3.0, 1]))
  np.testing.assert_allclose(got, [0, 0.125, 0.25])
  # Neither scale nor place of a system's scores counts.
  moved = linking.ensemble(100 * constant + 7, np.array([3.0, 1]))
  np.testing.assert_allclose(moved, got, atol=1e-6)
  alone = linking.ensemble(scores[:1], np.ones(1))
  np.testing.assert_allclose(alone[:2], [1, 0])

"""Two-field search against loops over documents; re-ranking by hand."""

import jax
import numpy as np
import pytest

from repr_jax.data.documents import mentions
from repr_jax.data.entities import Sentence
from repr_jax.errors import InputError
from repr_jax.linking import mention_retrieval
from repr_jax.ops import sparse
from repr_jax.setexp import autoencoder, train
from repr_jax.setexp.baselines import bm25

_WORDS = [f"w{i}" for i in range(25)]


@pytest.fixture(scope="module")
def found():
  """Entities with a two-word name and a few words that go with each."""
  rng = np.random.default_rng(0)
  sentences = []
  for entity in range(12):
    name = (f"n{entity % 5}", f"n{5 + entity % 4}")
    topic = rng.choice(_WORDS, 6, replace=False)
    for _ in range(6):
      words = tuple(rng.choice(topic, 5).tolist())
      spans = ((0, 2, f"e{entity}"),)
      sentences.append(Sentence("", (*name, *words), spans))
  return mentions.collect(sentences)


@pytest.fixture(scope="module")
def fields(found):
  return mentions.featurize(found)


def _bm25(counts, row, word_column):
  """One term of BM25, from the definition."""
  dense = counts.toarray().astype(float)
  n, df = len(dense), (dense[:, word_column] > 0).sum()
  idf = max(np.log((n - df + 0.5) / (df + 0.5)), 0)
  length, mean = dense[row].sum(), dense.sum() / n
  f = dense[row, word_column]
  return idf * f * 2.5 / (f + 1.5 * (0.25 + 0.75 * length / mean))


@pytest.mark.parametrize("weight", [0.0, 0.1, 1.0])
def test_scores_are_the_weighted_sum_of_both_fields(found, fields, weight):
  index = mention_retrieval.build(fields)
  query = mention_retrieval.make_queries(index, [found[3].words], weight)
  ranking = mention_retrieval.search(index, query, k=len(found))
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


@pytest.mark.parametrize("k", [1, 5, 72, 100])
def test_the_device_finds_the_same(found, fields, k):
  index = mention_retrieval.build(fields)
  rows = np.array([0, 7, 20, 71])
  queries = mention_retrieval.make_queries(
    index, [found[i].words for i in rows], 0.3
  )
  host = mention_retrieval.search(index, queries, k, rows)
  table = sparse.from_scipy(index.postings.T.tocsr())
  device = mention_retrieval.search_on_device(table, queries.toarray(), rows, k)
  np.testing.assert_allclose(host.scores, device.scores, rtol=1e-5)
  close = np.isclose(host.scores[:, :-1], host.scores[:, 1:], rtol=1e-4)
  apart = ~np.pad(close, ((0, 0), (0, 1)), constant_values=True)
  apart[:, 1:] &= ~close
  np.testing.assert_array_equal(host.ids[apart], np.asarray(device.ids)[apart])
  for row, ids in zip(rows, host.ids):
    assert row not in ids


def test_a_cut_list_is_the_head_of_the_whole_one(found, fields):
  index = mention_retrieval.build(fields)
  rows = np.arange(20)
  queries = mention_retrieval.make_queries(
    index, [found[i].words for i in rows]
  )
  whole = mention_retrieval.search(index, queries, len(found), rows)
  for k in (1, 3, 10):
    cut = mention_retrieval.search(index, queries, k, rows)
    np.testing.assert_array_equal(cut.ids, whole.ids[:, :k])
    np.testing.assert_array_equal(cut.scores, whole.scores[:, :k])


def test_unknown_words_find_nothing(fields):
  index = mention_retrieval.build(fields)
  queries = mention_retrieval.make_queries(index, [("nobody",), ("the",), ()])
  ranking = mention_retrieval.search(index, queries, 4)
  assert (ranking.ids == -1).all()
  assert np.isneginf(ranking.scores).all()
  for weights in ((-1, 1), (0.1, -1), (0, 0), (np.nan, 1), (0, np.inf)):
    with pytest.raises(InputError, match="weights of the fields"):
      mention_retrieval.make_queries(index, [("a",)], *weights)


def test_each_field_has_its_weight(found, fields):
  index = mention_retrieval.build(fields)
  words = [found[3].words]
  both, first, second = (
    mention_retrieval.make_queries(index, words, document, mention).toarray()
    for document, mention in ((0.5, 3), (0, 1), (1, 0))
  )
  np.testing.assert_allclose(both, 3 * first + 0.5 * second)
  assert first.any() and second.any()


def test_a_search_for_nothing_is_refused_by_host_and_device(fields):
  index = mention_retrieval.build(fields)
  queries = mention_retrieval.make_queries(index, [("n0",)])
  table = sparse.from_scipy(index.postings.T.tocsr())
  with pytest.raises(InputError, match="1 mention or more"):
    mention_retrieval.search(index, queries, 0)
  with pytest.raises(InputError, match="1 mention or more"):
    mention_retrieval.search_on_device(
      table, queries.toarray(), np.array([-1]), 0
    )


def test_rerank_gives_cosines_and_ignores_padding():
  rng = np.random.default_rng(0)
  vectors = rng.normal(size=(9, 4)).astype(np.float32)
  queries = np.array([2, 5])
  candidates = np.array([[1, 3, -1], [0, 8, 5]])
  got = np.asarray(mention_retrieval.rerank(vectors, queries, candidates))
  for i, q in enumerate(queries):
    for j, c in enumerate(candidates[i]):
      if c < 0:
        assert np.isneginf(got[i, j])
        continue
      a, b = vectors[q].astype(float), vectors[c].astype(float)
      cosine = a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)
      assert np.isclose(got[i, j], cosine, atol=1e-5)


def test_an_ensemble_is_the_mean_on_one_scale():
  a = np.array([[3.0, 1, -np.inf], [2, 2, 2]])
  b = np.array([[10.0, 30, -np.inf], [0, 5, 10]])
  got = mention_retrieval.ensemble([a, b], [3, 1])
  np.testing.assert_allclose(got[0, :2], [0.75, 0.25])
  assert np.isneginf(got[0, 2])
  np.testing.assert_allclose(got[1], [0, 0.125, 0.25])
  # Neither scale nor place of a system's scores counts.
  moved = mention_retrieval.ensemble([100 * a + 7, b], [3, 1])
  np.testing.assert_allclose(moved, got)
  alone = mention_retrieval.ensemble([a])
  np.testing.assert_allclose(alone[0, :2], [1, 0])


def test_ensembles_that_make_no_sense_are_refused():
  a = np.array([[1.0, 2]])
  with pytest.raises(InputError, match="weight"):
    mention_retrieval.ensemble([a, a], [0, 0])
  with pytest.raises(InputError, match="same candidates"):
    mention_retrieval.ensemble([a, np.array([[1.0, -np.inf]])])


def test_words_are_weighted_by_bm25_and_the_rest_is_not(fields):
  field = fields.mention
  counts, words = mentions.word_part(field)
  expected = bm25.weigh_rows(bm25.fit(counts), counts).toarray()
  got = mention_retrieval.weigh(field).toarray()
  assert got.shape == field.counts.shape
  np.testing.assert_allclose(got[:, : len(words)], expected, rtol=1e-6)
  assert set(np.unique(got[:, len(words) :])) == {0, 1}
  assert mention_retrieval.weigh(field, 15).shape[1] < got.shape[1]
  having = (field.counts > 0).sum(axis=0)
  assert mention_retrieval.weigh(field, 15).shape[1] == (having >= 15).sum()


@pytest.mark.parametrize("system", ["lsa", "mvlsa", "vae", "null"])
def test_representations_separate_what_names_confuse(found, fields, system):
  if system == "lsa":
    vectors = mention_retrieval.lsa(fields, 10)
  elif system == "mvlsa":
    vectors = mention_retrieval.mvlsa(fields, 10, 15)
  else:
    config = autoencoder.Config(dim=10, hidden=(20,))
    epochs = 10 if system == "vae" else 0
    vectors = mention_retrieval.autoencoder(
      fields,
      config,
      key=jax.random.key(0),
      epochs=epochs,
      hyper=train.Hyper(1e-2, beta=0.1),
      batch_size=24,
    )
  assert vectors.shape == (len(found), 10)
  cosines = np.asarray(
    mention_retrieval.rerank(
      vectors,
      np.arange(len(found)),
      np.tile(np.arange(len(found)), (len(found), 1)),
    )
  )
  entity = np.array([m.entity for m in found])
  same = (entity[:, None] == entity) & ~np.eye(len(found), dtype=bool)
  other = entity[:, None] != entity
  assert cosines[same].mean() > cosines[other].mean() + 0.2

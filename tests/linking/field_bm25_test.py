"""BM25F against its definition, and against BM25 of one field."""

import numpy as np
import pytest

from repr_jax.data.documents import mentions
from repr_jax.data.entities import Sentence
from repr_jax.errors import InputError
from repr_jax.linking import field_bm25, mention_retrieval


@pytest.fixture(scope="module")
def collection():
  rng = np.random.default_rng(0)
  words = [f"w{i}" for i in range(12)]
  sentences = []
  for entity in range(15):
    own = tuple(rng.choice(words, rng.integers(3, 9)).tolist())
    name = (f"n{entity % 4}", f"w{entity % 5}")
    sentences.append(Sentence("", (*name, *own), ((0, 2, f"e{entity}"),)))
  return mentions.collect(sentences)


def _scores(index, words, tokens, *weights):
  query = mention_retrieval.make_queries(words, [tokens], *weights)
  size = index.size
  got = mention_retrieval.search_batch(index, query, np.array([-1]), size)
  scores = np.zeros(size)
  known = got.ids[0] >= 0
  scores[got.ids[0][known]] = got.scores[0][known]
  return scores


def test_scores_are_those_of_the_definition(collection):
  fields = mentions.featurize(collection)
  weights, k1, b = (1.0, 0.3), 1.2, 0.6
  index, words = field_bm25.index_fields(fields, weights, k1=k1, b=b)
  tables = [mentions.word_part(field) for field in fields]
  expected = np.zeros(len(collection))
  for word in ("n1", "w1"):
    total = np.zeros(len(collection))
    for (counts, listed), weight in zip(tables, weights):
      if word in listed:
        dense = counts.toarray()
        lengths = dense.sum(axis=1)
        scale = 1 - b + b * lengths / lengths.mean()
        total += weight * dense[:, listed.index(word)] / scale
    df = (total > 0).sum()
    idf = max(np.log((len(total) - df + 0.5) / (df + 0.5)), 0)
    expected += idf * total * (k1 + 1) / (k1 + total)
  got = _scores(index, words, ("n1", "w1"))
  assert expected.max() > 0
  np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_one_field_alone_is_bm25(collection):
  fields = mentions.featurize(collection)
  index, words = field_bm25.index_fields(fields, (1.0, 0.0))
  both, known = mention_retrieval.index_mentions(fields)
  np.testing.assert_allclose(
    _scores(index, words, collection[1].words),
    _scores(both, known, collection[1].words, 0.0),
    rtol=1e-5,
  )


def test_a_word_in_both_fields_saturates_once(collection):
  fields = mentions.featurize(collection)
  index, words = field_bm25.index_fields(fields, (1.0, 1.0), k1=0.01)
  scores = _scores(index, words, ("n1",))
  df = (scores > 0).sum()
  idf = np.log((len(scores) - df + 0.5) / (df + 0.5))
  assert scores.max() <= idf * 1.01 + 1e-6


@pytest.mark.parametrize(
  "changes",
  [{"weights": (0, 0)}, {"weights": (1,)}, {"weights": (-1, 1)}, {"k1": 0},
   {"b": 2}],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(collection, changes):
  with pytest.raises(InputError, match="BM25F needs"):
    field_bm25.index_fields(mentions.featurize(collection), **changes)

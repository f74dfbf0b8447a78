"""Counts of features, against a count in plain Python."""

import collections

import numpy as np
import pytest

from repr_jax.data.entities import Sentence, feature_counts, sentences
from repr_jax.errors import InputError


def _corpus(rng, count=60):
  words = [f"w{i}" for i in range(9)]
  for _ in range(count):
    tokens = tuple(rng.choice(words, rng.integers(1, 7)).tolist())
    mentions = tuple(
      (start, int(rng.integers(start, len(tokens) + 1)), f"e{entity}")
      for entity, start in enumerate(rng.integers(len(tokens), size=4).tolist())
      if rng.random() < 0.5
    )
    yield Sentence(str(rng.choice(["", "d0", "d1"])), tokens, mentions)


@pytest.fixture(scope="module")
def held():
  collected, _ = sentences.collect(_corpus(np.random.default_rng(0)))
  return collected


def _columns(held):
  """Words, documents, links; the second word and the first link are out."""
  v, d = len(held.vocabulary), len(held.document_names)
  word = np.arange(v, dtype=np.int32)
  document = np.arange(d, dtype=np.int32) + v
  link = np.arange(v, dtype=np.int32) + v + d
  word[1] = link[0] = -1
  return feature_counts.Columns(word, document, link), 2 * v + d


def _plain(held, columns, row):
  """Features of an entity's sentences, one after the other."""
  count = collections.Counter()
  for sentence in held.of(row).tolist():
    begin, end = held.starts[sentence : sentence + 2]
    for place in range(begin, end):
      token = held.tokens[place]
      count[int(columns.word[token])] += 1
      if held.linked[place]:
        count[int(columns.link[token])] += 1
    if held.documents[sentence] >= 0:
      count[int(columns.document[held.documents[sentence]])] += 1
  del count[-1]
  return dict(count)


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
def test_counts_equal_a_plain_loop_whatever_the_block(held, block, monkeypatch):
  monkeypatch.setattr(feature_counts, "_BLOCK", block)
  columns, width = _columns(held)
  counts = feature_counts.entity_counts(held, columns, width)
  for row in range(4):
    part = counts[[row]]
    got = dict(zip(part.indices.tolist(), part.data.tolist()))
    assert got == _plain(held, columns, row)


def test_totals_are_column_sums(held):
  columns, width = _columns(held)
  counts = feature_counts.entity_counts(held, columns, width)
  totals = feature_counts.totals(held, columns, width)
  np.testing.assert_array_equal(totals, counts.sum(axis=0))
  assert totals[1] == 0


def test_frequent_and_rare_features_are_dropped():
  totals = np.array([9, 5, 5, 1, 0, 3])
  labels = ["a", "c", "b", "d", "e", "f"]
  # Of equal counts the first label is dropped first: a, then b.
  assert feature_counts.prune(totals, labels, 2, 2).tolist() == [1, 5]
  assert feature_counts.prune(totals, labels, 0, 1).tolist() == [0, 1, 2, 3, 5]
  with pytest.raises(InputError, match="no feature is left"):
    feature_counts.prune(totals, labels, 5, 1)
  with pytest.raises(InputError, match="must not be negative"):
    feature_counts.prune(totals, labels, -1, 1)

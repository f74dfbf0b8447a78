"""Bags of words: pages, windows, bounds, and dumps that repeat."""

import numpy as np
import pytest

from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)
from repr_jax.data.entities import Sentence
from repr_jax.data.entities import bags as entity_bags
from repr_jax.data.views.vocab import Vocab
from repr_jax.errors import InputError

_WORDS = [f"w{i}" for i in range(30)]
_VOCAB = Vocab(_WORDS, np.ones(30, np.int64))


def _sentence(numbers, mentions, doc=""):
  tokens = tuple(f"W{i}" for i in numbers)
  return Sentence(doc, tokens, tuple(mentions))


def _bag(bags, kind, entity):
  i = bags.entities.index(entity)
  offsets = getattr(bags, f"{kind}_offsets")
  return getattr(bags, f"{kind}_words")[offsets[i] : offsets[i + 1]].tolist()


def test_pages_and_windows():
  bags = entity_bags.from_sentences(
    [
      _sentence(range(10), [(4, 6, "a")], "b"),
      _sentence([20, 21], [], "b"),
      _sentence([1, 99, 2, 3], [(2, 3, "b")], "x"),
    ],
    _VOCAB,
    window=4,
  )
  assert bags.entities == ["a", "b"]
  assert _bag(bags, "context", "a") == [2, 3, 6, 7]
  # A word outside the vocabulary takes no place in the window.
  assert _bag(bags, "context", "b") == [1, 3]
  assert _bag(bags, "page", "b") == [*range(10), 20, 21]
  assert _bag(bags, "page", "a") == []
  assert bags.without_page == 1


def test_bags_are_bounded_however_long_the_text():
  text = [_sentence(range(10), [(4, 6, "a")], "a")]
  short = entity_bags.from_sentences(
    text * 5, _VOCAB, most_page=25, most_context=11
  )
  long = entity_bags.from_sentences(
    text * 50, _VOCAB, most_page=25, most_context=11
  )
  assert len(_bag(short, "page", "a")) == 25
  assert len(_bag(short, "context", "a")) == 11
  for one, other in zip(short, long):
    np.testing.assert_array_equal(one, other)


def test_documents_in_folds():
  def document(name, numbers, *mentions):
    tokens = tuple(f"W{i}" for i in numbers)
    linked = tuple(LinkedMention(a, b, "", e) for a, b, e in mentions)
    return LinkedDocument(name, tokens, linked)

  words = {word: i for i, word in enumerate(_WORDS) if i != 3}
  documents = [
    document("A w9#0", range(8), (2, 3, "b"), (5, 6, "unknown")),
    document("A w9#1", [20, 21, 22], (0, 1, "b"), (1, 2, None)),
  ]
  bags = entity_bags.from_documents(
    documents, ["b", "A w9", "none"], words, window=4, folds=3
  )
  assert bags.entities == ["b", "A w9", "none"]
  # Nearest first, in tokens; a word that does not count takes its place.
  first, second = [1, 0, 4], [21, 22]
  assert _bag(bags, "context", "b") == first + second
  # The name begins the page.
  assert _bag(bags, "page", "A w9") == [9, 0, 1, 2, 4, 5, 6, 7, 20, 21, 22]
  assert bags.without_page == 2 and bags.without_words == 1
  folds = [entity_bags.fold_of(x.id, 3) for x in documents]
  assert folds[0] != folds[1]
  for fold, kept in (
    (folds[0], second),
    (folds[1], first),
    (9, first + second),
  ):
    offsets, own = bags.contexts(without=fold)
    assert offsets.tolist() == [0, len(kept), len(kept), len(kept)]
    assert own.tolist() == kept
    offsets, own = bags.both(without=fold)
    assert offsets.tolist() == [0, len(kept), len(kept) + 11, len(kept) + 11]
    assert own.tolist() == kept + _bag(bags, "page", "A w9")


def test_frequent_words_can_be_passed_over():
  bags = entity_bags.from_sentences(
    [_sentence(range(8), [(6, 7, "a")], "a")],
    _VOCAB,
    window=4,
    skip_most_frequent=5,
  )
  assert _bag(bags, "context", "a") == [5, 7]
  assert _bag(bags, "page", "a") == [5, 6, 7]


def test_words_are_counted_without_marks():
  counts = entity_bags.count_words([Sentence("", ("A", "a", ",", "B"))])
  assert counts == {"a": 2, "b": 1}


def test_nothing_to_gather_is_an_error():
  with pytest.raises(InputError, match="no sentence mentions"):
    entity_bags.from_sentences([_sentence([1], [])], _VOCAB)
  with pytest.raises(InputError, match="positive"):
    entity_bags.from_sentences([], _VOCAB, window=0)

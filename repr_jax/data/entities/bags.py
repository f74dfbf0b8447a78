"""Bags of words of entities, streamed: pages and contexts of mentions.

The sentences of a document that is named like an entity are that entity's
page (U1 of the thesis, 6.2.1); the words around a mention in any document are
a context of what it mentions (U2). What is kept is bounded: the first words
of each page and of each entity's contexts, so that memory depends on the
number of entities and not on the length of the text.
"""

import array
import collections
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.data import entities as entities_lib
from repr_jax.data.views import vocab as vocab_lib
from repr_jax.errors import InputError


class Bags(NamedTuple):
  """Words of n entities.

  Attributes:
    entities: ids, sorted, [n].
    page_offsets: where each entity's page begins, and the end, int64 [n + 1].
    page_words: ids of words of the pages, int32.
    context_offsets: the same for contexts of mentions, int64 [n + 1].
    context_words: ids of words around mentions, int32.
    without_page: how many entities have no word of a page.
  """

  entities: list[str]
  page_offsets: np.ndarray
  page_words: np.ndarray
  context_offsets: np.ndarray
  context_words: np.ndarray
  without_page: int


def count_words(
  stream: Iterable[entities_lib.Sentence],
) -> collections.Counter[str]:
  """Counts the lower-cased words of sentences; marks are no words."""
  counts: collections.Counter[str] = collections.Counter()
  for sentence in stream:
    counts.update(
      token.lower() for token in sentence.tokens if any(map(str.isalnum, token))
    )
  return counts


def collect(
  stream: Iterable[entities_lib.Sentence],
  vocab: vocab_lib.Vocab,
  *,
  window: int = 20,
  most_page: int = 1000,
  most_context: int = 1000,
  skip_most_frequent: int = 0,
  wanted: Iterable[str] | None = None,
) -> Bags:
  """Gathers the bags in one pass.

  Args:
    stream: sentences with mentions; also those without, for pages.
    vocab: the words that count, lower-cased.
    window: words on both sides of a mention together: half of them before
      it, half behind; known words only.
    most_page: words of a page that are kept, the first ones.
    most_context: words around an entity's mentions that are kept.
    skip_most_frequent: the first words of the vocabulary, which is sorted by
      frequency, that do not count.
    wanted: the entities to gather; by default all that are mentioned.

  Returns:
    The bags. An entity that has no page has an empty bag there.
  """
  if min(window, most_page, most_context) < 1:
    raise InputError("window and the numbers of words kept must be positive")
  chosen = None if wanted is None else set(wanted)
  pages: dict[str, array.array] = {}
  contexts: dict[str, array.array] = {
    name: array.array("i") for name in chosen or ()
  }
  for sentence in stream:
    ids = vocab.ids(token.lower() for token in sentence.tokens)
    ids = np.where(ids < skip_most_frequent, -1, ids)
    if sentence.doc and (chosen is None or sentence.doc in chosen):
      page = pages.setdefault(sentence.doc, array.array("i"))
      _extend(page, ids[ids >= 0], most_page)
    for start, end, entity in sentence.mentions:
      if chosen is None or entity in chosen:
        bag = contexts.setdefault(entity, array.array("i"))
        if len(bag) < most_context:
          before, after = ids[:start], ids[end:]
          half = max(window // 2, 1)
          _extend(bag, before[before >= 0][-half:], most_context)
          _extend(bag, after[after >= 0][:half], most_context)
  names = sorted(contexts)
  if not names:
    raise InputError("no sentence mentions an entity: there are no bags")
  page_offsets, page_words = _join([pages.get(name) for name in names])
  context_offsets, context_words = _join([contexts[name] for name in names])
  without = int((np.diff(page_offsets) == 0).sum())
  return Bags(
    names, page_offsets, page_words, context_offsets, context_words, without
  )


def _extend(bag: array.array, ids: np.ndarray, most: int) -> None:
  room = most - len(bag)
  if room > 0:
    bag.extend(ids[:room].tolist())


def _join(
  bags: Sequence[array.array | None],
) -> tuple[np.ndarray, np.ndarray]:
  lengths = [0 if bag is None else len(bag) for bag in bags]
  offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
  words = np.zeros(int(offsets[-1]), np.int32)
  for bag, start, length in zip(bags, offsets.tolist(), lengths):
    if bag is not None:
      words[start : start + length] = bag
  return offsets, words

"""Bags of words of entities, streamed: pages and contexts of mentions.

The text of a document that is named like an entity is that entity's page (U1
of the thesis, 6.2.1); the words around a mention in any document are a
context of the entity that it mentions (U2). The first words of each page and
of each entity's contexts are kept, so that memory depends on the number of
entities and not on the length of the text.

A model must not be trained on vectors that have seen the very mentions it is
trained on. Documents are therefore in folds, and `Bags.contexts` gives the
contexts without those of one fold.
"""

import array
import collections
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.data import entities as entities_lib
from repr_jax.data.documents import linked_documents, wikitext
from repr_jax.data.views import vocab as vocab_lib
from repr_jax.errors import InputError

_PART = re.compile(r"#\d+$")

# Where each of n bags begins, and the end, int64 [n + 1]; ids of their words.
Ragged = tuple[np.ndarray, np.ndarray]


class Bags(NamedTuple):
  """Words of n entities.

  Attributes:
    entities: ids of the entities, [n].
    page_offsets: where each entity's page begins, and the end, int64 [n + 1].
    page_words: ids of words of the pages, int32.
    context_offsets: the same for contexts of mentions, int64 [n + 1].
    context_words: ids of words around mentions, int32.
    context_folds: fold of each one's document, int8.
  """

  entities: list[str]
  page_offsets: np.ndarray
  page_words: np.ndarray
  context_offsets: np.ndarray
  context_words: np.ndarray
  context_folds: np.ndarray

  @property
  def without_page(self) -> int:
    """How many entities have no word of a page."""
    return int((np.diff(self.page_offsets) == 0).sum())

  @property
  def without_words(self) -> int:
    """How many entities have no word of a page or of contexts."""
    sizes = np.diff(self.page_offsets) + np.diff(self.context_offsets)
    return int((sizes == 0).sum())

  def pages(self) -> Ragged:
    """The words of the pages."""
    return self.page_offsets, self.page_words

  def contexts(self, without: int | None = None) -> Ragged:
    """The words of the contexts.

    Args:
      without: the fold to leave out; None for none.
    """
    if without is None:
      return self.context_offsets, self.context_words
    kept = self.context_folds != without
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[self.context_offsets], self.context_words[kept]

  def both(self, without: int | None = None) -> Ragged:
    """Each entity's page, then its contexts; see `contexts`."""
    parts = (self.pages(), self.contexts(without))
    sizes = [np.diff(offsets) for offsets, _ in parts]
    owner = np.concatenate([np.repeat(np.arange(len(x)), x) for x in sizes])
    words = np.concatenate([words for _, words in parts])
    order = np.argsort(owner, kind="stable")
    return np.concatenate([[0], np.cumsum(sum(sizes))]), words[order]


def count_words(
  stream: Iterable[entities_lib.Sentence],
) -> collections.Counter[str]:
  """Counts the lower-cased words of sentences, without punctuation."""
  counts: collections.Counter[str] = collections.Counter()
  for sentence in stream:
    counts.update(
      token.lower() for token in sentence.tokens if any(map(str.isalnum, token))
    )
  return counts


def from_sentences(
  stream: Iterable[entities_lib.Sentence],
  vocab: vocab_lib.Vocab,
  *,
  window: int = 20,
  most_page: int = 1000,
  most_context: int = 1000,
  skip_most_frequent: int = 0,
) -> Bags:
  """Gathers the bags of all mentioned entities in one pass.

  Args:
    stream: sentences with mentions; also those without, for pages. A
      sentence belongs to the page that its `doc` names.
    vocab: the words that count, lower-cased.
    window: words on both sides of a mention together: half of them before
      it, half behind; known words only.
    most_page: words of a page that are kept, the first ones.
    most_context: words around an entity's mentions that are kept.
    skip_most_frequent: the first words of the vocabulary, which is sorted by
      frequency, that do not count.

  Returns:
    The bags, entities by name, all in fold 0. An entity that has no page has
    an empty bag there.
  """
  gathered = _Gathered(most_page, most_context, window)
  half = max(window // 2, 1)
  for sentence in stream:
    ids = vocab.ids(token.lower() for token in sentence.tokens)
    ids = np.where(ids < skip_most_frequent, -1, ids)
    if sentence.doc:
      gathered.add_page(sentence.doc, ids[ids >= 0].tolist())
    for start, end, entity in sentence.mentions:
      before, after = ids[:start], ids[end:]
      near = before[before >= 0][-half:], after[after >= 0][:half]
      gathered.add_context(entity, np.concatenate(near).tolist())
  if not gathered.contexts:
    raise InputError("no sentence mentions an entity: there are no bags")
  return gathered.finish(sorted(gathered.contexts))


def from_documents(
  documents: Iterable[linked_documents.LinkedDocument],
  entities: Sequence[str],
  words: Mapping[str, int],
  *,
  window: int = 20,
  most: int = 20_000,
  folds: int = 2,
) -> Bags:
  """Gathers the bags of chosen entities in one pass.

  Args:
    documents: the text. A document named like an entity, or `NAME#NUMBER`
      for a part, is its page.
    entities: ids of the n entities; others are passed over.
    words: ids of the words that count, lower-cased.
    window: tokens around a mention, half on each side.
    most: words kept of a page, and of an entity's contexts.

  Returns:
    The bags in the order of `entities`. The words of an entity's name are
    the beginning of its page.
  """
  gathered = _Gathered(most, most, window)
  known = set(entities)

  def ids(tokens: Iterable[str]) -> list[int]:
    return [i for t in tokens if (i := words.get(t.lower(), -1)) >= 0]

  for name in entities:
    gathered.add_page(name, ids(entities_lib.tokenize(name)))
  for document in documents:
    fold = fold_of(document.id, folds)
    page = wikitext.normal_title(_PART.sub("", document.id))
    if page in known:
      gathered.add_page(page, ids(document.tokens))
    for mention in document.mentions:
      if mention.entity in known:
        around = linked_documents.context(document, mention, window // 2)
        gathered.add_context(mention.entity, ids(around), fold)
  return gathered.finish(entities)


def fold_of(name: str, folds: int) -> int:
  """The fold of a document, the same in every run."""
  return zlib.crc32(f"fold {name}".encode()) % folds


class _Gathered:
  """Bags that grow to their bounds."""

  def __init__(self, most_page: int, most_context: int, window: int):
    if min(window, most_page, most_context) < 1:
      raise InputError("window and the numbers of words kept must be positive")
    self._most = most_page, most_context
    self.pages: dict[str, array.array] = {}
    self.contexts: dict[str, array.array] = {}
    self._folds: dict[str, array.array] = {}

  def add_page(self, name: str, ids: list[int]) -> None:
    bag = self.pages.setdefault(name, array.array("i"))
    bag.extend(ids[: self._most[0] - len(bag)])

  def add_context(self, name: str, ids: list[int], fold: int = 0) -> None:
    bag = self.contexts.setdefault(name, array.array("i"))
    ids = ids[: self._most[1] - len(bag)]
    bag.extend(ids)
    self._folds.setdefault(name, array.array("b")).extend([fold] * len(ids))

  def finish(self, names: Sequence[str]) -> Bags:
    offsets, folds = _join([self._folds.get(x) for x in names], np.int8)
    _, words = _join([self.contexts.get(x) for x in names], np.int32)
    pages = _join([self.pages.get(x) for x in names], np.int32)
    return Bags(list(names), *pages, offsets, words, folds)


def _join(
  bags: Sequence[array.array | None], dtype: type
) -> tuple[np.ndarray, np.ndarray]:
  lengths = [0 if bag is None else len(bag) for bag in bags]
  offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
  words: np.ndarray = np.zeros(int(offsets[-1]), dtype)
  for bag, start, length in zip(bags, offsets.tolist(), lengths):
    if bag is not None:
      words[start : start + length] = bag
  return offsets, words

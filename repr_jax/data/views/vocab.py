"""Vocabularies: words with their counts, in one canonical order."""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from repr_jax import errors
from repr_jax.data.io import files


@dataclasses.dataclass(frozen=True, eq=False)
class Vocab:
  """Words with their counts; `from_counts` puts them in canonical order.

  The canonical order is by falling count, then by word.

  Attributes:
    words: the words; the position of a word is its id.
    counts: how often each was seen, int64 [n].
  """

  words: tuple[str, ...]
  counts: np.ndarray

  def __post_init__(self):
    object.__setattr__(self, "words", tuple(self.words))
    counts = np.array(self.counts, dtype=np.int64)
    counts.flags.writeable = False
    object.__setattr__(self, "counts", counts)
    if counts.shape != (len(self.words),):
      raise errors.InputError(
        f"{len(self.words)} words but counts of shape {counts.shape}"
      )
    if len(self._index) != len(self.words):
      raise errors.InputError("a word occurs twice in the vocabulary")

  def __len__(self) -> int:
    return len(self.words)

  def __contains__(self, word: object) -> bool:
    return word in self._index

  def __eq__(self, other: object) -> bool:
    return (
      isinstance(other, Vocab)
      and self.words == other.words
      and np.array_equal(self.counts, other.counts)
    )

  def __hash__(self) -> int:
    return hash(self.words)

  @functools.cached_property
  def _index(self) -> dict[str, int]:
    return {word: i for i, word in enumerate(self.words)}

  def ids(self, words: Iterable[str]) -> np.ndarray:
    """Looks words up.

    Args:
      words: any number of words.

    Returns:
      Their ids, int32 [n]; -1 for a word outside the vocabulary.
    """
    rows = map(self._index.get, words, itertools.repeat(-1))
    return np.fromiter(rows, dtype=np.int32)

  @classmethod
  def from_counts(
    cls,
    counts: Mapping[str, int],
    size: int | None = None,
    min_count: int = 1,
  ) -> "Vocab":
    """Keeps the most frequent words.

    Args:
      counts: how often each word was seen.
      size: the number of words to keep at most; None for all.
      min_count: words seen fewer times are dropped.

    Returns:
      The vocabulary. Equal counts at the cut go by the order of the words,
      so the result does not depend on the order of `counts`.
    """
    if size is not None and size < 0:
      raise errors.InputError(f"a vocabulary cannot have size {size}")
    kept = [(-n, word) for word, n in counts.items() if n >= min_count]
    kept.sort()
    kept = kept[:size]
    return cls(
      tuple(word for _, word in kept),
      np.array([-n for n, _ in kept], dtype=np.int64),
    )


def keep_word(word: str) -> bool:
  """The thesis' filter of odd tokens (section 3.4).

  Args:
    word: a lower-case token.

  Returns:
    False for a word longer than 5 characters with more than 3 characters
    that are not letters.
  """
  return len(word) <= 5 or sum(not c.isalpha() for c in word) <= 3


def filter_counts(counts: Mapping[str, int]) -> dict[str, int]:
  """Lower-cases words, adds up their counts and drops odd tokens.

  Args:
    counts: how often each token was seen.

  Returns:
    The counts of the words that `keep_word` keeps.
  """
  merged: dict[str, int] = {}
  for word, count in counts.items():
    word = word.lower()
    if keep_word(word):
      merged[word] = merged.get(word, 0) + count
  return merged


def write_vocab(path: files.Path, vocab: Vocab) -> None:
  """Writes one `word<TAB>count` line for each word, in the order of ids.

  Args:
    path: the file to write.
    vocab: the vocabulary.
  """
  _check_words(vocab.words, path)
  with files.atomic_write(path) as stream:
    for word, count in zip(vocab.words, vocab.counts.tolist()):
      stream.write(f"{word}\t{count}\n")


def read_vocab(path: files.Path) -> Vocab:
  """Reads what `write_vocab` wrote, or a list of words.

  Args:
    path: a file of `word<TAB>count` lines, or of lines with a word alone;
      blank lines are passed over.

  Returns:
    The vocabulary; a word's id is its place in the file. Words without counts
    get counts that fall with the id.
  """
  seen: dict[str, int] = {}
  counts: dict[str, int] = {}
  plain: bool | None = None  # the first line decides
  for line, text in files.numbered_lines(path):
    word, tab, number = text.rpartition("\t")
    if plain is None:
      plain = not tab
    if plain:
      word, number = text.strip(), "0"
    if plain == bool(tab) or not word.strip():
      raise errors.InputError(
        f"expected {'a word' if plain else 'word<TAB>count'} on the line",
        path=path,
        line=line,
      )
    if word in seen:
      raise errors.InputError(
        f"word {word!r} is already on line {seen[word]}",
        path=path,
        line=line,
      )
    seen[word] = line
    counts[word] = _count(number, path, line)
  numbers = np.fromiter(counts.values(), dtype=np.int64)
  if plain:
    numbers = np.arange(len(counts), 0, -1)
  return Vocab(tuple(counts), numbers)


def _count(number: str, path: files.Path, line: int) -> int:
  """Parses a count that fits int64."""
  text = number.strip()
  if not (text.isascii() and text.isdigit() and len(text) < 19):
    raise errors.InputError(
      f"{number[:40]!r} is not a count", path=path, line=line
    )
  return int(text)


def _check_words(words: Sequence[str], path: files.Path) -> None:
  """Refuses words that a line of the file cannot hold."""
  for row, word in enumerate(words):
    if not word.strip() or set(word) & set("\n\r") or files.marked(word):
      raise errors.InputError(
        f"word {word!r} at row {row} cannot be written to a text file",
        path=path,
      )

"""Plain-text corpora: one sentence on each line, words between blanks.

Files are streamed, so a corpus may be larger than memory. Counting and
indexing run over whole blocks of text; no Python code runs for each token.
"""

import collections
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax import errors
from repr_jax.data.io import files
from repr_jax.data.views import vocab as vocab_lib

Paths = files.Path | Sequence[files.Path]

_UNKNOWN = -1
_END = -2


class TokenChunk(NamedTuple):
  """A run of whole sentences.

  Attributes:
    ids: the words' ids one sentence after the other, int32 [t]; -1 for a word
      outside the vocabulary, which keeps its place.
    starts: where each sentence begins, and the end, int64 [s + 1].
  """

  ids: np.ndarray
  starts: np.ndarray

  @property
  def sentence(self) -> np.ndarray:
    """The number of each token's sentence within the chunk, int32 [t]."""
    lengths = np.diff(self.starts)
    return np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)

  def pairs(self, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of known words at a fixed distance in the same sentence.

    Args:
      offset: how many places the first word stands before the second.

    Returns:
      Ids of the first and of the second words, int32 [p] each.
    """
    if offset < 1:
      raise errors.InputError(f"offset must be positive, not {offset}")
    first, second = self.ids[:-offset], self.ids[offset:]
    sentence = self.sentence
    kept = sentence[:-offset] == sentence[offset:]
    kept &= (first >= 0) & (second >= 0)
    return first[kept], second[kept]


def sentences(paths: Paths, lower: bool = False) -> Iterator[list[str]]:
  """Streams sentences that have at least one word.

  Args:
    paths: one file or several.
    lower: whether to lower-case the words.

  Yields:
    The words of one sentence.
  """
  for block in _blocks(paths, lower):
    for line in block.split("\n"):
      words = line.split()
      if words:
        yield words


def count_words(paths: Paths, lower: bool = True) -> collections.Counter[str]:
  """Counts the words of a corpus.

  Args:
    paths: one file or several.
    lower: whether to lower-case the words.

  Returns:
    How often each word occurs.
  """
  counts: collections.Counter[str] = collections.Counter()
  for block in _blocks(paths, lower):
    counts.update(block.split())
  return counts


def token_chunks(
  paths: Paths,
  vocab: vocab_lib.Vocab,
  chunk_tokens: int = 1 << 20,
  lower: bool = True,
) -> Iterator[TokenChunk]:
  """Streams a corpus as arrays of word ids.

  Args:
    paths: one file or several.
    vocab: the vocabulary.
    chunk_tokens: the most tokens in a chunk, unless one sentence alone has
      more.
    lower: whether to lower-case the words before they are looked up.

  Yields:
    Chunks of whole sentences in the order of the corpus; sentences without
    words are left out.
  """
  if chunk_tokens < 1:
    raise errors.InputError(f"chunk_tokens must be positive: {chunk_tokens}")
  index = {word: i for i, word in enumerate(vocab.words)}
  index["\0"] = _END
  ids = np.zeros(0, np.int32)
  ends = np.zeros(0, np.int64)
  for block in _blocks(paths, lower):
    more_ids, more_ends = _look_up(block, index)
    ends = np.concatenate([ends, more_ends + len(ids)])
    ids = np.concatenate([ids, more_ids])
    done = 0
    while len(ids) - done > chunk_tokens:
      cut = int(np.searchsorted(ends, done + chunk_tokens, side="right"))
      cut = max(cut, 1)
      yield _chunk(ids, ends[:cut], done)
      done = int(ends[cut - 1])
      ends = ends[cut:]
    ids, ends = ids[done:], ends - done
  if len(ids):
    yield _chunk(ids, ends, 0)


def _chunk(ids: np.ndarray, ends: np.ndarray, start: int) -> TokenChunk:
  starts = np.concatenate([[start], ends]) - start
  return TokenChunk(ids[start : ends[-1]].copy(), starts)


def _look_up(
  block: str, index: dict[str, int]
) -> tuple[np.ndarray, np.ndarray]:
  """Ids of a block's words and the ends of its sentences."""
  # A mark between blanks survives the split and tells where a line ends.
  words = block.replace("\n", " \0 ").split()
  words.append("\0")
  rows = map(index.get, words, itertools.repeat(_UNKNOWN))
  marked = np.fromiter(rows, np.int32, len(words))
  at = np.flatnonzero(marked == _END)
  ends = at - np.arange(len(at))
  kept = np.diff(ends, prepend=0) > 0
  return marked[marked != _END], ends[kept].astype(np.int64)


def _blocks(paths: Paths, lower: bool) -> Iterator[str]:
  """Blocks of whole lines without NUL, which is no part of a word."""
  if isinstance(paths, (str, os.PathLike)):
    paths = [paths]
  if not paths:
    raise errors.InputError("no files of text were named")
  for path in paths:
    for _, block in files.text_blocks(path):
      if "\0" in block:
        block = block.replace("\0", " ")
      yield block.lower() if lower else block

"""Tokenized copies of text, and vocabularies."""

import collections
import pathlib
import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from repr_jax.data import vectors, wordnet
from repr_jax.data.io import files
from repr_jax.data.views import store, text, vocab

# Vowel signs and other marks are part of words, but not of \w.
_MARKS = "".join(
  chr(c)
  for c in range(0x300, 0x10000)
  if unicodedata.category(chr(c))[0] == "M"
)
# Words with inner apostrophes and hyphens, or one other symbol.
_LETTERS = rf"(?:[^\W_][{_MARKS}]*)+"
_TOKEN = re.compile(rf"{_LETTERS}(?:['’.-]{_LETTERS})*|[^\w\s]")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def tokenized(paths: Sequence[str], folder: pathlib.Path) -> list[str]:
  """Copies raw text with symbols split from words, one sentence per line.

  Args:
    paths: files of text, one sentence or paragraph on a line.
    folder: where copies are kept; a copy newer than its text is reused.

  Returns:
    The paths of the copies, in the same order.
  """
  copies = []
  for path in paths:
    mark = store.fingerprint({"tokens": _TOKEN.pattern}, [path])[:16]
    copy = folder / f"{pathlib.Path(path).name.split('.')[0]}-{mark}.txt"
    copies.append(str(copy))
    if copy.exists():
      continue
    folder.mkdir(parents=True, exist_ok=True)
    with files.atomic_write(copy) as out:
      for _, block in files.text_blocks(path):
        for line in block.split("\n"):
          tokens = _TOKEN.findall(line)
          if tokens:
            out.write(" ".join(tokens) + "\n")
  return copies


def text_vocabulary(
  paths: Sequence[str], size: int, min_count: int
) -> vocab.Vocab:
  """The most frequent words of a corpus (thesis 3.4).

  Args:
    size: the number of words at most.
    min_count: rarer words are dropped.

  Returns:
    The vocabulary, without odd tokens.
  """
  counts = vocab.filter_counts(text.count_words(paths))
  return vocab.Vocab.from_counts(counts, size, min_count)


def vectors_vocabulary(path: str, size: int) -> vocab.Vocab:
  """The first words of a file of vectors, usually the most frequent ones.

  Args:
    size: how many lines to read.

  Returns:
    The vocabulary, without marks and odd tokens; counts are by rank.
  """
  words = [
    word
    for word in vectors.read_vectors(path, limit=size).words
    if vocab.keep_word(word) and _WORD.match(word)
  ]
  return vocab.Vocab(tuple(words), np.arange(len(words), 0, -1))


def wordnet_vocabulary(path: str | None, size: int) -> vocab.Vocab:
  """Words of WordNet by how often its glosses and synsets use them.

  Args:
    path: folder of WordNet, None to look where `wordnet.load` does.
    size: the number of words at most.

  Returns:
    The vocabulary: single words, in lower case.
  """
  database = wordnet.load(path)
  counts: collections.Counter[str] = collections.Counter()
  for gloss in database.tables.gloss:
    counts.update(_WORD.findall(gloss.lower()))
  for lemmas in database.tables.lemmas:
    # A lemma has views of its own, so it counts more than a word of a gloss.
    counts.update(
      {x.lower(): 2 for x in lemmas if "_" not in x and " " not in x}
    )
  return vocab.Vocab.from_counts(vocab.filter_counts(counts), size)

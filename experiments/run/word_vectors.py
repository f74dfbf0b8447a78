"""Vocabulary and word vectors of the training text.

By default the vectors are MVLSA's, of three views: the documents that a word
is in, the words before it and the words after it. Any file of vectors can
take their place.

Memory is bounded: the text is streamed from a file. From a long text only
parts at equal distances are counted. The view of documents counts at most 8
million words, each of the others 64 million.
"""

import dataclasses
import itertools
import pathlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax import multiview
from repr_jax.data import vectors
from repr_jax.data.documents.linked_documents import LinkedDocument
from repr_jax.data.io import array_files, files
from repr_jax.data.views import counting, text, vocab
from repr_jax.errors import InputError
from repr_jax.ops import normalize

_BESIDE = 5
_COLUMNS = 20_000
_IN_DOCUMENTS = 1 << 23  # words of the text, at most, in the view of documents
_IN_SIDES = 1 << 26  # and in those of the words before and after
_CHUNK = 1 << 20  # words of the text that are held
_HELD = 1 << 25  # counts of words side by side that are held
_DISTINCT = 1 << 22  # words whose counts are held


@dataclasses.dataclass(frozen=True)
class Settings:
  """How words get their vectors.

  Attributes:
    word_vectors: file of vectors; None for MVLSA's of the text.
    dim: numbers in MVLSA's.
    vocabulary: words, at most.
    min_count: rarer words are dropped.
    drop_most_frequent: most frequent words that are no context.
    seed: seed of MVLSA.
  """

  word_vectors: str | None = None
  dim: int = 100
  vocabulary: int = 50_000
  min_count: int = 2
  drop_most_frequent: int = 100
  seed: int = 0


class Words(NamedTuple):
  """Words with their vectors.

  Attributes:
    vocabulary: words and counts.
    vectors: unit rows, float32 [v, d].
    telling: rows by word, without the most frequent words.
  """

  vocabulary: vocab.Vocab
  vectors: np.ndarray
  telling: dict[str, int]


def fit(
  documents: Iterable[LinkedDocument], settings: Settings, folder: pathlib.Path
) -> Words:
  """Vectors of the words of documents, or those kept in the folder.

  Args:
    documents: the training text; streamed to a file of the folder.
    settings: how they get them.
    folder: where text and vectors are kept.

  Returns:
    The words.
  """
  kept = folder / "words.npz"
  if kept.exists():
    stored = array_files.read_npz(kept, ["words", "counts", "vectors"])
    known = vocab.Vocab(tuple(stored["words"].tolist()), stored["counts"])
    return _words(known, stored["vectors"], settings)
  folder.mkdir(parents=True, exist_ok=True)
  path = folder / "text.txt"
  counts, total = _write_text(documents, path)
  known = vocab.Vocab.from_counts(
    counts, settings.vocabulary, settings.min_count
  )
  try:
    if len(known) < 2:
      raise InputError(
        f"fewer than two words occur {settings.min_count} times; lower "
        "--min_count"
      )
    if settings.word_vectors is not None:
      known, table = _from_file(settings.word_vectors, known)
    else:
      table = _mvlsa(path, known, total, settings)
  except InputError:
    path.unlink()  # nothing was computed: other flags may have the directory
    raise
  table = normalize.unit_rows(np.asarray(table, np.float32))
  names = np.asarray(known.words, dtype=np.str_)
  array_files.write_npz(kept, words=names, counts=known.counts, vectors=table)
  return _words(known, table, settings)


def is_word(token: str) -> bool:
  """Whether a token has a letter or digit and is no mask of asterisks."""
  return any(c.isalnum() for c in token)


def _words(known: vocab.Vocab, table: np.ndarray, settings: Settings) -> Words:
  frequent = min(settings.drop_most_frequent, len(known) // 10)
  telling = {
    word: row for row, word in enumerate(known.words) if row >= frequent
  }
  return Words(known, table, telling)


def _write_text(
  documents: Iterable[LinkedDocument], path: pathlib.Path
) -> tuple[Counter[str], int]:
  """One document on a line, in lower case.

  Returns:
    Counts of words and the number of words of the text. If there are too many
    distinct words, rare ones are left out.
  """
  counts: Counter[str] = Counter()
  total = 0
  with files.atomic_write(path) as out:
    for document in documents:
      tokens = [t.lower() for t in document.tokens if is_word(t)]
      counts.update(tokens)
      total += len(tokens)
      floor = 1
      while len(counts) > _DISTINCT:
        counts = Counter({w: n for w, n in counts.items() if n > floor})
        floor += 1
      out.write(" ".join(tokens) + "\n")
  return counts, total


def _from_file(path: str, known: vocab.Vocab) -> tuple[vocab.Vocab, np.ndarray]:
  """Vectors of a file for the words that both have.

  The vocabulary is in lower case, but files have names as they are written:
  a word takes its own vector, or else that of the word with a capital, in
  capitals, or the first that differs in case alone.
  """
  read = vectors.read_vectors(path)
  rows = {word: row for row, word in enumerate(read.words)}
  places: dict[str, int] = {}
  for word in known.words:
    for form in (word, word.capitalize(), word.upper()):
      if form in rows:
        places[word] = rows[form]
        break
  missing = set(known.words) - set(places)
  for row, word in enumerate(read.words):
    if word.lower() in missing:
      places.setdefault(word.lower(), row)
  both = [i for i, word in enumerate(known.words) if word in places]
  if not both:
    raise InputError("has no word of the training text", path=path)
  words = tuple(known.words[i] for i in both)
  table = np.asarray(read.array)[[places[word] for word in words]]
  return vocab.Vocab(words, known.counts[both]), table


def _mvlsa(
  path: pathlib.Path, known: vocab.Vocab, total: int, settings: Settings
) -> np.ndarray:
  size = len(known)
  how = multiview.Weighting("ppmi", smoothing=0.75)
  views = list(_views(path, known, total))
  rank = max(1, min(settings.dim, size - 1))
  fitted = multiview.fit(
    views, rank, m=min(2 * rank, size - 1), projections=False,
    max_cycles=2, key=settings.seed, weighting=how,
  )  # fmt: skip
  return np.asarray(fitted.model.embedding)


def _views(
  path: pathlib.Path, known: vocab.Vocab, total: int
) -> Iterator[sp.csr_array]:
  """Counts of documents, of words before and of words after, [v, columns]."""
  size = len(known)
  yield _by_document(_chunks(path, known, total, _IN_DOCUMENTS), size)
  offsets = [*range(1, _BESIDE + 1), *range(-1, -_BESIDE - 1, -1)]
  with counting.count_offsets(
    _chunks(path, known, total, _IN_SIDES), size, min(_COLUMNS, size), offsets,
    limit=_HELD, piece=_CHUNK, spill=path.parent, workers=2,
  ) as tally:  # fmt: skip
    for sign in (1, -1):
      side = tally.matrix(sign)
      for offset in range(2, _BESIDE + 1):
        side = side + tally.matrix(sign * offset)
      yield sp.csr_array(side)


def _chunks(
  path: pathlib.Path, known: vocab.Vocab, total: int, most: int
) -> Iterator[text.TokenChunk]:
  """Streams a text of `total` words, or about `most` of them."""
  step = max(1, -(-total // most))
  return itertools.islice(text.token_chunks(path, known, _CHUNK), 0, None, step)


def _by_document(chunks: Iterable[text.TokenChunk], size: int) -> sp.csr_array:
  """How often each word stands in each document, [v, documents]."""
  blocks = [
    counting.count_pairs(
      chunk.ids, chunk.sentence, (size, len(chunk.starts) - 1)
    ).astype(np.float32)
    for chunk in chunks
  ]
  return sp.csr_array(sp.hstack(blocks, format="csr"))

"""Vocabulary and word vectors of the training text.

By default the vectors are MVLSA's, of three views: the documents that a word
is in, the words before it and the words after it. Any file of vectors can
take their place.
"""

import pathlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from experiments.ned.options import Options
from repr_jax import multiview
from repr_jax.data import files, text, vectors, vocab
from repr_jax.data.linked_documents import LinkedDocument
from repr_jax.errors import InputError
from repr_jax.multiview import weighting

_BESIDE = 5
_COLUMNS = 20_000


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

  def ids(self, tokens: Iterable[str]) -> list[int]:
    """Rows of the telling words among tokens of any case."""
    find = self.telling.get
    return [i for t in tokens if (i := find(t.lower(), -1)) >= 0]


def fit(
  documents: Iterable[LinkedDocument], options: Options, folder: pathlib.Path
) -> Words:
  """Vectors of the words of documents, or those found in the folder.

  Args:
    documents: the training text; streamed to a file of the folder.
    options: of the run.
    folder: where text and vectors are kept.

  Returns:
    The words.
  """
  kept = folder / "words.npz"
  if kept.exists():
    stored = files.read_npz(kept, ["words", "counts", "vectors"])
    known = vocab.Vocab(tuple(stored["words"].tolist()), stored["counts"])
    return _words(known, stored["vectors"], options)
  folder.mkdir(parents=True, exist_ok=True)
  path = folder / "text.txt"
  counts = _write_text(documents, path)
  known = vocab.Vocab.from_counts(counts, options.vocabulary, options.min_count)
  if len(known) < 2:
    path.unlink()  # nothing was computed: other flags may have the directory
    raise InputError(
      f"fewer than two words occur {options.min_count} times; lower --min_count"
    )
  if options.word_vectors is not None:
    known, table = _from_file(options.word_vectors, known)
  else:
    table = _mvlsa(path, known, options)
  table = _unit(table)
  names = np.asarray(known.words, dtype=np.str_)
  files.write_npz(kept, words=names, counts=known.counts, vectors=table)
  return _words(known, table, options)


def is_word(token: str) -> bool:
  """Whether a token has a letter or digit and is no mask of asterisks."""
  return any(c.isalnum() for c in token)


def _words(known: vocab.Vocab, table: np.ndarray, options: Options) -> Words:
  frequent = min(options.drop_most_frequent, len(known) // 10)
  telling = {
    word: row for row, word in enumerate(known.words) if row >= frequent
  }
  return Words(known, table, telling)


def _write_text(
  documents: Iterable[LinkedDocument], path: pathlib.Path
) -> Counter[str]:
  """One document on a line, in lower case; returns the counts of words."""
  counts: Counter[str] = Counter()
  with files.atomic_write(path) as out:
    for document in documents:
      tokens = [t.lower() for t in document.tokens if is_word(t)]
      counts.update(tokens)
      out.write(" ".join(tokens) + "\n")
  return counts


def _from_file(path: str, known: vocab.Vocab) -> tuple[vocab.Vocab, np.ndarray]:
  """Vectors of a file for the words that both have."""
  read = vectors.read_vectors(path)
  rows = {word: row for row, word in enumerate(read.words)}
  both = [i for i, word in enumerate(known.words) if word in rows]
  if not both:
    raise InputError("has no word of the training text", path=path)
  words = tuple(known.words[i] for i in both)
  table = np.asarray(read.array)[[rows[word] for word in words]]
  return vocab.Vocab(words, known.counts[both]), table


def _mvlsa(
  path: pathlib.Path, known: vocab.Vocab, options: Options
) -> np.ndarray:
  size = len(known)
  columns = min(_COLUMNS, size)
  chunks = list(text.token_chunks(path, known))
  offsets = [*range(1, _BESIDE + 1), *range(-1, -_BESIDE - 1, -1)]
  sides: list[sp.csr_array] = []
  with multiview.count_offsets(
    chunks, size, columns, offsets, workers=2
  ) as tally:
    for sign in (1, -1):
      each = [
        sp.vstack(list(tally.blocks(sign * o)), format="csr")
        for o in range(1, _BESIDE + 1)
      ]
      sides.append(sp.csr_array(sum(each[1:], each[0])))
  views = [_by_document(chunks, size), *sides]
  how = weighting.Weighting("ppmi", smoothing=0.75)
  weighted = [weighting.apply(view, how) for view in views]
  rank = max(1, min(options.dim, size - 1))
  fitted = multiview.fit(
    weighted, rank, m=min(2 * rank, size - 1), projections=False,
    max_cycles=2, seed=options.seed,
  )  # fmt: skip
  return np.asarray(fitted.model.embedding)


def _by_document(chunks: Sequence[text.TokenChunk], size: int) -> sp.csr_array:
  """How often each word stands in each document, [v, documents]."""
  rows, columns, base = [], [], 0
  for chunk in chunks:
    inside = chunk.ids >= 0
    rows.append(chunk.ids[inside])
    columns.append(chunk.sentence[inside] + base)
    base += len(chunk.starts) - 1
  row, column = np.concatenate(rows), np.concatenate(columns)
  ones = np.ones(len(row), np.float32)
  return sp.coo_array((ones, (row, column)), (size, max(base, 1))).tocsr()


def _unit(table: np.ndarray) -> np.ndarray:
  norms = np.linalg.norm(table, axis=1, keepdims=True)
  return (table / np.maximum(norms, 1e-12)).astype(np.float32)

"""A source of views: one object that says what it reads and what it makes.

To add one, write a function of the vocabulary that yields `Made` views and
give it to a `Source`; `collection.collect` counts, stores and finds it like
any other, and `experiments.mvlsa --sources=module:NAME` takes it by name.

    def make(words, notes):
      yield Made("shape_length", [matrix], columns, {})

    SHAPES = Source("shapes", make)
"""

import collections
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array as Csr

from repr_jax.data.io import files
from repr_jax.data.views import counting, vocab

Notes = collections.Counter  # counts of what was left out, by kind

OPEN = 2**31 - 1  # columns of a view whose width is not known yet
_BUFFER = 1 << 20  # pairs gathered in Python before they are counted


class Made(NamedTuple):
  """A view about to be stored.

  Attributes:
    name: its name.
    blocks: blocks of its rows, in order, [b, d] each.
    columns: names of its columns.
    meta: JSON values to keep with it.
  """

  name: str
  blocks: Iterable[Csr | np.ndarray]
  columns: Sequence[str]
  meta: dict[str, Any]


class Source(NamedTuple):
  """One input of views.

  Attributes:
    name: of its list of views in the store.
    make: yields its views for a vocabulary; counts in the notes what was left
      out.
    paths: files whose content the views depend on.
    options: JSON values that they depend on.
  """

  name: str
  make: Callable[[vocab.Vocab, Notes], Iterator[Made]]
  paths: Sequence[files.Path] = ()
  options: Mapping[str, Any] = {}


def stem(path: files.Path) -> str:
  """A file's name without directory and endings, fit to name a view."""
  name = os.path.basename(os.fspath(path))
  name = re.sub(r"\.(gz|bz2)$", "", name)
  name = re.sub(r"\.(txt|tsv|npz|bin|vec|conllu|conll)$", "", name)
  return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "view"


class Gather:
  """Collects single counts and passes them to a tally in large pieces."""

  def __init__(
    self, words: vocab.Vocab, keys: Sequence[str], width: int, limit: int
  ):
    self._shape = (len(words), width)
    self._tally = counting.Tally(keys, self._shape, limit)
    self._rows: dict[str, list] = {key: [] for key in keys}
    self._columns: dict[str, list] = {key: [] for key in keys}
    self._values: dict[str, list] = {key: [] for key in keys}
    self._most = max(1, min(_BUFFER, limit))
    self.waiting = 0

  def add(self, key: str, row: int, column: int, value: float = 1.0) -> None:
    """Adds to one count of a key."""
    self._rows[key].append(row)
    self._columns[key].append(column)
    self._values[key].append(value)
    self.waiting += 1
    if self.waiting >= self._most:
      for each in self._rows:
        self._flush(each)

  def _flush(self, key: str) -> None:
    if not self._rows[key]:
      return
    values = np.array(self._values[key], np.float64)
    places = (np.array(self._rows[key]), np.array(self._columns[key]))
    counts = Csr((values, places), shape=self._shape)
    counts.sum_duplicates()
    self._tally.reserve(counts.nnz)
    self._tally.add(key, counts)
    self.waiting -= len(self._rows[key])
    self._rows[key], self._columns[key] = [], []
    self._values[key] = []

  def blocks(self, key: str, width: int) -> Iterator[Csr]:
    """The counts of a key as blocks of rows, cut to the final width."""
    self._flush(key)
    for block in self._tally.blocks(key):
      parts = (block.data, block.indices, block.indptr)
      yield Csr(parts, shape=(block.shape[0], width))

  def __enter__(self) -> "Gather":
    return self

  def __exit__(self, *error) -> None:
    self._tally.close()

"""Where views come from: one function for each kind of input.

Each takes the vocabulary and paths, and yields `Made` views as blocks of
rows, so that a view may be larger than memory. What had to be left out is
counted in a `Notes`.
"""

import collections
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array as Csr

from repr_jax.data import vectors
from repr_jax.data.io import array_files, files
from repr_jax.data.views import bitext, counting, dependencies, text, vocab
from repr_jax.errors import InputError
from repr_jax.multiview import alignment, weighting

Notes = collections.Counter  # what was left out: how many

_BUFFER = 1 << 20  # pairs gathered in Python before they are counted
_OPEN = 2**31 - 1  # columns of a view whose width is not known yet


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


def stem(path: files.Path) -> str:
  """A file's name without directory and endings, fit to name a view."""
  name = os.path.basename(os.fspath(path))
  name = re.sub(r"\.(gz|bz2)$", "", name)
  name = re.sub(r"\.(txt|tsv|npz|bin|vec|conllu|conll)$", "", name)
  return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "view"


def from_text(
  words: vocab.Vocab,
  paths: Sequence[files.Path],
  offsets: Sequence[int],
  columns: int,
  notes: Notes,
  limit: int,
  spill: files.Path | None = None,
) -> Iterator[Made]:
  """Word-order views of a corpus (thesis 3.4), see `count_offsets`.

  Args:
    words: the vocabulary, rows and columns of the views.
    paths: files of tokenized text, one sentence on a line.
    offsets: o > 0 for words behind, o < 0 for words ahead.
    columns: how many of the most frequent words are columns.
    notes: counts tokens outside the vocabulary.
    limit: the most counts to hold in memory.
    spill: directory for counts beyond it.

  Yields:
    One view for each offset.
  """

  def chunks():
    for chunk in text.token_chunks(paths, words):
      notes["tokens outside the vocabulary"] += int((chunk.ids < 0).sum())
      yield chunk

  width = min(columns, len(words))
  with counting.count_offsets(
    chunks(), len(words), width, offsets, limit=limit, spill=spill
  ) as tally:
    for offset in offsets:
      side = "behind" if offset > 0 else "ahead"
      name = f"text_{side}_{abs(offset):02d}"
      yield Made(name, tally.blocks(offset), words.words[:width], {})


def from_bitext(
  words: vocab.Vocab,
  paths: Sequence[files.Path],
  notes: Notes,
  limit: int,
  *,
  iterations: int = 5,
  symmetry: str = "intersection",
) -> Iterator[Made]:
  """How often each word was aligned to each foreign word.

  Args:
    words: the vocabulary of the first language.
    paths: files of sentences, of their translations and, if there is a third,
      of alignments; without it the bitext is aligned here, both ways.
    notes: counts sentences and words left out.
    limit: the most counts to hold in memory.
    iterations: steps of EM, where the bitext is aligned here.
    symmetry: how the two directions are joined, see `symmetrize`.

  Yields:
    One view, whose columns are foreign words.
  """
  if len(paths) not in (2, 3):
    raise InputError(
      "a bitext is source:target or source:target:alignments, not "
      + ":".join(map(str, paths))
    )
  pairs: Iterable[bitext.Pair] = bitext.read_bitext(*paths)
  if len(paths) == 2:
    pairs = _aligned(list(pairs), iterations, symmetry, notes)
  foreign: dict[str, int] = {}
  with _Gather(words, ["links"], _OPEN, limit) as gather:
    for pair in pairs:
      assert pair.links is not None
      ids = words.ids(pair.source)
      notes["words outside the vocabulary"] += int((ids < 0).sum())
      for i, j in pair.links.tolist():
        if ids[i] >= 0:
          column = foreign.setdefault(pair.target[j], len(foreign))
          gather.add("links", ids[i], column)
    blocks = gather.blocks("links", len(foreign))
    yield Made(f"bitext_{stem(paths[1])}", blocks, list(foreign), {})


def _aligned(
  pairs: list[bitext.Pair], iterations: int, symmetry: str, notes: Notes
) -> Iterator[bitext.Pair]:
  """Aligns a bitext in both directions."""
  sides = []
  for side in ([p.source for p in pairs], [p.target for p in pairs]):
    index: dict[str, int] = {}
    sides.append(
      [
        np.array([index.setdefault(w, len(index)) for w in line], np.int32)
        for line in side
      ]
    )
  found = []
  for source, target in (sides, sides[::-1]):
    corpus = alignment.prepare(source, target)
    state = alignment.init(corpus)
    for _ in range(iterations):
      state, _ = alignment.update(state, corpus)
    found.append(alignment.best_links(state, corpus))
  notes["sentences too long or empty to align"] += corpus.skipped
  links = alignment.symmetrize(found[0], found[1], symmetry)
  ends = np.searchsorted(links[:, 0], np.arange(len(pairs) + 1))
  for k, pair in enumerate(pairs):
    part = links[ends[k] : ends[k + 1], 1:]
    yield bitext.Pair(pair.source, pair.target, part, pair.line)


def from_dependencies(
  words: vocab.Vocab,
  paths: Sequence[files.Path],
  relations: Sequence[str],
  columns: int,
  notes: Notes,
  limit: int,
  *,
  layout: str = "conllu",
  collapse: bool = True,
) -> Iterator[Made]:
  """How often each word stood under each governor, by relation.

  Args:
    words: the vocabulary, rows and columns of the views.
    paths: CoNLL files.
    relations: one view is made of each.
    columns: how many of the most frequent words may be governors.
    notes: counts arcs left out.
    limit: the most counts to hold in memory.
    layout: of the files, see `read_conll`. Without relations in the file, the
      one view is called dep_any.
    collapse: whether prepositions are folded, see `arcs`.

  Yields:
    One view for each relation, named dep_RELATION.
  """
  if layout == "word-tag-head":
    relations = ("any",)
  wanted, width = set(relations), min(columns, len(words))
  with _Gather(words, relations, width, limit) as gather:
    for path in paths:
      for tree in dependencies.read_conll(path, layout, unlabeled="any"):
        ids = words.ids(tree.words).tolist()
        for i, head, relation in dependencies.arcs(tree, collapse):
          if relation not in wanted:
            notes["arcs of other relations"] += 1
          elif ids[i] < 0 or not 0 <= ids[head] < width:
            notes["arcs with a word outside the vocabulary"] += 1
          else:
            gather.add(relation, ids[i], ids[head])
    names = words.words[:width]
    for relation in relations:
      name = f"dep_{re.sub(r'[^A-Za-z0-9._-]', '-', relation)}"
      blocks = gather.blocks(relation, width)
      yield Made(name, blocks, names, {"relation": relation})


def from_counts(
  words: vocab.Vocab, path: files.Path, notes: Notes, limit: int
) -> Iterator[Made]:
  """A file of `word<TAB>feature<TAB>count` lines; the count may be absent.

  Args:
    words: the vocabulary.
    path: the file; a repeated line adds to the count.
    notes: counts lines left out.
    limit: the most counts to hold in memory.

  Yields:
    One view, named after the file.
  """
  features: dict[str, int] = {}
  known = {word: i for i, word in enumerate(words.words)}
  with _Gather(words, ["counts"], _OPEN, limit) as gather:
    for line, row in enumerate(files.open_text(path), 1):
      if not row.strip():
        continue
      word, _, rest = row.partition("\t")
      feature, _, number = rest.partition("\t")
      if not word or not feature:
        raise InputError(
          "expected word<TAB>feature<TAB>count", path=path, line=line
        )
      count = _count(number, path, line)
      if word not in known:
        notes["lines of words outside the vocabulary"] += 1
        continue
      column = features.setdefault(feature, len(features))
      gather.add("counts", known[word], column, count)
    blocks = gather.blocks("counts", len(features))
    yield Made(f"counts_{stem(path)}", blocks, list(features), {})


def from_matrix(
  words: vocab.Vocab, paths: Sequence[files.Path], notes: Notes
) -> Iterator[Made]:
  """A scipy .npz matrix with a file that names its rows, one on each line.

  Args:
    words: the vocabulary.
    paths: the matrix and the names of its rows.
    notes: counts rows left out.

  Yields:
    One view, named after the file.
  """
  if len(paths) != 2:
    raise InputError(
      f"a matrix is file.npz:rows.txt, not {':'.join(map(str, paths))}"
    )
  matrix = _read_matrix(paths[0])
  names = list(files.open_text(paths[1]))
  if len(names) != matrix.shape[0]:
    raise InputError(
      f"names {len(names)} rows, but {paths[0]} has {matrix.shape[0]}",
      path=paths[1],
    )
  name = f"matrix_{stem(paths[0])}"
  try:
    matrix = weighting.validate(matrix, name)
  except InputError as error:
    raise InputError(str(error), path=paths[0]) from error
  place: dict[str, int] = {}
  for row, word in enumerate(names):
    if place.setdefault(word, row) != row:
      raise InputError(f"{word!r} stands twice", path=paths[1], line=row + 1)
  rows = np.array([place.get(word, -1) for word in words.words], np.int64)
  notes["rows outside the vocabulary"] += len(names) - int((rows >= 0).sum())
  empty = Csr((1, matrix.shape[1]), dtype=np.float32)
  stacked = Csr(scipy.sparse.vstack([matrix, empty], format="csr"))
  titles = [f"column_{c}" for c in range(matrix.shape[1])]
  yield Made(name, [stacked[rows]], titles, {})


def from_vectors(
  words: vocab.Vocab, path: files.Path, notes: Notes
) -> Iterator[Made]:
  """Vectors of another system as a dense view (thesis 3.5).

  Args:
    words: the vocabulary; a word without a vector is a missing row.
    path: vectors in any layout that `read_vectors` knows.
    notes: counts vectors left out.

  Yields:
    One view, named after the file.
  """
  table = vectors.read_vectors(path)
  array, found = table.select(words.words)
  notes["vectors outside the vocabulary"] += len(table) - int(found.sum())
  titles = [f"dimension_{c}" for c in range(array.shape[1])]
  yield Made(f"vectors_{stem(path)}", [array], titles, {})


class _Gather:
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

  def __enter__(self) -> "_Gather":
    return self

  def __exit__(self, *error) -> None:
    self._tally.close()


def _read_matrix(path: files.Path) -> Csr:
  """Reads what scipy.sparse.save_npz wrote, whose claims are checked."""
  try:
    held = array_files.read_npz(path)
    kind = bytes(held["format"].item()).decode()
    shape = tuple(held["shape"].tolist())
    inside: Any
    if kind == "coo" and "row" in held:
      inside = (held["data"], (held["row"], held["col"]))
    elif kind == "coo":
      inside = (held["data"], tuple(held["coords"]))
    elif kind == "dia":
      inside = (held["data"], held["offsets"])
    else:
      inside = (held["data"], held["indices"], held["indptr"])
    known = {"csr": Csr, "csc": scipy.sparse.csc_array}
    known |= {"bsr": scipy.sparse.bsr_array, "coo": scipy.sparse.coo_array}
    matrix = known.get(kind, scipy.sparse.dia_array)(inside, shape=shape)
    if kind in ("csr", "csc", "bsr"):
      matrix.check_format(full_check=True)
    return Csr(matrix)
  except Exception as error:  # scipy says in many ways that it cannot.
    raise InputError(
      f"is not a matrix that scipy.sparse.save_npz wrote ({error})", path=path
    ) from error


def _count(number: str, path: files.Path, line: int) -> float:
  """Parses a count; an absent one is 1."""
  if not number.strip():
    return 1.0
  try:
    count = float(number)
  except ValueError:
    count = -1.0
  if not 0 <= count < np.inf:
    raise InputError(
      f"{number[:40]!r} is not a count: finite and not negative",
      path=path,
      line=line,
    )
  return count

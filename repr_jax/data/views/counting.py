"""Counts co-occurrences of words by an external merge sort.

A pair (row, column) becomes one integer key. A piece of the corpus is counted
by sorting its keys and finding where they change. The sorted pieces are merged:
sums stay in memory up to a limit and go to the disk beyond it. The result is
read in blocks of rows. No step holds more than the limit, whatever the size of
the corpus.
"""

import concurrent.futures
import os
import pathlib
import tempfile
import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array as Csr

from repr_jax.data.io import array_files
from repr_jax.errors import InputError

Chunk = tuple[np.ndarray, np.ndarray]

_PIECE = 1 << 22  # tokens counted at a time: keys stay near the cache
_LIMIT = 1 << 27  # entries held by default: about 1 GB
_INT32 = np.iinfo(np.int32).max


class Tally:
  """Sums of sparse counts under several keys, within a bound of memory.

  Attributes:
    held: entries now in memory.
    peak: the most entries that were ever held between two calls.
    spilled: runs written to the disk.
  """

  def __init__(
    self,
    keys: Iterable[Hashable],
    shape: tuple[int, int],
    limit: int = _LIMIT,
    spill: str | os.PathLike | None = None,
  ):
    """Starts with zero counts.

    Args:
      keys: names of the matrices to sum.
      shape: (rows, columns) of each.
      limit: the most entries to hold in memory, over all keys. While two runs
        are added up, their sum exists beside them.
      spill: directory for runs beyond the limit; the system's if None.
    """
    self._memory: dict[Hashable, list[Csr]] = {key: [] for key in keys}
    self._disk: dict[Hashable, list[pathlib.Path]] = {}
    self._total: dict[Hashable, int] = {}
    self._shape, self._limit, self._spill = shape, limit, spill
    self._folder: tempfile.TemporaryDirectory | None = None
    self._lock = threading.Lock()
    self.held = self.peak = self.spilled = 0

  def reserve(self, entries: int) -> None:
    """Makes room for entries to come; runs go to the disk if need be."""
    if self.held and self.held + entries > self._limit:
      for key in self._memory:
        self._flush(key)

  def add(self, key: Hashable, counts: Csr) -> None:
    """Adds a canonical CSR matrix to a sum; one thread per key at a time."""
    if counts.data.dtype.kind == "i":
      self._total[key] = self._total.get(key, 0) + int(counts.data.sum())
      if self._total[key] > _INT32:  # no cell is larger than the total
        counts = counts.astype(np.int64)
    runs, change = self._memory[key], counts.nnz
    runs.append(counts)
    # Equal sizes are merged first, so an entry is copied log(n) times.
    while len(runs) > 1 and 2 * runs[-1].nnz >= runs[-2].nnz:
      last, before = runs.pop(), runs.pop()
      runs.append(last + before)
      change += runs[-1].nnz - last.nnz - before.nnz
    with self._lock:
      self.held += change
      self.peak = max(self.peak, self.held)

  def blocks(self, key: Hashable) -> Iterator[Csr]:
    """Yields a sum and frees the memory that it took.

    Yields:
      Consecutive blocks of rows, together all rows; float32, canonical.
    """
    if self._disk.get(key):
      self._flush(key)
    runs: list[Csr] = [
      _map(path, self._shape) for path in self._disk.get(key, ())
    ]
    runs += self._memory[key]
    if not runs:
      yield Csr(self._shape, dtype=np.float32)
      return
    sizes = sum(np.diff(run.indptr).astype(np.int64) for run in runs)
    ends = np.cumsum(sizes)
    start = 0
    while start < self._shape[0]:
      base = ends[start - 1] if start else 0
      stop = int(
        np.searchsorted(ends, base + max(self._limit // 4, 1), "right")
      )
      stop = max(stop, start + 1)
      total = _sum([run[start:stop] for run in runs])
      yield Csr(
        (total.data.astype(np.float32), total.indices, total.indptr),
        shape=total.shape,
      )
      start = stop
    with self._lock:
      self.held -= sum(run.nnz for run in self._memory[key])
    self._memory[key] = []

  def matrix(self, key: Hashable) -> Csr:
    """The whole sum in memory, float32 [rows, columns]."""
    blocks = list(self.blocks(key))
    if len(blocks) == 1:
      return blocks[0]
    return Csr(scipy.sparse.vstack(blocks, format="csr"))

  def close(self) -> None:
    """Removes what was written to the disk."""
    if self._folder is not None:
      self._folder.cleanup()
      self._folder = None

  def __enter__(self) -> "Tally":
    return self

  def __exit__(self, *error) -> None:
    self.close()

  def _flush(self, key: Hashable) -> None:
    """Writes the runs of one key to the disk as one run."""
    runs = self._memory[key]
    if not runs:
      return
    if self._folder is None:
      self._folder = tempfile.TemporaryDirectory(dir=self._spill)
    path = pathlib.Path(self._folder.name) / f"{self.spilled:06d}"
    path.mkdir()
    total = _sum(runs)
    for name in ("data", "indices", "indptr"):
      array_files.write_npy(path / f"{name}.npy", getattr(total, name))
    self._disk.setdefault(key, []).append(path)
    self._memory[key] = []
    self.held -= sum(run.nnz for run in runs)
    self.spilled += 1


def count_pairs(
  rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> Csr:
  """Counts how often each (row, column) occurs.

  Args:
    rows: row of each pair, integers [n]; a negative one drops the pair.
    columns: column of each pair, integers [n]; likewise.
    shape: (rows, columns) of the result.

  Returns:
    The counts, canonical int32 CSR.

  Raises:
    InputError: where a pair lies outside the shape.
  """
  rows, columns = np.asarray(rows), np.asarray(columns)
  for name, ids, size in zip(("row", "column"), (rows, columns), shape):
    if ids.size and ids.dtype.kind not in "iu":
      raise InputError(f"the {name}s of pairs must be whole numbers")
    if ids.max(initial=-1) >= size:  # it would count in another row
      raise InputError(f"a pair has {name} {ids.max()} of {size}, from 0 on")
  bits, kind = _layout(shape)
  known = (rows >= 0) & (columns >= 0)
  keys = rows[known].astype(kind) << kind(bits)
  keys |= columns[known].astype(kind)
  return _count_keys(keys, bits, shape)


def count_offsets(
  chunks: Iterable[Chunk],
  rows: int,
  columns: int,
  offsets: Sequence[int],
  *,
  limit: int = _LIMIT,
  piece: int = _PIECE,
  spill: str | os.PathLike | None = None,
  workers: int | None = None,
) -> Tally:
  """Word-order views of a corpus (thesis 3.4), all offsets in one pass.

  Entry (i, c) of the view of offset o > 0 is the number of times that word c
  stands o positions before word i in the same sentence; with o < 0, -o
  positions after it. A word outside the vocabulary keeps its position.

  Args:
    chunks: pairs of token ids, int32 [n] (negative for an unknown word), and
      the positions where sentences start, ascending [s], the first of them 0.
    rows: size of the vocabulary; ids lie below it.
    columns: only context words with ids below this count: the most frequent
      ones where the vocabulary is sorted.
    offsets: distinct nonzero offsets.
    limit: the most counts to hold in memory; more go to the disk.
    piece: tokens to count at a time.
    spill: directory for counts beyond the limit; the system's if None.
    workers: threads; the number of cores if None.

  Returns:
    The counts, one key per offset. Close it (or use `with`) when done.
  """
  if 0 in offsets or len(set(offsets)) != len(offsets) or not len(offsets):
    raise InputError(f"offsets must be distinct and not 0: {list(offsets)}")
  shape, reach = (rows, columns), max(abs(offset) for offset in offsets)
  piece = max(1, min(piece, limit // len(offsets)))
  tally = Tally(offsets, shape, limit, spill)
  workers = workers or os.cpu_count() or 1
  try:
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
      for ids, place, first in _pieces(chunks, rows, piece, reach):
        tally.reserve((len(ids) - first) * len(offsets))
        tokens = _Tokens(ids, place, first, shape)

        def work(offset: int, tokens: _Tokens = tokens) -> None:
          tally.add(offset, tokens.count(offset))

        list(pool.map(work, offsets))
  except BaseException:
    tally.close()
    raise
  return tally


class _Tokens:
  """A piece of the corpus, with what all offsets share."""

  def __init__(self, ids, place, first, shape):
    self._bits, kind = _layout(shape)
    self._low = ids.astype(kind)
    self._high = self._low << kind(self._bits)
    self._row = ids >= 0
    self._column = self._row & (ids < shape[1])
    self._place, self._first, self._shape = place, first, shape

  def count(self, offset: int) -> Csr:
    """Counts the pairs whose later word lies in this piece."""
    size, gap = len(self._low), abs(offset)
    later = slice(max(self._first, gap), size)
    earlier = slice(later.start - gap, size - gap)
    if later.start >= size:
      return Csr(self._shape, dtype=np.int32)
    row, column = (later, earlier) if offset > 0 else (earlier, later)
    valid = self._row[row] & self._column[column]
    valid &= self._place[later] >= gap
    keys = (self._high[row] | self._low[column])[valid]
    return _count_keys(keys, self._bits, self._shape)


def _pieces(
  chunks: Iterable[Chunk], rows: int, piece: int, reach: int
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
  """Cuts a stream of chunks into pieces of about one size.

  Yields:
    ids [n], the position of each in its sentence, at most `reach` [n], and the
    number of leading ids from the piece before, which are context only.
  """
  kind = np.uint8 if reach < 256 else np.int32
  waiting: list[Chunk] = []
  size = 0
  for chunk in chunks:
    ids, starts = _checked(chunk, rows)
    lengths = np.diff(starts, append=len(ids))
    place = np.arange(len(ids)) - np.repeat(starts, lengths)
    waiting.append((ids, np.minimum(place, reach).astype(kind)))
    size += len(ids)
    if size >= piece:
      yield from _cut(waiting, piece, reach)
      waiting, size = [], 0
  if size:
    yield from _cut(waiting, piece, reach)


def _cut(
  waiting: list[Chunk], piece: int, reach: int
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
  """Joins chunks and cuts them anew; a sentence may be cut, see `_pieces`."""
  ids = np.concatenate([pair[0] for pair in waiting])
  place = np.concatenate([pair[1] for pair in waiting])
  for start in range(0, len(ids), piece):
    lead = min(start, reach)
    part = slice(start - lead, start + piece)
    yield ids[part], place[part], lead


def _checked(chunk: Chunk, rows: int) -> Chunk:
  """Refuses a chunk whose ids or sentence starts make no sense."""
  ids, starts = np.asarray(chunk[0]), np.asarray(chunk[1], dtype=np.int64)
  if ids.size and int(ids.max()) >= rows:
    raise InputError(f"token id {ids.max()} in a vocabulary of {rows} words")
  if ids.size and (
    not starts.size
    or starts[0] != 0
    or starts[-1] > ids.size
    or np.any(np.diff(starts) < 0)
  ):
    raise InputError("sentence starts must ascend from 0 within the chunk")
  return ids, starts if ids.size else starts[:0]


def _layout(shape: tuple[int, int]) -> tuple[int, type]:
  """Bits of a column in a key, and the smallest integer that holds a key."""
  bits = max(shape[1] - 1, 0).bit_length()
  total = bits + max(shape[0] - 1, 0).bit_length()
  if total > 63:
    raise InputError(f"a matrix of {shape[0]} x {shape[1]} is too large")
  return bits, np.uint32 if total <= 32 else np.int64


def _count_keys(keys: np.ndarray, bits: int, shape: tuple[int, int]) -> Csr:
  """Sorts keys in place and counts equal ones."""
  keys.sort()
  change = np.empty(len(keys), bool)
  change[:1] = True
  np.not_equal(keys[1:], keys[:-1], out=change[1:])
  first = np.flatnonzero(change)
  counts = np.diff(first, append=len(keys)).astype(np.int32)
  distinct = keys[first]
  indptr = np.zeros(shape[0] + 1, np.int32)
  rows = (distinct >> keys.dtype.type(bits)).astype(np.int64)
  np.cumsum(np.bincount(rows, minlength=shape[0]), out=indptr[1:])
  mask = keys.dtype.type((1 << bits) - 1)
  indices = (distinct & mask).astype(np.int32)
  result = Csr((counts, indices, indptr), shape=shape)
  result.has_canonical_format = True
  return result


def _sum(runs: Sequence[Csr]) -> Csr:
  """Adds runs up, small ones first."""
  runs = sorted(runs, key=lambda run: run.nnz)
  total = runs[0]
  for run in runs[1:]:
    total = total + run
  return total


def _map(path: pathlib.Path, shape: tuple[int, int]) -> Csr:
  """Maps a run from the disk; slices of its rows are read when taken."""
  run = Csr(shape, dtype=np.int32)
  for name in ("indptr", "indices", "data"):
    # A file with no entry cannot be mapped.
    mapped = name == "indptr" or run.indptr[-1]
    array = np.load(
      path / f"{name}.npy", "r" if mapped else None, allow_pickle=False
    )
    setattr(run, name, np.asarray(array))
  run.has_canonical_format = True
  return run

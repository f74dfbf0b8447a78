"""Views from tables: lists of counts, matrices, vectors of other systems."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array as Csr

from repr_jax.data import vectors
from repr_jax.data.io import array_files, files
from repr_jax.data.views import counts as checks
from repr_jax.data.views import vocab
from repr_jax.data.views.source import OPEN, Gather, Made, Notes, Source, stem
from repr_jax.data.views.sources import LIMIT
from repr_jax.errors import InputError


def counts_source(path: files.Path, *, limit: int = LIMIT) -> Source:
  """A file of `word<TAB>feature<TAB>count` lines; the count may be absent.

  Args:
    path: the file; a repeated line adds to the count.
    limit: the most counts to hold in memory.
  """

  def make(words: vocab.Vocab, notes: Notes) -> Iterator[Made]:
    features: dict[str, int] = {}
    known = {word: i for i, word in enumerate(words.words)}
    with Gather(words, ["counts"], OPEN, limit) as gather:
      for line, row in files.numbered_lines(path):
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

  return Source(f"counts_{stem(path)}", make, [path])


def matrix_source(paths: Sequence[files.Path]) -> Source:
  """A scipy .npz matrix with a file that names its rows, one on each line."""
  if len(paths) != 2:
    raise InputError(
      f"a matrix is file.npz:rows.txt, not {':'.join(map(str, paths))}"
    )

  def make(words: vocab.Vocab, notes: Notes) -> Iterator[Made]:
    matrix = _read_matrix(paths[0])
    names = list(files.open_text(paths[1]))
    if len(names) != matrix.shape[0]:
      raise InputError(
        f"names {len(names)} rows, but {paths[0]} has {matrix.shape[0]}",
        path=paths[1],
      )
    name = f"matrix_{stem(paths[0])}"
    try:
      matrix = checks.validate(matrix, name)
    except InputError as error:
      raise InputError(str(error), path=paths[0]) from error
    place: dict[str, int] = {}
    for row, word in enumerate(names):
      if place.setdefault(word, row) != row:
        raise InputError(f"{word!r} occurs twice", path=paths[1], line=row + 1)
    rows = np.array([place.get(word, -1) for word in words.words], np.int64)
    notes["rows outside the vocabulary"] += len(names) - int((rows >= 0).sum())
    empty = Csr((1, matrix.shape[1]), dtype=np.float32)
    stacked = Csr(scipy.sparse.vstack([matrix, empty], format="csr"))
    titles = [f"column_{c}" for c in range(matrix.shape[1])]
    yield Made(name, [stacked[rows]], titles, {})

  return Source(f"matrix_{stem(paths[0])}", make, paths)


def vectors_source(path: files.Path) -> Source:
  """Vectors of another system as a dense view (thesis 3.5).

  Args:
    path: vectors in any layout that `read_vectors` knows.
  """

  def make(words: vocab.Vocab, notes: Notes) -> Iterator[Made]:
    table = vectors.read_vectors(path)
    array, known = table.select(words.words)
    notes["vectors outside the vocabulary"] += len(table) - int(known.sum())
    titles = [f"dimension_{c}" for c in range(array.shape[1])]
    yield Made(f"vectors_{stem(path)}", [array], titles, {})

  return Source(f"vectors_{stem(path)}", make, [path])


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
  except Exception as error:  # scipy raises errors of many types.
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

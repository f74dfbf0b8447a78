"""Views on disk: counted once, mapped into memory, reused across runs.

A stored view is an `arraystore`: the names of its columns and the arrays
`data`, `indices`, `indptr` of a CSR matrix, or `dense`.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from repr_jax.data.io import arraystore, files
from repr_jax.errors import InputError

_KIND = "a view"
_FORMAT = 1  # raised when the meaning of stored counts changes
_SPARSE = {"data": np.float32, "indices": np.int32, "indptr": np.int64}
_DENSE = {"dense": np.float32}
_WIDEST = 1 << 31  # columns are numbered by int32
_BLOCK = 1 << 24  # entries handled at a time when an array is checked


@dataclasses.dataclass(frozen=True)
class View:
  """Counts of one kind: what each word of the vocabulary was seen with.

  Attributes:
    name: short name of the view, also the name of its directory.
    matrix: counts, float32 [V, d], rows in the order of the vocabulary; CSR
      with sorted columns, or a dense array. Missing rows are zero.
    columns: names of the d columns.
    meta: further JSON values (numbers left out, source, options).
    path: directory of a stored view, None for one in memory.
  """

  name: str
  matrix: scipy.sparse.csr_array | np.ndarray
  columns: Sequence[str]
  meta: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  path: pathlib.Path | None = None


def fingerprint(
  options: Mapping[str, Any],
  paths: Iterable[files.Path] = (),
  words: Iterable[str] = (),
) -> str:
  """Identifies what a view is made from.

  Args:
    options: everything that changes the counts, JSON values.
    paths: the input files; each counts by absolute path, size and time.
    words: the row vocabulary, in order.

  Returns:
    A hexadecimal digest; equal digests mean that a stored view may be reused.
  """
  inputs = []
  for path in paths:
    try:
      stat = os.stat(path)
    except OSError as error:
      raise InputError("there is no such file", path=path) from error
    inputs.append([os.path.abspath(path), stat.st_size, stat.st_mtime_ns])
  state = {"format": _FORMAT, "options": dict(options), "inputs": inputs}
  digest = hashlib.sha256(json.dumps(state, sort_keys=True).encode())
  for word in words:
    digest.update(word.encode() + b"\n")
  return digest.hexdigest()


def write(
  root: files.Path,
  name: str,
  blocks: Iterable[scipy.sparse.csr_array | np.ndarray],
  columns: Sequence[str],
  *,
  mark: str = "",
  meta: Mapping[str, Any] | None = None,
) -> View:
  """Stores a view from blocks of rows, without holding it in memory.

  Args:
    name: name of the view: letters, digits and `._-`.
    blocks: consecutive blocks of rows, all CSR or all dense, each [b, d].
    columns: names of the d columns.
    mark: the fingerprint, empty for a view that is never reused.
    meta: JSON values to keep with the view.

  Returns:
    The stored view, mapped.
  """
  _check_name(name)
  target = pathlib.Path(root) / name
  with arraystore.writing(target, _KIND, mark, meta) as out:
    out.texts("columns", columns)
    _write_blocks(out, name, blocks, len(columns))
  return load(target, check=False)


def save(root: files.Path, view: View, mark: str = "") -> View:
  """Stores a view that is in memory; see `write`."""
  matrix = view.matrix
  if scipy.sparse.issparse(matrix):
    matrix = scipy.sparse.csr_array(matrix)
    matrix.sum_duplicates()
  return write(
    root, view.name, [matrix], view.columns, mark=mark, meta=view.meta
  )


def load(path: files.Path, check: bool = True) -> View:
  """Maps a stored view into memory.

  Args:
    path: the view's directory.
    check: also read the arrays once, compare their checksums and look for
      columns out of range. False where processes share a view's rows.

  Returns:
    The view; its arrays are read from the disk as they are used. A damaged
    view is an `InputError`.
  """
  path = pathlib.Path(path)
  stored = arraystore.read(path, _KIND, check)
  arrays, columns = stored.arrays, stored.texts.get("columns", [])
  types = {name: array.dtype for name, array in arrays.items()}
  if types == _DENSE and "columns" in stored.texts:
    matrix = arrays["dense"]
    if matrix.ndim != 2 or matrix.shape[1] != len(columns):
      raise arraystore.damaged(path, f"it has not {len(columns)} columns")
  elif types == _SPARSE and "columns" in stored.texts:
    matrix = _csr(path, arrays, len(columns), check)
  else:
    raise arraystore.damaged(path, "its arrays are not those of a view")
  return View(path.name, matrix, columns, stored.meta, path)


def find(
  root: files.Path, name: str, mark: str, check: bool = True
) -> View | None:
  """Looks for a stored view that was made from the same inputs.

  Args:
    root: directory that holds the views.
    mark: the fingerprint it must have.
    check: as in `load`.

  Returns:
    The view, or None where it is absent or made from something else. A
    damaged view with the right fingerprint is an `InputError`.
  """
  _check_name(name)
  path = pathlib.Path(root) / name
  return load(path, check) if arraystore.read_mark(path) == mark else None


_NAME = frozenset(
  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)


def _check_name(name: str) -> None:
  """Refuses a name that leads out of the folder of views."""
  if not name or not set(name) <= _NAME or name.startswith("."):
    raise InputError(f"{name!r} cannot name a view: use letters, digits, ._-")


def _write_blocks(
  out: arraystore.Writer, name: str, blocks: Iterable, width: int
) -> None:
  """Writes blocks of rows, all of one kind."""
  entries, kind = 0, None
  for block in blocks:
    sparse = scipy.sparse.issparse(block)
    if kind not in (None, sparse) or block.shape[1] != width:
      raise ValueError(f"view {name}: blocks differ in kind or width")
    if not sparse:
      out.append("dense", np.asarray(block, np.float32))
    else:
      if kind is None:
        out.append("indptr", np.zeros(1, np.int64))
      out.append("data", block.data.astype(np.float32, copy=False))
      out.append("indices", block.indices.astype(np.int32, copy=False))
      out.append("indptr", block.indptr[1:].astype(np.int64) + entries)
      entries += block.nnz
    kind = sparse
  if kind is None:
    raise InputError(f"view {name} has no rows")


def _csr(
  path: pathlib.Path,
  arrays: Mapping[str, np.ndarray],
  width: int,
  check: bool,
) -> scipy.sparse.csr_array:
  """Builds the CSR matrix on mapped arrays after checking its structure."""
  data, indices, indptr = (arrays[key] for key in _SPARSE)
  rows = len(indptr) - 1 if indptr.ndim else -1
  if not width < _WIDEST or any(array.ndim != 1 for array in arrays.values()):
    raise arraystore.damaged(path, "an array has the wrong rank")
  if rows < 0 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
    raise arraystore.damaged(path, "indptr does not describe rows")
  if not indptr[-1] == len(data) == len(indices):
    raise arraystore.damaged(path, "its arrays disagree in length")
  for start in range(0, len(indices) if check else 0, _BLOCK):
    part = indices[start : start + _BLOCK]
    if part.min() < 0 or part.max() >= width:
      raise arraystore.damaged(path, f"a column lies outside 0..{width - 1}")
  matrix = scipy.sparse.csr_array((rows, width), dtype=np.float32)
  # scipy copies indices to the type of indptr unless both have one type.
  small = len(indices) < np.iinfo(np.int32).max
  matrix.indptr = indptr.astype(np.int32) if small else np.asarray(indptr)
  matrix.data, matrix.indices = np.asarray(data), np.asarray(indices)
  matrix.has_canonical_format = True
  return matrix

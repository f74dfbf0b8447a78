"""Views on disk: counted once, mapped into memory, reused across runs.

A stored view is a directory: `header.json` (name, shape, fingerprint of what
it was made from, checksums), `columns.txt` (one column name per line) and raw
arrays, `data.npy`, `indices.npy`, `indptr.npy` of a CSR matrix or `dense.npy`.
It is written beside its final place and renamed when it is complete.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import secrets
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from repr_jax.data.io import array_files, files, json_files
from repr_jax.errors import InputError

_FORMAT = 1
_HEADER = "header.json"
_COLUMNS = "columns.txt"
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
      with sorted columns, or a dense array. A row of zeros is missing.
    columns: names of the d columns.
    meta: what else is known, JSON values (numbers left out, source, options).
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
    root: directory that holds the views.
    name: name of the view: letters, digits and `._-`.
    blocks: consecutive blocks of rows, all CSR or all dense, each [b, d].
    columns: names of the d columns, none with a line break.
    mark: the fingerprint, empty for a view that is never reused.
    meta: JSON values to keep with the view.

  Returns:
    The stored view, mapped.
  """
  _check_name(name)
  odd = (c for c in columns if "\n" in c or "\r" in c or files.marked(c))
  bad = next(odd, None)
  if bad is not None:
    what = "has a line break or begins with a byte order mark"
    raise InputError(f"view {name}: column {bad!r} {what}")
  target = pathlib.Path(root) / name
  with _directory(target) as beside:
    (beside / _COLUMNS).write_text(
      "".join(f"{column}\n" for column in columns), encoding="utf-8"
    )
    header = {
      "format": _FORMAT,
      "name": name,
      "columns": _COLUMNS,
      "fingerprint": mark,
      "meta": dict(meta or {}),
      **_write_blocks(beside, name, blocks, len(columns)),
    }
    text = json.dumps(header, indent=1, sort_keys=True)
    (beside / _HEADER).write_text(text + "\n", encoding="utf-8")
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
    check: also read the arrays once and compare their checksums.

  Returns:
    The view; its arrays are read from the disk as they are used. A damaged
    view is an `InputError`.
  """
  path = pathlib.Path(path)
  header = _read_header(path)
  rows, width = header["shape"]
  arrays = {}
  for key, dtype in (_DENSE if header["kind"] == "dense" else _SPARSE).items():
    array = _read_array(path / f"{key}.npy", dtype)
    if check and _checksum(array) != header["checksums"].get(key):
      raise _damaged(path / f"{key}.npy", "its checksum is another")
    arrays[key] = array
  columns = _Lines(path / _COLUMNS, width)
  if header["kind"] == "dense":
    if arrays["dense"].shape != (rows, width):
      raise _damaged(path, f"its array is not {rows} x {width}")
    matrix = arrays["dense"]
  else:
    matrix = _csr(path, arrays, (rows, width))
  return View(header["name"], matrix, columns, header["meta"], path)


def find(root: files.Path, name: str, mark: str) -> View | None:
  """Looks for a stored view that was made from the same inputs.

  Args:
    root: directory that holds the views.
    name: name of the view.
    mark: the fingerprint it must have.

  Returns:
    The view, or None where it is absent or made from something else. A
    damaged view with the right fingerprint is an `InputError`.
  """
  _check_name(name)
  path = pathlib.Path(root) / name
  if not (path / _HEADER).exists():
    return None
  if _read_header(path)["fingerprint"] != mark:
    return None
  return load(path)


_NAME = frozenset(
  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
)


def _check_name(name: str) -> None:
  """A view stands in the folder of views and nowhere else."""
  if not name or not set(name) <= _NAME or name.startswith("."):
    raise InputError(f"{name!r} cannot name a view: use letters, digits, ._-")


class _Lines(Sequence):
  """Column names, read when first asked for."""

  def __init__(self, path: pathlib.Path, count: int):
    self._path, self._count = path, count
    self._lines: list[str] | None = None

  def _read(self) -> list[str]:
    if self._lines is None:
      self._lines = list(files.open_text(self._path))
      if len(self._lines) != self._count:
        raise _damaged(self._path, f"it does not hold {self._count} names")
    return self._lines

  def __len__(self) -> int:
    return self._count

  def __getitem__(self, index):
    return self._read()[index]

  def __iter__(self):
    return iter(self._read())


@contextlib.contextmanager
def _directory(target: pathlib.Path) -> Iterator[pathlib.Path]:
  """A directory that takes the place of `target` when the block ends well."""
  beside = target.parent / f".{secrets.token_hex(8)}.tmp"
  try:
    beside.mkdir(parents=True)
  except OSError as error:
    raise InputError(
      f"cannot make a directory in {target.parent}: {error.strerror}"
    ) from error
  try:
    with files.naming(target):
      yield beside
    if target.exists():
      old = target.parent / f".{secrets.token_hex(8)}.old"
      os.replace(target, old)
      os.replace(beside, target)
      shutil.rmtree(old)
    else:
      os.replace(beside, target)
  finally:
    shutil.rmtree(beside, ignore_errors=True)


def _write_blocks(
  beside: pathlib.Path, name: str, blocks: Iterable, width: int
) -> dict[str, Any]:
  """Writes the arrays; returns kind, shape, checksums for the header."""
  rows, entries, kind = 0, 0, None
  with contextlib.ExitStack() as stack:
    out: dict[str, _Growing] = {}
    for block in blocks:
      found = "sparse" if scipy.sparse.issparse(block) else "dense"
      if kind not in (None, found) or block.shape[1] != width:
        raise ValueError(f"view {name}: blocks differ in kind or width")
      if kind is None:
        kind = found
        for key, dtype in (_DENSE if kind == "dense" else _SPARSE).items():
          tail = (width,) if kind == "dense" else ()
          array = _Growing(beside / f"{key}.npy", dtype, tail)
          out[key] = stack.enter_context(array)
        if kind == "sparse":
          out["indptr"].append(np.zeros(1, np.int64))
      if kind == "dense":
        out["dense"].append(block)
      else:
        out["data"].append(block.data)
        out["indices"].append(block.indices)
        out["indptr"].append(block.indptr[1:].astype(np.int64) + entries)
        entries += block.nnz
      rows += block.shape[0]
  if kind is None:
    raise InputError(f"view {name} has no rows")
  sums = {key: array.checksum for key, array in out.items()}
  return {"kind": kind, "shape": [rows, width], "checksums": sums}


class _Growing:
  """An .npy file whose first axis grows with each append."""

  def __init__(self, path: pathlib.Path, dtype, tail: tuple[int, ...]):
    self._path, self._dtype, self._tail = path, np.dtype(dtype), tail
    self._length, self.checksum = 0, 0

  def __enter__(self):
    self._stream = open(self._path, "wb")
    self._header()
    self._start = self._stream.tell()
    return self

  def append(self, values: np.ndarray) -> None:
    values = np.ascontiguousarray(values, dtype=self._dtype)
    self._length += len(values)
    raw = values.reshape(-1).data.cast("B")
    self.checksum = zlib.crc32(raw, self.checksum)
    self._stream.write(raw)

  def __exit__(self, *error):
    self._stream.seek(0)
    self._header()
    # numpy pads the header so that a growing first axis never moves the data.
    moved = self._stream.tell() != self._start
    self._stream.close()
    if moved:
      raise OSError(f"{self._path}: the header changed its size")

  def _header(self) -> None:
    descr = np.lib.format.dtype_to_descr(self._dtype)
    shape = (self._length, *self._tail)
    np.lib.format.write_array_header_1_0(
      self._stream, {"descr": descr, "fortran_order": False, "shape": shape}
    )


def _read_header(path: pathlib.Path) -> dict[str, Any]:
  """Reads and checks header.json."""
  place = path / _HEADER
  try:
    header = json_files.read_json(place)
    rows, width = header["shape"]
    whole = isinstance(rows, int) and isinstance(width, int)
    known = header["kind"] in ("sparse", "dense")
    fields = [header[key] for key in ("name", "fingerprint", "meta")]
    fields.append(header["checksums"])
  except (ValueError, KeyError, TypeError) as error:
    raise _damaged(place, str(error) or type(error).__name__) from error
  if header.get("format") != _FORMAT:
    raise InputError(
      f"is of format {header.get('format')}, not {_FORMAT}; "
      "delete the directory to count again",
      path=place,
    )
  types = (str, str, dict, dict)
  right = all(isinstance(f, kind) for f, kind in zip(fields, types))
  if not (whole and known and right and rows >= 0 and 0 <= width < _WIDEST):
    raise _damaged(place, "a field has the wrong type")
  return header


def _read_array(path: pathlib.Path, dtype) -> np.ndarray:
  """Maps one array of a given type."""
  try:
    array = array_files.map_array(path)
  except InputError as error:
    raise _damaged(path, str(error)) from error
  if array.dtype != dtype:
    raise _damaged(path, f"it holds {array.dtype}, not {np.dtype(dtype)}")
  return array


def _checksum(array: np.ndarray) -> int:
  """crc32 of an array's bytes, read in blocks."""
  flat = np.asarray(array).reshape(-1)
  total = 0
  for start in range(0, flat.size, _BLOCK):
    part = flat[start : start + _BLOCK].data.cast("B")
    total = zlib.crc32(part, total)
  return total


def _csr(path, arrays, shape) -> scipy.sparse.csr_array:
  """Builds the CSR matrix on mapped arrays after checking its structure."""
  data, indices, indptr = (arrays[key] for key in _SPARSE)
  rows, width = shape
  if any(array.ndim != 1 for array in arrays.values()):
    raise _damaged(path, "an array has the wrong rank")
  if len(indptr) != rows + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
    raise _damaged(path, f"indptr does not describe {rows} rows")
  if not indptr[-1] == len(data) == len(indices):
    raise _damaged(path, "data, indices and indptr disagree in length")
  for start in range(0, len(indices), _BLOCK):
    part = indices[start : start + _BLOCK]
    if part.min() < 0 or part.max() >= width:
      raise _damaged(path, f"a column lies outside 0..{width - 1}")
  matrix = scipy.sparse.csr_array(shape, dtype=np.float32)
  # scipy copies indices to the type of indptr unless both have one type.
  small = len(indices) < np.iinfo(np.int32).max
  matrix.indptr = indptr.astype(np.int32) if small else np.asarray(indptr)
  matrix.data, matrix.indices = np.asarray(data), np.asarray(indices)
  matrix.has_canonical_format = True
  return matrix


def _damaged(path: pathlib.Path, why: str) -> InputError:
  return InputError(
    f"is a damaged view ({why}); delete its directory to count again",
    path=path,
  )

"""Named arrays and lists of text in one directory, mapped when read.

A store is a directory: `header.json` (kind, fingerprint, types, shapes and
checksums), NAME.npy for each array and NAME.json for each list of strings,
one on a line. It is written to a temporary folder, in blocks if it is larger
than memory, and renamed when it is complete.
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repr_jax.data.io import array_files, files, json_files
from repr_jax.errors import InputError

_FORMAT = 2
_HEADER = "header.json"
_BLOCK = 1 << 24  # Bytes that are checked at a time.
_FIELDS = {
  "kind": str,
  "mark": str,
  "meta": dict,
  "arrays": dict,
  "texts": dict,
}


class Store(NamedTuple):
  """Arrays and texts of a directory.

  Attributes:
    arrays: read-only arrays by name, of any shape.
    texts: lists of strings by name.
    mark: the fingerprint given when it was written.
    meta: further JSON values by name.
  """

  arrays: dict[str, np.ndarray]
  texts: dict[str, list[str]]
  mark: str
  meta: Mapping[str, Any] = {}


class Writer:
  """Fills an unfinished store; `writing` makes one."""

  def __init__(self, folder: pathlib.Path, stack: contextlib.ExitStack):
    self._folder, self._stack = folder, stack
    self._growing: dict[str, _Growing] = {}
    self._arrays: dict[str, dict[str, Any]] = {}
    self._texts: dict[str, int] = {}

  def array(self, name: str, array: np.ndarray) -> None:
    """Writes a whole array."""
    array_files.write_npy(self._folder / f"{name}.npy", array)
    self._arrays[name] = _describe(array.dtype, array.shape, _checksum(array))

  def append(self, name: str, block: np.ndarray) -> None:
    """Adds a block to an array along its first axis; the first sets its type.

    Args:
      block: [b, ...], with the type and the further axes of the first block.
    """
    if name not in self._growing:
      made = _Growing(self._folder / f"{name}.npy", block)
      self._growing[name] = self._stack.enter_context(contextlib.closing(made))
    self._growing[name].append(block)

  def texts(self, name: str, texts: Sequence[str]) -> None:
    """Writes a list of strings."""
    _write_json(self._folder / f"{name}.json", list(texts))
    self._texts[name] = len(texts)

  def finish(self, kind: str, mark: str, meta: Mapping[str, Any]) -> None:
    """Writes the header, which completes the store."""
    self._stack.close()
    grown = {name: x.description for name, x in self._growing.items()}
    header = {
      "format": _FORMAT,
      "kind": kind,
      "mark": mark,
      "meta": dict(meta),
      "arrays": self._arrays | grown,
      "texts": self._texts,
    }
    _write_json(self._folder / _HEADER, header)


@contextlib.contextmanager
def writing(
  directory: files.Path,
  kind: str,
  mark: str = "",
  meta: Mapping[str, Any] | None = None,
) -> Iterator[Writer]:
  """Makes a store, which appears when the block ends without an error.

  Args:
    directory: where; a store that is there is replaced.
    kind: what the store holds; `read` asks for the same.
    mark: fingerprint of what it was made from.
    meta: JSON values to keep with it.

  Yields:
    The writer of its arrays and texts.
  """
  target = pathlib.Path(directory)
  if target.exists() and not _replaceable(target):
    raise InputError(
      "is there already and is not a store; name another directory", path=target
    )
  beside = target.parent / f".{secrets.token_hex(8)}.tmp"
  try:
    beside.mkdir(parents=True)
  except OSError as error:
    raise InputError(
      f"cannot make a directory here: {error.strerror}", path=target.parent
    ) from error
  try:
    with files.naming(target), contextlib.ExitStack() as stack:
      writer = Writer(beside, stack)
      yield writer
      writer.finish(kind, mark, meta or {})
    old = target.parent / f".{secrets.token_hex(8)}.old"
    if target.exists():
      os.replace(target, old)
    os.replace(beside, target)
    shutil.rmtree(old, ignore_errors=True)
  finally:
    shutil.rmtree(beside, ignore_errors=True)


def write(directory: files.Path, kind: str, store: Store) -> None:
  """Writes a store that is in memory.

  Args:
    directory: where; a store that is there is replaced.
    kind: what the store holds; `read` asks for the same.
    store: arrays, texts, fingerprint and further values.
  """
  with writing(directory, kind, store.mark, store.meta) as out:
    for name, array in store.arrays.items():
      out.array(name, array)
    for name, texts in store.texts.items():
      out.texts(name, texts)


def read_mark(directory: files.Path) -> str | None:
  """The fingerprint of a store, None where there is none of this format.

  Args:
    directory: where it would be.
  """
  folder = pathlib.Path(directory)
  if not (folder / _HEADER).exists():
    return None
  header = _whole(json_files.read_json, folder / _HEADER)
  if isinstance(header, dict) and header.get("format") in range(_FORMAT):
    return None  # of an older version, to be made again
  return _read_header(folder)["mark"]


def read(directory: files.Path, kind: str, check: bool = True) -> Store:
  """Maps a store into memory.

  Args:
    directory: where it is.
    kind: what it must hold.
    check: also read the arrays once and compare their checksums.

  Returns:
    The store; arrays are read from the disk as they are used. One that is
    damaged, or of another kind, is an `InputError`.
  """
  folder = pathlib.Path(directory)
  header = _read_header(folder)
  if header["kind"] != kind:
    raise InputError(
      f"holds {header['kind']}, not {kind}", path=folder / _HEADER
    )
  arrays = {}
  for name, told in header["arrays"].items():
    path = folder / f"{name}.npy"
    array = arrays[name] = _whole(array_files.map_array, path)
    if not isinstance(told, dict):
      raise damaged(folder / _HEADER, f"it does not describe {name}")
    crc = _checksum(array) if check else told.get("crc32")
    if _describe(array.dtype, array.shape, crc) != told:
      raise damaged(path, "its checksum, type or shape is not the header's")
  texts = {}
  for name, length in header["texts"].items():
    path = folder / f"{name}.json"
    texts[name] = _whole(json_files.read_json, path)
    strings = isinstance(texts[name], list) and all(
      isinstance(text, str) for text in texts[name]
    )
    if not strings or len(texts[name]) != length:
      raise damaged(path, f"it has not {length} strings")
  return Store(arrays, texts, header["mark"], header["meta"])


def damaged(path: files.Path, why: str) -> InputError:
  """The error that says that a store cannot be used.

  Args:
    path: the file or directory at fault.
  """
  return InputError(
    f"is damaged ({why}); delete its directory and make it again", path=path
  )


class _Growing:
  """An .npy file whose first axis grows with each append."""

  def __init__(self, path: pathlib.Path, first: np.ndarray):
    self._path, self._dtype = path, first.dtype
    self._tail, self._length, self._crc = first.shape[1:], 0, 0
    self._stream = open(path, "wb")  # noqa: SIM115
    self._header()
    self._start = self._stream.tell()

  @property
  def description(self) -> dict[str, Any]:
    return _describe(self._dtype, (self._length, *self._tail), self._crc)

  def append(self, block: np.ndarray) -> None:
    if (block.dtype, block.shape[1:]) != (self._dtype, self._tail):
      raise ValueError(f"{self._path.name}: blocks differ in type or shape")
    self._length += len(block)
    raw = np.ascontiguousarray(block).reshape(-1).data.cast("B")
    self._crc = zlib.crc32(raw, self._crc)
    self._stream.write(raw)

  def close(self) -> None:
    if self._stream.closed:
      return
    with self._stream:
      self._stream.seek(0)
      self._header()
      # numpy pads the header so that a growing first axis never moves it.
      moved = self._stream.tell() != self._start
    if moved:
      raise OSError(f"{self._path}: the header changed its size")

  def _header(self) -> None:
    descr = np.lib.format.dtype_to_descr(self._dtype)
    shape = (self._length, *self._tail)
    np.lib.format.write_array_header_1_0(
      self._stream, {"descr": descr, "fortran_order": False, "shape": shape}
    )


def _describe(dtype: np.dtype, shape: tuple[int, ...], crc: Any) -> dict:
  return {"dtype": dtype.str, "shape": list(shape), "crc32": crc}


def _replaceable(target: pathlib.Path) -> bool:
  """Whether only a store, or nothing, would be lost."""
  if not target.is_dir():
    return False
  return (target / _HEADER).is_file() or not any(target.iterdir())


def _write_json(path: pathlib.Path, value: Any) -> None:
  with open(path, "w", encoding="utf-8") as stream:
    stream.write(json.dumps(value, ensure_ascii=False, indent=0) + "\n")


def _read_header(folder: pathlib.Path) -> dict[str, Any]:
  """Reads and checks header.json."""
  place = folder / _HEADER
  header = _whole(json_files.read_json, place)
  if not isinstance(header, dict) or header.get("format") != _FORMAT:
    raise damaged(place, f"its format is not {_FORMAT}")
  for name, kind in _FIELDS.items():
    if not isinstance(header.get(name), kind):
      raise damaged(place, f"it has no {name}")
  names: Mapping[str, Any] = header["arrays"] | header["texts"]
  if not all(name.isidentifier() for name in names):
    raise damaged(place, "a name of an array or list is not valid")
  return header


def _whole(read: Callable[[pathlib.Path], Any], path: pathlib.Path) -> Any:
  """Calls a reader on a file; an error means that the store is damaged."""
  try:
    return read(path)
  except InputError as error:
    raise damaged(path, str(error)) from error


def _checksum(array: np.ndarray) -> int:
  """crc32 of an array's bytes, in the order of C."""
  total = 0
  flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
  for first in range(0, flat.size, _BLOCK):
    total = zlib.crc32(flat[first : first + _BLOCK].data, total)
  return total

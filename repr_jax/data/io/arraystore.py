"""Named arrays and lists of text in one directory, mapped when read.

A store is a directory: `header.json` (kind, fingerprint, lengths and
checksums), NAME.npy for each array and NAME.json for each list of strings,
one on a line. It is written beside its final place and renamed when it is
complete.
"""

import json
import os
import pathlib
import secrets
import shutil
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from repr_jax.data.io import array_files, files, json_files
from repr_jax.errors import InputError

_FORMAT = 1
_HEADER = "header.json"
_BLOCK = 1 << 24  # Bytes that are checked at a time.
_FIELDS = {"kind": str, "mark": str, "arrays": dict, "texts": dict}


class Store(NamedTuple):
  """What a directory holds.

  Attributes:
    arrays: read-only arrays by name, of any shape.
    texts: lists of strings by name.
    mark: the fingerprint given when it was written.
  """

  arrays: dict[str, np.ndarray]
  texts: dict[str, list[str]]
  mark: str


def write(directory: files.Path, kind: str, store: Store) -> None:
  """Writes a store; one of the same kind that is there is replaced.

  Args:
    directory: where.
    kind: what the store holds; `read` asks for the same.
    store: arrays, texts and fingerprint.
  """
  target = pathlib.Path(directory)
  if target.exists() and not _replaceable(target):
    raise InputError(
      "is there already and is not a store; name another directory",
      path=target,
    )
  beside = target.parent / f".{secrets.token_hex(8)}.tmp"
  try:
    beside.mkdir(parents=True)
  except OSError as error:
    raise InputError(
      f"cannot make a directory here: {error.strerror}", path=target.parent
    ) from error
  try:
    with files.naming(target):
      _fill(beside, kind, store)
    old = target.parent / f".{secrets.token_hex(8)}.old"
    if target.exists():
      os.replace(target, old)
    os.replace(beside, target)
    shutil.rmtree(old, ignore_errors=True)
  finally:
    shutil.rmtree(beside, ignore_errors=True)


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
  for name, mark in header["arrays"].items():
    arrays[name] = _whole(array_files.map_array, folder / f"{name}.npy")
    if check and _checksum(arrays[name]) != mark:
      raise damaged(folder / f"{name}.npy", "its checksum is another")
  texts = {}
  for name, length in header["texts"].items():
    texts[name] = _whole(json_files.read_json, folder / f"{name}.json")
    strings = isinstance(texts[name], list) and all(
      isinstance(text, str) for text in texts[name]
    )
    if not strings or len(texts[name]) != length:
      raise damaged(folder / f"{name}.json", f"it has not {length} strings")
  return Store(arrays, texts, header["mark"])


def damaged(path: files.Path, why: str) -> InputError:
  """The error that says that a store cannot be used.

  Args:
    path: the file or directory at fault.
    why: what is wrong.

  Returns:
    The error, to be raised.
  """
  return InputError(
    f"is damaged ({why}); delete its directory and make it again", path=path
  )


def _replaceable(target: pathlib.Path) -> bool:
  """Whether only a store, or nothing, would be lost."""
  if not target.is_dir():
    return False
  return (target / _HEADER).is_file() or not any(target.iterdir())


def _fill(folder: pathlib.Path, kind: str, store: Store) -> None:
  """Writes the files of a store."""
  for name, array in store.arrays.items():
    array_files.write_npy(folder / f"{name}.npy", array)
  for name, texts in store.texts.items():
    _write_json(folder / f"{name}.json", list(texts))
  header = {
    "format": _FORMAT,
    "kind": kind,
    "mark": store.mark,
    "arrays": {name: _checksum(x) for name, x in store.arrays.items()},
    "texts": {name: len(x) for name, x in store.texts.items()},
  }
  _write_json(folder / _HEADER, header)


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
    raise damaged(place, "a name is none")
  return header


def _whole(read: Callable[[pathlib.Path], Any], path: pathlib.Path) -> Any:
  """What a reader makes of a file; says what to do where it cannot."""
  try:
    return read(path)
  except InputError as error:
    raise damaged(path, str(error)) from error


def _checksum(array: np.ndarray) -> int:
  """crc32 of an array's type, shape and bytes."""
  start = zlib.crc32(f"{array.dtype.str} {array.shape}".encode())
  flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
  for first in range(0, flat.size, _BLOCK):
    start = zlib.crc32(flat[first : first + _BLOCK].data, start)
  return start

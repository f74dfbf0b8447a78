"""Arrays in .npz and .npy files; nothing is ever unpickled.

The sizes in a file's header are checked before memory is allocated.
"""

import contextlib
import math
import os
import types
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from repr_jax import errors
from repr_jax.data.io import files

# Limit on unpacked bytes: the larger of this and a multiple of the file.
_MAX_UNPACKED = 64 << 20
_MAX_RATIO = 100
_KINDS = "biufcUS"  # Kinds of numbers and text in arrays.


def write_npz(path: files.Path, **arrays: Any) -> None:
  """Writes named arrays to one .npz file, atomically and without pickle.

  Args:
    path: the file, kept under exactly this name.
    **arrays: the arrays by name; no object arrays.
  """
  ready: dict[str, Any] = {
    name: np.asarray(value) for name, value in arrays.items()
  }
  if os.fspath(path).endswith((".gz", ".bz2")):
    raise errors.InputError(
      "an .npz file is compressed already; leave out .gz or .bz2", path=path
    )
  for name, value in ready.items():
    if value.dtype.hasobject:
      raise errors.InputError(f"array {name!r} holds objects", path=path)
    _check_characters(value, name, path)
  with files.atomic_write(path, "wb") as stream:
    np.savez(stream, **ready)


def write_npy(path: files.Path, array: Any) -> None:
  """Writes one array to an .npy file of an unfinished folder.

  `np.save` lets C write the array, and does not notice when the last few
  kilobytes find no room.

  Args:
    array: no objects.
  """
  with open(path, "wb") as stream:
    by_python = types.SimpleNamespace(write=stream.write)
    np.lib.format.write_array(by_python, np.asarray(array), allow_pickle=False)


def read_npz(
  path: files.Path, names: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
  """Reads named arrays from an .npz file; never unpickles.

  Args:
    path: the file.
    names: the arrays wanted, each of which must be there; all if None.

  Returns:
    The arrays by name. One whose header claims more than the file holds, or
    a file that unpacks to more than 64 MB and more than 100 times its size, is
    an `InputError`, before memory is allocated.
  """
  with _plain(path) as stream:
    room = max(_MAX_UNPACKED, _MAX_RATIO * os.fstat(stream.fileno()).st_size)
    try:
      with zipfile.ZipFile(stream) as archive:
        held = {x.filename.removesuffix(".npy"): x for x in archive.infolist()}
        missing = [name for name in names or () if name not in held]
        if missing:
          raise errors.InputError(
            f"has no array {', '.join(missing)}; it has {', '.join(held)}",
            path=path,
          )
        wanted = {name: held[name] for name in names or held}
        if sum(member.file_size for member in wanted.values()) > room:
          raise errors.InputError(
            f"would take more than {room >> 20} MB when it is unpacked, too "
            "much for a file of its size",
            path=path,
          )
        return {
          name: _read_member(archive, member, path)
          for name, member in wanted.items()
        }
    except errors.InputError:
      raise
    except Exception as error:  # Damage raises a dozen kinds of error.
      raise errors.InputError(
        f"is not a readable .npz file ({files.explain(error)}); "
        "it may be truncated or damaged",
        path=path,
      ) from error


def map_array(path: files.Path) -> np.ndarray:
  """Maps an .npy file into memory, read-only; never unpickles.

  Returns:
    The array, [...] as the file has it; read from the disk as it is
    used. A header that does not fit the file's size is an `InputError`.
  """
  with _plain(path) as stream:
    size = os.fstat(stream.fileno()).st_size
    shape, by_columns, dtype = _array_header(stream, size, path)
    start = stream.tell()
  order: Any = "F" if by_columns else "C"
  if (
    not math.prod(shape) or not dtype.itemsize
  ):  # An empty array cannot be mapped.
    array = np.zeros(shape, dtype, order)
    array.flags.writeable = False
    return array
  return np.memmap(path, dtype, "r", start, shape, order)


@contextlib.contextmanager
def _plain(path: files.Path) -> Iterator[IO[bytes]]:
  """Opens a regular file without unpacking it."""
  try:
    stream = open(path, "rb")  # noqa: SIM115
  except (OSError, ValueError) as error:
    raise errors.InputError(files.explain(error), path=path) from error
  with stream:
    yield stream


def _check_characters(array: np.ndarray, name: str, path: files.Path) -> None:
  """Refuses text with code points that are no characters."""
  if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
    native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
    points = native.reshape(-1).view(np.uint32)
    if points.max() > 0x10FFFF or (points >> 11 == 0xD800 >> 11).any():
      raise errors.InputError(
        f"array {name!r} holds a code point that is no character", path=path
      )


def _read_member(
  archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: files.Path
) -> np.ndarray:
  """One array of an .npz file, its claims checked beforehand."""
  with archive.open(member) as stream:
    _array_header(stream, member.file_size, path)
  with archive.open(member) as stream:
    array = np.lib.format.read_array(stream, allow_pickle=False)
  _check_characters(array, member.filename, path)
  return array


def _array_header(
  stream: IO[bytes], size: int, path: files.Path
) -> tuple[tuple[int, ...], bool, np.dtype]:
  """Shape, order and type of an array in a file of `size` bytes."""
  layouts = np.lib.format
  try:
    version = layouts.read_magic(stream)
    read = {
      (1, 0): layouts.read_array_header_1_0,
      (2, 0): layouts.read_array_header_2_0,
    }[version]
    shape, by_columns, dtype = read(stream)
    claimed = math.prod(shape) * dtype.itemsize
  except Exception as error:  # The header is a literal of Python.
    raise errors.InputError(
      f"holds no array of numpy ({files.explain(error)}); it may be damaged",
      path=path,
    ) from error
  if dtype.kind not in _KINDS:
    raise errors.InputError(f"holds objects ({dtype}), not numbers", path=path)
  left = size - stream.tell()
  if min(shape, default=0) < 0 or claimed != left:
    raise errors.InputError(
      f"an array claims the shape {shape} and {claimed} bytes, but the file "
      f"has {left}; it may be truncated",
      path=path,
    )
  return shape, by_columns, dtype

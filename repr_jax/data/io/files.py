"""Text and bytes, read and written so that every failure names its place.

Text is UTF-8, plain or compressed (gzip and bzip2 are recognized by their first
bytes), and is streamed in blocks, so that a file may be larger than memory.
Text seldom compresses to less than a twentieth of its size. A file that unpacks
to more than 4 MB and more than 200 times its size is refused. Files are written
to a temporary name and renamed when they are complete.
"""

import bz2
import contextlib
import errno
import gzip
import io
import os
import secrets
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

from repr_jax import errors

Path = str | os.PathLike

_BLOCK = 1 << 20
_PIECE = 1 << 11  # From Python 3.12 on gzip reads one ahead for each member.
_MAX_LINE = 64 << 20
_FREELY_UNPACKED = 4 << 20  # Bytes that any stream may unpack to.
_MAX_STREAM_RATIO = 200  # A longer one: this many times the bytes read.
_DAMAGE = (EOFError, zlib.error, OSError)


@contextlib.contextmanager
def open_binary(path: Path) -> Iterator[IO[bytes]]:
  """Opens a plain, gzip or bzip2 file for reading bytes.

  Yields:
    The file of decompressed bytes, to `read` and `readline`. A failure to
    read inside the block is raised as `InputError` that names the file. So is
    a decompression bomb.
  """
  path = os.fspath(path)
  with contextlib.ExitStack() as stack:
    try:
      raw = stack.enter_context(open(path, "rb"))
      magic = raw.read(4)
      raw.seek(0)
    except (OSError, ValueError) as error:
      raise errors.InputError(explain(error), path=path) from error
    stream: Any = raw
    packed = _Packed(raw)
    if magic[:2] == b"\x1f\x8b":
      opened = gzip.GzipFile(fileobj=cast(Any, packed), mode="rb")
      stack.enter_context(contextlib.closing(opened))
      stream = _Unpacked(opened, packed, path)
    elif magic[:3] == b"BZh":
      unpacked = stack.enter_context(
        contextlib.closing(bz2.BZ2File(cast(Any, packed)))
      )
      stream = _Unpacked(unpacked, packed, path)
    try:
      yield stream
    except errors.InputError:
      raise
    except _DAMAGE as error:
      reason = explain(error)
      if stream is not raw:
        reason += f", near byte {packed.taken} of what is compressed"
      raise errors.InputError(reason, path=path) from error


class _Packed:
  """A compressed file; counts the bytes that were read."""

  def __init__(self, raw: IO[bytes]):
    self._raw = raw
    self.taken = 0

  def read(self, size: int, /) -> bytes:
    piece = self._raw.read(min(size, _PIECE))
    self.taken += len(piece)
    return piece


class _Unpacked:
  """A decompressed file; a decompression bomb raises an error."""

  def __init__(self, stream: Any, packed: _Packed, path: str):
    self._stream, self._packed, self._path = stream, packed, path
    self._size = 0

  def read(self, size: int = -1, /) -> bytes:
    return self._checked(self._stream.read(size))

  def readline(self, size: int = -1, /) -> bytes:
    return self._checked(self._stream.readline(size))

  def _checked(self, block: bytes) -> bytes:
    self._size += len(block)
    room = max(_FREELY_UNPACKED, _MAX_STREAM_RATIO * self._packed.taken)
    if self._size > room:
      raise errors.InputError(
        f"unpacks to more than {_MAX_STREAM_RATIO} times its size, as no text "
        "does; if it is right, unpack it yourself and give that file",
        path=self._path,
      )
    return block


def text_blocks(
  path: Path, max_line: int = _MAX_LINE
) -> Iterator[tuple[int, str]]:
  """Streams a text file as blocks of whole lines.

  Args:
    path: a plain, gzip or bzip2 file in UTF-8. A byte order mark is dropped
      and `\\r\\n` is read as `\\n`.
    max_line: the longest line allowed, in bytes.

  Yields:
    The number of the block's first line, counted from 1, and the block's
    text without its last newline.
  """
  line, rest = 1, [b""]  # The pieces of a line that has not ended.
  size = max(1, min(_BLOCK, max_line))
  with open_binary(path) as stream:
    while True:
      try:
        block = stream.read(size)
      except _DAMAGE as error:
        raise errors.InputError(explain(error), path=path, line=line) from error
      end = block.rfind(b"\n")
      longest = sum(map(len, rest))
      longest += block.find(b"\n") if end >= 0 else len(block)
      if longest > max_line:
        raise errors.InputError(
          f"a line is longer than {max_line} bytes", path=path, line=line
        )
      if end >= 0:
        text = decode(b"".join([*rest, block[:end]]), path, line)
        yield line, text
        line += text.count("\n") + 1
        rest = [block[end + 1 :]]
      else:
        rest.append(block)
      if not block:
        break
  if any(rest):
    yield line, decode(b"".join(rest), path, line)


def open_text(path: Path, max_line: int = _MAX_LINE) -> Iterator[str]:
  """Streams the lines of a text file, without their newlines.

  Args:
    path: a plain, gzip or bzip2 file in UTF-8.
    max_line: the longest line allowed, in bytes.

  Yields:
    One line at a time; `enumerate(open_text(path), 1)` numbers them as error
    messages do.
  """
  for _, block in text_blocks(path, max_line):
    yield from block.split("\n")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
  """Streams the lines of a text file that are not blank, with their numbers.

  Args:
    path: as `open_text` takes it.

  Yields:
    The number of a line, from 1, and the line.
  """
  for line, text in enumerate(open_text(path), 1):
    if text.strip():
      yield line, text


def marked(text: str) -> bool:
  """Whether a text begins with a byte order mark, which a reader drops."""
  return text.startswith("\ufeff")


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
  """Names the file in errors of writing inside the block.

  Args:
    path: the file that the user knows.
  """
  try:
    yield
  except UnicodeEncodeError as error:
    raise errors.InputError(explain(error), path=path) from error
  except OSError as error:
    if error.filename is not None:
      raise
    # numpy reports a short write without an errno: the disk is full.
    number = error.errno or errno.ENOSPC
    raise OSError(number, os.strerror(number), os.fspath(path)) from error


@contextlib.contextmanager
def atomic_write(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
  """Opens a file that appears under its name only when it is complete.

  The bytes go to a temporary file in the same directory, which replaces
  `path` at the end of the block. If the block raises, the temporary file is
  removed and what was there before stays.

  Args:
    path: the file to write; compressed if its name ends in .gz or .bz2.
    mode: "w" for UTF-8 text with `\\n` line ends, "wb" for bytes.

  Yields:
    The file to write to.
  """
  if mode not in ("w", "wb"):
    raise ValueError(f'mode must be "w" or "wb", not {mode!r}')
  target = os.path.realpath(os.fspath(path))
  folder = os.path.dirname(target)
  if os.path.isdir(target):
    raise errors.InputError("is a directory, not a file", path=path)
  beside = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
  try:
    # os.open with O_EXCL keeps the permissions that the umask asks for.
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
  except (OSError, ValueError) as error:
    raise errors.InputError(
      f"cannot write in the directory {folder}: {explain(error)}", path=path
    ) from error
  try:
    with naming(path), os.fdopen(handle, "wb") as raw:
      with contextlib.ExitStack() as stack:
        yield _encoder(stack, raw, target, mode)
      raw.flush()
      os.fsync(raw.fileno())
    os.replace(beside, target)
  except BaseException as error:
    with contextlib.suppress(FileNotFoundError):
      os.unlink(beside)
    if isinstance(error, UnicodeEncodeError):
      raise errors.InputError(explain(error), path=path) from error
    raise


def _encoder(
  stack: contextlib.ExitStack, raw: IO[bytes], target: str, mode: str
) -> IO[Any]:
  """Stacks compression and text encoding on a raw file, as name and mode say.

  `raw` is left open, so that it can be flushed to the disk.
  """
  stream: Any = raw
  if target.endswith(".gz"):
    # No name and no time: the same content gives the same bytes.
    stream = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
    stack.callback(stream.close)
  elif target.endswith(".bz2"):
    stream = bz2.BZ2File(raw, mode="wb")
    stack.callback(stream.close)
  if mode == "wb":
    return stream
  text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
  stack.callback(text.detach)
  return text


def decode(data: bytes, path: Path, first_line: int = 1) -> str:
  """Decodes a block of lines; an error names the line.

  Args:
    data: UTF-8, perhaps with a byte order mark and with `\\r\\n`.
    path: where it stands, for messages.
    first_line: the number of its first line.
  """
  if first_line == 1 and data.startswith(b"\xef\xbb\xbf"):
    data = data[3:]
  try:
    text = data.decode("utf-8")
  except UnicodeDecodeError as error:
    line = first_line + data.count(b"\n", 0, error.start)
    raise errors.InputError(
      f"is not UTF-8 (byte 0x{data[error.start]:02x}); "
      "convert it, for example with iconv -t utf-8",
      path=path,
      line=line,
    ) from error
  if "\r" in text:
    text = text.replace("\r\n", "\n").removesuffix("\r")
  return text


def explain(error: BaseException) -> str:
  """Explains in plain words why a file could not be read or written.

  Args:
    error: of the system, of a decompressor or of numpy.

  Returns:
    The reason, to stand behind the name of the file.
  """
  if isinstance(error, FileNotFoundError):
    return "there is no such file or directory"
  if isinstance(error, IsADirectoryError):
    return "is a directory, not a file"
  if isinstance(error, EOFError):
    return "ends too early (truncated?)"
  if isinstance(error, zlib.error):
    return f"is damaged ({error})"
  if isinstance(error, OSError) and error.strerror:
    return error.strerror.lower()
  return str(error) or type(error).__name__

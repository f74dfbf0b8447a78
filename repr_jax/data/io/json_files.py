"""Reads JSON that somebody else wrote; errors name the file and the line."""

import json
import os
from collections.abc import Iterator
from typing import Any

from repr_jax import errors
from repr_jax.data.io import files

_BLOCK = 1 << 16
_MAX_UNPACKED = 64 << 20  # What a small file may become when it is unpacked.


def read_json(path: files.Path) -> Any:
  """Reads a file that is one JSON value.

  Args:
    path: the file, plain or compressed, in UTF-8.

  Returns:
    The value; what `parse_json` refuses is an `InputError`.
  """
  data = bytearray()
  with files.open_binary(path) as stream:
    room = max(os.path.getsize(path), _MAX_UNPACKED)
    while block := stream.read(_BLOCK):
      data += block
      if len(data) > room:
        raise errors.InputError(
          f"is longer than {room} bytes when it is unpacked", path=path
        )
  return parse_json(files.decode(bytes(data), path), path)


def read_objects(
  path: files.Path, what: str
) -> Iterator[tuple[int, dict[str, Any]]]:
  """Streams the objects of a file of JSON lines; blank lines are passed over.

  Args:
    path: the file, plain or compressed, in UTF-8.
    what: what the file should hold, for the message.

  Yields:
    The number of a line and its object. A line that holds none, or a file
    without any, is an `InputError`.
  """
  empty = True
  for line, text in files.numbered_lines(path):
    record = parse_json(text, path, line)
    if not isinstance(record, dict):
      raise errors.InputError(
        "expected a JSON object on the line", path=path, line=line
      )
    empty = False
    yield line, record
  if empty:
    raise errors.InputError(f"has no {what}", path=path)


def parse_json(
  text: str, path: files.Path | None = None, line: int | None = None
) -> Any:
  """Parses JSON that somebody else wrote.

  Args:
    path: where it stands, for messages.
    line: its line, for messages; None to name the line within `text`.

  Returns:
    The value. What is not JSON, is nested too deeply, or holds a number of
    thousands of digits or half of a character is an `InputError`.
  """
  try:
    value = json.loads(text)
    if "\\ud" in text or "\\uD" in text:  # Surrogates appear only as escapes.
      json.dumps(value, ensure_ascii=False).encode()
    return value
  except json.JSONDecodeError as error:
    reason = error.msg
    line = error.lineno if line is None else line
  except RecursionError:
    reason = "nested too deeply"
  except UnicodeEncodeError:
    reason = "a text holds half of a character"
  except ValueError:
    reason = "a number has too many digits"
  raise errors.InputError(f"is not JSON ({reason})", path=path, line=line)

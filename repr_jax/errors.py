"""The error for input that cannot be used, with file and line."""

import contextlib
import difflib
import os
from collections.abc import Collection, Iterator

_LONGEST = 2000  # Characters of a message; what a file holds may be longer.
_LONGEST_NAME = 200  # Comparing a longer one with all names takes too long.


class InputError(ValueError):
  """Input that cannot be used; the message names the place and a remedy.

  Scripts print the message alone and exit with code 2; functions let it
  reach the caller, who may treat it as the `ValueError` it is.

  Attributes:
    path: the file at fault, or None where no file is involved.
    line: the line of that file counted from 1, or None.
  """

  def __init__(
    self,
    message: str,
    *,
    path: str | os.PathLike | None = None,
    line: int | None = None,
  ):
    self.path = None if path is None else os.fspath(path)
    self.line = line
    if len(message) > _LONGEST:
      message = f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 4 :]}"
    place = ""
    if self.path is not None:
      place = f"{self.path}:{line}: " if line is not None else f"{self.path}: "
    super().__init__(place + message)


def did_you_mean(name: str, known: Collection[str]) -> str:
  """The end of a message on an unknown name: the most similar known one.

  Returns:
    " (did you mean 'NAME'?)", or "" if none is similar.
  """
  if len(name) > _LONGEST_NAME:
    return ""
  close = difflib.get_close_matches(name, sorted(known), n=1)
  return f" (did you mean {close[0]!r}?)" if close else ""


@contextlib.contextmanager
def placed(path: str | os.PathLike, line: int) -> Iterator[None]:
  """Adds a file and its line to an `InputError` of the block."""
  try:
    yield
  except InputError as error:
    raise InputError(str(error), path=path, line=line) from error

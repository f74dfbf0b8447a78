"""Parses a program's flags, and says in one line what is wrong with them."""

import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import flags

from experiments.run import presets, progress
from repr_jax import errors


def parse(argv: Sequence[str]) -> list[str]:
  """Gives `flags.FLAGS` the values of a command line.

  Args:
    argv: the program and its arguments.

  Returns:
    The program and the arguments that are not flags.

  Raises:
    InputError: a flag or a file of flags cannot be used, or a number is not
      finite.
  """
  try:
    program, *arguments = argv
    arguments = flags.FLAGS.read_flags_from_files(arguments, force_gnu=False)
    rest = flags.FLAGS(presets.expand([program, *arguments]))
    by_preset = presets.only_by_preset(arguments)
  except errors.InputError:
    raise
  except flags.Error as error:
    raise errors.InputError(_in_words(str(error))) from error
  except RecursionError as error:
    raise errors.InputError(
      "--flagfile: too many files include each other", path=_file_of(error)
    ) from error
  except UnicodeDecodeError as error:
    raise errors.InputError(
      f"--flagfile: is not UTF-8 ({error.reason})", path=_file_of(error)
    ) from error
  except BrokenPipeError:  # nobody reads the help
    raise
  except (OSError, ValueError) as error:
    raise errors.InputError(
      f"--flagfile: {error}", path=_file_of(error)
    ) from error
  for name in sorted(flags.FLAGS):
    flag: Any = flags.FLAGS[name]
    flag.by_preset = name in by_preset
    if not flag.using_default_value and not _is_finite(flag.value):
      raise errors.InputError(
        f"flag --{name}={flag.value}: give a finite number"
      )
  return rest


def parse_or_exit(argv: list[str], arguments: bool = False) -> list[str]:
  """`parse`, or ends the program: bad flags with one line and code 2.

  Args:
    argv: the program and its arguments.
    arguments: whether the program takes more than flags.

  Returns:
    The program and the arguments that are not flags.
  """
  try:
    rest = parse(argv)
  except errors.InputError as error:
    progress.say(f"error: {error}\nRun with --help to see the flags.")
    sys.exit(2)
  except SystemExit:
    sys.exit(0)  # absl ends --help with 1, as if asking were a mistake
  if len(rest) > 1 and not arguments:
    progress.say(
      f"error: unexpected argument {rest[1]!r}: flags are --name=value."
    )
    sys.exit(2)
  return rest


def _in_words(message: str) -> str:
  """The error message of a flag that is not a number, in plain words."""
  whole, number = (
    r"invalid literal for int\(\).*",
    r"could not convert string.*",
  )
  message = re.sub(whole, "give a whole number", message)
  return re.sub(number, "give a number", message)


def _is_finite(value: Any) -> bool:
  if isinstance(value, (list, tuple)):
    return all(map(_is_finite, value))
  return not isinstance(value, float) or bool(np.isfinite(value))


def _file_of(error: BaseException) -> str | None:
  """The file of flags that absl was reading, which its error does not name."""
  path = None
  for frame, _ in traceback.walk_tb(error.__traceback__):
    name = frame.f_locals.get("filename")
    path = name if isinstance(name, str) and "\0" not in name else path
  return path

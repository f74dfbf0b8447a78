"""How the programs of this package read their flags and end."""

import sys
from collections.abc import Callable
from typing import Any

from absl import app

from experiments.run import command_line, shutdown
from repr_jax import errors


def start(main: Callable[[list[str]], Any]) -> None:
  """Runs `main(argv)`; bad flags end with one line and code 2."""
  with shutdown.without_reader():
    app.run(main, flags_parser=_parse)


def fail(message: str) -> None:
  """Ends the program with one line and code 2."""
  print(f"error: {message}", file=sys.stderr, flush=True)
  sys.exit(2)


def _parse(argv: list[str]) -> list[str]:
  try:
    return command_line.parse(argv)
  except errors.InputError as error:
    fail(f"{error}\nRun with --help to see the flags.")
    raise
  except SystemExit:
    sys.exit(0)  # absl ends --help with 1, as if asking were a mistake

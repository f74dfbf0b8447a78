"""How the programs of this package read their flags and end."""

import functools
import sys
from collections.abc import Callable
from typing import Any

from absl import app

from experiments.run import command_line, shutdown


def start(main: Callable[[list[str]], Any]) -> None:
  """Runs `main(argv)`; bad flags end with one line and code 2."""
  with shutdown.without_reader():
    parser = functools.partial(command_line.parse_or_exit, arguments=True)
    app.run(main, flags_parser=parser)


def fail(message: str) -> None:
  """Ends the program with one line and code 2."""
  print(f"error: {message}", file=sys.stderr, flush=True)
  sys.exit(2)

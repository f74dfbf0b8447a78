"""Gives each flag of a program that is a number what is none.

The program is named by its module. Prints a line for each such flag, and ends
with 1 where one was not refused by its name.
"""

import importlib
import sys

from absl import flags
from absl.testing import flagsaver

from experiments.run import command_line
from repr_jax import errors


def launch() -> None:
  """Tries all flags in this process, without running the program."""
  importlib.import_module(sys.argv[1])
  flags.FLAGS(["program"])
  failed = False
  for name in sorted(flags.FLAGS):
    if not isinstance(flags.FLAGS[name].parser, flags.FloatParser):
      continue
    for value in ("nan", "inf", "-inf", "1e999"):
      outcome = "was taken"
      try:
        with flagsaver.flagsaver():
          command_line.parse(["program", f"--{name}={value}"])
      except errors.InputError as error:
        outcome = "refused" if f"--{name}" in str(error) else str(error)
      failed |= outcome != "refused"
      print(f"--{name}={value} {outcome}")
  sys.exit(int(failed))

"""Runs one chapter in a process of its own: `reproduce` starts it.

python -m experiments.reproduce.chapter MODULE:FUNCTION SIZE DIRECTORY

A process of its own keeps the flags of one experiment from those of another,
gives each chapter the whole memory, and lets a chapter crash alone.
"""

import importlib
import pathlib
import sys
import time
import traceback
import warnings

from absl import flags, logging

from experiments.run import progress, report, shutdown
from repr_jax import errors
from repr_jax.data.io import files

FILE = "chapter.json"
ERROR = "error.txt"


def run(target: str, size: str, directory: pathlib.Path) -> report.Chapter:
  """Calls `MODULE:FUNCTION` and keeps what it returns in `chapter.json`.

  Args:
    target: the chapter's function, `chapter(size, workdir) -> Chapter`, which
      keeps its runs in the directory.
    size: "quick" or "full".
    directory: the chapter's work directory.

  Returns:
    The chapter, with its time.
  """
  module, _, function = target.partition(":")
  chapter_function = getattr(importlib.import_module(module), function)
  if not flags.FLAGS.is_parsed():
    # Flags keep their defaults; a chapter's settings come from its size.
    flags.FLAGS([sys.argv[0]])
  began = time.monotonic()
  chapter = chapter_function(size, directory)
  if chapter.seconds is None:
    chapter.seconds = time.monotonic() - began
  report.save(directory / FILE, chapter)
  return chapter


def main() -> None:
  """Runs the chapter that the arguments name; exits 1 where it fails."""
  if len(sys.argv) != 4:
    print(__doc__)
    sys.exit(0 if "--help" in sys.argv else 2)
  target, size, directory = sys.argv[1:]
  shutdown.on_signals()
  shutdown.with_parent()
  logging.set_verbosity(logging.WARNING)
  warnings.formatwarning = progress.format_warning
  try:
    run(target, size, pathlib.Path(directory))
  except KeyboardInterrupt:
    sys.exit(130)
  except Exception as error:
    expected = isinstance(error, (errors.InputError, OSError))
    text = shutdown.describe(error) if expected else traceback.format_exc()
    progress.say(f"error: {text}")
    with files.atomic_write(pathlib.Path(directory) / ERROR, "w") as out:
      out.write(text)
    sys.exit(2 if expected else 1)


if __name__ == "__main__":
  main()

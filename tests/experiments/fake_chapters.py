"""Chapters for the tests of the main job: one works, others do not."""

import os
import pathlib
import signal

from absl import flags

from experiments.run import report

# The same name in two experiments must not meet in one process.
_CHAPTERS = flags.DEFINE_string("size", "none", "A flag of its own.")


def good(size: str, workdir: pathlib.Path) -> report.Chapter:
  """Counts its calls in its directory, and returns figures."""
  with open(workdir / "calls", "a") as out:
    out.write(f"{size} {_CHAPTERS.value}\n")
  rows = [
    {"name": "a", "metric": "MRR", "value": 0.5, "thesis": 0.52,
     "lower": 0.4, "upper": 0.6},
  ]  # fmt: skip
  return report.Chapter("Good chapter", "Nothing much.", rows)


def bad(size: str, workdir: pathlib.Path) -> report.Chapter:
  """Fails as a fault of ours would."""
  raise RuntimeError("the matrix is <singular> & sad")


def killed(size: str, workdir: pathlib.Path) -> report.Chapter:
  """Dies as when memory runs out."""
  os.kill(os.getpid(), signal.SIGKILL)
  raise AssertionError

"""The main job with two chapters that need a moment each, and no JAX."""

import pathlib
import time
from typing import Any

import numpy as np

from repr_jax.data.io import array_files

_STEPS = 4
_SECONDS = 0.05


def first(size: str, workdir: pathlib.Path) -> Any:
  """A chapter."""
  return _walk("First", workdir)


def second(size: str, workdir: pathlib.Path) -> Any:
  """Another one."""
  return _walk("Second", workdir)


def _walk(title: str, workdir: pathlib.Path) -> Any:
  """Takes steps, each of which is kept, and complains of company."""
  from experiments.run import report
  from experiments.run import workdir as workdirs

  lock = workdirs.Lock(workdir)  # refuses while another process is at work
  workdirs.claim(workdir, {"experiment": title, "flags": {}}, ())
  place = np.zeros(3)
  for step in range(_STEPS):
    kept = workdir / f"{step}.npz"
    if not kept.exists():
      moved = place + np.random.default_rng(step).standard_normal(3)
      time.sleep(_SECONDS)
      array_files.write_npz(kept, place=moved)
    place = array_files.read_npz(kept)["place"]
  lock.release()
  rows = [{"name": title, "metric": "far", "value": float(place.max())}]
  return report.Chapter(title, "A walk.", rows, seconds=1.0)


def main(argv: list[str]) -> Any:
  """The main job, whose chapters are these."""
  from experiments.reproduce import __main__ as reproduce

  reproduce.CHAPTERS.clear()
  for name in ("first", "second"):
    reproduce.CHAPTERS[name] = f"tiny_chapters:{name}"
  return reproduce.main(argv)

"""Eight seeds of the KB experiment: one program, or a process for each.

python -m experiments.bench --suite=launch [--size=full] [--repeats=3]

Both start from nothing: a new directory for compiled programs, new work
directories, imports, data and compilation included. The processes run two at a
time and share what they compile. The quality is the mean filtered MRR over the
seeds, which has to be the same, and how many runs have results.
"""

import concurrent.futures
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from experiments.bench import harness

_SEEDS = 8
_AT_A_TIME = 2
_FLAGS = {
  "small": {
    "below": "bird.n.01",
    "held_out": "50",
    "num_negatives": "5",
    "epochs": "10",
    "eval_every": "5",
  },
  "full": {"below": "animal.n.01", "held_out": "500", "epochs": "10"},
}


def arguments(size: str) -> list[list[str]]:
  """The command line of each seed, without its work directory.

  Args:
    size: "small" or "full".

  Returns:
    Flags of `experiments.elkb`.
  """
  common = [f"--{name}={value}" for name, value in _FLAGS[size].items()]
  return [[*common, f"--seed={seed}"] for seed in range(_SEEDS)]


def _call(program: list[str], folder: pathlib.Path) -> None:
  ended = subprocess.run(
    [sys.executable, "-m", *program],
    env={**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder / "cache")},
    capture_output=True,
    text=True,
  )
  if ended.returncode:
    raise RuntimeError(f"{program[0]} failed: {ended.stderr[-2000:]}")


def one_program(folder: pathlib.Path, runs: list[list[str]]) -> None:
  """Trains all seeds by one process, as a sweep does.

  Args:
    folder: above the work directories, which are named by number.
    runs: from `arguments`.
  """
  members = [
    {
      "directory": str(folder / str(i)),
      "arguments": [*run, f"--workdir={folder / str(i)}"],
    }
    for i, run in enumerate(runs)
  ]
  group = folder / "group.json"
  record = {"experiment": "experiments.elkb", "runs": members}
  group.write_text(json.dumps(record))
  _call(["launch.vmapped_group", f"--group={group}"], folder)


def separate_processes(folder: pathlib.Path, runs: list[list[str]]) -> None:
  """Trains each seed by a process of its own, two at a time.

  Args:
    folder: above the work directories, which are named by number.
    runs: from `arguments`.
  """

  def one(i: int) -> None:
    workdir = f"--workdir={folder / str(i)}"
    _call(["experiments.elkb", *runs[i], workdir], folder)

  with concurrent.futures.ThreadPoolExecutor(_AT_A_TIME) as pool:
    list(pool.map(one, range(len(runs))))


def _measured(
  execute: Callable[[pathlib.Path, list[list[str]]], None],
  runs: list[list[str]],
) -> list[float]:
  """The filtered MRR of each seed, from work directories of their own."""
  with tempfile.TemporaryDirectory(prefix="repr_jax-bench-") as name:
    folder = pathlib.Path(name)
    execute(folder, runs)
    return [_mrr(folder / str(i)) for i in range(len(runs))]


def _mrr(folder: pathlib.Path) -> float:
  rows = json.loads((folder / "results.json").read_text())["rows"]
  return next(x["value"] for x in rows if x["metric"] == "mrr filtered both")


def _quality(runs: list[list[str]], figures: list[float]) -> dict[str, Any]:
  del runs
  return {"mean MRR": statistics.mean(figures), "runs": len(figures)}


def cases(size: str) -> list[harness.Case]:
  """The cases of this suite.

  Args:
    size: "small" or "full".

  Returns:
    One case.
  """
  return [
    harness.Case(
      f"{_SEEDS} seeds of elkb",
      functools.partial(arguments, size),
      {
        "ours": functools.partial(_measured, one_program),
        f"processes, {_AT_A_TIME} at a time": functools.partial(
          _measured, separate_processes
        ),
      },
      quality=_quality,
    )
  ]

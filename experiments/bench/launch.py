"""Runs of a sweep: in one program, or in a process for each.

python -m experiments.bench --suite=launch [--size=full] [--repeats=3]

Both start from nothing: a new directory for compiled programs, new work
directories, imports, data and compilation included. The processes run two at a
time and share what they compile. The quality column has the mean of a figure
over the runs, which must agree, the number of runs with results, and the CPU
seconds (user and system) of all processes.
"""

import concurrent.futures
import dataclasses
import functools
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

from experiments.bench import harness

_AT_A_TIME = 2
_STORE = "STORE"  # replaced by a new directory below the runs


@dataclasses.dataclass(frozen=True)
class Sweep:
  """Runs of one experiment.

  Attributes:
    name: of the case.
    experiment: module that `python -m` runs.
    runs: flags of each run, without its work directory.
    metric: of results.json, whose first figure is the quality.
  """

  name: str
  experiment: str
  runs: list[list[str]]
  metric: str


class Done(NamedTuple):
  """Figures of the runs of a sweep, and the processor time they took."""

  figures: list[float]
  cpu_seconds: float


def sweeps(size: str) -> list[Sweep]:
  """The sweeps of this suite.

  Args:
    size: "small" or "full".

  Returns:
    One for each experiment.
  """
  small = size == "small"
  elkb = ["--below=animal.n.01", "--held_out=500", "--epochs=10"]
  if small:
    elkb = [
      "--below=bird.n.01", "--held_out=50", "--num_negatives=5", "--epochs=10",
      "--eval_every=5",
    ]  # fmt: skip
  nvse = [f"--store={_STORE}", f"--epochs={2 if small else 15}"]
  rescal = ["--settings=sub", "--runs=1"]
  rescal += ["--vertices=255", "--dims=20"] if small else ["--dims=50"]
  return [
    Sweep(
      "8 seeds of elkb",
      "experiments.elkb",
      [[*elkb, f"--seed={seed}"] for seed in range(8)],
      "mrr filtered both",
    ),
    Sweep(
      "12 runs of nvse",
      "experiments.nvse",
      [
        [*nvse, f"--seed={seed}", f"--beta={beta}"]
        for seed in range(4)
        for beta in (0.03, 0.1, 0.3)
      ],
      "perplexity bound",
    ),
    Sweep(
      "12 seeds of rescal",
      "experiments.rescal",
      [[*rescal, f"--seed={seed}"] for seed in range(12)],
      "E^rev, % right",
    ),
  ]


def _call(program: list[str], folder: pathlib.Path) -> None:
  ended = subprocess.run(
    [sys.executable, "-m", *program],
    env={**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder / "cache")},
    capture_output=True,
    text=True,
  )
  if ended.returncode:
    raise RuntimeError(f"{program[0]} failed: {ended.stderr[-2000:]}")


def _arguments(folder: pathlib.Path, sweep: Sweep) -> list[list[str]]:
  """The command line of each run; directories are named by number."""
  store = str(folder / "store")
  return [
    [*(x.replace(_STORE, store) for x in run), f"--workdir={folder / str(i)}"]
    for i, run in enumerate(sweep.runs)
  ]


def one_program(folder: pathlib.Path, sweep: Sweep) -> None:
  """Executes all runs by one process, as a sweep does.

  Args:
    folder: above the work directories, which are named by number.
  """
  members = [
    {"directory": str(folder / str(i)), "arguments": arguments}
    for i, arguments in enumerate(_arguments(folder, sweep))
  ]
  group = folder / "group.json"
  record = {"experiment": sweep.experiment, "runs": members}
  group.write_text(json.dumps(record))
  _call(["launch.vmapped_group", f"--group={group}"], folder)


def separate_processes(folder: pathlib.Path, sweep: Sweep) -> None:
  """Executes each run by a process of its own, two at a time.

  Args:
    folder: above the work directories, which are named by number.
  """

  def one(arguments: list[str]) -> None:
    _call([sweep.experiment, *arguments], folder)

  with concurrent.futures.ThreadPoolExecutor(_AT_A_TIME) as pool:
    list(pool.map(one, _arguments(folder, sweep)))


def _measured(
  execute: Callable[[pathlib.Path, Sweep], None], sweep: Sweep
) -> Done:
  """Executes a sweep in work directories of its own."""
  with tempfile.TemporaryDirectory(prefix="repr_jax-bench-") as name:
    folder = pathlib.Path(name)
    before = _cpu_seconds()
    execute(folder, sweep)
    spent = _cpu_seconds() - before
    count = len(sweep.runs)
    return Done(
      [_figure(folder / str(i), sweep.metric) for i in range(count)], spent
    )


def _cpu_seconds() -> float:
  """Processor time of all child processes that have ended."""
  used = resource.getrusage(resource.RUSAGE_CHILDREN)
  return used.ru_utime + used.ru_stime


def _figure(folder: pathlib.Path, metric: str) -> float:
  rows = json.loads((folder / "results.json").read_text())["rows"]
  return next(x["value"] for x in rows if x["metric"] == metric)


def _quality(sweep: Sweep, done: Done) -> dict[str, Any]:
  return {
    f"mean {sweep.metric}": statistics.mean(done.figures),
    "runs": len(done.figures),
    "CPU s": done.cpu_seconds,
  }


def _same(sweep: Sweep) -> Sweep:
  return sweep


def cases(size: str) -> list[harness.Case]:
  """The cases of this suite."""
  return [
    harness.Case(
      sweep.name,
      functools.partial(_same, sweep),
      {
        "ours": functools.partial(_measured, one_program),
        f"processes, {_AT_A_TIME} at a time": functools.partial(
          _measured, separate_processes
        ),
      },
      quality=_quality,
    )
    for sweep in sweeps(size)
  ]

"""Runs an experiment with many settings.

python -m launch.sweep --sweep=experiments/sweeps/NAME.py
    on this machine, two processes at a time
python -m launch.sweep --sweep=... --executor=print
    only the commands
python -m launch.sweep --sweep=... --executor=slurm --jobs=20
    --slurm=partition=gpu,time=120,gpus_per_node=1
    on a cluster, from a node that can submit
python -m launch.collect runs/sweeps/NAME
    then: one table and plots of all results

The file names the experiment, its preset (or FLAGFILE, a file of flags) and the
runs:

  EXPERIMENT = "experiments.elkb"
  PRESET = "elkb_fast"

  def sweep(add):
    add(model="T")                                   one run
    add.list([{"dim": 50}, {"dim": 100}])            these
    add.grid(dim=(50, 100), penalty=(1e-4, 1e-3))    all combinations
    add.seeds(8, model="B")                          seeds 0 to 7
    add.random(20, penalty=add.log_uniform(1e-3, 1)) 20 draws, always the same

Each run has a work directory below --root that its flags name. Start the same
command again after Ctrl-C, a crash or an edit of the file: finished runs are
skipped, interrupted runs are resumed. A failed run does not stop the others;
the end of its log is shown at the end, and the exit code is then 1. Where the
experiment declares VMAP_OVER, runs that differ only in those flags share one
process and what it compiles (--group_size). Logs are in ROOT/logs.
"""

import pathlib
import shlex
from typing import Any

from absl import flags

from experiments.run import progress, runlib
from launch import board, executors, plan, running
from repr_jax import errors

_SWEEP = flags.DEFINE_string("sweep", None, "The file of the sweep.")
_EXECUTOR = flags.DEFINE_enum(
  "executor",
  "local",
  ["local", "slurm", "print"],
  "Processes of this machine, jobs of SLURM, or only show the commands.",
)
_JOBS = flags.DEFINE_integer(
  "jobs", 2, "Processes or cluster jobs at a time.", lower_bound=1
)
_ROOT = flags.DEFINE_string(
  "root", None, "Directory above the work directories. Default: "
  "runs/sweeps/NAME, with the name of the file."
)  # fmt: skip
_GROUP_SIZE = flags.DEFINE_integer(
  "group_size",
  8,
  "Runs in one process at most, for experiments with VMAP_OVER; 1 for one "
  "process per run.",
  lower_bound=1,
)
_BEST = flags.DEFINE_string(
  "best",
  None,
  'Figure that chooses the best run so far: METRIC or "NAME: METRIC". Default: '
  "the first on validation data whose better direction is known; without one, "
  "the first that the thesis has too; else the first.",
)
_SMALLEST = flags.DEFINE_bool(
  "smallest", None, "Smaller is better. By default the metric decides."
)
_GPUS = flags.DEFINE_list(
  "gpus", [], "local: ids of GPUs, one for each process at a time."
)
_SLURM = flags.DEFINE_list(
  "slurm",
  ["time=1440"],
  "slurm: options of sbatch as NAME=VALUE with submitit's names, such as "
  "partition, time (minutes), gpus_per_node, cpus_per_task, mem, account, qos.",
)

_TAIL_LINES = 12


def _slurm_options(pairs: list[str]) -> dict[str, Any]:
  options: dict[str, Any] = {}
  for pair in pairs:
    name, equals, value = pair.partition("=")
    if not equals:
      raise errors.InputError(f"--slurm: {pair!r} is not NAME=VALUE")
    options[name] = int(value) if value.isdigit() else value
  return options


def make_executor(root: pathlib.Path) -> executors.Executor:
  """The executor that the flags name, or an error that says what it lacks."""
  folder = root / ".submitit"
  if _EXECUTOR.value == "slurm":
    return executors.Slurm(folder, _slurm_options(_SLURM.value))
  gpus = _GPUS.value
  if gpus and len(gpus) < _JOBS.value:
    raise errors.InputError(
      f"--gpus has {len(gpus)} for --jobs={_JOBS.value}; give as many"
    )
  return executors.Local(folder, gpus)


def _report(sweep: running.Sweep, best: board.Best, total: int) -> None:
  failed = len(sweep.failures)
  print(f"{total - failed} of {total} runs are done, {failed} failed")
  if best.text:
    print(f"best: {best.text}")
  for run, reason, log in sweep.failures:
    print(f"\n{run.name} failed: {reason}; the end of {log}:")
    for line in board.tail(log, _TAIL_LINES):
      print(f"  {line}")


def main(argv: list[str]) -> int | None:
  """Runs the sweep that the flags name; returns the exit code."""
  del argv
  if _SWEEP.value is None:
    raise errors.InputError("--sweep is missing: the file of the sweep")
  name = pathlib.Path(_SWEEP.value).stem
  root = pathlib.Path(_ROOT.value or pathlib.Path("runs", "sweeps", name))
  printing = _EXECUTOR.value == "print"
  executor = None if printing else make_executor(root)
  made = plan.make(_SWEEP.value, root)
  jobs = plan.jobs(made, _GROUP_SIZE.value)
  if executor is None:
    for job in jobs:
      print(shlex.join(job.arguments))
    return None
  total, left = len(made.runs), sum(len(job.runs) for job in jobs)
  progress.say(
    f"{name}: {total} runs, {total - left} finished before, {left} to do in "
    f"{len(jobs)} jobs, {_JOBS.value} at a time, below {root}"
  )
  best = board.Best(_BEST.value, _SMALLEST.value)
  sweep = running.Sweep(made, executor, _JOBS.value, best, board.Board(name))
  sweep.execute(jobs)
  _report(sweep, best, total)
  return 1 if sweep.failures else None


if __name__ == "__main__":
  runlib.launch(main, of_a_run=False)

"""Executes a group of runs in one program; the sweep starts it.

python -m launch.vmapped_group --group=runs/sweeps/NAME/groups/CODE.json

The runs differ only in flags that their experiment declares in VMAP_OVER. They
share data and compiled programs, which are spread over the devices; on a CPU
each core serves as a device, unless XLA_FLAGS say otherwise. Each work
directory gets the files that a run alone would have written. A run that fails
does not end the others; the exit code is then 1.
"""

import os
import pathlib
import sys
from typing import Any, NamedTuple

from experiments.run import (
  cpu_settings,
  progress,
  shutdown,
  vmapped_runs,
  workdir,
)
from launch import inspection
from repr_jax import errors
from repr_jax.data.io import json_files

_DEVICES = "--xla_force_host_platform_device_count"


def status_path(group: pathlib.Path) -> pathlib.Path:
  """The file that lists the failures of a group."""
  return group.with_suffix(".status")


class _Group(NamedTuple):
  """Runs of one program: directories, and the arguments of each."""

  experiment: str
  directories: list[str]
  arguments: list[list[str]]


def _read(path: pathlib.Path) -> _Group:
  record = json_files.read_json(path)
  if not isinstance(record, dict):
    record = {}
  experiment, runs = record.get("experiment"), record.get("runs")
  if not isinstance(experiment, str) or not isinstance(runs, list) or not runs:
    raise errors.InputError(
      "is not a group of runs: it needs the name of an experiment and a list "
      "of runs",
      path=path,
    )
  for number, run in enumerate(runs, 1):
    fields = run if isinstance(run, dict) else {}
    given = fields.get("arguments")
    if not _is_path(fields.get("directory")) or not (
      isinstance(given, list) and all(isinstance(x, str) for x in given)
    ):
      raise errors.InputError(
        f"run {number} of the group has no directory and list of arguments",
        path=path,
      )
  return _Group(
    experiment,
    [run["directory"] for run in runs],
    [run["arguments"] for run in runs],
  )


def _is_path(value: Any) -> bool:
  return isinstance(value, str) and bool(value) and "\0" not in value


def _spread(count: int) -> None:
  """Makes each core a device, unless XLA_FLAGS sets their number."""
  given = os.environ.get("XLA_FLAGS", "")
  if _DEVICES not in given:
    number = min(count, vmapped_runs.cores())
    os.environ["XLA_FLAGS"] = f"{given} {_DEVICES}={number}".strip()


def execute(path: pathlib.Path) -> list[str | None]:
  """Runs a group in this process.

  Returns:
    The error of each run; None for a run without one.
  """
  group = _read(path)
  module = inspection.load_experiment(group.experiment)
  if not hasattr(module, "VMAP_OVER") or not hasattr(module, "run_vmapped"):
    raise errors.InputError(
      f"runs of {group.experiment} cannot share a program; start them one by "
      "one",
      path=path,
    )
  members = [
    vmapped_runs.Member(
      pathlib.Path(directory), inspection.parse_flags(arguments)
    )
    for directory, arguments in zip(group.directories, group.arguments)
  ]
  over = {*module.VMAP_OVER, "workdir"}
  first = members[0].flags
  for member in members:
    other = {k for k, v in member.flags.items() if first.get(k) != v} - over
    if other:
      raise errors.InputError(
        f"{member.directory} differs in --{sorted(other)[0]}, which is not in "
        "VMAP_OVER",
        path=path,
      )
  return module.run_vmapped(members)


def main(arguments: list[str]) -> int:
  """Runs the group that the command line names; returns the exit code."""
  # No flags are defined here: they would become those of the experiment.
  name, _, value = (arguments or [""])[0].partition("=")
  if len(arguments) != 1 or name != "--group" or not value:
    print(__doc__)
    return 0 if "--help" in arguments else 2
  path = pathlib.Path(value)
  try:
    _spread(len(_read(path).directories))
    cpu_settings.apply()
    shutdown.on_signals()
    shutdown.with_parent()
    from absl import logging

    logging.set_verbosity(logging.WARNING)
    failures = execute(path)
  except (errors.InputError, OSError) as error:
    progress.say(f"error: {shutdown.describe(error)}")
    return 2
  except KeyboardInterrupt:
    return 130
  told = dict(zip(_read(path).directories, failures))
  workdir.write_json(status_path(path), told)
  for directory, failure in told.items():
    progress.say(f"{directory}: {failure or 'done'}")
  return 1 if any(failures) else 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))

"""Executes a group of runs in one program; the sweep starts it.

python -m launch.together --group=runs/sweeps/NAME/groups/CODE.json

The runs differ only in flags that their experiment declares in VMAP_OVER. They
are vmapped into one compiled program, which is spread over the devices; on a
CPU each core serves as a device, unless XLA_FLAGS say otherwise. Each work
directory gets what a run alone would have written. A run that fails does not
end the others; the exit code is then 1.
"""

import json
import os
import pathlib
import sys
from typing import Any

from experiments import endings, progress, settings, together, workdir
from launch import inspection
from repr_jax import errors

_DEVICES = "--xla_force_host_platform_device_count"


def status_path(group: pathlib.Path) -> pathlib.Path:
  """Where the failures of a group are told."""
  return group.with_suffix(".status")


def _read(path: pathlib.Path) -> dict[str, Any]:
  try:
    found = json.loads(path.read_text())
    return {"experiment": found["experiment"], "runs": list(found["runs"])}
  except (KeyError, TypeError, ValueError) as error:
    raise errors.InputError("is not a group of runs", path=path) from error


def _spread(count: int) -> None:
  """Lets each core be a device, where XLA has not been told otherwise."""
  given = os.environ.get("XLA_FLAGS", "")
  if _DEVICES not in given:
    number = min(count, together.cores())
    os.environ["XLA_FLAGS"] = f"{given} {_DEVICES}={number}".strip()


def execute(path: pathlib.Path) -> list[str | None]:
  """Runs a group in this process.

  Args:
    path: the file that describes it.

  Returns:
    What went wrong in each run, None where nothing did.
  """
  group = _read(path)
  module = inspection.load_experiment(group["experiment"])
  members = [
    together.Member(
      pathlib.Path(run["directory"]), inspection.parse_flags(run["arguments"])
    )
    for run in group["runs"]
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
  return module.run_together(members)


def main(arguments: list[str]) -> int:
  """Runs the group that the command line names; returns the exit code."""
  # No flags are defined here: they would become those of the experiment.
  name, _, value = (arguments or [""])[0].partition("=")
  if len(arguments) != 1 or name != "--group" or not value:
    print(__doc__)
    return 0 if "--help" in arguments else 2
  path = pathlib.Path(value)
  try:
    _spread(len(_read(path)["runs"]))
    settings.apply()
    endings.on_signals()
    endings.with_parent()
    from absl import logging

    logging.set_verbosity(logging.WARNING)
    failures = execute(path)
  except (errors.InputError, OSError) as error:
    progress.say(f"error: {endings.describe(error)}")
    return 2
  except KeyboardInterrupt:
    return 130
  directories = [run["directory"] for run in _read(path)["runs"]]
  told = dict(zip(directories, failures))
  workdir.write_json(status_path(path), told)
  for directory, failure in told.items():
    progress.say(f"{directory}: {failure or 'done'}")
  return 1 if any(failures) else 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))

"""From a sweep file to jobs: runs, their work directories, and their groups.

Every error of a sweep file is reported here, before anything starts.
"""

import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import re
import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments.run import presets, progress, workdir
from launch import inspection, results, space
from repr_jax import errors
from repr_jax.data.io import json_files

_LONGEST_NAME = 100
_LONGEST_ID = 40


class Run(NamedTuple):
  """One run of a sweep.

  Attributes:
    name: of its work directory, from its flags.
    directory: its work directory.
    flags: what the sweep sets, by name.
    arguments: of the experiment's command line.
    values: all flags of the experiment, by name.
    finished: whether it has ended here before, with these values.
  """

  name: str
  directory: pathlib.Path
  flags: dict[str, Any]
  arguments: list[str]
  values: dict[str, Any]
  finished: bool = False


class Plan(NamedTuple):
  """A sweep whose runs have valid flags.

  Attributes:
    experiment: module that `python -m` runs.
    root: directory above all work directories.
    runs: the runs, in the order of the file.
    vmap_over: flags in which runs of one program may differ.
  """

  experiment: str
  root: pathlib.Path
  runs: list[Run]
  vmap_over: tuple[str, ...]


class Job(NamedTuple):
  """Runs that one process executes, and its command."""

  name: str
  runs: list[Run]
  arguments: list[str]


def load(path: str) -> tuple[str, list[str], list[space.Added]]:
  """Executes a sweep file.

  Args:
    path: a Python file with EXPERIMENT, `sweep(add)` and perhaps PRESET, the
      name of a packaged preset, or FLAGFILE, a file of flags.

  Returns:
    The experiment, the arguments of all runs, and the runs that were added.
  """
  if not os.path.isfile(path):
    raise errors.InputError("--sweep: there is no such file", path=path)
  adder = space.Adder(path)
  try:
    names = runpy.run_path(path, run_name="sweep")
    if not callable(names.get("sweep")):
      raise errors.InputError("has no function sweep(add)", path=path)
    if not isinstance(names.get("EXPERIMENT"), str):
      raise errors.InputError(
        'does not set EXPERIMENT = "experiments.NAME"', path=path
      )
    names["sweep"](adder)
  except errors.InputError:
    raise
  except Exception as error:
    raise errors.InputError(
      f"{type(error).__name__}: {error}", path=path, line=_line(error, path)
    ) from error
  if not adder.runs:
    raise errors.InputError("sweep(add) adds no run", path=path)
  preset, flagfile = names.get("PRESET"), names.get("FLAGFILE")
  common = []
  if preset is not None:
    if preset not in presets.names():
      raise errors.InputError(
        f"PRESET: there is no {preset!r}; there are "
        f"{', '.join(presets.names())}",
        path=path,
      )
    common.append(f"--preset={preset}")
  if flagfile is not None:
    if not os.path.isfile(flagfile):
      raise errors.InputError(
        f"FLAGFILE: there is no file {flagfile!r} here", path=path
      )
    common.append(f"--flagfile={flagfile}")
  return names["EXPERIMENT"], common, adder.runs


def _line(error: Exception, path: str) -> int | None:
  """The last line of the sweep file in an error's traceback."""
  if isinstance(error, SyntaxError) and error.filename == path:
    return error.lineno
  lines = [
    frame.lineno
    for frame in traceback.extract_tb(error.__traceback__)
    if frame.filename == path
  ]
  return lines[-1] if lines else None


def directory_name(flags: Mapping[str, Any]) -> str:
  """A readable name for a work directory; other flags give another name."""
  texts = {name: _text(flags[name]) for name in sorted(flags)}
  whole = ",".join(f"{name}={text}" for name, text in texts.items())
  plain = re.sub(r"[^\w.+=,-]", "-", whole)
  # A comma in a value would look like the next flag.
  clear = plain == whole and whole.count(",") < max(len(texts), 1)
  if clear and len(whole) <= _LONGEST_NAME:
    return whole or "default"
  code = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:8]
  return f"{plain[: _LONGEST_NAME - 9]}-{code}"


def _text(value: Any) -> str:
  if isinstance(value, bool):
    return str(value).lower()
  if isinstance(value, (list, tuple)):
    return ",".join(map(_text, value))
  return str(value)


def make(path: str, root: pathlib.Path) -> Plan:
  """Loads a sweep file and checks every run of it.

  Args:
    root: directory above all work directories.
  """
  experiment, common, added = load(path)
  runs: list[Run] = []
  lines: dict[str, int | None] = {}
  for flags, line in added:
    name = directory_name(flags)
    if name in lines:
      raise errors.InputError(
        f"two runs have one work directory, {name}: the one added in line "
        f"{lines[name]} and this one; their flags are the same",
        path=path,
        line=line,
      )
    lines[name] = line
    directory = root / name
    own = [f"--{key}={_text(value)}" for key, value in flags.items()]
    arguments = [*common, *own, f"--workdir={directory}"]
    runs.append(Run(name, directory, flags, arguments, {}))
  answer = inspection.ask(experiment, [run.arguments for run in runs])
  if isinstance(answer, list):
    index = next(i for i, wrong in enumerate(answer) if wrong)
    raise errors.InputError(
      f"{experiment}: {answer[index]}", path=path, line=added[index].line
    )
  _warn_of_twins(runs, answer.flags)
  runs = [
    run._replace(values=values, finished=is_finished(root, run.name, values))
    for run, values in zip(runs, answer.flags)
  ]
  return Plan(experiment, root, runs, answer.vmap_over)


def _warn_of_twins(runs: Sequence[Run], flags: Sequence[dict]) -> None:
  """Names runs that are equal, such as one that gives a default explicitly."""
  seen: dict[str, str] = {}
  for run, values in zip(runs, flags):
    code = json.dumps({**values, "workdir": None}, sort_keys=True)
    if code in seen:
      progress.say(f"note: {run.name} is the same run as {seen[code]}")
    seen.setdefault(code, run.name)


def is_finished(
  root: pathlib.Path, name: str, values: Mapping[str, Any]
) -> bool:
  """Whether a run with these flags has ended in its directory.

  If flags differ, the run is started: the experiment knows which flags may
  differ, and refuses the others.

  Args:
    root: directory above all work directories.
    name: of the run's work directory.
  """
  directory = root / name
  if not (directory / "results.json").exists():
    return False
  try:
    stored = _comparable(results.read_flags(directory / "flags.json"))
  except errors.InputError:
    return False
  now = _comparable(values)
  if any(now[key] != stored[key] for key in now.keys() & stored.keys()):
    return False
  # An experiment may record only some of its flags; the sweep's note has all.
  noted = read_json(_note(root, name)) or {}
  return stored.keys() >= now.keys() or _comparable(noted) == now


def note_finished(root: pathlib.Path, run: Run) -> None:
  """Keeps the flags of a run that has ended, for the next start of the sweep.

  Args:
    root: directory above all work directories.
  """
  path = _note(root, run.name)
  path.parent.mkdir(parents=True, exist_ok=True)
  workdir.write_json(path, run.values)


def _note(root: pathlib.Path, name: str) -> pathlib.Path:
  return root / "finished" / f"{name}.json"


def _comparable(flags: Mapping[str, Any]) -> dict[str, Any]:
  """Flags in a form in which 1, 1.0 and "1" are equal, and so are NaNs."""
  return {k: _plain(v) for k, v in flags.items() if k != "workdir"}


def _plain(value: Any) -> Any:
  if isinstance(value, (list, tuple)):
    return [_plain(x) for x in value]
  if value is None or isinstance(value, bool):
    return value
  try:
    return repr(float(value))
  except (TypeError, ValueError, OverflowError):
    return str(value)


def read_json(path: pathlib.Path) -> dict[str, Any] | None:
  """Reads a JSON object; None if the file holds none."""
  try:
    value = json_files.read_json(path)
  except errors.InputError:
    return None
  return value if isinstance(value, dict) else None


def jobs(plan: Plan, group_size: int) -> list[Job]:
  """The jobs of the runs that are left to do.

  Args:
    group_size: runs in one program at most, where the experiment can do that.

  Returns:
    Jobs in the order of their first runs. The file that describes a group is
    written below `root`.
  """
  groups: dict[str, list[Run]] = {}
  for run in plan.runs:
    if not run.finished:
      shared = {k: v for k, v in run.flags.items() if k not in plan.vmap_over}
      # A run whose directory has results of other flags gets a process of its
      # own, in which the experiment refuses it.
      stale = (run.directory / "results.json").exists()
      alone = group_size < 2 or not plan.vmap_over or stale
      key = run.name if alone else json.dumps(shared, default=str)
      groups.setdefault(key, []).append(run)
  return [
    _job(plan, part)
    for members in groups.values()
    for part in _parts(members, group_size)
  ]


def _parts(members: list[Run], size: int) -> list[list[Run]]:
  """Parts of nearly equal length, none longer than `size`."""
  count = -(-len(members) // max(size, 1))
  bounds = [len(members) * i // count for i in range(count + 1)]
  return [members[a:b] for a, b in itertools.pairwise(bounds)]


def _job(plan: Plan, members: list[Run]) -> Job:
  if len(members) == 1:
    (run,) = members
    program = [sys.executable, "-m", plan.experiment, *run.arguments]
    return Job(run.name, members, program)
  record = {
    "experiment": plan.experiment,
    "runs": [
      {"directory": str(run.directory), "arguments": run.arguments}
      for run in members
    ],
  }
  code = hashlib.sha256(json.dumps(record).encode()).hexdigest()[:8]
  path = plan.root / "groups" / f"{code}.json"
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(json.dumps(record, indent=2) + "\n")
  name = f"{len(members)} runs in one program, {code}"
  return Job(
    name,
    members,
    [sys.executable, "-m", "launch.vmapped_group", f"--group={path}"],
  )


def holder(directory: pathlib.Path) -> str | None:
  """Id of the process that uses a work directory, None where none does."""
  try:
    with open(directory / ".lock", errors="replace") as file:
      try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      except OSError:
        return file.read(_LONGEST_ID).strip() or "unknown"
  except OSError:
    pass
  return None

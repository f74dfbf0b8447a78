"""The files of a work directory: its lock, its flags and its metrics."""

import errno
import fcntl
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from importlib import metadata
from typing import IO, Any

from absl import flags

from experiments.run import cpu_settings, event_files
from repr_jax import errors
from repr_jax.data.io import files, json_files

# Temporary files of `atomic_write` and of stores.
_UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.(tmp|old)")
_LONGEST_ID = 40
_OURS = ("experiments", "launch", "repr_jax")
_PACKAGES = (
  "repr_jax", "jax", "jaxlib", "flax", "optax", "chex", "numpy", "scipy",
  "orbax-checkpoint",
)  # fmt: skip


def write_json(path: str | os.PathLike, value: Any) -> None:
  """Writes a value as indented JSON, all of it or nothing."""
  with files.atomic_write(path, "w") as out:
    out.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_results(path: str | os.PathLike) -> dict[str, Any]:
  """Reads the `results.json` of a run that has ended.

  Returns:
    The object, with a list of rows as `Run.row` makes them. Anything else is
    an `InputError`.
  """
  results = json_files.read_json(path)
  rows = results.get("rows") if isinstance(results, dict) else None
  reason = "" if isinstance(rows, list) else "it has no list of rows"
  for number, row in enumerate(rows if isinstance(rows, list) else (), 1):
    if wrong := _wrong_in_row(row):
      reason = f"row {number} has no {wrong}"
      break
  if reason:
    raise errors.InputError(
      f"is not a run's results ({reason}); remove it and run again", path=path
    )
  return results


def _wrong_in_row(row: Any) -> str | None:
  """Names the field that a row of results lacks; None if the row is valid."""
  if not isinstance(row, dict):
    return "fields"
  for name in ("name", "metric"):
    if not isinstance(row.get(name), str):
      return f"text as {name}"
  numbers = ("value", "thesis", "lower", "upper", "tolerance")
  for name in numbers:
    if (name in row or name == "value") and not is_number(row.get(name)):
      return f"finite number as {name}"
  if not isinstance(row.get("lower_is_better", False), bool):
    return "truth value as lower_is_better"
  return None


def is_number(value: Any) -> bool:
  """Whether a value of JSON is a number that a float can hold."""
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    return False
  try:
    return math.isfinite(value)
  except OverflowError:
    return False


class Lock:
  """Exclusive use of a work directory while the process lives.

  The kernel releases the lock when its holder dies, so a crash leaves nothing
  to clean up; the file keeps the holder's process id for the message.
  """

  def __init__(self, directory: pathlib.Path):
    try:
      directory.mkdir(parents=True, exist_ok=True)
      self._file = open(  # noqa: SIM115
        directory / ".lock", "a+", errors="replace"
      )
    except OSError as error:
      raise errors.InputError(
        f"cannot write to the work directory ({error.strerror}); give another "
        "one with --workdir",
        path=directory,
      ) from error
    try:
      fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
      self._file.seek(0)
      holder = self._file.read(_LONGEST_ID).strip() or "unknown"
      self._file.close()
      raise errors.InputError(
        f"the work directory is in use by process {holder}; wait for it or "
        "give another one with --workdir",
        path=directory,
      ) from error
    try:
      self._file.truncate(0)
      self._file.write(f"{os.getpid()}\n")
      self._file.flush()
    except OSError as error:
      raise errors.InputError(
        f"cannot write to the work directory ({error.strerror})", path=directory
      ) from error

  def release(self) -> None:
    """Lets the next process in."""
    self._file.close()


def flag_values() -> dict[str, Any]:
  """The program's own flags by name, without those of installed libraries.

  A preset is recorded as the flags that it sets.
  """
  values = {}
  for module, defined in flags.FLAGS.flags_by_module_dict().items():
    source = getattr(sys.modules.get(module), "__file__", None) or ""
    foreign = "site-packages" in source or "dist-packages" in source
    if foreign and module.split(".")[0] not in _OURS:
      continue
    values.update({flag.name: flag.value for flag in defined})
  values.pop("preset", None)
  return values


def _commit() -> str | None:
  """The git commit of a checkout, marked where files differ from it."""
  root = pathlib.Path(__file__).resolve().parents[2]
  if not (root / ".git").exists():
    return None
  try:
    head, changes = (
      subprocess.run(
        ["git", "--no-optional-locks", "-C", str(root), *command],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
      ).stdout.strip()
      for command in (
        ["rev-parse", "HEAD"],
        ["status", "--porcelain", "--untracked-files=no"],
      )
    )
  except (OSError, subprocess.SubprocessError):
    return None
  return f"{head} with changes" if changes else head


def versions() -> dict[str, str]:
  """Versions of Python and of the packages that results depend on."""
  installed = {"python": sys.version.split()[0]}
  for name in _PACKAGES:
    try:
      installed[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
      continue
  return installed


def _device() -> dict[str, Any]:
  import jax

  devices = jax.devices()
  return {
    "platform": devices[0].platform,
    "kind": devices[0].device_kind,
    "count": len(devices),
  }


def describe(
  experiment: str, config: Mapping[str, Any], devices: bool = True
) -> dict[str, Any]:
  """The record of a run that `flags.json` keeps.

  Args:
    config: the run's flags.
    devices: whether to ask JAX for the device.

  Returns:
    Flags, seed, versions, device, settings and commit, as JSON gives them
    back, so that they can be compared with those of another run.
  """
  record = {
    "experiment": experiment,
    "flags": dict(sorted(config.items())),
    "seed": config.get("seed"),
    "versions": versions(),
    "device": _device() if devices else None,
    "settings": cpu_settings.in_force(),
    "commit": _commit(),
  }
  return json.loads(json.dumps(record, default=str))


def claim(
  directory: pathlib.Path,
  record: Mapping[str, Any],
  volatile: Collection[str],
  extendable: Collection[str] = (),
) -> None:
  """Claims the directory: writes `flags.json` or checks that it agrees.

  A flag that an earlier version did not have counts as its default.

  Args:
    record: the run, from `describe`.
    volatile: flags that may differ.
    extendable: flags that may grow, such as the number of epochs. Where one
      has grown, the run is no longer finished and its `flags.json` is new.

  Raises:
    InputError: the directory belongs to another run.
  """
  _clean(directory)
  path = directory / "flags.json"
  if not path.exists():
    for name in ("metrics.jsonl", "results.json", "checkpoints"):
      if (directory / name).exists():
        raise errors.InputError(
          f"has {name} but no flags.json, so the run that made it is not "
          "known; give another one with --workdir",
          path=directory,
        )
    write_json(path, record)
    return
  try:
    stored = json_files.read_json(path)
    before = {"experiment": stored["experiment"], **stored["flags"]}
  except (KeyError, TypeError, ValueError) as error:
    raise errors.InputError(
      "is not a record of flags; give another --workdir", path=path
    ) from error
  now = {"experiment": record["experiment"], **record["flags"]}
  for name in set(now).intersection(flags.FLAGS) - set(before):
    default = json.dumps(flags.FLAGS[name].default, default=str)
    before[name] = json.loads(default)
  missing = object()
  grown = [x for x in extendable if _has_grown(before.get(x), now.get(x))]
  differ = [
    f"--{name} was {_show(before, name)}, now {_show(now, name)}"
    + " (it may only grow)" * (name in extendable)
    for name in sorted((set(before) | set(now)) - {*volatile, *grown})
    if before.get(name, missing) != now.get(name, missing)
    and _show(before, name) != _show(now, name)  # NaN is not equal to NaN
  ]
  if differ:
    raise errors.InputError(
      f"the work directory belongs to a run with other flags: "
      f"{'; '.join(differ)}. Give these back or another --workdir",
      path=directory,
    )
  if grown:
    # In this order, so that a crash leaves no result under larger flags.
    (directory / "results.json").unlink(missing_ok=True)
    write_json(path, record)


def _has_grown(before: Any, now: Any) -> bool:
  return is_number(before) and is_number(now) and now > before


def free(directory: pathlib.Path) -> None:
  """Removes the flags of a run that has not computed anything.

  Args:
    directory: the work directory, whose lock this process has. It is left
      alone if it holds more than flags and an empty log.
  """
  log = directory / "metrics.jsonl"
  known = {".lock", "flags.json", log.name}
  for path in directory.rglob("*"):
    strange = path.name not in known or path.parent != directory
    if strange and not (path.is_dir() and not path.is_symlink()):
      return
  if log.exists() and log.stat().st_size:
    return
  log.unlink(missing_ok=True)
  (directory / "flags.json").unlink(missing_ok=True)


def _clean(directory: pathlib.Path) -> None:
  """Removes what a killed process left half-written."""
  for top, folders, names in os.walk(directory):
    place = pathlib.Path(top)
    if place != directory and (place / ".lock").exists():
      folders.clear()  # another run's, which may be at work
      continue
    for name in filter(_UNFINISHED.fullmatch, (*folders, *names)):
      if name in folders:
        shutil.rmtree(place / name, ignore_errors=True)
      else:
        (place / name).unlink(missing_ok=True)
    folders[:] = [
      name
      for name in folders
      if name != "checkpoints" and not _UNFINISHED.fullmatch(name)
    ]


def _show(values: Mapping[str, Any], name: str) -> str:
  return json.dumps(values[name]) if name in values else "absent"


class Metrics:
  """The lines of `metrics.jsonl`, each one object and one write."""

  def __init__(
    self, path: pathlib.Path, events: event_files.EventFile | None = None
  ):
    self._path = path
    self._events = events
    self._file: IO[bytes] | None = None
    self._last: int | None = None
    self._uncut = False

  def open(self, step: int | None, keep: bool = False) -> None:
    """Opens the log for more lines and cuts the lines after `step`.

    Args:
      step: the last step whose lines stay; None to cut all.
      keep: cut only when the first line is added.
    """
    self._last = step
    self._uncut = True
    if not keep:
      self._cut()
    elif self._events is not None and not self._events.exists():
      self._replay()

  def _cut(self) -> None:
    self._uncut = False
    if self._path.exists():
      content = self._path.read_bytes()
      kept = b"".join(
        line
        for line in content.splitlines(keepends=True)
        if self._last is not None and _step(line) <= self._last
      )
      if kept != content:
        with files.atomic_write(self._path, "wb") as out:
          out.write(kept)
    if self._events is not None:
      self._replay()
    self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115

  def _replay(self) -> None:
    assert self._events is not None
    lines = self._path.read_bytes().splitlines() if self._path.exists() else []
    self._events.replace(map(json.loads, lines))

  def append(self, record: Mapping[str, Any]) -> None:
    """Adds one line. `record` has its step; steps never decrease."""
    if self._uncut:
      self._cut()
    if self._file is None:
      raise ValueError("log a value inside the `with` block of its run")
    if self._last is not None and record["step"] < self._last:
      raise ValueError(
        f"step {record['step']} is logged after step {self._last}"
      )
    self._last = record["step"]
    line = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    data = line.encode()
    with files.naming(self._path):
      if self._file.write(data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if self._events is not None:
      self._events.append(record)

  def sync(self) -> None:
    """Waits until the lines are on the disk."""
    if self._file is not None:
      os.fsync(self._file.fileno())
    if self._events is not None:
      self._events.flush()

  def close(self) -> None:
    """Ends the log."""
    if self._events is not None:
      self._events.close()
    if self._file is not None:
      self._file.close()
      self._file = None


def _step(line: bytes) -> float:
  """The step of a line; infinite if the line is incomplete."""
  try:
    step = json.loads(line)["step"] if line.endswith(b"\n") else None
  except (KeyError, TypeError, ValueError, RecursionError):
    step = None
  return step if type(step) is int else float("inf")

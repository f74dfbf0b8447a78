"""Runs an experiment alone and in groups, and compares what they leave."""

import contextlib
import dataclasses
import importlib
import json
import os
import pathlib
import subprocess
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from absl import flags
from absl.testing import flagsaver

from experiments.run import vmapped_runs, workdir

_ROOT = pathlib.Path(__file__).parents[2]
# Figures of the process and not of the method.
_TIMES = ("seconds", "memory", "peak_mb")

if not flags.FLAGS.is_parsed():
  flags.FLAGS(["grouped"])


_CORE = ("experiments.run.runlib", "experiments.run.presets")
_OWN: dict[str, list[tuple[str, flags.Flag]]] = {}


@contextlib.contextmanager
def program(name: str) -> Iterator[types.ModuleType]:
  """The program of an experiment, while its flags are those of this process.

  Flags of other programs that tests have imported are put aside meanwhile.

  Args:
    name: of the experiment's package.
  """
  main = f"{name}.__main__"
  if main in sys.modules and name not in _OWN:
    yield sys.modules[main]  # imported by a test with flags of its own
    return
  others = _defined()
  _remove(others)
  if name in _OWN:
    _add(_OWN[name])
  module = importlib.import_module(main)
  _OWN[name] = _defined()
  try:
    yield module
  finally:
    _remove(_OWN[name])
    _add(others)


def _defined() -> list[tuple[str, flags.Flag]]:
  """The flags of experiments, with the modules that define them."""
  return [
    (module, flag)
    for module, defined in flags.FLAGS.flags_by_module_dict().items()
    if module.startswith("experiments.") and module not in _CORE
    for flag in defined
  ]


def _remove(defined: Sequence[tuple[str, flags.Flag]]) -> None:
  for _, flag in defined:
    delattr(flags.FLAGS, flag.name)


def _add(defined: Sequence[tuple[str, flags.Flag]]) -> None:
  for module, flag in defined:
    flags.FLAGS[flag.name] = flag
    flags.FLAGS.register_flag_by_module(module, flag)


def alone(name: str, folder: pathlib.Path, values: dict[str, Any]) -> None:
  """A run by itself, in this process."""
  with (
    program(name) as module,
    flagsaver.flagsaver(workdir=str(folder), **values),
  ):
    module.main([])


def together(
  name: str,
  folder: pathlib.Path,
  common: dict[str, Any],
  changes: Sequence[dict[str, Any]],
) -> list[str | None]:
  """Runs of one program, in directories named by number."""
  with program(name) as module:
    members = []
    for i, change in enumerate(changes):
      values = {**common, **change, "workdir": str(folder / str(i))}
      with flagsaver.flagsaver(**values):
        member = vmapped_runs.Member(folder / str(i), workdir.flag_values())
      members.append(member)
    with flagsaver.flagsaver(**common):
      return module.run_vmapped(members)


def by_the_launcher(
  experiment: str,
  folder: pathlib.Path,
  common: dict[str, Any],
  changes: Sequence[dict[str, Any]],
  devices: int,
) -> None:
  """The program that a sweep starts, on forced devices."""
  runs = []
  for i, change in enumerate(changes):
    values = {**common, **change, "workdir": str(folder / str(i))}
    given = [
      f"--{name}={','.join(map(str, value))}"
      if isinstance(value, list)
      else f"--{name}={value}"
      for name, value in values.items()
    ]
    runs.append({"directory": values["workdir"], "arguments": given})
  folder.mkdir(exist_ok=True)
  path = folder / "group.json"
  path.write_text(json.dumps({"experiment": experiment, "runs": runs}))
  ended = subprocess.run(
    [sys.executable, "-m", "launch.vmapped_group", f"--group={path}"],
    cwd=_ROOT,
    env={
      **os.environ,
      "REPR_JAX_SETTINGS": "off",
      "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    },
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 0, ended.stderr
  told = json.loads(path.with_suffix(".status").read_text())
  assert list(told.values()) == [None] * len(changes)
  for i in range(len(changes)):
    record = json.loads((folder / str(i) / "flags.json").read_text())
    assert record["device"]["count"] == devices


def assert_same(
  kind: type, one: pathlib.Path, two: pathlib.Path, rel: float = 1e-3
) -> None:
  """Results, flags, logged figures and files of two work directories.

  Args:
    kind: the experiment's configuration.
    one: a work directory.
    two: another.
    rel: tolerance of the figures.
  """
  first, second = (
    json.loads((x / "results.json").read_text())["rows"] for x in (one, two)
  )
  assert len(first) == len(second) > 0
  for ours, theirs in zip(first, second):
    assert ours.keys() == theirs.keys()
    assert ours["name"] == theirs["name"] and ours["metric"] == theirs["metric"]
    if not any(x in ours["metric"] for x in _TIMES):
      assert ours["value"] == pytest.approx(theirs["value"], rel=rel, abs=1e-4)
  names = {field.name for field in dataclasses.fields(kind)}
  stored = [json.loads((x / "flags.json").read_text()) for x in (one, two)]
  ours, theirs = ({k: x["flags"][k] for k in names} for x in stored)
  assert ours == theirs
  lines = [(x / "metrics.jsonl").read_text().splitlines() for x in (one, two)]
  assert len(lines[0]) == len(lines[1])
  for ours, theirs in zip(*(map(json.loads, x) for x in lines)):
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
      if not any(x in name for x in _TIMES) and not isinstance(value, str):
        assert value == pytest.approx(theirs[name], rel=rel, abs=1e-4), name
  assert _files(one) == _files(two)


def _files(folder: pathlib.Path) -> set[str]:
  return {
    str(x.relative_to(folder))
    for x in folder.rglob("*")
    if "checkpoints" not in x.parts
  }

"""A sweep started again skips every finished run, of each experiment."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_PATH = _ROOT / "tests" / "reliability" / "worlds.py"
_SPEC = importlib.util.spec_from_file_location("worlds", _PATH)
worlds = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(worlds)

# Beside the experiments that are started by a small program of the tests.
_CASES = [
  name
  for name, case in worlds.CASES.items()
  if case.module.startswith("experiments.")
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> pathlib.Path:
  """The inputs of all experiments."""
  folder = tmp_path_factory.mktemp("inputs")
  worlds.write(folder)
  return folder


def _flags(arguments) -> dict[str, str | bool]:
  given = {}
  for argument in arguments:
    name, equals, value = argument.lstrip("-").partition("=")
    if not equals and name.startswith("no"):
      given[name[2:]] = False
    elif name != "workdir":
      given[name] = value if equals else True
  return given


@pytest.mark.long
@pytest.mark.parametrize("name", _CASES)
def test_a_second_start_has_nothing_to_do(name, inputs, tmp_path, command_line):
  case = worlds.CASES[name]
  flags = _flags(case.arguments(inputs, tmp_path / "shared"))
  sweep = tmp_path / "tried.py"
  module = case.module.removesuffix(".__main__")
  sweep.write_text(
    f"EXPERIMENT = {module!r}\n\ndef sweep(add):\n  add(**{flags!r})\n"
  )
  command = [*command_line, f"--sweep={sweep}", f"--root={tmp_path / 'root'}"]

  def start():
    return subprocess.run(command, capture_output=True, text=True)

  first = start()
  assert first.returncode == 0, first.stdout + first.stderr
  second = start()
  assert second.returncode == 0, second.stdout + second.stderr
  assert "1 runs, 1 finished before, 0 to do" in second.stderr
  (stored,) = (tmp_path / "root").glob("*/flags.json")
  record = json.loads(stored.read_text())
  record["flags"]["seed"] = 7
  stored.write_text(json.dumps(record))
  printed = subprocess.run(
    [*command, "--executor=print"], capture_output=True, text=True,
    env={**os.environ},
  )  # fmt: skip
  assert sys.executable in printed.stdout  # another run's results do not count

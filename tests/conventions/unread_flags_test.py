"""A flag that the chosen mode does not read is refused, never ignored."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

_HERE = pathlib.Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location(
  "worlds", _HERE.parent / "reliability" / "worlds.py"
)
worlds = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(worlds)

_CASES = {
  name: case
  for name, case in worlds.CASES.items()
  if case.module.startswith("experiments.")
} | {
  "spectral": worlds.Case(
    "experiments.spectral.__main__", worlds.CASES["spectral"].arguments
  )
}
_QUICK = ("rescal", "elkb-puzzle")
# Flags that change how a run works or where a resource is, not what it
# computes.
_HOW = {"mesh", "store", "block", "save_every", "log_every", "wordnet_path"}


def _modes():
  for name in _CASES:
    marks = () if name in _QUICK else pytest.mark.long
    yield pytest.param(name, marks=marks)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> pathlib.Path:
  """The inputs of all experiments."""
  folder = tmp_path_factory.mktemp("inputs")
  worlds.write(folder)
  return folder


@pytest.mark.parametrize("name", list(_modes()))
def test_every_flag_is_read_or_refused(name, inputs, tmp_path):
  case = _CASES[name]
  out = tmp_path / "read.json"
  program = [sys.executable, str(_HERE / "flag_reads.py"), str(out)]
  ended = subprocess.run(
    [*program, case.module, *case.arguments(inputs, tmp_path)],
    capture_output=True,
    text=True,
    env={
      **os.environ,
      "PYTHONPATH": str(_HERE.parents[1]),
      "REPR_JAX_SETTINGS": "off",
    },
  )
  assert (tmp_path / "run" / "results.json").exists(), ended.stderr
  record = json.loads(out.read_text())
  assert len(record["read"]) > 1
  assert not set(record["unread"]) - _HOW, "neither read nor refused"
  assert not record["accepted"], "not read, and taken all the same"

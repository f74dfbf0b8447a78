"""`python -m experiments.NAME --help` works and says what there is."""

import ast
import os
import subprocess
import sys

import pytest
import source

_PROGRAMS = [
  module.removesuffix(".__main__")
  for module in source.modules("experiments", "launch")
  if any(
    isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)
    for node in source.parse(module).body
  )
  and module != "experiments.bench.worker"
]


def test_there_are_programs():
  assert {"experiments.reproduce", "experiments.bench"} <= set(_PROGRAMS)


@pytest.mark.parametrize("program", _PROGRAMS)
def test_help(program):
  ended = subprocess.run(
    [sys.executable, "-m", program, "--help"],
    cwd=source.ROOT,
    env={**os.environ, "REPR_JAX_SETTINGS": "off"},
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert ended.returncode == 0, ended.stderr
  assert f"python -m {program}" in ended.stdout

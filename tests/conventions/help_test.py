"""`python -m experiments.NAME --help` works and says what there is."""

import ast

import killing
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
  ended = killing.call(program, "--help")
  assert ended.returncode == 0, ended.stderr
  assert f"python -m {program}" in ended.stdout

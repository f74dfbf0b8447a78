"""`repr-jax PROGRAM` is the program that `python -m` starts."""

import json
import pathlib

import killing
import pytest

import experiments
from launch import __main__ as command

_ROOT = pathlib.Path(experiments.__file__).parents[1]


def _run(*arguments, cwd):
  return killing.call("launch", *arguments, cwd=cwd)


def test_every_program_is_listed_with_its_purpose(capsys):
  assert command.main(["--help"]) == 0
  said = capsys.readouterr().out
  listed = command.programs()
  folders = (_ROOT / "experiments").glob("*/__main__.py")
  assert {path.parent.name for path in folders} <= listed.keys()
  assert {"sweep", "collect", "multihost"} <= listed.keys()
  for name, (module, purpose) in listed.items():
    assert module.endswith(f".{name}") and purpose
    assert f"  {name} " in said and purpose in said


def test_an_unknown_program_is_one_line(capsys):
  assert command.main(["nvsee"]) == 2
  told = capsys.readouterr()
  assert told.err.count("\n") == 1 and "did you mean nvse?" in told.err
  assert not told.out


def test_a_program_runs_with_its_flags_and_exit_code(tmp_path):
  flags = ["--vertices=15", "--dims=2", "--runs=1", "--workdir=run"]
  ended = _run("rescal", *flags, cwd=tmp_path)
  assert ended.returncode == 0, ended.stderr
  record = json.loads((tmp_path / "run" / "flags.json").read_text())
  assert record["experiment"] == "rescal" and record["flags"]["dims"] == ["2"]
  wrong = _run("rescal", "--vertices=14", "--workdir=other", cwd=tmp_path)
  assert wrong.returncode == 2 and "--vertices" in wrong.stderr
  assert "Traceback" not in wrong.stderr


@pytest.mark.parametrize("name", ["nvse", "collect"])
def test_help_of_a_program_has_its_flags(name, tmp_path):
  module, _ = command.programs()[name]
  alone = killing.call(module, "--help")
  shown = _run(name, "--help", cwd=_ROOT)
  assert shown.returncode == 0 and shown.stdout == alone.stdout

"""The README's commands and examples are true."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import source

_TEXT = (source.ROOT / "README.md").read_text("utf-8")


def _blocks(language: str) -> list[str]:
  return re.findall(rf"^```{language}\n(.*?)^```", _TEXT, re.M | re.S)


def test_the_first_two_commands_are_the_job_and_the_tests():
  first, second, *_ = re.findall(r"^```\w*\n(.*?)^```", _TEXT, re.M | re.S)
  assert "python -m experiments.reproduce" in first
  assert "python -m pytest" in second
  for command in (first, second):
    (extras,) = re.findall(r'pip install (?:-e )?"\.\[(.*)\]"', command)
    known = re.findall(
      r'^    "(\w+)": _', (source.ROOT / "setup.py").read_text(), re.M
    )
    assert set(extras.split(",")) <= set(known)


def test_examples_run_as_written():
  examples = _blocks("python")
  assert examples
  for example in examples:
    ended = subprocess.run(
      [sys.executable, "-c", example],
      cwd=source.ROOT,
      capture_output=True,
      text=True,
    )
    assert ended.returncode == 0, ended.stderr


def _commands() -> list[str]:
  """Lines of the examples for each kind of user, as they stand."""
  section = _TEXT.partition("## For whom")[2].partition("\n## ")[0]
  found = re.findall(r"^```bash\n(.*?)^```", section, re.M | re.S)
  lines = "".join(found).replace("\\\n", " ").splitlines()
  return [line for line in lines if not line.startswith("pip ")]


def test_there_is_an_example_for_each_user():
  assert {re.findall(r"python -m ([\w.]+)", x)[0] for x in _commands()} >= {
    "experiments.rescal",
    "experiments.nvse",
    "launch.sweep",
  }


@pytest.mark.parametrize("command", _commands())
def test_commands_of_the_examples_run_as_written(command, tmp_path):
  # The checkout's programs, but a folder of its own for what they write.
  for name in ("experiments", "launch", "repr_jax"):
    (tmp_path / name).symlink_to(source.ROOT / name)
  place = pathlib.Path(sys.executable).parent
  ended = subprocess.run(
    ["bash", "-euo", "pipefail", "-c", command],
    cwd=tmp_path,
    env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"},
    stdin=subprocess.DEVNULL,
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 0, ended.stderr
  assert ended.stdout.strip()


def test_named_programs_and_places_exist():
  for program in re.findall(r"python -m (experiments[.\w]*)", _TEXT):
    assert source.path_of(program.rstrip(".")).exists()
  for place in re.findall(r"^(\w[\w/]*)/? {2,}\w", _TEXT, re.M):
    assert (source.ROOT / place).is_dir(), place

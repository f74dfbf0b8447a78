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


_PAGES = sorted(
  str(path.relative_to(source.ROOT))
  for path in source.ROOT.rglob("*.md")
  if not {"venv", "build", "runs"} & set(path.parts)
  and not any(x[0] == "." for x in path.relative_to(source.ROOT).parts)
)


@pytest.mark.parametrize("page", _PAGES)
def test_examples_run_as_written(page):
  text = (source.ROOT / page).read_text("utf-8")
  for example in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
    exec(compile(example, page, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", _PAGES)
def test_links_lead_somewhere(page):
  place = (source.ROOT / page).parent
  text = (source.ROOT / page).read_text("utf-8")
  for target in re.findall(r"\]\(([^)#]+)", text):
    assert (place / target).exists(), target


def test_the_front_page_is_short():
  assert len(_TEXT.split()) <= 900
  assert len(_blocks("python")) >= 3


def _commands() -> list[str]:
  """Commands of the README after the first two, as they stand."""
  blocks = _blocks("bash")[2:]
  return "".join(blocks).replace("\\\n", " ").splitlines()


_EXPERIMENTS = (source.ROOT / "experiments/README.md").read_text("utf-8")
_EXAMPLES = re.findall(r"^```bash\n(.*?)^```", _EXPERIMENTS, re.M | re.S)


def _joined(block: str) -> str:
  """Commands of one block; a command reads what earlier ones have written."""
  return " && ".join(block.splitlines())


def test_each_example_file_is_read_by_a_command():
  for path in (source.ROOT / "experiments/examples").iterdir():
    assert f"=experiments/examples/{path.name} " in "".join(_EXAMPLES)


def test_there_is_an_example_for_each_user():
  assert {re.findall(r"python -m ([\w.]+)", x)[0] for x in _commands()} >= {
    "experiments.rescal",
    "experiments.nvse",
    "launch.sweep",
  }


@pytest.mark.long
@pytest.mark.parametrize("command", [*_commands(), *map(_joined, _EXAMPLES)])
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


def test_contents_name_the_sections():
  sections = [
    re.sub(r"\W+", "-", x.lower())
    for x in re.findall(r"^## (.+)$", _TEXT, re.M)
  ]
  assert re.findall(r"\]\(#([\w-]+)\)", _TEXT) == sections

"""Programs on flags that are none, and on damaged files of their own runs."""

import io
import json
import pathlib
import re
import shutil
from collections.abc import Iterator
from typing import NamedTuple

import killing
import numpy as np
import pytest
import worlds

import experiments

_ROOT = pathlib.Path(experiments.__path__[0]).parent  # or what is installed
_MAIN = re.compile(r'^if __name__ == "__main__":', re.M)
# Of each, runs take a second or two, and there are many of them.
_CASES = [
  "rescal",
  *(
    pytest.param(name, marks=pytest.mark.long)
    for name in ("elkb-pairs", "cmr", "ned")
  ),
]
_SELDOM = re.compile(r"runs/|vectors\.|words/")  # of one kind with others


class _World(NamedTuple):
  programs: killing.Programs
  inputs: pathlib.Path


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> _World:
  inputs = tmp_path_factory.mktemp("programs")
  worlds.write(inputs)
  return _World(killing.shared(), inputs)


def _programs() -> list[str]:
  """Programs that define flags which are numbers."""
  found = []
  for package in ("experiments", "launch"):
    for path in sorted((_ROOT / package).rglob("*.py")):
      text = path.read_text("utf-8")
      # The costs of processes define theirs when they are started.
      late = path.name == "cost.py"
      if _MAIN.search(text) and "DEFINE_float(" in text and not late:
        found.append(".".join(path.relative_to(_ROOT).with_suffix("").parts))
  return found


@pytest.mark.parametrize("module", _programs())
def test_a_number_of_a_flag_is_finite(world, module):
  ended = world.programs.run("odd_flags", [module])
  assert ended.code == 0, ended.said
  assert ended.said.count(" refused") >= 4, ended.said


def _assert_one_line(ended: killing.Ended, named: object) -> None:
  assert ended.code == 2, ended.said
  assert "Traceback" not in ended.said
  (line,) = [x for x in ended.said.splitlines() if x.startswith("error: ")]
  assert str(named) in line and len(line) < 3000


def test_a_number_that_is_not_finite_ends_a_program(world, tmp_path):
  case = worlds.CASES["rescal"]
  arguments = case.arguments(world.inputs, tmp_path)
  ended = world.programs.run(case.module, [*arguments, "--ridge=nan"])
  _assert_one_line(ended, "--ridge=nan")
  assert not (tmp_path / "run").exists()


def test_files_of_flags_that_cannot_be_read_are_named(world, tmp_path):
  path = tmp_path / "a.flags"
  for i in range(1500):
    path.with_name(f"{i}.flags").write_text(
      f"--flagfile={tmp_path}/{i + 1}.flags\n"
    )
  chain = f"--flagfile={tmp_path}/0.flags\n".encode()
  given = {b"\xff\xfe--seed=1": path, chain: tmp_path, b"--seed=\0": "--seed"}
  given[b"--flagfile=a\0b\n"] = path
  given[b"--tolerance=nan\n"] = "--tolerance"
  for data, named in given.items():
    path.write_bytes(data)
    ended = world.programs.run(
      "experiments.rescal.__main__", [f"--flagfile={path}"]
    )
    _assert_one_line(ended, named)
  path.unlink()
  for _ in range(2):
    ended = world.programs.run(
      "experiments.rescal.__main__", [f"--flagfile={path}"]
    )
    _assert_one_line(ended, path)
    path.mkdir(exist_ok=True)


def _harms(path: pathlib.Path) -> Iterator[tuple[str, bytes]]:
  """Damages of a file: torn, overwritten, or of another form."""
  data = path.read_bytes()
  yield "torn", data[: len(data) // 2]
  if path.suffix == ".json":
    yield "no text", b"\xff\xfe{\0"
    yield "empty", b"{}"
  if path.suffix == ".tsv":
    yield "one field", b"zzz\n"
  if path.suffix == ".npz" and path.name != "vectors.npz":
    yield "other names", _npz({"zzz": np.zeros(2)})
    with np.load(path) as held:
      arrays = dict(held)
    yield "fewer", _npz({k: v[:1] if v.ndim else v for k, v in arrays.items()})


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
  out = io.BytesIO()
  np.savez(out, **arrays)  # type: ignore[arg-type]
  return out.getvalue()


def _kept(whole: pathlib.Path) -> list[pathlib.Path]:
  """The files that a run may read again, few of each kind."""
  found: dict[str, pathlib.Path] = {}
  for path in sorted(whole.rglob("*")):
    name = str(path.relative_to(whole))
    shown = path.suffix in (".png", ".html", ".md") or path.name == ".lock"
    if path.is_file() and not shown and "checkpoints" not in path.parts:
      kind = _SELDOM.search(name)
      key = kind[0] if kind else re.sub(r"\d+", "", name)
      found.setdefault(key, path.relative_to(whole))
  return list(found.values())


@pytest.mark.parametrize("name", _CASES)
def test_a_run_with_a_damaged_file_is_made_good_or_refused(
  world, tmp_path, name
):
  case = worlds.CASES[name]
  folder, whole = tmp_path / "folder", tmp_path / "whole"
  folder.mkdir()
  arguments = case.arguments(world.inputs, folder)
  ended = world.programs.run(case.module, arguments)
  assert ended.code == 0, ended.said
  shutil.copytree(folder, whole)
  rows = _rows(whole)
  refused = 0
  for number, path in enumerate(_kept(whole)):
    for place, (how, data) in enumerate(_harms(whole / path)):
      shutil.rmtree(folder)
      shutil.copytree(whole, folder)
      if (number + place) % 2 and path.name != "results.json":
        (folder / "run" / "results.json").unlink()  # it goes on, then
      (folder / path).write_bytes(data)
      ended = world.programs.run(case.module, arguments)
      label = f"{path}, {how}: {ended.said}"
      assert "Traceback" not in ended.said, label
      assert ended.code in (0, 2), label
      refused += ended.code == 2
      if ended.code == 2:
        assert str(folder / path) in ended.said or "other flags" in label, label
      elif path.name != "results.json":
        assert _rows(folder) == rows, label
  assert refused


def _rows(folder: pathlib.Path) -> object:
  text = (folder / "run" / "results.json").read_text()
  return worlds.unmeasured(json.loads(text)["rows"])

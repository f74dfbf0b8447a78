"""A disk that is full while any file is written: said, and made good.

The experiments themselves meet full disks in `crash_test`.
"""

import contextlib
import json
import pathlib
import resource
import shutil
import subprocess
from collections.abc import Iterator

import killing
import numpy as np
import pytest
import writer

from repr_jax.data.io import array_files, arraystore

_LIMIT = 20_000  # bytes, between small files and the large one
_ROOM = 1_700_000  # bytes, for a run's small files and not for 2 MB
_KINDS = ("metrics.jsonl", "checkpoints", *writer.WAYS)


@pytest.fixture
def programs() -> killing.Programs:
  return killing.shared()


def _arguments(folder: pathlib.Path, kind: str) -> list[str]:
  return [f"--workdir={folder}", f"--big={kind}"]


def _content(folder: pathlib.Path) -> dict[str, object]:
  found: dict[str, object] = {}
  for path in folder.rglob("*"):
    name = str(path.relative_to(folder))
    if path.is_file() and "checkpoints" not in path.parts:
      found[name] = path.read_bytes()
    elif path.parent.name == "checkpoints":
      found[name] = "a checkpoint"
  for name in ("flags.json", ".lock"):
    del found[name]
  lines = (folder / "metrics.jsonl").read_text().splitlines()
  found["metrics.jsonl"] = [json.loads(line)["told"] for line in lines]
  found["results.json"] = json.loads(found["results.json"])["rows"]  # type: ignore[arg-type]
  return found


def _assert_clear(ended: killing.Ended, place: pathlib.Path) -> None:
  assert ended.code == 2, ended.said
  assert "Traceback" not in ended.said
  (line,) = (x for x in ended.said.splitlines() if x.startswith("error: "))
  assert f"{place}: the disk is full" in line
  assert "writer: stopped; the same command" in ended.said


@pytest.mark.parametrize("kind", _KINDS)
def test_a_file_that_may_not_grow_is_named(programs, kind, tmp_path):
  full, whole = tmp_path / "full", tmp_path / "whole"
  ended = programs.run("writer", _arguments(full, kind), limit=_LIMIT)
  _assert_clear(ended, full / kind)
  assert not (full / "results.json").exists()
  for folder in (full, whole):
    ended = programs.run("writer", _arguments(folder, kind))
    assert ended.code == 0, ended.said
  assert _content(full) == _content(whole)


@contextlib.contextmanager
def _small_disk(place: pathlib.Path) -> Iterator[None]:
  place.mkdir()
  made = subprocess.run(
    ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", place],
    capture_output=True,
    text=True,
  )
  if made.returncode:
    pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
  try:
    yield
  finally:
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_disk_without_room_is_named(programs, tmp_path):
  disk = tmp_path / "disk"
  with _small_disk(disk):
    for kind in ("checkpoints", "arrays.npz", "views/view", "plots/plot.png"):
      folder = disk / "run"
      arguments = [*_arguments(folder, kind), "--big_rows=131072"]
      folder.mkdir()
      filler = disk / "filler"
      filler.write_bytes(bytes(shutil.disk_usage(disk).free - _ROOM))
      ended = programs.run("writer", arguments)
      filler.unlink()
      _assert_clear(ended, folder / kind)
      ended = programs.run("writer", arguments)
      assert ended.code == 0, ended.said
      shutil.rmtree(folder)


@contextlib.contextmanager
def _file_limit(size: int) -> Iterator[None]:
  before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


@pytest.mark.parametrize("room", [0, 1, 127, 128, 129, 400, 527])
def test_the_last_bytes_of_an_array_are_missed_too(room, tmp_path):
  numbers = np.arange(100, dtype=np.float32)
  array_files.write_npy(tmp_path / "whole.npy", numbers)
  assert (tmp_path / "whole.npy").stat().st_size == 528
  assert np.array_equal(np.load(tmp_path / "whole.npy"), numbers)
  store = arraystore.Store({"numbers": numbers}, {}, "mark")
  with pytest.raises(OSError), _file_limit(room):
    arraystore.write(tmp_path / "store", "numbers", store)
  assert not (tmp_path / "store").exists()

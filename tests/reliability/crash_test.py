"""Every experiment is killed many times, and ends with the same bits.

Kills fall at random moments of a run, and just before a random change to its
files: one is opened to be written, renamed, removed. A killed run is resumed
by the same command until so many kills have fallen, and a full disk in between.
No run writes to a file under its own name, but for its log and its lock: what
is half-written has a name that nothing reads, whenever a kill may fall.

The undisturbed run that they are held against has another seed of Python's
hashes, and one core: what must not change the bits of any experiment either.
At larger sizes than these one core and several differ in rounding; see
`determinism_test`.
"""

import io
import json
import pathlib
import re
import shutil
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import killing
import numpy as np
import orbax.checkpoint as ocp
import pytest
import tiers
import worlds

import experiments
from experiments.run import workdir

_BEGINNING = (".lock", "flags.json", "metrics.jsonl", "group.json")
_CORES = re.compile(rb"\d+ cores?")


class _World(NamedTuple):
  programs: killing.Programs
  others: killing.Programs
  inputs: pathlib.Path
  runs: pathlib.Path

  def run(
    self, case: worlds.Case, folder: pathlib.Path, **how: Any
  ) -> killing.Ended:
    arguments = case.arguments(self.inputs, folder)
    return self.programs.run(case.module, arguments, **how)

  def run_otherwise(
    self, case: worlds.Case, folder: pathlib.Path, again: pathlib.Path
  ) -> killing.Ended:
    return self.others.run(
      case.module,
      case.arguments(self.inputs, folder),
      watch=folder,
      again=case.arguments(self.inputs, again),
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory, request) -> Iterator[_World]:
  folder = tmp_path_factory.mktemp("crash")
  inputs = folder / "inputs"
  inputs.mkdir()
  worlds.write(inputs)
  cache = pathlib.Path(request.config.compilation_cache)
  one = killing.CORES[:1]
  with killing.Programs(cache, hash_seed="0", cores=one) as others:
    yield _World(killing.shared(), others, inputs, folder)


def _checkpoint(step: pathlib.Path) -> dict[str, bytes]:
  """The arrays of a checkpoint; of a history, not its column of seconds."""
  with ocp.StandardCheckpointer() as reader:
    found = reader.restore((step / "default").absolute())
  return {
    name: np.asarray(x)[:, :2].tobytes()
    if "history" in name
    else np.asarray(x).tobytes()
    for name, x in found.items()
  }


def _content(folder: pathlib.Path) -> dict[str, Any]:
  """All that a run left, without what its processes differ in.

  A store, which runs share, may keep what a killed one has not finished, and
  so may the folder in which runs have theirs.
  """
  found: dict[str, Any] = {}
  for path in sorted(folder.rglob("*")):
    name = str(path.relative_to(folder))
    parts = path.relative_to(folder).parts
    shared = parts[0] == "store" or len(parts) == 1
    if shared and any(map(killing.UNFINISHED.fullmatch, parts)):
      continue
    inside = "checkpoints" in path.parts
    if path.is_dir():
      if inside and path.name.isdigit():
        found[name] = _checkpoint(path)
    elif not inside and path.name not in (".lock", "flags.json"):
      data = path.read_bytes().replace(str(folder).encode(), b"")
      if path.suffix == ".jsonl":
        lines = data.decode().splitlines()
        found[name] = [worlds.unmeasured(json.loads(line)) for line in lines]
      elif path.suffix == ".json":
        found[name] = worlds.unmeasured(json.loads(data))
      else:
        found[name] = _CORES.sub(b"", data)  # which a report tells
  return found


def _assert_whole(folder: pathlib.Path) -> None:
  """No file under its own name is half-written; a log may lack its end."""
  for path in folder.rglob("*"):
    parts = path.relative_to(folder).parts
    if path.is_dir() or any(map(killing.UNFINISHED.fullmatch, parts)):
      continue
    data = path.read_bytes()
    if path.suffix == ".json":
      json.loads(data)
    elif path.suffix == ".jsonl":
      for line in data.split(b"\n")[:-1]:
        json.loads(line)
    elif path.suffix in (".npz", ".npy"):
      read = np.load(io.BytesIO(data), allow_pickle=False)
      for name in getattr(read, "files", ()):
        assert read[name] is not None


def _has_work(folder: pathlib.Path) -> bool:
  """Whether a run has left what the next one goes on with.

  That is a checkpoint, or a file beside those that every run begins with.
  """
  for path in folder.rglob("*"):
    parts = path.relative_to(folder).parts
    if any(map(killing.UNFINISHED.fullmatch, parts)):
      continue
    if path.is_dir():
      if path.parent.name == "checkpoints" and path.name.isdigit():
        return True
    elif "checkpoints" not in parts and path.name not in _BEGINNING:
      return True
  return False


def _sizes(folder: pathlib.Path) -> list[int]:
  """Sizes of files that a run writes at any time, not only at first."""
  found = {
    path.stat().st_size
    for path in folder.rglob("*")
    if path.is_file() and path.name != "flags.json"
  }
  return sorted(size for size in found if size > 64)


class _Attempts:
  """The life of one work directory after the other, until kills are enough."""

  def __init__(self, world: _World, case: worlds.Case, name: str):
    self._world, self._case = world, case
    self._runs = world.runs / name
    self._rng = np.random.default_rng(zlib.crc32(name.encode()))
    self.folder = self._runs / "0"
    self.folder.mkdir(parents=True)
    again = self._runs / "again"
    again.mkdir()
    self.whole = world.run_otherwise(case, self.folder, again)
    assert self.whole.code == 0, self.whole.said
    assert killing.IN_PLACE not in self.whole.said, self.whole.said
    # Most of these two runs is compiling, which later ones need not.
    self._seconds = self.whole.seconds / 4
    self._changed = 0
    self.content = _content(again)
    self.compare()  # twice in one process
    shutil.rmtree(again)
    self.sizes = _sizes(self.folder)

  def start(self, number: int) -> None:
    shutil.rmtree(self.folder)
    self.folder = self._runs / str(number)
    self.folder.mkdir()
    self._changed = 0

  def kill(self, by_change: bool) -> killing.Ended:
    """Runs, and kills at any of the changes left, or at a moment.

    Moments are more often early than late, changes are spread evenly.
    """
    if by_change:
      # A resumed run repeats some changes: with half of all it can end.
      all_changes = self.whole.changes
      before = self._changed if self._case.resumes else 0
      left = max(all_changes - before, all_changes // 2)
      which = 1 + int(self._rng.integers(left))
      how: dict[str, Any] = {"changes": which}
    else:
      early = self._rng.random() ** self._case.early
      how = {"seconds": 0.01 + early * self._seconds}
    ended = self._world.run(self._case, self.folder, watch=self.folder, **how)
    self._changed += ended.changes
    return ended

  def fill(self) -> killing.Ended:
    """Runs on a disk that has no room for some file of the run."""
    smaller = self.sizes[: 1 + len(self.sizes) // 2]
    # Times that a file tells have more digits in one run than in another.
    limit = int(self._rng.choice(smaller)) * 9 // 10
    return self._world.run(self._case, self.folder, limit=limit)

  def finish(self) -> None:
    """Runs to the end, which must be that of the whole run."""
    ended = self._world.run(self._case, self.folder)
    assert ended.code == 0, ended.said
    self.compare()

  def compare(self) -> None:
    found = _content(self.folder)
    assert sorted(found) == sorted(self.content)
    for name, value in self.content.items():
      assert found[name] == value, name


def _assert_clear(
  ended: killing.Ended, case: worlds.Case, folder: pathlib.Path
) -> None:
  assert ended.code == case.refused, ended.said
  assert "Traceback" not in ended.said
  # A chapter and the program that started it may each have a file to name.
  lines = [x for x in ended.said.splitlines() if x.startswith("error: ")]
  assert lines
  assert all("the disk is full" in x and str(folder) in x for x in lines)


# One for each way of keeping state: a table, arrays, checkpoints of Orbax. The
# others are killed in the long tier.
_EVERYDAY = ("rescal", "mvlsa", "elkb-many")
_CASES = [
  pytest.param(name, marks=() if name in _EVERYDAY else pytest.mark.long)
  for name in worlds.CASES
]


@pytest.mark.counted
@pytest.mark.parametrize("name", _CASES)
def test_a_killed_run_ends_with_the_same_bits(world, name):
  case = worlds.CASES[name]
  attempts = _Attempts(world, case, name)
  kills, within, made, filled = 0, 0, 1, False
  attempts.start(made)
  # A resumed run is tried only where the killed one has left something.
  wanted = tiers.KILLS // 4 if case.resumes else 0
  while kills < tiers.KILLS or (within < wanted and kills < 3 * tiers.KILLS):
    ended = attempts.kill(by_change=bool(kills % 2))
    if ended.killed:
      kills += 1
      within += _has_work(attempts.folder)
      _assert_whole(attempts.folder)
      # A run that was killed after its results has nothing more to write.
      ended_before = (attempts.folder / "run" / "results.json").exists()
      if kills >= tiers.KILLS // 2 and not filled and not ended_before:
        filled = True
        _assert_clear(attempts.fill(), case, attempts.folder)
        _assert_whole(attempts.folder)
      continue
    assert ended.code == 0, ended.said
    attempts.compare()
    made += 1
    attempts.start(made)
  attempts.finish()
  assert within >= wanted


def test_every_experiment_is_killed():
  (folder,) = experiments.__path__
  found = set()
  for path in pathlib.Path(folder).rglob("*.py"):
    if re.search(
      r"^  runlib\.launch\(main(\)|, (?!of_a))", path.read_text("utf-8"), re.M
    ):
      parts = path.relative_to(folder).with_suffix("").parts
      found.add(".".join(("experiments", *parts)))
  # One measures times, one serves, one is the example in its docstring.
  found -= {"experiments.bench.__main__", "experiments.explorer.__main__"}
  found -= {"experiments.run.runlib"}
  # One leaves no state before its end, and starts again.
  found -= {"experiments.tour.__main__"}
  killed = {case.module for case in worlds.CASES.values()}
  # Two are started by others, which make them small.
  killed |= {"experiments.spectral.__main__", "experiments.reproduce.__main__"}
  assert len(found) > 5 and found <= killed


@pytest.mark.counted
@pytest.mark.parametrize("name", _CASES)
def test_a_second_process_is_refused(world, name, tmp_path):
  lock = workdir.Lock(tmp_path / "run")
  case = worlds.CASES[name]
  ended = world.run(case, tmp_path)
  lock.release()
  assert ended.code == case.refused
  assert "in use by process" in ended.said
  assert "Traceback" not in ended.said

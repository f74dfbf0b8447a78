"""Same flags and seed, same bits; where cores change them, by how much.

`crash_test` holds every experiment to the bits of a run in another process,
with another seed of Python's hashes and on one core. Here one of them runs
in a process that compiles everything anew, too, and one with another seed.

At those sizes one core and several give the same bits. At larger ones they
need not: XLA adds up long rows in as many parts as it has threads, and so
does the LAPACK behind QR and eigenvalues. The number of threads is that of
the cores which a process may use, so that a job which must give the same bits
on machines with other numbers of cores is bound to one (`taskset -c 0`);
otherwise `test_cores_change_rounding_alone` says how far apart they are, and
`test_cores_turn_singular_vectors_little` so for vectors, which rounding turns
the more, the closer their values are.

Runs that share a program are held against single ones where they are made:
`tests/launch/vmapped_group_test.py`, `tests/setexp/train_test.py` and
`tests/kb/rescal_test.py`; runs over many devices against one in `tests/mesh`.
"""

import hashlib
import json
import pathlib
import shutil
from collections.abc import Iterator
from typing import NamedTuple

import determinism_spectral
import determinism_training
import killing
import numpy as np
import pytest
import worlds

_CASE = worlds.CASES["elkb-pairs"]
_TRAINING = worlds.Case(
  "determinism_training", lambda world, run: [f"--workdir={run}"]
)
_SPECTRAL = worlds.Case(
  "determinism_spectral", lambda world, run: [f"--workdir={run}"]
)


class _Runs(NamedTuple):
  """Folders of runs."""

  first: pathlib.Path
  anew: pathlib.Path
  other_seed: pathlib.Path
  some_cores: pathlib.Path
  one_core: pathlib.Path


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def runs(tmp_path_factory, request) -> Iterator[_Runs]:
  folder = tmp_path_factory.mktemp("determinism")
  world = folder / "world"
  world.mkdir()
  worlds.write(world)
  found = _Runs(*(folder / name for name in _Runs._fields))
  cache = pathlib.Path(request.config.compilation_cache)
  with killing.Programs(cache, hash_seed="0") as programs:
    _finish(programs, found.first, world, _CASE)
    _finish(programs, found.some_cores, world, _TRAINING)
    _finish(programs, found.some_cores, world, _SPECTRAL)
  with killing.Programs(folder / "cache") as programs:
    _finish(programs, found.anew, world, _CASE)
    _finish(programs, found.other_seed, world, _CASE, "--seed=1")
  with killing.Programs(cache, cores=killing.CORES[:1]) as programs:
    _finish(programs, found.one_core, world, _TRAINING)
    _finish(programs, found.one_core, world, _SPECTRAL)
  yield found
  shutil.rmtree(folder)


def _finish(
  programs: killing.Programs,
  run: pathlib.Path,
  world: pathlib.Path,
  case: worlds.Case,
  *more: str,
) -> None:
  run.mkdir(parents=True, exist_ok=True)
  ended = programs.run(case.module, [*case.arguments(world, run), *more])
  assert ended.code == 0, ended.said


def _content(path: pathlib.Path, run: pathlib.Path) -> str:
  """A digest of what a file says."""
  raw = path.read_bytes()
  digest = hashlib.sha256()
  if path.suffix == ".npz":
    with np.load(path) as arrays:
      for name in sorted(arrays.files):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
  if path.suffix in (".json", ".jsonl"):
    text = raw.decode().replace(str(run), "RUN")
    whole = path.suffix == ".json"
    parts = [text] if whole else text.splitlines()
    raw = json.dumps([worlds.unmeasured(json.loads(x)) for x in parts]).encode()
  digest.update(raw.replace(str(run).encode(), b"RUN"))
  return digest.hexdigest()


def _files(run: pathlib.Path) -> dict[str, str]:
  """Digests of the files that a run leaves, by their paths."""
  left_out = ("flags.json", ".lock", ".html", ".md")
  return {
    str(path.relative_to(run)): _content(path, run)
    for path in sorted(run.rglob("*"))
    if path.is_file()
    and not path.name.endswith(left_out)
    and "checkpoints" not in path.parts  # the library keeps dates in there
  }


def test_a_program_that_is_compiled_anew_gives_the_same_bits(runs):
  first, found = _files(runs.first), _files(runs.anew)
  assert any(path.endswith("results.json") for path in first)
  assert found.keys() == first.keys()
  assert not [path for path in first if found[path] != first[path]]


def test_another_seed_gives_other_bits(runs):
  """So that what is compared above depends on the seed at all."""
  first, found = (_files(run) for run in (runs.anew, runs.other_seed))
  assert first["run/params.npz"] != found["run/params.npz"]


@pytest.mark.skipif(len(killing.CORES) < 2, reason="one core: nothing to vary")
def test_cores_change_rounding_alone(runs):
  """Also: twice in one process is the same (`determinism_training`)."""
  some, one = (
    np.load(x / determinism_training.FILE)
    for x in (runs.some_cores, runs.one_core)
  )
  assert some.files == one.files
  for name in some.files:
    gap = np.linalg.norm(some[name] - one[name]) / np.linalg.norm(one[name])
    assert gap < 1e-5


@pytest.mark.skipif(len(killing.CORES) < 2, reason="one core: nothing to vary")
def test_cores_turn_singular_vectors_little(runs):
  """Values within 1e-5 of the largest, vectors within 1e-3, signs alike."""
  some, one = (
    np.load(x / determinism_spectral.FILE)
    for x in (runs.some_cores, runs.one_core)
  )
  assert some.files == one.files
  for name in some.files:
    gap = np.linalg.norm(some[name] - one[name], axis=0)
    bound = 1e-5 if name.endswith("values") else 1e-3
    assert (gap <= bound * np.linalg.norm(one[name], axis=0).max()).all(), name

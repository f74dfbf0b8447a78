"""Same flags and seed, same bits.

Every program runs, at a size of seconds, in two processes with other seeds of
Python's hashes: once on all cores and once on one. One of them runs in a
third process, too, which compiles everything anew. What the runs leave must
be the same file by file, but for seconds, memory and paths.

At these sizes one core and several give the same bits. At larger ones they
need not: XLA adds up long rows in as many parts as it has threads, and so
does the LAPACK behind QR and eigenvalues. The number of threads is that of
the cores which a process may use, so that a job which must give the same bits
on machines with other numbers of cores is bound to one (`taskset -c 0`);
otherwise `test_cores_change_rounding_alone` says how far apart they are.

Runs that share a program are held against single ones where they are made:
`tests/launch/together_test.py`, `tests/setexp/training_test.py` and
`tests/kb/rescal_test.py`; runs over many devices against one in `tests/mesh`.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import determinism_training
import killing
import numpy as np
import pytest
import worlds

# The puzzle trains as the pairs do, many times over.
_CASES = [x for x in worlds.CASES if x not in ("reproduce", "elkb-puzzle")]
_ANEW, _OTHER = "elkb-pairs", "other seed"
_TRAINING = worlds.Case(
  "determinism_training", lambda world, run: [f"--workdir={run}"]
)
_HAS_CORES = hasattr(os, "sched_getaffinity")
_CORES = sorted(os.sched_getaffinity(0)) if _HAS_CORES else []
# What differs between runs of the same program by intention. A fingerprint
# is of the paths that a store was made from.
_MEASURED = re.compile(r"second|memory|peak_mb|^fingerprint$")


class _Runs(NamedTuple):
  """Folders of runs, in each a folder for every program."""

  first: pathlib.Path
  one_core: pathlib.Path
  anew: pathlib.Path


@pytest.fixture(scope="module")
def runs(tmp_path_factory, request) -> Iterator[_Runs]:
  folder = tmp_path_factory.mktemp("determinism")
  world = folder / "world"
  world.mkdir()
  worlds.write(world)
  found = _Runs(*(folder / name for name in _Runs._fields))
  cache = pathlib.Path(request.config.compilation_cache)
  for run, seed, cores, names, compiled in (
    (found.first, "0", _CORES, _CASES, cache),
    (found.one_core, "1", _CORES[:1], _CASES, cache),
    (found.anew, "random", _CORES, [_ANEW], folder / "cache"),
  ):
    with _environment(seed, cores), killing.Programs(compiled) as programs:
      for name in names:
        _finish(programs, run / name, world, worlds.CASES[name])
      if run != found.anew:
        _finish(programs, run, world, _TRAINING)
      else:
        _finish(programs, run / _OTHER, world, worlds.CASES[_ANEW], "--seed=1")
  yield found
  shutil.rmtree(folder)


@contextlib.contextmanager
def _environment(seed: str, cores: list[int]) -> Iterator[None]:
  """What processes that are started here inherit."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("PYTHONHASHSEED", seed)
    if _HAS_CORES:
      os.sched_setaffinity(0, cores)
    try:
      yield
    finally:
      if _HAS_CORES:
        os.sched_setaffinity(0, _CORES)


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


def _unmeasured(value: Any) -> Any:
  """JSON without what was measured."""
  if isinstance(value, list):
    return [_unmeasured(x) for x in value if not _is_measured(x)]
  if isinstance(value, dict):
    items = value.items()
    return {k: _unmeasured(x) for k, x in items if not _MEASURED.search(k)}
  return value


def _is_measured(row: Any) -> bool:
  return isinstance(row, dict) and bool(_MEASURED.search(row.get("metric", "")))


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
    raw = json.dumps([_unmeasured(json.loads(x)) for x in parts]).encode()
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


@pytest.mark.parametrize("name", _CASES)
def test_a_program_gives_the_same_bits(runs, name):
  first = _files(runs.first / name)
  assert any(path.endswith("results.json") for path in first)
  others = [runs.one_core] + [runs.anew] * (name == _ANEW)
  for other in others:
    found = _files(other / name)
    assert found.keys() == first.keys()
    differ = [path for path in first if found[path] != first[path]]
    assert not differ, f"{other.name}: {differ}"


def test_another_seed_gives_other_bits(runs):
  """So that what is compared above depends on the seed at all."""
  first, found = (_files(runs.anew / name) for name in (_ANEW, _OTHER))
  assert first["run/params.npz"] != found["run/params.npz"]


@pytest.mark.skipif(len(_CORES) < 2, reason="one core: no threads to vary")
def test_cores_change_rounding_alone(runs):
  """Also: twice in one process is the same (`determinism_training`)."""
  some, one = (
    np.load(x / determinism_training.FILE) for x in (runs.first, runs.one_core)
  )
  assert some.files == one.files
  for name in some.files:
    gap = np.linalg.norm(some[name] - one[name]) / np.linalg.norm(one[name])
    assert gap < 1e-5

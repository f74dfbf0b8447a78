"""Damaged files of runs give sweeps and tables a result or one clear line."""

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import fuzz_cases
import fuzz_mutate
import pytest

from experiments.run import shutdown
from launch import board, inspection, plan, results, tables, vmapped_group
from repr_jax import errors

_COUNT = max(fuzz_cases.CASES // 10, 1)
_RESULTS = {
  "experiment": "elkb",
  "rows": [
    {"name": "B", "metric": "MRR", "value": 0.5, "thesis": 0.4, "lower": 0.3,
     "upper": 0.6},
    {"name": "B", "metric": "loss", "value": 2},
  ],
  "seconds": 1.5,
}  # fmt: skip
_FLAGS = {
  "experiment": "elkb",
  "flags": {"seed": 1, "rate": 0.5, "names": ["a", "b"], "workdir": "x"},
  "seed": 1,
}
_GROUP = {
  "experiment": "experiments.elkb",
  "runs": [
    {"directory": "d1", "arguments": ["--seed=1"]},
    {"directory": "d2", "arguments": ["--seed=2"]},
  ],
}


def _damaged(value: dict[str, Any]) -> Iterator[bytes]:
  """A file with bytes changed, then with each value in it another."""
  data = json.dumps(value, indent=2).encode()
  for index in range(_COUNT):
    yield fuzz_mutate.mutated((data,), fuzz_cases.SEED, index)
  yield b"[" * 100_000
  others = (None, True, 7, -0.5, float("nan"), 10**400, "é", "", [], [1], {})
  for number, _ in enumerate(fuzz_cases.slots(value)):
    for other in others:
      copy = json.loads(data)
      held, key = list(fuzz_cases.slots(copy))[number]
      held[key] = other
      yield json.dumps(copy).encode()
    copy = json.loads(data)
    held, key = list(fuzz_cases.slots(copy))[number]
    del held[key]
    yield json.dumps(copy).encode()


def _write(folder: pathlib.Path, name: str) -> pathlib.Path:
  place = folder / name
  place.mkdir()
  (place / "results.json").write_text(json.dumps(_RESULTS))
  (place / "flags.json").write_text(json.dumps(_FLAGS))
  return place


def _collect(folder: pathlib.Path) -> None:
  """As `launch.collect` does, without plots."""
  found = results.read([folder])
  assert found.results  # the whole run beside the damaged one
  for told in found.broken:
    assert told.startswith(str(folder)) and len(told) < 3000
  lines = results.lines(found.results)
  tables.to_csv(lines).encode()
  tables.to_markdown(lines).encode()


def _best(place: pathlib.Path) -> None:
  for best in (board.Best(), board.Best("MRR", smallest=True)):
    best.add("x", place).encode()


@pytest.mark.counted
@pytest.mark.parametrize("name", ["results.json", "flags.json"])
def test_damaged_runs_are_left_out_or_read(name):
  value = _RESULTS if name == "results.json" else _FLAGS
  with fuzz_cases.folder() as folder:
    _write(folder, "good")
    place = _write(folder, "bad")
    for data in _damaged(value):
      (place / name).write_bytes(data)
      _try(data, lambda: _collect(folder))
      _try(data, lambda: _best(place))
      _try(data, lambda: _finished(place))


def _finished(place: pathlib.Path) -> bool:
  return plan.is_finished(place.parent, place.name, _FLAGS["flags"])


def _try(data: bytes, call: Callable[[], Any]) -> None:
  try:
    call()
  except Exception as error:
    raise AssertionError(f"{data[:2000]!r}: {error!r}") from error


@pytest.mark.counted
def test_a_damaged_group_is_refused_by_name():
  with fuzz_cases.folder() as folder:
    path = folder / "group.json"
    refused = 0
    for data in _damaged(_GROUP):
      path.write_bytes(data)
      try:
        group = vmapped_group._read(path)
        assert len(group.directories) > 0
        for directory, arguments in zip(group.directories, group.arguments):
          assert pathlib.Path(directory).name != "\0"
          assert all(isinstance(x, str) for x in arguments)
      except errors.InputError as error:
        refused += 1
        assert shutdown.describe(error).startswith(str(path)), data[:2000]
  assert refused > 100


@pytest.mark.parametrize("name", ["", "..x", "5", "a\0b", "experiments.zzz"])
def test_what_is_no_experiment_is_refused(name):
  with pytest.raises(errors.InputError, match="experiment"):
    inspection.load_experiment(name)


def test_runs_that_cannot_share_a_program_are_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(inspection, "load_experiment", lambda name: json)
  path = tmp_path / "group.json"
  path.write_text(json.dumps(_GROUP))
  with pytest.raises(errors.InputError, match=r"group\.json.*one by one"):
    vmapped_group.execute(path)


def test_seeds_of_several_kinds_and_formulas_are_plotted(tmp_path):
  pytest.importorskip("matplotlib")
  from launch import plots

  kinds = (("x", 1e400), (3, 10**400), (None, "$a_$"), (2.5, 4))
  for number, (seed, rate) in enumerate(kinds):
    place = _write(tmp_path, str(number))
    flags = {**_FLAGS["flags"], "seed": seed, "rate": rate}
    (place / "flags.json").write_text(json.dumps({**_FLAGS, "flags": flags}))
  lines = results.lines(results.read([tmp_path]).results)
  for _, figure in plots.against_flags(lines):
    figure.canvas.draw()

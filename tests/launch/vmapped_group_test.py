"""Runs in one program leave what runs alone leave."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from experiments.elkb import puzzle, train
from experiments.elkb.config import Config
from experiments.run import runlib, workdir
from tests.launch import grouped

_ROOT = pathlib.Path(__file__).parents[2]
_MANY = {
  "model": "complex", "trainer": "candidate_softmax", "optimizer": "adagrad",
  "batch_size": 8, "num_candidates": 8, "regularizer": "n3", "dim": 8,
  "nonnegative": False,
}  # fmt: skip
_PAIRS = {"model": "B", "dim": 4, "batch_size": 10, "num_negatives": 2}
_CHANGES = [
  {"seed": 0, "learning_rate": 0.1, "penalty": 1e-4},
  {"seed": 1, "learning_rate": 0.1, "penalty": 1e-3},
  {"seed": 2, "learning_rate": 0.03, "penalty": 1e-4},
]


@pytest.fixture(scope="module")
def facts(tmp_path_factory) -> dict[str, str]:
  rng = np.random.default_rng(0)
  pairs = sorted({(a, b) for a, b in rng.integers(12, size=(50, 2)).tolist()})
  lines = [f"p{a}\tparent\tp{b}" for a, b in pairs]
  inverse = [f"p{b}\tchild\tp{a}" for a, b in pairs]
  parts = {"train": lines + inverse[8:], "valid": inverse[:4]}
  parts |= {"test": inverse[4:8], "rules": ["RevImp\tparent\tchild"]}
  found = {}
  folder = tmp_path_factory.mktemp("facts")
  for name, rows in parts.items():
    path = folder / f"{name}.txt"
    path.write_text("\n".join(rows) + "\n")
    found[name] = str(path)
  return {**found, "epochs": 4, "eval_every": 2, "patience": 2}


@pytest.fixture(scope="module")
def alone(tmp_path_factory, facts) -> list[pathlib.Path]:
  """Work directories of separate runs."""
  root = tmp_path_factory.mktemp("alone")
  for i, change in enumerate(_CHANGES):
    _alone(root / str(i), {**facts, **_MANY, **change})
  return [root / str(i) for i in range(len(_CHANGES))]


def _alone(folder: pathlib.Path, values: dict) -> None:
  grouped.alone("experiments.elkb", folder, values)


def _run_group(folder: pathlib.Path, common: dict, changes: list[dict]) -> list:
  return grouped.together("experiments.elkb", folder, common, changes)


def _assert_same(one: pathlib.Path, two: pathlib.Path) -> None:
  first, second = (
    json.loads((x / "results.json").read_text()) for x in (one, two)
  )
  assert len(first["rows"]) == len(second["rows"]) > 10
  for ours, theirs in zip(first["rows"], second["rows"]):
    assert ours["name"] == theirs["name"] and ours["metric"] == theirs["metric"]
    assert ours["value"] == pytest.approx(theirs["value"], abs=1e-3)
  stored = [json.loads((x / "flags.json").read_text()) for x in (one, two)]
  # Other tests of this process may have brought the flags of their programs.
  names = {field.name for field in dataclasses.fields(Config)}
  ours, theirs = ({k: x["flags"][k] for k in names} for x in stored)
  assert ours == theirs
  lines = [(x / "metrics.jsonl").read_text().splitlines() for x in (one, two)]
  assert len(lines[0]) == len(lines[1])
  for ours, theirs in zip(*(map(json.loads, x) for x in lines)):
    assert ours["step"] == theirs["step"]
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
  assert {x.name for x in one.iterdir()} == {x.name for x in two.iterdir()}
  with np.load(one / "params.npz") as a, np.load(two / "params.npz") as b:
    np.testing.assert_allclose(a["entities"], b["entities"], atol=1e-4)
    np.testing.assert_allclose(a["relations"], b["relations"], atol=1e-4)


def test_one_program_equals_separate_runs(tmp_path, facts, alone):
  """Also where one of the runs diverges, and where one cannot begin."""
  wrong = [{**_CHANGES[1], "learning_rate": 1e30}, {"seed": 5}]
  held = workdir.Lock(tmp_path / "4")
  told = _run_group(tmp_path, {**facts, **_MANY}, [*_CHANGES, *wrong])
  held.release()
  assert told[:3] == [None] * 3 and "in use" in told[4]
  assert any(x in told[3] for x in ("nan", "inf", "not finite"))
  assert not (tmp_path / "3" / "results.json").exists()
  for i, folder in enumerate(alone):
    _assert_same(tmp_path / str(i), folder)


def test_the_thesis_trainer_in_one_program(tmp_path, facts):
  common = {**facts, **_PAIRS}
  assert _run_group(tmp_path / "all", common, _CHANGES[:2]) == [None] * 2
  _alone(tmp_path / "alone", {**common, **_CHANGES[1]})
  _assert_same(tmp_path / "all" / "1", tmp_path / "alone")


def test_runs_with_and_without_parts_of_the_loss(tmp_path, facts):
  common = {**facts, **_MANY, "num_candidates": 0, "group_answers": 2}
  changes = [{}, {"seed": 1, "relation_weight": 2.0}, {"dropout": 0.3}]
  changes.append({"seed": 1})
  assert _run_group(tmp_path / "all", common, changes) == [None] * 4
  for i, change in enumerate(changes):
    _alone(tmp_path / f"alone{i}", {**common, **change})
    _assert_same(tmp_path / "all" / str(i), tmp_path / f"alone{i}")


def test_runs_at_different_checkpoints_go_on_together(
  tmp_path, facts, alone, monkeypatch
):
  common = {**facts, **_MANY}
  # One has seen all epochs but has no results, one has seen two of four, and
  # one nothing: as a power cut may leave them.
  whole = tmp_path / "all"
  shutil.copytree(alone[0], whole / "0")
  (whole / "0" / "results.json").unlink()
  original = train.Validation.after

  def stops(self, epoch, state, outputs):
    original(self, epoch, state, outputs)
    if epoch == 1:
      raise KeyboardInterrupt

  monkeypatch.setattr(train.Validation, "after", stops)
  with pytest.raises(KeyboardInterrupt):
    _alone(whole / "1", {**common, **_CHANGES[1]})
  monkeypatch.undo()
  assert _run_group(whole, common, _CHANGES) == [None] * 3
  for i, folder in enumerate(alone):
    _assert_same(whole / str(i), folder)


@pytest.mark.long
def test_runs_are_spread_over_devices(tmp_path, facts, alone):
  """Five runs on four devices by the program that the sweep starts."""
  common = {**facts, **_MANY}
  group = {"experiment": "experiments.elkb", "runs": []}
  changes = [
    *_CHANGES,
    {"seed": 3, "learning_rate": 0.1},
    {"seed": 4, "learning_rate": 0.1},
  ]
  for i, change in enumerate(changes):
    values = {**common, **change, "workdir": str(tmp_path / "all" / str(i))}
    run = {"directory": values["workdir"]}
    run["arguments"] = [f"--{name}={value}" for name, value in values.items()]
    group["runs"].append(run)
  path = tmp_path / "group.json"
  path.write_text(json.dumps(group))
  ended = subprocess.run(
    [sys.executable, "-m", "launch.vmapped_group", f"--group={path}"],
    cwd=_ROOT,
    env={
      **os.environ,
      "REPR_JAX_SETTINGS": "off",
      "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    },
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 0, ended.stderr
  told = json.loads(path.with_suffix(".status").read_text())
  assert list(told.values()) == [None] * 5
  record = json.loads((tmp_path / "all" / "4" / "flags.json").read_text())
  assert record["device"]["count"] == 4
  for i, folder in enumerate(alone):
    _assert_same(tmp_path / "all" / str(i), folder)


@pytest.mark.long
def test_the_puzzle_runs_for_each_seed(tmp_path, monkeypatch):
  seen = []

  def rows(run, asked):
    seen.append(asked.seed)
    run.row("puzzle", "MRR", 0.5 + asked.seed)

  monkeypatch.setattr(puzzle, "puzzle_rows", rows)
  common = {"task": "puzzle"}
  changes = [{"seed": 3}, {"seed": 4}]
  assert _run_group(tmp_path, common, changes) == [None, None]
  assert seen == [3, 4] and runlib.SEED.value == 0
  results = json.loads((tmp_path / "1" / "results.json").read_text())
  assert results["rows"][0]["value"] == 4.5


def test_each_seed_has_its_own_random_split(tmp_path, facts):
  common = {**facts, **_PAIRS, "epochs": 1, "eval_every": 1, "patience": 5}
  for name in ("valid", "test"):
    del common[name]
  common["split"] = ["0.8", "0.1", "0.1"]
  changes = [{"seed": 0}, {"seed": 1}]
  assert _run_group(tmp_path / "all", common, changes) == [None] * 2
  _alone(tmp_path / "alone", {**common, **changes[1]})
  _assert_same(tmp_path / "all" / "1", tmp_path / "alone")

"""Runs of RESCAL in one program leave what runs alone leave."""

import pathlib
import shutil

import numpy as np
import pytest

from experiments.rescal import data, train
from experiments.rescal.config import Config
from experiments.run import vmapped_runs
from tests.launch import grouped

_NAME = "experiments.rescal"
_COMMON = {
  "vertices": ["15"], "dims": ["2", "3"], "settings": ["sub"], "runs": 2,
  "max_steps": 20,
}  # fmt: skip
_CHANGES = [
  {"seed": 0}, {"seed": 1, "max_steps": 5}, {"seed": 2, "ridge": 0.1}
]  # fmt: skip


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> list[pathlib.Path]:
  root = tmp_path_factory.mktemp("alone")
  for i, change in enumerate(_CHANGES):
    grouped.alone(_NAME, root / str(i), {**_COMMON, **change})
  return [root / str(i) for i in range(len(_CHANGES))]


def test_one_program_equals_separate_runs(tmp_path, alone, monkeypatch):
  """Also where a run is not finite, and where one has half of its cells."""
  original = train.measure

  def measure(cell, config, fitted):
    if config.seed == 7:
      fitted = fitted._replace(fits=fitted.fits * np.nan)
    return original(cell, config, fitted)

  monkeypatch.setattr(train, "measure", measure)
  shutil.copytree(alone[1], tmp_path / "1")
  (tmp_path / "1" / "results.json").unlink()
  shutil.rmtree(tmp_path / "1" / "checkpoints" / "1")
  told = grouped.together(_NAME, tmp_path, _COMMON, [*_CHANGES, {"seed": 7}])
  assert told[:3] == [None] * 3 and "not finite" in told[3]
  assert not (tmp_path / "3" / "results.json").exists()
  for i, folder in enumerate(alone):
    grouped.assert_same(Config, tmp_path / str(i), folder)


def test_a_cell_of_a_group_is_one_program(tmp_path, compilations):
  cells = list(data.cells_of([data.tree(15)], [2], ["sub"], False))
  configs = {i: Config(runs=2, seed=i, ridge=0.1 * i + 0.1) for i in range(3)}

  def run(name):
    members = [
      vmapped_runs.Member(tmp_path / name / str(i), {}) for i in range(3)
    ]
    with vmapped_runs.Group("rescal", members) as group:
      train.run_group(group, cells, configs)

  run("first")
  train.rescal_als.fit_runs.clear_cache()
  assert compilations.during(lambda: run("again")) == 1


@pytest.mark.long
def test_runs_are_spread_over_devices(tmp_path, alone):
  folder = tmp_path / "all"
  grouped.by_the_launcher(_NAME, folder, _COMMON, _CHANGES, 4)
  for i, one in enumerate(alone):
    grouped.assert_same(Config, folder / str(i), one)

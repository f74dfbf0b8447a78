"""The RESCAL experiment on small trees: cells, files, and the thesis' trend."""

import json
import pathlib

import killing
import numpy as np
import pytest

from experiments import thesis
from experiments.rescal import data, evaluate, train
from experiments.rescal.config import Config
from experiments.run import runlib
from repr_jax.errors import InputError

_ROOT = pathlib.Path(__file__).parents[2]


def _cell(size, dim, setting, roles=False):
  (cell,) = data.cells_of([data.tree(size)], [dim], [setting], roles)
  return cell


def _fit_cell(cell, config):
  (fitted,) = train.fit_cells(cell, [config])
  return train.measure(cell, config, fitted)


def test_tree_has_the_thesis_numbers():
  relation = data.tree(2047)
  assert len(relation.pairs) == 18_434
  assert 2047**2 - len(relation.pairs) == 4_171_775


def test_every_preset_cell_has_its_figure():
  for size in (2047, 4095, 8191):
    for dim in thesis.RESCAL_DIMS:
      for setting in ("full", "sub"):
        assert len(_cell(size, dim, setting).thesis) == 3
  assert _cell(2047, 100, "sub").thesis == (100, 78, 58)
  assert _cell(2047, 60, "sub").thesis is None
  assert _cell(255, 50, "sub").thesis is None


def test_settings_see_what_they_should():
  full = data.slices_of(_cell(63, 4, "full"), 0, Config())
  pairs = len(data.tree(63).pairs)
  np.testing.assert_allclose(full.norms, [pairs, 63**2 - pairs])
  subs = [data.slices_of(_cell(63, 4, "sub"), run, Config()) for run in (0, 1)]
  np.testing.assert_allclose(subs[0].norms, [pairs, pairs])
  rows = [sub.by_row for sub in subs]
  assert not np.array_equal(rows[0].indices, rows[1].indices)


@pytest.mark.long
def test_reversed_pairs_fail_in_the_sub_set_alone():
  settings = Config(runs=2, listed=4)
  full, none = _fit_cell(_cell(511, 12, "full"), settings)
  sub, wrong = _fit_cell(_cell(511, 12, "sub"), settings)
  assert full.shape == (2, 5) and not none
  assert np.all(full[:, 1:3] > 99) and np.all(sub[:, 0] > 99)
  assert np.all(sub[:, 2] < 75) and np.all(sub[:, 1] > sub[:, 2])
  assert len(wrong) == 4 and wrong[0][2] >= wrong[-1][2] > 0
  below, above = (int(name[1:]) for name in wrong[0][:2])
  while below > above:
    below //= 2
  assert below == above


def test_what_is_not_finite_has_no_figures(monkeypatch):
  cell = _cell(15, 3, "sub")
  for ridge in (np.nan, np.inf, 1e39):  # the last one in float32
    with pytest.raises(InputError, match="--ridge"):
      Config(ridge=ridge)
  broken = {"entities": np.array([[1.0, np.nan]])}, np.ones(1), np.ones(1)
  monkeypatch.setattr(
    train.rescal_als, "fit_runs", lambda *args, **more: broken
  )
  with pytest.raises(runlib.NonFiniteError, match="d=3 SubSet"):
    _fit_cell(cell, Config(runs=1))


@pytest.mark.parametrize("size", [2, 100, 2048])
def test_a_size_that_is_no_tree_is_named(size):
  with pytest.raises(InputError, match=r"--vertices: .* is not 2\^h - 1"):
    data.tree(size)


def test_bad_cells_are_named():
  relation = data.tree(7)
  with pytest.raises(InputError, match="--dims: 8"):
    list(data.cells_of([relation], [8], ["full"], False))


def _run(directory, *arguments):
  return killing.call(
    "experiments.rescal", f"--workdir={directory}", *arguments
  )


def test_a_run_leaves_results_and_resumes(tmp_path):
  arguments = ["--vertices=15", "--dims=2,3", "--runs=2", "--settings=sub"]
  first = _run(tmp_path / "run", *arguments)
  assert first.returncode == 0, first.stderr
  assert "tree V=15 d=3 SubSet" in first.stdout
  results = json.loads((tmp_path / "run/results.json").read_text())
  assert len(results["rows"]) == 6
  for name in ("plots/accuracy.png", "wrong_edges.tsv", "flags.json"):
    assert (tmp_path / "run" / name).stat().st_size
  again = _run(tmp_path / "run", *arguments)
  assert again.returncode == 0, again.stderr
  assert (
    json.loads((tmp_path / "run/results.json").read_text())["rows"]
    == (results["rows"])
  )


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--vertices=100"], "2^h - 1"),
    (["--vertices=x"], "--vertices: 'x' is not a whole number"),
    (["--settings=half"], "--settings: 'half' is not one of full, sub"),
    (["--root=x"], "--root is not read with --data=tree"),
    (
      ["--settings=sub", "--full_tolerance=0.1"],
      "not read with --settings=sub",
    ),
  ],
)
def test_bad_flags_end_with_one_line(tmp_path, flags, message):
  done = _run(tmp_path / "run", *flags)
  assert done.returncode == 2
  assert message in done.stderr and "Traceback" not in done.stderr
  assert not (tmp_path / "run" / "results.json").exists()


def test_grids_are_sizes_by_dims_beside_the_thesis():
  cells = [
    _cell(size, dim, "sub") for size in (2047, 4095) for dim in (50, 100)
  ]
  figures = np.tile([99.6, 90.2, 51.7, 0, 0], (4, 2, 1))
  lines = evaluate.grids(cells, figures).splitlines()
  assert "SubSet" in lines[0] and "d = 50" in lines[0] and "d = 100" in lines[0]
  assert len(lines) == 4
  assert "100/90/52 (100/93/52)" in lines[2]
  assert "100/90/52 (100/92/56)" in lines[3]

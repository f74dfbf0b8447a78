"""The RESCAL experiment on small trees: cells, files, and the thesis' trend."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from experiments.rescal import cells
from experiments.run import runlib
from repr_jax.errors import InputError

_ROOT = pathlib.Path(__file__).parents[2]


def _cell(size, dim, setting, roles=False):
  (cell,) = cells.cells_of([cells.tree(size)], [dim], [setting], roles)
  return cell


def test_tree_has_the_thesis_numbers():
  relation = cells.tree(2047)
  assert len(relation.pairs) == 18_434
  assert 2047**2 - len(relation.pairs) == 4_171_775


def test_every_preset_cell_has_its_figure():
  for size in (2047, 4095, 8191):
    for dim in cells.DIMENSIONS:
      for setting in ("full", "sub"):
        assert len(_cell(size, dim, setting).thesis) == 3
  assert _cell(2047, 100, "sub").thesis == (100, 78, 58)
  assert _cell(2047, 60, "sub").thesis is None
  assert _cell(255, 50, "sub").thesis is None


def test_settings_see_what_they_should():
  full = cells.slices_of(_cell(63, 4, "full"), 0, cells.Settings())
  pairs = len(cells.tree(63).pairs)
  np.testing.assert_allclose(full.norms, [pairs, 63**2 - pairs])
  subs = [
    cells.slices_of(_cell(63, 4, "sub"), run, cells.Settings())
    for run in (0, 1)
  ]
  np.testing.assert_allclose(subs[0].norms, [pairs, pairs])
  rows = [sub.by_row for sub in subs]
  assert not np.array_equal(rows[0].indices, rows[1].indices)


def test_reversed_pairs_fail_in_the_sub_set_alone():
  settings = cells.Settings(runs=2, listed=4)
  full, none = cells.fit_cell(_cell(511, 12, "full"), settings)
  sub, wrong = cells.fit_cell(_cell(511, 12, "sub"), settings)
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
      cells.fit_cell(cell, cells.Settings(ridge=ridge))
  broken = {"entities": np.array([[1.0, np.nan]])}, np.ones(1), np.ones(1)
  monkeypatch.setattr(cells.rescal, "fit_runs", lambda *args, **more: broken)
  with pytest.raises(runlib.NonFiniteError, match="d=3 SubSet"):
    cells.fit_cell(cell, cells.Settings(runs=1))


@pytest.mark.parametrize("size", [2, 100, 2048])
def test_a_size_that_is_no_tree_is_named(size):
  with pytest.raises(InputError, match=r"--vertices: .* is not 2\^h - 1"):
    cells.tree(size)


def test_bad_cells_are_named():
  relation = cells.tree(7)
  with pytest.raises(InputError, match="--dims: 8"):
    list(cells.cells_of([relation], [8], ["full"], False))
  with pytest.raises(InputError, match="--settings: 'half'"):
    list(cells.cells_of([relation], [4], ["half"], False))


def _run(directory, *arguments):
  return subprocess.run(
    [
      sys.executable,
      "-m",
      "experiments.rescal",
      f"--workdir={directory}",
      *arguments,
    ],
    cwd=_ROOT,
    capture_output=True,
    text=True,
    timeout=300,
  )


def test_a_run_leaves_results_and_resumes(tmp_path):
  arguments = ["--vertices=63", "--dims=4,8", "--runs=2", "--settings=sub"]
  first = _run(tmp_path / "run", *arguments)
  assert first.returncode == 0, first.stderr
  assert "tree V=63 d=8 SubSet" in first.stdout
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


def test_bad_flags_end_with_one_line(tmp_path):
  done = _run(tmp_path / "run", "--vertices=100")
  assert done.returncode == 2
  assert "2^h - 1" in done.stderr and "Traceback" not in done.stderr

"""Results of many runs in one table."""

import csv
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from launch import plots, results, tables

_ROOT = pathlib.Path(__file__).parents[2]


def _write(folder: pathlib.Path, rows, experiment="fake", **flags) -> None:
  folder.mkdir(parents=True)
  flags = {"workdir": str(folder), "seed": 0, **flags}
  record = {"experiment": experiment, "flags": flags}
  (folder / "flags.json").write_text(json.dumps(record))
  rows = [{"name": n, "metric": m, "value": v, **x} for n, m, v, x in rows]
  (folder / "results.json").write_text(
    json.dumps({"experiment": experiment, "rows": rows})
  )


def _sweep(root: pathlib.Path, settings, seeds: int = 4) -> None:
  """Runs of a system whose figure grows with eta; names tell the model."""
  for model, eta, level in settings:
    for seed in range(seeds):
      noise = np.random.default_rng([seed, int(1000 * eta)]).normal() / 100
      rows = [
        (f"set {model}", "MRR", level + noise, {"thesis": 0.4}),
        (f"set {model}", "loss", 1 - level - noise, {}),
      ]
      name = root / f"{model}{eta}{seed}"
      _write(name, rows, model=model, eta=eta, seed=seed, dim=3)


def test_seeds_become_one_line_with_mean_and_spread(tmp_path):
  _sweep(tmp_path, [("A", 0.1, 0.3)])
  (mrr, loss) = results.lines(results.read([tmp_path]).results)
  values = [
    json.loads((tmp_path / f"A0.1{i}" / "results.json").read_text())["rows"][0]
    for i in range(4)
  ]
  values = [row["value"] for row in values]
  assert mrr.values == tuple(values) and mrr.thesis == 0.4
  assert mrr.mean == pytest.approx(sum(values) / 4)
  assert mrr.spread == pytest.approx(np.std(values) * np.sqrt(4 / 3))
  assert mrr.setting == {} and mrr.p_value is None and not mrr.best
  assert loss.metric == "loss" and len(loss.values) == 4


def test_settings_are_compared_with_the_best(tmp_path):
  # Names differ with the model, yet the same place is the same figure.
  _sweep(tmp_path, [("A", 0.1, 0.30), ("A", 0.2, 0.301), ("B", 0.1, 0.5)])
  found = results.lines(results.read([tmp_path]).results)
  mrr = [line for line in found if line.metric == "MRR"]
  assert [line.setting for line in mrr] == [
    {"eta": 0.1, "model": "A"},
    {"eta": 0.1, "model": "B"},
    {"eta": 0.2, "model": "A"},
  ]
  assert [line.best for line in mrr] == [False, True, False]
  best = mrr[1].values
  raw = [
    stats.ttest_ind(best, mrr[i].values, equal_var=False).pvalue for i in (0, 2)
  ]
  low, high = min(raw), max(raw)
  expected = {low: min(1, 2 * low), high: max(high, min(1, 2 * low))}
  assert mrr[0].p_value == pytest.approx(expected[raw[0]])
  assert mrr[2].p_value == pytest.approx(expected[raw[1]])
  loss = [line for line in found if line.metric == "loss"]
  assert [line.best for line in loss] == [False, True, False]


def test_a_run_that_recorded_fewer_flags_adds_no_column(tmp_path):
  rows = [("kb", "mrr", 0.4, {})]
  _write(tmp_path / "whole", rows, dim=3, rate=0.1)
  _write(tmp_path / "part", rows, size="quick")
  found = results.lines(results.read([tmp_path]).results)
  assert [line.setting for line in found] == [{}, {}]
  assert [len(line.values) for line in found] == [1, 1]


def test_validation_figures_choose_the_setting(tmp_path):
  for eta, valid, test in ((0.1, 0.4, 0.9), (0.2, 0.6, 0.3), (0.3, 0.5, 0.4)):
    rows = [("kb", "validation mrr", valid, {}), ("kb", "seconds", 1.0, {})]
    rows.append(("kb", "mrr", test, {}))
    _write(tmp_path / str(eta), rows, eta=eta)
  lines = results.lines(results.read([tmp_path]).results)
  ((top, rest),) = results.selected(lines)
  assert top.setting == {"eta": 0.2} and top.mean == 0.6
  told = [(x.metric, x.mean) for x in rest]
  assert told == [("mrr", 0.3), ("seconds", 1.0)]  # the chosen measure first
  assert "Chosen on validation facts (fake, validation mrr 0.6): eta=0.2." in (
    tables.to_markdown(lines)
  )
  assert results.selected([x for x in lines if x.metric == "mrr"]) == []


def test_settings_that_are_as_good_as_the_best_are_bold(tmp_path):
  _sweep(tmp_path, [("A", 0.1, 0.3), ("A", 0.2, 0.3)], seeds=3)
  found = results.lines(results.read([tmp_path]).results)
  assert all(line.best for line in found)
  assert sum(line.p_value is None for line in found) == 2  # the best ones
  text = tables.to_markdown(found)
  assert text.count("**") == 8 and "Welch" in text


def test_two_seeds_are_not_enough_to_compare(tmp_path):
  _sweep(tmp_path, [("A", 0.1, 0.3), ("A", 0.2, 0.5)], seeds=2)
  found = results.lines(results.read([tmp_path]).results)
  assert not any(line.best for line in found)
  text = tables.to_markdown(found)
  assert "**" not in text and tables.DAGGER not in text


@pytest.mark.parametrize(
  ("one", "two", "p"),
  [([1, 1, 1], [1, 1, 1], 1.0), ([1, 1, 1], [2, 2, 2], 0.0)],
)
def test_figures_that_do_not_vary_are_compared_too(one, two, p):
  assert results.welch(one, two) == p


@pytest.mark.parametrize(
  ("metric", "declared", "best"),
  [
    ("KL, nats", None, None), ("KL, nats", True, 0), ("KL, nats", False, 1),
    ("perplexity bound", None, 0), ("mean_rank raw both", None, 0),
    ("recip_rank", None, 1), ("MRR", None, 1), ("MRR", True, 0),
  ],
)  # fmt: skip
def test_the_best_is_marked_only_in_a_known_direction(
  tmp_path, metric, declared, best
):
  more = {} if declared is None else {"lower_is_better": declared}
  for k, level in enumerate((1.0, 5.0)):
    for seed in range(3):
      rows = [("s", metric, level + seed / 100, more)]
      _write(tmp_path / f"{k}{seed}", rows, k=k, seed=seed)
  read = results.read([tmp_path]).results
  lines = results.lines(read)
  assert [line.best for line in lines] == [best == 0, best == 1]
  asked = results.lines(read, better={metric: True})
  assert [line.best for line in asked] == [True, False]


def test_holm_is_monotone_and_bounded():
  assert results.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
  assert results.holm([0.9, 0.8]) == [1.0, 1.0]


def test_tables_have_all_figures(tmp_path):
  _sweep(tmp_path / "x", [("A", 0.1, 0.3), ("B", 0.1, 0.5)])
  interval = {"lower": 0.1, "upper": 0.3, "thesis": 0.25}
  _write(tmp_path / "y", [("a | b", "MAP", 0.2, interval)], "other", k=3)
  found = results.lines(results.read([tmp_path]).results)
  text = tables.to_markdown(found)
  assert "## fake" in text and "## other" in text
  assert "| figure | metric | model | thesis | ours | spread | seeds |" in text
  assert "| a \\| b | MAP | 0.25 | 0.2 | 0.1 to 0.3 | 1 |" in text
  assert text.count(tables.DAGGER) == 3  # two figures, and the explanation
  rows = list(csv.DictReader(io.StringIO(tables.to_csv(found))))
  assert len(rows) == 5
  assert rows[1]["model"] == "B" and rows[1]["best"] == "yes"
  assert float(rows[0]["mean"]) == found[0].mean and rows[0]["seeds"] == "4"
  assert rows[4]["name"] == "a | b" and rows[4]["model"] == ""
  assert rows[4]["lower"] == "0.1" and rows[4]["sd"] == ""


def test_runs_with_other_rows_are_told_apart_by_name(tmp_path):
  _write(tmp_path / "a", [("s", "MRR", 0.1, {}), ("t", "MRR", 0.2, {})], k=1)
  _write(tmp_path / "b", [("t", "MRR", 0.4, {})], k=2)
  found = results.lines(results.read([tmp_path]).results)
  assert [(line.name, line.setting["k"], line.mean) for line in found] == [
    ("s", 1, 0.1), ("t", 1, 0.2), ("t", 2, 0.4),
  ]  # fmt: skip


def test_each_run_is_read_once_and_broken_ones_are_named(tmp_path):
  _write(tmp_path / "good", [("s", "MRR", 0.1, {})])
  _write(tmp_path / "torn", [])
  (tmp_path / "torn" / "results.json").write_text('{"rows": [')
  _write(tmp_path / "odd", [])
  (tmp_path / "odd" / "results.json").write_text('{"rows": [{}]}')
  _write(tmp_path / "bare", [])
  (tmp_path / "bare" / "flags.json").unlink()
  _write(tmp_path / "begun", [])
  (tmp_path / "begun" / "results.json").unlink()
  (tmp_path / "empty").mkdir()
  found = results.read(
    [tmp_path, tmp_path / "good", tmp_path / "empty", tmp_path / "absent"]
  )
  assert [x.directory.name for x in found.results] == ["good"]
  assert [x.name for x in found.unfinished] == ["begun"]
  for name in ("torn", "odd", "bare", "empty", "absent"):
    assert sum(f"{name}" in text for text in found.broken) == 1
  assert len(found.broken) == 5


def test_plots_show_figures_against_flags(tmp_path):
  pytest.importorskip("matplotlib", reason="the extra plot is not installed")
  settings = [(m, e, e) for m in "AB" for e in (0.001, 0.1)]
  _sweep(tmp_path, settings, seeds=2)
  found = results.lines(results.read([tmp_path]).results)
  drawn = dict(plots.against_flags(found))
  assert list(drawn) == ["fake against eta", "fake against model"]
  (axis,) = drawn["fake against eta"].axes  # of the figure with a thesis
  assert axis.get_xscale() == "log" and axis.get_title() == "MRR"
  points = axis.containers[0].lines[0]
  assert sorted(points.get_xdata()) == [0.001, 0.001, 0.1, 0.1]
  (axis,) = drawn["fake against model"].axes
  assert [x.get_text() for x in axis.get_xticklabels()] == ["A", "B"]


def test_the_program_collects_what_is_good(tmp_path):
  _sweep(tmp_path / "runs", [("A", 0.1, 0.3), ("B", 0.1, 0.5)])
  (tmp_path / "empty").mkdir()
  names = [str(tmp_path / "runs"), str(tmp_path / "empty")]
  ended = subprocess.run(
    [sys.executable, "-m", "launch.collect", *names, "--figures=MRR"],
    cwd=_ROOT,
    env={**os.environ, "REPR_JAX_SETTINGS": "off"},
    capture_output=True,
    text=True,
  )
  assert ended.returncode == 1, ended.stderr
  assert f"error: {names[1]}: no results.json" in ended.stderr
  assert ended.stdout == (tmp_path / "runs" / "collected.md").read_text()
  assert "set B" in ended.stdout and "loss" not in ended.stdout
  assert (tmp_path / "runs" / "collected.csv").exists()
  plot = tmp_path / "runs" / "plots" / "fake_against_model.png"
  assert plot.read_bytes().startswith(b"\x89PNG")


def test_figures_as_parquet_are_those_of_the_csv_file(tmp_path):
  installed = importlib.util.find_spec("pyarrow") is not None
  _sweep(tmp_path, [("A", 0.1, 0.3), ("B", 0.1, 0.5)])
  program = [sys.executable, "-m", "launch.collect", str(tmp_path)]
  environment = {**os.environ, "REPR_JAX_SETTINGS": "off"}
  for kind in ("csv", "parquet"):
    ended = subprocess.run(
      [*program, f"--format={kind}", "--noplots"], cwd=_ROOT, env=environment,
      capture_output=True, text=True,
    )  # fmt: skip
    if kind == "parquet" and not installed:
      assert ended.returncode == 2 and "pip install" in ended.stderr
      assert ended.stderr.count("\n") == 1
      return
    assert ended.returncode == 0, ended.stderr
  from pyarrow import parquet

  table = parquet.read_table(tmp_path / "collected.parquet").to_pylist()
  with open(tmp_path / "collected.csv", newline="") as lines:
    rows = list(csv.DictReader(lines))
  assert [row["name"] for row in table] == [row["name"] for row in rows]
  assert [row["mean"] for row in table] == [float(row["mean"]) for row in rows]

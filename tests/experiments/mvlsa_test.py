"""Multiview LSA as a user runs it, on a small world of two topics."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from experiments.mvlsa import (
  baselines,
  corpus,
  data,
  evaluate,
  fitting,
  session,
  studies,
  thesis,
)
from experiments.mvlsa.config import Options
from repr_jax.errors import InputError

_ROOT = pathlib.Path(__file__).parents[2]
_TOPICS = (
  ["cat", "dog", "cow", "pig", "hen", "fox", "owl", "bat"],
  ["car", "bus", "van", "jet", "cab", "tram", "ship", "bike"],
)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
  """A text in which words of a topic stand together, and a test set of it."""
  folder = tmp_path_factory.mktemp("world")
  rng = np.random.default_rng(0)
  lines = []
  for i in range(600):
    topic = _TOPICS[i % 2]
    lines.append(" ".join(rng.choice(topic, rng.integers(4, 9))) + " , the .")
  (folder / "text.txt").write_text("\n".join(lines) + "\n")
  pairs = [
    (a, b, 10 * (x is y) + rng.random())
    for x in _TOPICS
    for y in _TOPICS
    for a in x
    for b in y
    if a < b
  ]
  sets = folder / "sets"
  sets.mkdir()
  (sets / "TOPIC.tsv").write_text(
    "".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs)
  )
  return folder


@pytest.fixture(scope="module")
def options(world):
  return Options(
    text=(str(world / "text.txt"),),
    offsets=3,
    ahead=1,
    windows=(2,),
    columns=30,
    t=30,
    m=6,
    k=4,
    store=str(world / "store"),
    nonlinearity="ppmi",
  )


@pytest.fixture(scope="module")
def opened(world, options):
  return session.open_session(options, evaluate.load_sets(str(world / "sets")))


def test_views_have_groups_and_are_counted_once(opened, options, monkeypatch):
  names = [view.name for view in opened.views]
  assert names == [
    "text_behind_01", "text_behind_02", "text_behind_03", "text_ahead_01",
    "text_window_02",
  ]  # fmt: skip
  assert [data.group(name) for name in names[-2:]] == ["text", "window"]

  def no_counting(*arguments, **named):
    raise AssertionError("counted again")

  monkeypatch.setattr("repr_jax.data.views.counting.count_offsets", no_counting)
  monkeypatch.setattr("repr_jax.data.views.derived.window", no_counting)
  again = session.open_session(options, opened.sets)
  assert [view.name for view in again.views] == names


def test_a_combination_is_what_the_library_fits(opened):
  combined = opened.combine(opened.factors())
  fitted = session.fit(opened)
  values = np.asarray(fitted.model.values)
  np.testing.assert_allclose(combined.values, values, rtol=1e-3)
  found = np.abs(combined.embedding.T @ np.asarray(fitted.model.embedding))
  np.testing.assert_allclose(found[:3, :3], np.eye(3), atol=2e-2)
  shares = np.asarray(fitted.model.shares)
  np.testing.assert_allclose(list(combined.shares.values()), shares, rtol=2e-2)


def test_weights_of_views_are_those_of_the_objective(opened):
  factors = opened.factors()
  weights = {f.name: 1.0 for f in factors}
  only = {**dict.fromkeys(weights, 0.0), factors[0].name: 5.0}
  single = fitting.combine(factors[:1], 3)
  chosen = fitting.combine(factors, 3, view_weights=only)
  np.testing.assert_allclose(single.values, chosen.values, rtol=1e-4)
  twice = fitting.combine([*factors, factors[0]], 4)
  doubled = fitting.combine(
    factors, 4, view_weights={**weights, factors[0].name: 2.0}
  )
  np.testing.assert_allclose(twice.values, doubled.values, rtol=1e-3)
  with pytest.raises(InputError, match="weight 0"):
    fitting.combine(factors, 3, view_weights=dict.fromkeys(weights, 0.0))


def test_a_balanced_group_shares_its_weight(options):
  balanced = dataclasses.replace(
    options, balance=True, group_weights=("text:3",)
  )
  names = ["text_behind_01", "text_behind_02", "wordnet_walks"]
  assert list(session.view_weights(names, balanced).values()) == [1.5, 1.5, 1]


def test_the_topics_are_found_and_k_is_cut_from_one_fit(opened):
  study = studies.run("k", opened, ["2", "4"])
  assert study.systems["k=4"]["TOPIC"].value > 70
  assert list(study.axis) == [2, 4]
  alone = opened.combine(
    opened.factors(), dataclasses.replace(opened.options, k=2)
  )
  direct = opened.score(alone.embedding)["TOPIC"].value
  assert study.systems["k=2"]["TOPIC"].value == pytest.approx(direct, abs=2)


@pytest.mark.parametrize("name", ["n", "m", "r", "v"])
def test_every_study_gives_a_table(opened, name):
  values = {"m": ["4", "6"], "v": ["1", "4"]}.get(name, [])
  study = studies.run(name, opened, values)
  cells = studies.cells(study, opened)
  assert {cell["set"] for cell in cells} == {"TOPIC"}
  assert all(cell["coverage"] == 1 and cell["mrds"] > 0 for cell in cells)


def test_an_ablation_names_what_was_left_out(opened):
  study = studies.run("ablation", opened)
  assert {"all views", "!text", "!window"} <= set(study.systems)
  losses = [c for c in studies.cells(study, opened) if "loss" in c["system"]]
  assert losses and all(cell["winner"] is None for cell in losses)


def test_baselines_are_compared_and_fused(opened, monkeypatch):
  monkeypatch.setattr(baselines, "SKIP_GRAM", ((2, 2, 0.05, 4),))
  study = studies.run("comparison", opened)
  best = study.systems["best baseline"]["TOPIC"].value
  singles = [
    study.systems[n]["TOPIC"].value for n in ("LSA", "PPMI-SVD", "skip-gram")
  ]
  assert best == max(singles)
  assert any("before fusing" in note for note in study.notes)
  gains = {c["system"]: c for c in studies.cells(study, opened)}
  fused = study.systems["all fused"]["TOPIC"].value
  own = study.systems["all views"]["TOPIC"].value
  assert gains["fusion gain"]["value"] == pytest.approx(fused - own)


def test_the_thesis_tables_are_whole():
  for table in thesis.FIGURES.values():
    for figures in table.values():
      assert len(figures) == 13
  assert thesis.FIGURES["comparison"]["all fused"]["SIMLEX"] == 43.9
  assert thesis.FIGURES["k"]["k=300"] == thesis.FIGURES["m"]["m=300"]


def test_tokens_are_apart_from_symbols(tmp_path):
  (tmp_path / "raw.txt").write_text(
    '"Stop," he said; the well-known U.S. ok.\n'
  )
  (copy,) = corpus.tokenized([str(tmp_path / "raw.txt")], tmp_path / "out")
  words = pathlib.Path(copy).read_text().split()
  assert words[:3] == ['"', "Stop", ","]
  assert "well-known" in words and "ok" in words


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"drop_views": ("framenet",)}, "no view or group framenet"),
    ({"drop_views": ("text", "window")}, "leaves no view"),
    ({"min_rows": 1000}, "lower --min_rows"),
    ({"text": ("no-such.txt",)}, "no-such.txt"),
    ({"text": ()}, "no vocabulary"),
    ({"min_count": 10_000}, "lower --min_count"),
  ],
)
def test_bad_inputs_are_named(options, opened, change, message):
  changed = dataclasses.replace(options, **change)
  with pytest.raises((InputError, OSError), match=message):
    session.open_session(changed, opened.sets)


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"k": 0}, "--k"),
    ({"ridge": -1.0}, "--ridge"),
    ({"group_weights": ("text",)}, "GROUP:VALUE"),
    ({"group_weights": ("text:-1",)}, "0 or more"),
    ({"group_nonlinearity": ("text:cube",)}, "cube"),
  ],
)
def test_bad_options_are_refused(options, change, message):
  with pytest.raises(InputError, match=message):
    dataclasses.replace(options, **change)


def test_too_high_a_support_is_refused(opened):
  options = dataclasses.replace(opened.options, min_support=99)
  with pytest.raises(InputError, match="lower --min_support"):
    opened.factors(options)


def test_sets_without_known_words_are_told(opened, tmp_path):
  (tmp_path / "ODD.tsv").write_text("qqq\twww\t1\nqqq\teee\t2\n")
  odd = evaluate.load_sets(str(tmp_path))
  array = np.ones((len(opened.words), 2), np.float32)
  index = {word: i for i, word in enumerate(opened.words.words)}
  with (
    pytest.warns(UserWarning, match="ODD: only 0 of 2"),
    pytest.raises(InputError, match="no test set"),
  ):
    evaluate.evaluate(array, index, odd)
  with pytest.raises(InputError, match="no such directory"):
    evaluate.load_sets(str(tmp_path / "none"))


def _command(*arguments):
  return subprocess.run(
    [sys.executable, "-m", "experiments.mvlsa", *arguments],
    cwd=_ROOT,
    env={**os.environ, "REPR_JAX_SETTINGS": "off"},
    capture_output=True,
    text=True,
  )


def test_the_program_leaves_its_files_and_is_not_run_twice(world, tmp_path):
  flags = [
    f"--text={world / 'text.txt'}", f"--testsets={world / 'sets'}",
    f"--store={tmp_path / 'store'}", f"--workdir={tmp_path / 'run'}",
    "--offsets=2", "--m=5", "--k=3", "--t=30", "--neighbors=cat,unknown",
  ]  # fmt: skip
  ended = _command(*flags)
  assert ended.returncode == 0, ended.stderr
  assert "cat: " in ended.stdout and "TOPIC" in ended.stdout
  run = tmp_path / "run"
  results = json.loads((run / "results.json").read_text())
  assert results["rows"][0]["name"] == "all views, TOPIC"
  assert (run / "vectors.npz").exists() and (run / "vectors.txt").exists()
  shares = json.loads((run / "views.json").read_text())["shares"]
  assert set(shares) == {"text_behind_01", "text_behind_02"}
  again = _command(*flags)
  assert again.returncode == 0 and "finished before" in again.stderr
  other = _command(*flags, "--k=2")
  assert other.returncode == 2 and "k" in other.stderr


def test_the_scale_run_reports_stages(tmp_path):
  ended = _command(
    "--study=scale", "--scale_words=400", "--scale_views=3",
    "--scale_entries=4000", "--t=60", "--m=5", "--k=4",
    f"--workdir={tmp_path}",
  )  # fmt: skip
  assert ended.returncode == 0, ended.stderr
  rows = json.loads((tmp_path / "results.json").read_text())["rows"]
  metrics = {row["metric"]: row["value"] for row in rows}
  assert metrics["svd, s in all"] > 0 and metrics["peak memory, GB"] > 0
  assert 0 <= metrics["energy dropped by streaming"] < 1

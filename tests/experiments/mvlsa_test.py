"""Multiview LSA as a user runs it, on a small world of two topics."""

import dataclasses
import json
import pathlib

import killing
import mvlsa_world
import numpy as np
import pytest
from scipy.sparse import csr_array

from experiments import thesis
from experiments.mvlsa import chapter as chapters
from experiments.mvlsa import (
  corpus,
  data,
  evaluate,
  findings,
  scale,
  studies,
  train,
)
from experiments.mvlsa.config import Config
from experiments.run import config as configs
from experiments.run import runlib
from repr_jax import multiview
from repr_jax.data.views import collection
from repr_jax.errors import InputError
from repr_jax.multiview import host_views

_ROOT = pathlib.Path(__file__).parents[2]
_TOPICS = mvlsa_world.TOPICS


@pytest.fixture(scope="module")
def world(tmp_path_factory):
  return mvlsa_world.make(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def config(world):
  return mvlsa_world.config(world)


@pytest.fixture(scope="module")
def problem(world, config):
  return train.prepare(config, evaluate.load_sets(str(world / "sets")))


def test_more_dimensions_than_words_are_refused_before_a_view_is_read(
  config, monkeypatch
):
  monkeypatch.setattr(train.data, "load", None)
  many = dataclasses.replace(config, k=100_000)
  with pytest.raises(InputError, match="--k=100000 is above the"):
    train.prepare(many)


def test_views_have_groups_and_are_counted_once(problem, config, monkeypatch):
  names = [view.name for view in problem.data.views]
  assert names == [
    "text_behind_01", "text_behind_02", "text_behind_03", "text_ahead_01",
    "text_window_02",
  ]  # fmt: skip
  assert [data.group(name) for name in names[-2:]] == ["text", "window"]

  def no_counting(*arguments, **named):
    raise AssertionError("counted again")

  monkeypatch.setattr("repr_jax.data.views.counting.count_offsets", no_counting)
  monkeypatch.setattr("repr_jax.data.views.derived.window", no_counting)
  again = train.prepare(config, problem.sets)
  assert [view.name for view in again.data.views] == names


def test_cached_factors_give_the_fit_of_the_views(problem):
  """The studies' path against one call on the raw counts."""
  views = problem.data.views
  config = problem.config
  cached = train.fit(train.factors(problem), config)
  direct = multiview.fit(
    [view.matrix for view in views],
    config.k,
    m=config.m,
    weighting=[config.weighting(data.group(view.name)) for view in views],
  )
  np.testing.assert_allclose(
    cached.model.values, direct.model.values, rtol=1e-3
  )
  same = np.abs(
    np.asarray(cached.model.embedding).T @ np.asarray(direct.model.embedding)
  )
  np.testing.assert_allclose(same[:3, :3], np.eye(3), atol=2e-2)
  np.testing.assert_allclose(
    cached.model.shares, direct.model.shares, rtol=2e-2
  )


def test_factors_are_kept_on_disk(problem, tmp_path, monkeypatch):
  # The store names views; the factors go beside a copy of nothing else.
  config = dataclasses.replace(
    problem.config, store=str(tmp_path), keep_factors=True
  )
  made = train.factors(problem, config)
  fresh = dataclasses.replace(problem, held={})
  train.factors(fresh, config)

  def no_svd(*arguments, **named):
    raise AssertionError("factored again")

  monkeypatch.setattr("repr_jax.multiview.factoring.factor_views", no_svd)
  again = train.factors(dataclasses.replace(problem, held={}), config)
  for name, factor in again.items():
    for ours, theirs in zip(factor, made[name]):
      np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_documents_and_spelling_are_views(config, problem):
  changed = dataclasses.replace(config, documents=5, spelling=True)
  other = train.prepare(changed, problem.sets)
  made = train.factors(other)
  assert list(made)[-1] == "spelling"
  assert data.group("text_documents_5") == "document"
  assert "text_documents_5" in made and set(train.names(other)) == set(made)
  # Words with a shared n-gram, and those alone, whom spelling tells nothing.
  alone = {"hen", "owl", "jet", "ship", "bike", "tram"}
  seen = dict(zip(other.data.words.words, made["spelling"].row_weights > 0))
  assert not any(seen[word] for word in alone)
  assert all(seen[word] for word in ("cat", "car", "cab", "bat"))
  assert set(studies.fit(other).shares) == set(made)


@pytest.mark.parametrize("method", ["memory", "stream"])
def test_a_relative_ridge_changes_every_fit(problem, method):
  """It was ignored outside of studies, and so was streaming in them."""
  found = []
  for relative in (False, True):
    config = dataclasses.replace(
      problem.config, method=method, ridge=1.0, relative_ridge=relative
    )
    changed = dataclasses.replace(problem, config=config, held={})
    found.append(np.asarray(train.fit_views(changed).model.values))
  assert np.abs(found[0] - found[1]).max() > 1e-3


def test_each_view_is_weighted_once(problem, monkeypatch):
  calls = []
  weigh = host_views.weigh

  def counted(matrix, how, name="view", columns=None):
    calls.append(name)
    return weigh(matrix, how, name, columns)

  monkeypatch.setattr("repr_jax.multiview.host_views.weigh", counted)
  train.factors(dataclasses.replace(problem, held={}))
  assert calls == ["view 0", "view 1", "view 2", "view 3", "view 4"]


def test_weights_of_views_are_those_of_the_objective(problem, config):
  made = train.factors(problem)
  text = {n: f for n, f in made.items() if data.group(n) == "text"}
  single = train.fit(text, dataclasses.replace(config, k=3))
  chosen = train.fit(
    made, dataclasses.replace(config, k=3, group_weights=("window:0",))
  )
  np.testing.assert_allclose(
    single.model.values, chosen.model.values, rtol=1e-4
  )
  window = {"text_window_again": made["text_window_02"]}
  twice = train.fit({**made, **window}, config)
  doubled = train.fit(
    made, dataclasses.replace(config, group_weights=("window:2",))
  )
  np.testing.assert_allclose(
    twice.model.values, doubled.model.values, rtol=1e-3
  )
  nothing = dataclasses.replace(config, group_weights=("window:0", "text:0"))
  with pytest.raises(InputError, match="weight 0"):
    train.fit(made, nothing)


def test_the_topics_are_found_and_k_is_cut_from_one_fit(problem):
  study = studies.run("k", problem, ["2", "4"])
  assert study.systems["k=4"]["TOPIC"].value > 70
  assert list(study.axis) == [2, 4]
  config = dataclasses.replace(problem.config, k=2)
  alone = train.vectors(train.fit(train.factors(problem), config), config)
  direct = problem.score(alone)["TOPIC"].value
  assert study.systems["k=2"]["TOPIC"].value == pytest.approx(direct, abs=2)


@pytest.mark.parametrize("name", ["n", "m", "r", "v"])
def test_every_study_gives_a_table(problem, name):
  values = {"m": ["4", "6"], "v": ["1", "4"]}.get(name, [])
  study = studies.run(name, problem, values)
  cells = studies.cells(study, problem)
  assert {cell["set"] for cell in cells} == {"TOPIC"}
  assert all(cell["coverage"] == 1 and cell["mrds"] > 0 for cell in cells)


def test_an_ablation_names_what_was_left_out(problem):
  study = studies.run("ablation", problem)
  assert {"all views", "!text", "!window"} <= set(study.systems)
  losses = [c for c in studies.cells(study, problem) if "loss" in c["system"]]
  assert losses and all(cell["winner"] is None for cell in losses)


def test_an_ablation_leaves_groups_out_together(problem, monkeypatch):
  made = list(train.factors(problem).values())
  names = [
    "wordnet_derivation", "wordnet_ending", "counts_framenet.counts",
    "bitext_de", "text_behind_01",
  ]  # fmt: skip
  named = dict(zip(names, made))
  monkeypatch.setattr(train, "factors", lambda problem: named)
  study = studies.run("ablation", problem)
  together = "!derivation !inflection !frame"
  assert {together, f"{together} !bitext"} <= set(study.systems)
  cells = studies.cells(study, problem)
  assert {name for name, *_ in findings.table(cells).rows} == {
    "all views", "!derivation", "!inflection", "!frame", "!bitext", "!text",
  }  # fmt: skip


def test_the_thesis_tables_are_whole():
  for table in thesis.WORD_VECTORS.values():
    for system, figures in table.items():
      assert len(figures) == (4 if system.count("!") > 1 else 13)
  assert thesis.WORD_VECTORS["comparison"]["all fused"]["SIMLEX"] == 43.9
  assert thesis.WORD_VECTORS["k"]["k=300"] == thesis.WORD_VECTORS["m"]["m=300"]


@pytest.mark.long
def test_the_chapter_has_an_answer_charts_and_vectors(tmp_path, monkeypatch):
  small = dataclasses.replace(
    chapters._QUICK, wordnet=("synset", "lexname"), walks=False,
    vocabulary_size=1500, min_rows=50, t=500, m=20, k=20,
  )  # fmt: skip
  monkeypatch.setattr(chapters, "_QUICK", small)
  monkeypatch.setattr(chapters, "_VALUES", {"quick": {"k": ("5", "20")}})
  chapter = chapters.chapter("quick", tmp_path)
  assert {row["name"].split(",")[0] for row in chapter.rows} == {"SIMLEX", "WS"}
  assert chapter.answer and chapter.claims
  captions = " ".join(chart.caption for chart in chapter.charts)
  assert "dimensions" in captions and "each view explains" in captions
  assert (tmp_path / "vectors.npz").exists()


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
    ({"windows": (), "offsets": 0, "ahead": 0}, "give --windows"),
    ({"offsets": 0, "ahead": 0, "drop_views": ("window",)}, "give --windows"),
    ({"text": ("no-such.txt",)}, "no-such.txt"),
    ({"text": ()}, "no vocabulary"),
    ({"min_count": 10_000}, "text.txt occurs 10000 times"),
  ],
)
def test_bad_inputs_are_named(config, problem, change, message):
  changed = dataclasses.replace(config, **change)
  with pytest.raises((InputError, OSError), match=message):
    train.prepare(changed, problem.sets)


def test_windows_are_symmetric_whatever_offsets_have_views(world):
  text, store = (str(world / "text.txt"),), str(world / "store")
  config = Config(k=3, text=text, store=store)
  views = {view.name: view for view in train.prepare(config).data.views}
  assert list(views) == [
    "text_documents_30", "text_window_02", "text_window_05", "text_window_10"
  ]  # fmt: skip
  words = train.prepare(config).data.words.words
  window = views["text_window_05"]
  columns = [list(window.columns).index(word) for word in words]
  counts = window.matrix.toarray()[:, columns]
  np.testing.assert_array_equal(counts, counts.T)


def test_spelling_goes_with_text_in_memory(config):
  text = dataclasses.replace(config, spelling=True)
  assert text.spelled
  changes = {"text": (), "mesh": "rows:2", "method": "stream", "study": "price"}
  for change in ({name: value} for name, value in changes.items()):
    assert not dataclasses.replace(text, **change).spelled


def test_vectors_without_text_bring_their_words(world, config):
  lines = [f"{w} {i} {i % 3}\n" for i, w in enumerate(["cat", ",", "dog", "x"])]
  (world / "given.txt").write_text("".join(lines))
  change = {"text": (), "windows": (), "vocabulary_size": 3}
  changed = dataclasses.replace(
    config, **change, vectors=(str(world / "given.txt"),)
  )
  assert data.vocabulary(changed, ()).words == ("cat", "dog")


def test_a_lexicon_of_other_words_is_refused(world, config, problem):
  (world / "other.txt").write_text("chat chien\n")
  changed = dataclasses.replace(config, synonyms=(str(world / "other.txt"),))
  with pytest.raises(InputError, match=r"no pair of .*other\.txt"):
    train.prepare(changed, problem.sets)


def test_views_that_cannot_be_fused_are_named(world, config, problem):
  """A view of other words is refused, one without content left out."""
  (world / "odd.tsv").write_text(
    "".join(f"{w}\tfeature\t2\n" for topic in _TOPICS for w in topic)
  )
  changed = dataclasses.replace(config, counts=(str(world / "odd.tsv"),))
  with pytest.warns(UserWarning, match="counts_odd: left out"):
    views = train.prepare(changed, problem.sets).data.views
  assert len(views) == len(problem.data.views)
  one, two = (
    collection.View(f"counts_{name}", csr_array(np.diag(x)), ["a"] * 4)
    for name, x in (("one", [1.0, 2, 0, 0]), ("two", [0.0, 0, 1, 2]))
  )
  with pytest.raises(InputError, match="--drop_views=counts_one"):
    data.choose(config, [one, two])


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"view_weights": "labels", "evaluate": False}, "needs test sets"),
    ({"group_weights": ("text",)}, "GROUP:VALUE"),
    ({"group_weights": ("text:-1",)}, "0 or more"),
    ({"group_nonlinearity": ("text:cube",)}, "cube"),
    ({"view_weights": "agreement", "mesh": "rows:2"}, "not read with --mesh"),
    ({"power": 0.5}, "--power is not read"),
    ({"skip_gram": ("5:5:0.05",)}, "'5:5:0.05' is not WINDOW:EPOCHS"),
    ({"skip_gram": ("5:0:0.05:9",)}, "above 0"),
    ({"study": "k", "values": ("ten",)}, "'ten' is not a setting"),
    ({"study": "n", "values": ("cube",)}, "'cube' is not a setting"),
    ({"keep_factors": True, "mesh": "rows:2"}, "--keep_factors is not read"),
  ],
)
def test_bad_settings_are_refused(config, change, message):
  with pytest.raises(InputError, match=message):
    dataclasses.replace(config, **change)


def test_too_high_a_support_is_refused(problem):
  config = dataclasses.replace(problem.config, min_support=99)
  with pytest.raises(InputError, match="lower --min_support"):
    train.factors(problem, config)


def test_sets_without_known_words_are_told(problem, tmp_path):
  (tmp_path / "ODD.tsv").write_text("qqq\twww\t1\nqqq\teee\t2\n")
  odd = evaluate.load_sets(str(tmp_path))
  array = np.ones((len(problem.data.words), 2), np.float32)
  index = {word: i for i, word in enumerate(problem.data.words.words)}
  with (
    pytest.warns(UserWarning, match="ODD: only 0 of 2"),
    pytest.raises(InputError, match="no test set"),
  ):
    evaluate.evaluate(array, index, odd)
  with pytest.raises(InputError, match="no such directory"):
    evaluate.load_sets(str(tmp_path / "none"))


def _command(*arguments):
  return killing.call("experiments.mvlsa", *arguments)


def test_the_program_leaves_its_files_and_is_not_run_twice(world, tmp_path):
  flags = [
    f"--text={world / 'text.txt'}", f"--testsets={world / 'sets'}",
    f"--store={tmp_path / 'store'}", f"--workdir={tmp_path / 'run'}",
    "--offsets=2", "--windows=", "--documents=0", "--nospelling", "--m=5",
    "--k=3", "--t=30", "--neighbors=cat,unknown",
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


@pytest.mark.long
def test_vectors_are_written_without_test_sets(world, tmp_path):
  """No test set has these words: refused at once, or left unscored."""
  flags = [
    f"--text={world / 'text.txt'}", f"--store={tmp_path / 'store'}",
    f"--workdir={tmp_path / 'run'}", "--offsets=2", "--m=5", "--k=3",
  ]  # fmt: skip
  sets = tmp_path / "sets"
  sets.mkdir()
  (sets / "ODD.tsv").write_text("qqq\twww\t1\nqqq\teee\t2\n")
  refused = _command(*flags, f"--testsets={sets}")
  assert refused.returncode == 2 and "--evaluate=false" in refused.stderr
  assert not (tmp_path / "store" / "views").exists()
  ended = _command(*flags, "--evaluate=false")  # in the same directory
  assert ended.returncode == 0, ended.stderr
  assert (tmp_path / "run" / "vectors.npz").exists()
  unread = _command(*flags, "--evaluate=false", f"--testsets={sets}")
  assert unread.returncode == 2 and "--testsets is not read" in unread.stderr


@pytest.mark.parametrize(
  ("name", "settings"),
  [
    ("method", {"method": "stream", "study": "k"}),
    ("mesh", {"mesh": "rows:2", "study": "ablation"}),
    ("scale_words", {"scale_words": 10}),
    ("values", {"values": ("3",), "study": "ablation"}),
    ("wordnet", {"wordnet": ("synset",), "study": "scale"}),
    ("evaluate", {"evaluate": False, "study": "m"}),
    ("relative_ridge", {"relative_ridge": True, "study": "r"}),
    ("keep_factors", {"keep_factors": True, "method": "stream"}),
    ("analogies", {"analogies": False, "evaluate": False}),
  ],
)
def test_a_flag_that_is_not_read_is_refused(name, settings):
  assert configs.unread(Config(**settings), name) is not None
  read = {"study": "scale"} if name == "scale_words" else {}
  read = {"study": "m"} if name == "values" else read
  assert configs.unread(Config(**read), name) is None


def test_a_scale_run_resumes_with_the_times_of_all_views(tmp_path, monkeypatch):
  config = Config(
    study="scale", scale_words=60, scale_views=3, scale_entries=400, t=20, m=3,
    k=2,
  )  # fmt: skip
  monkeypatch.setattr(scale, "_SAVE_SECONDS", 0)
  merge, merged = scale._merge, []

  def stopping(state, basis):
    merged.append(basis)
    if len(merged) == 3:
      raise KeyboardInterrupt
    return merge(state, basis)

  monkeypatch.setattr(scale, "_merge", stopping)
  settings = {"directory": tmp_path, "config": dataclasses.asdict(config)}
  with pytest.raises(KeyboardInterrupt), runlib.Run("mvlsa", **settings) as run:
    scale.run(run, config)
  with runlib.Run("mvlsa", **settings) as run:
    scale.run(run, config)
  assert len(merged) == 4  # two, the broken one, and that one again
  rows = json.loads((tmp_path / "results.json").read_text())["rows"]
  metrics = {row["metric"]: row["value"] for row in rows}
  assert metrics["svd, median s per view"] > 0  # two of three came before


@pytest.mark.long
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

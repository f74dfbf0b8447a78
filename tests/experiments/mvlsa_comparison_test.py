"""Weights of views, the comparison of systems and the list of test sets."""

import dataclasses

import mvlsa_world
import numpy as np
import pytest

from experiments.mvlsa import (
  comparison,
  data,
  evaluate,
  paired_table,
  set_table,
  studies,
  train,
  weights,
)
from experiments.run import runlib
from repr_jax import multiview
from repr_jax.data import testsets
from repr_jax.errors import InputError
from repr_jax.evaluation import significance, similarity

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


@pytest.mark.long
def test_agreement_multiplies_the_weights_of_groups(problem, config):
  made = train.factors(problem)
  change = {"view_weights": "agreement", "group_weights": ("window:3",)}
  config = dataclasses.replace(config, **change)
  agreed = weights.learned(made, config, None)
  assert max(agreed.values()) == pytest.approx(1)
  assert min(agreed.values()) < 0.9
  fitted = train.fit(made, config)
  expected = [
    weight * (3 if name == "text_window_02" else 1)
    for name, weight in agreed.items()
  ]
  np.testing.assert_allclose(fitted.view_weights, expected, rtol=1e-5)


def test_a_balanced_group_shares_its_weight(config):
  balanced = dataclasses.replace(
    config, balance=True, group_weights=("text:3",)
  )
  names = ["text_behind_01", "text_behind_02", "wordnet_walks"]
  assert list(weights.given(names, balanced).values()) == [1.5, 1.5, 1]


def test_weights_are_fitted_to_halves_that_are_not_reported(
  world, config, problem, tmp_path
):
  (tmp_path / "MEN.tsv").write_text((world / "sets/TOPIC.tsv").read_text())
  sets = evaluate.load_sets(str(tmp_path))
  fitted = dataclasses.replace(config, view_weights="labels")
  other = train.prepare(fitted, sets)
  (half,), (rest,) = other.development, other.sets
  assert sorted(half.pairs + rest.pairs) == sorted(sets[0].pairs)
  made = train.factors(other)
  learned = weights.learned(made, fitted, other.labels)
  np.testing.assert_allclose(
    train.fit(made, fitted, other.labels).view_weights,
    list(learned.values()), rtol=1e-5,
  )  # fmt: skip
  assert np.ptp(list(learned.values())) > 0.01
  (note,) = [n for n in studies.fit(other).notes if n.startswith("Weights")]
  assert f"{max(learned, key=learned.__getitem__)} 1," in note
  with pytest.raises(InputError, match="needs pairs of known words"):
    train.prepare(fitted, problem.sets)


def test_views_of_one_text_are_one_source(problem, config):
  held = dataclasses.replace(config, view_weights="heldout")
  made = train.factors(problem)
  assert set(map(data.source, made)) == {"text"}
  alone = weights.learned(made, held, None)
  np.testing.assert_allclose(list(alone.values()), 1, rtol=1e-5)
  named = {"dep_nsubj" if "02" in n else n: f for n, f in made.items()}
  assert np.ptp(list(weights.learned(named, held, None).values())) > 0.01


def test_baselines_are_compared_and_fused(problem, config):
  config = dataclasses.replace(config, skip_gram=("2:2:0.05:4",))
  problem = dataclasses.replace(problem, config=config)
  study = studies.run("comparison", problem)
  best = study.systems["best baseline"]["TOPIC"].value
  singles = [
    study.systems[n]["TOPIC"].value for n in ("LSA", "PPMI-SVD", "skip-gram")
  ]
  assert best == max(singles)
  tests = {(t.system, t.over): t for t in study.tests}
  assert {"best view", "LSA", "PPMI-SVD", "skip-gram"} <= {b for _, b in tests}
  test, systems = tests["all views", "LSA"], study.systems
  one, two = (systems[n]["TOPIC"] for n in ("all views", "LSA"))
  assert test.gain == pytest.approx(one.value - two.value)
  between = similarity.spearman(one.scores, two.scores)
  assert test.correlation == pytest.approx(between)
  parts = two.value / 100, one.value / 100, between, len(one.scores)
  assert test.p_value == pytest.approx(significance.williams_test(*parts)[1])
  (named,) = [n for n in study.notes if n.startswith("The best single view")]
  assert "view on TOPIC:" in named  # the only set; none is a tuning set
  view = named.rpartition(" ")[2].rstrip(".")
  alone = problem.score(train.factors(problem)[view].left[:, :4])
  assert study.systems["best view"]["TOPIC"].value == alone["TOPIC"].value
  gains = {c["system"]: c for c in studies.cells(study, problem)}
  fused = study.systems["all fused"]["TOPIC"].value
  own = study.systems["all views"]["TOPIC"].value
  assert gains["fusion gain"]["value"] == pytest.approx(fused - own)


def test_settings_are_chosen_on_tuning_halves(problem, config):
  (whole,) = problem.sets
  half = dataclasses.replace(whole, scores=-whole.scores)
  halved = dataclasses.replace(problem, development=[half])
  made = train.factors(problem)
  figures = {
    name: problem.score(comparison._alone(factor, config))["TOPIC"].value
    for name, factor in made.items()
  }
  results, name = comparison._best_view(halved, made)
  assert name == min(figures, key=figures.__getitem__)
  assert results["TOPIC"].value == pytest.approx(figures[name])
  _, name = comparison._best_view(problem, made)
  assert name == max(figures, key=figures.__getitem__)
  # A set without a known pair counts as 0.
  other = testsets.SimilaritySet("OTHER", [("q", "w")] * 3, np.arange(3.0))
  halved = dataclasses.replace(problem, development=[half, other])
  vectors = comparison._alone(made[name], config)
  assert halved.tuning(vectors) == pytest.approx(-figures[name] / 2)


def test_a_view_alone_is_a_fit_of_one_view(problem, config):
  settings = {"ridge": 1.0, "relative_ridge": True, "eigenvalue_power": 1.5}
  config = dataclasses.replace(config, **settings)
  for name, factor in train.factors(problem).items():
    fitted = train.vectors(train.fit({name: factor}, config), config)
    alone = comparison._alone(factor, config)
    signs = np.sign(np.sum(fitted * alone, axis=0))
    np.testing.assert_allclose(alone * signs, fitted, atol=1e-4)


@pytest.mark.long
def test_lexicons_are_added_plainly(world, config):
  (world / "same.txt").write_text("".join(" ".join(t) + "\n" for t in _TOPICS))
  (world / "other.txt").write_text("cat car\nqq dog\n")
  rng = np.random.default_rng(0)
  lines = [
    f"{w} {rng.normal():.4f} {rng.normal():.4f}" for t in _TOPICS for w in t
  ]
  (world / "v.txt").write_text("\n".join(lines) + "\n")
  change = {
    "study": "comparison",
    "vectors": (str(world / "v.txt"),),
    "skip_gram": ("2:2:0.05:4",),
    "synonyms": (str(world / "same.txt"),),
    "antonyms": (str(world / "other.txt"),),
    "store": str(world / "store2"),
  }
  config = dataclasses.replace(config, **change)
  sets = evaluate.load_sets(str(world / "sets"))
  study = studies.run("comparison", train.prepare(config, sets))
  raw = study.systems["vectors_v"]["TOPIC"].value
  assert "vectors_v transformed" in study.systems
  for how in ("retrofitted", "counter-fitted"):
    assert study.systems[f"vectors_v {how}"]["TOPIC"].value > raw + 5
    assert f"best view {how}" in study.systems
    assert f"all views {how}" in {test.system for test in study.tests}
  assert "other.txt: 2 pairs, 1 of other words." in study.notes
  # A fit moves its vectors at the end.
  one = dataclasses.replace(config, study="fit", lexicon_steps=3)
  fit = studies.fit(train.prepare(one, sets))
  plain = studies.fit(train.prepare(dataclasses.replace(one, synonyms=())))
  pairs = train.prepare(one, sets).lexicons
  moved = multiview.counterfit(
    plain.vectors, pairs.synonyms, pairs.antonyms, pairs.synonyms[:0],
    iterations=3,
  )  # fmt: skip
  np.testing.assert_allclose(fit.vectors, moved, atol=1e-5)


def test_vectors_and_lexicons_are_compared_without_text(
  world, config, tmp_path
):
  (world / "syn.txt").write_text("".join(" ".join(t) + "\n" for t in _TOPICS))
  (world / "ant.txt").write_text("cat car\n")
  rng, paths = np.random.default_rng(1), []
  for name in ("one", "two"):
    rows = [
      f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(i, 1, 3))}\n"
      for i, topic in enumerate(_TOPICS) for word in topic
    ]  # fmt: skip
    paths.append(str(world / f"{name}.txt"))
    (world / f"{name}.txt").write_text("".join(rows))
  change = {
    "study": "comparison",
    "text": (),
    "vectors": tuple(paths),
    "synonyms": (str(world / "syn.txt"),),
    "antonyms": (str(world / "ant.txt"),),
  }
  config = dataclasses.replace(config, **change)
  (whole,) = evaluate.load_sets(str(world / "sets"))
  half = dataclasses.replace(
    whole, name="HALF", pairs=whole.pairs[::2], scores=whole.scores[::2]
  )
  problem = train.prepare(config, [whole, half])
  study = studies.run("comparison", problem)
  assert not {"LSA", "text views", "all fused", "best baseline"} & set(
    study.systems
  )
  tests = {(t.system, t.over): t for t in study.tests if t.name == "TOPIC"}
  for over in ("all views", "best view", "vectors_one"):
    test = tests["all views counter-fitted", over]
    assert test.pairs == study.systems[over]["TOPIC"].scored
    sizes = (x["TOPIC"].value / 100 for x in (
      study.systems[over], study.systems["all views counter-fitted"]
    ))  # fmt: skip
    needed = significance.williams_pairs(*sizes, test.correlation)
    assert test.needed == pytest.approx(needed)
  assert {c["system"] for c in studies.cells(study, problem)} >= {"all views"}
  # The vectors that are kept are those that a fit writes.
  kept, fitted = (problem.score(v)["TOPIC"].value for v in (
    study.vectors, studies.fit(problem).vectors
  ))  # fmt: skip
  assert kept == study.systems["all views counter-fitted"]["TOPIC"].value
  assert kept == pytest.approx(fitted, abs=0.1)
  pair = ("all views", "vectors_one")
  (pooled,) = [p for p in study.pooled if (p.system, p.over) == pair]
  gains = [t.gain for t in study.tests if (t.system, t.over) == pair]
  assert pooled.gain.value == pytest.approx(np.mean(gains))
  with runlib.Run("mvlsa", directory=tmp_path, config={}) as run:
    paired_table.run(run, study)
  header, _, *rows = (tmp_path / "tests.md").read_text().splitlines()
  assert header.rstrip(" |").endswith("mean [95 % interval]")
  (row,) = [x for x in rows if x.startswith("| all views over vectors_one |")]
  assert f"{pooled.gain.value:+.1f} [{pooled.gain.lower:.1f}, " in row
  unsure = [t for t in study.tests if t.p_value >= 0.05 and t.needed < 1e6]
  text = (tmp_path / "tests.md").read_text()
  assert all(f"{t.pairs:,} of {t.needed:,.0f} pairs" in text for t in unsure)


def test_the_sets_are_listed_with_their_mrds(world, tmp_path, capsys):
  sets = evaluate.load_sets(str(world / "sets"))
  with runlib.Run("mvlsa", directory=tmp_path, config={}) as run:
    set_table.run(run, sets)
  size = len(sets[0].pairs)
  expected = 100 * significance.mrds_correlation(size, 0.05, 0.9)
  lines = capsys.readouterr().out.splitlines()
  line = next(x for x in lines if "TOPIC" in x)
  assert line.split()[1] == str(size)
  assert line.split()[-1] == f"{expected:.1f}"
  assert "TOPIC" in (tmp_path / "sets.md").read_text()

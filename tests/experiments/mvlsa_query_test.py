"""Runs of multiview LSA that are asked, priced, or in another language."""

import itertools
import json
import pathlib

import killing
import numpy as np
import pytest

from experiments.mvlsa import corpus, price, query
from repr_jax.data import vectors
from repr_jax.errors import InputError

_ROOT = pathlib.Path(__file__).parents[2]


def _command(*arguments):
  return killing.call("experiments.mvlsa", *arguments)


def test_text_of_another_language_gets_vectors_without_a_test_set(tmp_path):
  rng = np.random.default_rng(0)
  words = ["हिन्दी", "किताब", "नहीं", "पानी", "घर", "दिन", "रात", "फल"]
  lines = [" ".join(rng.choice(words, 6)) + "।" for _ in range(200)]
  (tmp_path / "text.txt").write_text("\n".join(lines))
  flags = [
    f"--text={tmp_path / 'text.txt'}", f"--store={tmp_path / 'store'}",
    f"--workdir={tmp_path / 'run'}", "--offsets=2", "--m=4", "--k=3",
  ]  # fmt: skip
  ended = _command(*flags)
  assert ended.returncode == 0, ended.stderr
  assert "no test set has words of the vocabulary" in ended.stderr
  learned = vectors.read_vectors(tmp_path / "run" / "vectors.npz")
  assert set(words) <= set(learned.words)
  asked = _command(
    "--mode=query", f"--workdir={tmp_path / 'run'}", "--ask=घर,घर दिन"
  )
  assert asked.returncode == 0 and len(asked.stdout.splitlines()) == 2


def test_a_finished_run_is_asked(tmp_path):
  words = ["zero", "king", "Queen", "man", "woman", "<b>"]
  array = np.array(
    [[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 0], [0, 0, 1], [-1, -1, -1]],
    np.float32,
  )
  asked = query.Asked(vectors.Vectors(words, array))
  assert asked.answer("man KING woman").endswith("is to Queen")
  assert asked.answer("king queen") == "king, Queen: 0.500"
  assert asked.answer("king", 2).startswith("king: man")
  assert asked.answer("Wooman KING") == (
    "woman (for the unknown Wooman), king: 0.000"
  )
  with pytest.raises(InputError, match="no known word is spelled like it"):
    asked.answer("xylophone")
  with pytest.raises(InputError, match="no known word is spelled like it"):
    asked.answer("zero")  # a word without a vector
  with pytest.raises(InputError, match="4 words"):
    asked.answer("king man woman queen")
  drawn = asked.draw(["king queen"], 2)
  assert "&lt;b&gt;" not in drawn or "<b>" not in drawn
  assert drawn.count("<text") >= 3 and "Queen</text>" in drawn
  with pytest.raises(InputError, match="run mvlsa with this"):
    query.run(tmp_path, ["king"])
  vectors.write_vectors(
    tmp_path / "vectors.npz", vectors.Vectors(words, array), "npz"
  )
  with pytest.raises(InputError, match="give words"):
    query.run(tmp_path, [])
  query.run(tmp_path, ["king"], picture=str(tmp_path / "map.svg"))
  assert (tmp_path / "map.svg").read_text().startswith("<svg")


def test_shapley_values_are_those_of_the_definition():
  worth = {
    "": 0.0, "a": 1.0, "b": 2.0, "c": 0.0, "ab": 5.0, "ac": 1.0, "bc": 2.5,
    "abc": 6.0,
  }  # fmt: skip
  players = ["a", "b", "c"]

  def value(group):
    return np.array([worth["".join(sorted(group))]])

  expected = dict.fromkeys(players, 0.0)
  for order in itertools.permutations(players):
    for i, name in enumerate(order):
      gain = value(order[: i + 1]) - value(order[:i])
      expected[name] += float(gain[0]) / 6
  rng = np.random.default_rng(0)
  exact, errors = price.shapley(players, value, 6, rng)
  for name in players:
    np.testing.assert_allclose(exact[name], expected[name])
    assert errors[name] == 0
  drawn, errors = price.shapley(players, value, 4, rng)
  assert float(sum(drawn.values())[0]) == pytest.approx(6)
  assert all(np.isfinite(error).all() for error in errors.values())


def test_the_price_of_groups_is_told(tmp_path):
  world = tmp_path
  topics = [
    ["cat", "dog", "cow", "pig", "hen", "fox", "owl"],
    ["car", "bus", "van", "jet"],
  ]
  rng = np.random.default_rng(0)
  lines = [
    " ".join(rng.choice(topics[i % 2], rng.integers(4, 9))) + " , the ."
    for i in range(400)
  ]
  (world / "text.txt").write_text("\n".join(lines) + "\n")
  (world / "sets").mkdir()
  pairs = [
    f"{a}\t{b}\t{10 * (x is y) + rng.random()}\n"
    for x in topics
    for y in topics
    for a in x
    for b in y
    if a < b
  ]
  (world / "sets" / "TOPIC.tsv").write_text("".join(pairs))
  flags = [
    f"--text={world / 'text.txt'}", f"--testsets={world / 'sets'}",
    f"--store={tmp_path / 'store'}", f"--workdir={tmp_path / 'run'}",
    "--offsets=2", "--ahead=2", "--windows=2", "--m=4", "--k=3", "--t=30",
    "--study=price", "--shuffles=2", "--documents=0",
  ]  # fmt: skip
  ended = _command(*flags)
  assert ended.returncode == 0, ended.stderr
  told = json.loads((tmp_path / "run" / "price.json").read_text())
  whole = sum(p["TOPIC"]["shapley"] for p in told["prices"].values())
  assert set(told["prices"]) == {"text", "window"} and whole > 20
  assert len(told["p_dimensions"]) == 3
  by_set = told["prices"]["text"]["TOPIC"]
  assert 0 < by_set["lost_error"] < 20 and 0 < by_set["error"] < 20
  rows = json.loads((tmp_path / "run" / "results.json").read_text())["rows"]
  (row,) = [r for r in rows if r["name"] == "text left out, TOPIC"]
  assert row["upper"] - row["value"] == pytest.approx(
    1.96 * by_set["lost_error"], abs=1e-6
  )
  assert set(told["held_out_r2"]) == set(told["p_views"])
  assert max(told["held_out_r2"].values()) > 0.2


def test_tokens_keep_the_vowel_signs_of_other_scripts(tmp_path):
  path = tmp_path / "hindi.txt"
  path.write_text("हिन्दी में, किताब है। नहीं!\nÇa va-t-il? cafe\u0301.\n")
  (copy,) = corpus.tokenized([str(path)], tmp_path)
  lines = pathlib.Path(copy).read_text().splitlines()
  assert lines[0].split()[:2] == ["हिन्दी", "में"]
  assert "किताब" in lines[0].split() and "नहीं" in lines[0].split()
  assert lines[1].split()[:3] == ["Ça", "va-t-il", "?"]
  assert "cafe\u0301" in lines[1].split()

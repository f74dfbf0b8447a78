"""The experiment end to end on small data, and its bad input."""

import json
import pathlib

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from experiments import elkb, kb_data, kb_puzzle, kb_training, runlib
from repr_jax import errors
from repr_jax.data.rules import Rule

if not flags.FLAGS.is_parsed():
  flags.FLAGS(["elkb_test"])


def _write(folder: pathlib.Path) -> dict[str, str]:
  """A small knowledge base of people with an inverse relation."""
  rng = np.random.default_rng(0)
  pairs = {tuple(sorted(p)) for p in rng.integers(15, size=(60, 2)).tolist()}
  pairs = sorted((a, b) for a, b in pairs if a != b)
  lines = [f"p{a}\tparent\tp{b}" for a, b in pairs]
  inverse = [f"p{b}\tchild\tp{a}" for a, b in pairs]
  parts = {
    "train": lines + inverse[8:],
    "valid": inverse[:4],
    "test": inverse[4:8],
  }
  found = {}
  for name, rows in parts.items():
    path = folder / f"{name}.txt"
    path.write_text("\n".join(rows) + "\n")
    found[name] = str(path)
  rules = folder / "rules.tsv"
  rules.write_text("RevImp\tparent\tchild\nRevImp\tchild\tparent\n")
  return {**found, "rules": str(rules)}


_FAST = {
  "model": "complex", "trainer": "many", "optimizer": "adagrad", "eta": 0.1,
  "alpha": 1e-4, "batch": 8, "candidates": 8, "penalty": "n3", "dim": 16,
  "epochs": 30, "eval_every": 10, "nonnegative": False, "scale": 0.1,
}  # fmt: skip


def _run(folder, **changes):
  with flagsaver.flagsaver(workdir=str(folder), **changes):
    elkb.main([])
  results = json.loads((folder / "results.json").read_text())["rows"]
  return {(row["name"], row["metric"]): row["value"] for row in results}


def test_link_prediction_answers_and_combines(tmp_path, capsys):
  paths = _write(tmp_path)
  rows = _run(tmp_path / "one", **paths, **_FAST, ask="child(?, p3)", top=3)
  name = f"{tmp_path.name} complex + rules"
  assert rows[name, "mrr filtered both"] > 0.5  # the inverses are in training
  assert rows[name, "largest violation, sampled"] <= 1e-5
  assert (tmp_path / "one" / "params.npz").exists()
  assert (tmp_path / "one" / "vectors.npz").exists()
  said = "".join(capsys.readouterr())
  assert "child(?, p3)" in said and "RevImp(child, parent)" in said
  again = _run(
    tmp_path / "two",
    **paths,
    **{**_FAST, "model": "T", "penalty": "l2", "constrained": False},
    combine_with=str(tmp_path / "one"),
  )
  merged = f"{tmp_path.name} T+complex"
  assert 0 <= again[merged, "mrr filtered both"] <= 1


def test_pairs_trainer_under_rules(tmp_path):
  paths = _write(tmp_path)
  rows = _run(
    tmp_path / "run", **paths, model="B", dim=8, batch=10, negatives=5,
    epochs=2, eval_every=1,
  )  # fmt: skip
  name = f"{tmp_path.name} B + rules"
  assert rows[name, "largest violation, trained"] <= 1e-5


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"valid": None}, "go together"),
    ({"ask": "child(p1, p2)"}, "expected relation"),
    ({"ask": "uncle(?, p2)"}, "unknown relation 'uncle'"),
    ({"ask": "child(?, nobody)"}, "unknown entity 'nobody'"),
    ({"combine_with": "/nowhere"}, "no finished run"),
    ({"optimizer": "newton"}, "--optimizer=newton"),
    ({"trainer": "pairs"}, "needs --trainer=many"),
    ({"batch": 10_000}, "larger than"),
  ],
)
def test_bad_flags_are_named(tmp_path, change, message):
  paths = _write(tmp_path)
  with pytest.raises(errors.InputError, match=message):
    _run(tmp_path / "run", **{**paths, **_FAST, **change})


@pytest.mark.parametrize(
  ("name", "text", "message"),
  [
    ("train", "p1\tparent\n", "train.txt:1"),
    ("train", "p1\tparent\tp2\np1\tparent\tp2\n", "train.txt:2"),
    ("rules", "RevImp\tparent\tuncle\n", "rules.tsv:1"),
    ("rules", "PropTrans\tchild\tchild\tp1\tchild\tp2\n", "no sufficient"),
  ],
)
def test_bad_files_are_named(tmp_path, name, text, message):
  paths = _write(tmp_path)
  pathlib.Path(paths[name]).write_text(text)
  with pytest.raises(errors.InputError, match=message):
    _run(tmp_path / "run", **paths, **_FAST)


def test_unseen_test_entities_are_counted(tmp_path):
  paths = _write(tmp_path)
  with open(paths["test"], "a") as out:
    out.write("p1\tchild\tstranger\n")
  rows = _run(tmp_path / "run", **paths, **{**_FAST, "epochs": 1})
  name = f"{tmp_path.name} complex + rules"
  assert rows[name, "test facts with unseen names"] == 1


def test_puzzle_is_above_the_thesis_with_rules_and_near_chance_without():
  for model, floor in (("B", 0.26),):
    found = kb_puzzle.solve_puzzle(model, 4, 0, 0.8, 0.2)
    assert found[True][0].reciprocal.mean() >= floor
    assert found[True][1] <= 1e-5
    assert found[False][0].reciprocal.mean() < 0.1
    assert found[False][1] > 1


def test_wordnet_knowledge_base_holds_facts_out():
  kb = kb_data.from_wordnet(50, 0, "bird.n.01")
  assert len(kb.splits.valid) == len(kb.splits.test) == 50
  assert Rule("RevImp", ("_hypernym", "_hyponym")) in kb.rules
  seen = np.unique(kb.splits.train.array[:, [0, 2]])
  assert len(seen) == len(kb.entities)
  relation, entity, side = kb_data.parse_query(kb, "hypernym(?, bird)")
  assert kb.relations[relation] == "_hypernym" and side == "head"
  assert kb.shown[entity].startswith("bird.")
  setting = kb_training.Setting(dim=4, batch=64, trainer="many")
  system = kb_training.prepare(kb, setting)
  assert system.constraints is not None
  assert runlib.SEED.value == 0


def test_what_rules_imply_is_dropped_and_still_known(tmp_path):
  parts = _write(tmp_path)
  whole = kb_data.read(*parts.values())
  kb = kb_data.drop_implied(whole)
  child, parent = (kb.relations.index(x) for x in ("child", "parent"))
  train = kb.splits.train.array
  assert (train[:, 1] == parent).all() and kb.splits.unseen_relations == [child]
  assert (np.sum(whole.splits.train.array[:, 1] == parent)) == len(train)
  assert sorted(kb.known.tolist()) == sorted(whole.known.tolist())
  both = {
    ruled: _run(
      tmp_path / str(ruled),
      **{**_FAST, **parts, "drop_implied": True, "constrained": ruled},
    )
    for ruled in (True, False)
  }
  metric = "mrr filtered both"
  name = f"{kb.name} complex"
  # All test facts are of the relation that has no training fact.
  assert both[True][f"{name} + rules", metric] > 0.8
  assert both[False][name, metric] < 0.5


def test_of_a_symmetric_pair_one_stays(tmp_path):
  facts = ["a\tlikes\tb", "b\tlikes\ta", "a\tlikes\ta", "b\tknows\ta"]
  for name, rows in (("t", facts), ("v", facts[:1]), ("w", facts[1:2])):
    (tmp_path / name).write_text("\n".join(rows) + "\n")
  (tmp_path / "r").write_text("Symm\tlikes\nRelImp\tlikes\tknows\n")
  whole = kb_data.read(*(str(tmp_path / x) for x in "tvwr"))
  kb = kb_data.drop_implied(whole)
  named = [
    (kb.entities[h], kb.relations[r], kb.entities[t])
    for h, r, t in kb.splits.train.array.tolist()
  ]
  assert ("a", "likes", "a") in named and ("b", "knows", "a") in named
  assert sum(r == "likes" for _, r, _ in named) == 2

"""The experiment end to end on small data, and its bad input."""

import json
import pathlib

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from experiments.elkb import __main__ as elkb
from experiments.elkb import combination, data, evaluate, puzzle, query
from experiments.elkb import train as kb_training
from experiments.run import runlib
from repr_jax import errors
from repr_jax.data import wordnet
from repr_jax.data.rules import Rule
from repr_jax.kb import rule_compiler, scores

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
  other = {**paths, **_FAST, "model": "T", "penalty": "l2", "epochs": 1}
  other["constrained"] = False
  again = _run(tmp_path / "two", **other, combine_with=str(tmp_path / "one"))
  merged = f"{tmp_path.name} T+complex"
  assert 0 <= again[merged, "mrr filtered both"] <= 1

  # Runs that have ended are combined without training.
  tables = (tmp_path / "one" / "params.npz").read_bytes()
  lines = (tmp_path / "one" / "metrics.jsonl").read_bytes()
  later = {**paths, **_FAST, "combine_with": str(tmp_path / "two")}
  capsys.readouterr()
  more = _run(tmp_path / "one", **later, ask="child(?, p3)", top=3)
  assert (tmp_path / "one" / "params.npz").read_bytes() == tables
  assert (tmp_path / "one" / "metrics.jsonl").read_bytes() == lines
  merged = f"{tmp_path.name} complex+T"
  assert rows.items() <= more.items() and (merged, "hits@3 raw tail") in more
  said = capsys.readouterr().err.splitlines()
  place = said.index(
    next(x for x in said if "by complex + rules:" in x and x.endswith("by T:"))
  )
  assert said[place + 1].count("  1. p") == said[place + 3].count("  3. p") == 2
  results = (tmp_path / "one" / "results.json").read_bytes()
  _run(tmp_path / "one", **later)
  assert (tmp_path / "one" / "results.json").read_bytes() == results
  # A combination with other tables of that model takes its place.
  made_by = (tmp_path / "one" / "combined.json").read_text()
  later["combine_with"] = str(tmp_path / "three")
  trained = evaluate.load_params(str(tmp_path / "two"))
  twice = trained._replace(
    params=trained.params._replace(entities=-trained.params.entities)
  )
  (tmp_path / "three").mkdir()
  kb = data.read(*paths.values())
  evaluate.save_params(tmp_path / "three" / "params.npz", kb, twice)
  last = _run(tmp_path / "one", **later)
  assert last.keys() == more.keys()
  assert (tmp_path / "one" / "combined.json").read_text() != made_by

  # Two systems of one kind are both heard.
  _run(tmp_path / "two", **{**other, **later, **other}, ask="child(?, p3)")
  said = capsys.readouterr().err
  assert "by T:" in said and f"by T of {tmp_path / 'three'}:" in said
  with open(paths["train"], "a") as out:
    out.write("p1\tparent\taa\n")
  with pytest.raises(errors.InputError, match="'aa' is only here"):
    _run(tmp_path / "one", **paths, **_FAST, ask="child(?, p3)")


def test_tables_of_other_names_are_refused(tmp_path):
  paths = _write(tmp_path)
  kb = data.read(*paths.values())
  params = scores.Params(np.ones((15, 2), "f"), np.ones((2, 4), "f"))
  trained = evaluate.Trained("B", params, "B")
  evaluate.save_params(tmp_path / "params.npz", kb, trained)
  assert evaluate.load_params(str(tmp_path), kb).label == "B"
  for name in ("parent", "p3"):
    for path in list(paths.values())[:3]:
      text = pathlib.Path(path).read_text()
      pathlib.Path(path).write_text(text.replace(f"{name}\t", "new\t"))
  with pytest.raises(errors.InputError, match=r"has other entities"):
    _run(
      tmp_path / "run", **{**paths, **_FAST, "rules": None},
      combine_with=str(tmp_path),
    )  # fmt: skip
  assert not (tmp_path / "run" / "checkpoints").exists()
  np.savez(tmp_path / "params.npz", model="B", **params._asdict())
  with pytest.raises(errors.InputError, match="older versions"):
    evaluate.load_params(str(tmp_path))


def test_dropped_facts_are_dropped_from_a_combination(tmp_path):
  paths = _write(tmp_path)
  with open(paths["test"], "a") as out:
    out.write("p1\tchild\tstranger\n")
  kb = data.read(*paths.values())
  rng = np.random.default_rng(0)
  one, two = (
    evaluate.Trained(
      "A",
      scores.Params(
        rng.normal(size=(16, 2)).astype("f"),
        rng.normal(size=(2, 4)).astype("f"),
      ),
      "A",
    )
    for _ in range(2)
  )
  merged, right = combination.combined_ranks(kb, one, two, 8, "drop")
  assert merged.kept.tolist() == [True] * 4 + [False] and 0 <= right <= 1
  assert kb.unseen.tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("order", ["turns", "stay"])
def test_pairs_trainer_under_rules(tmp_path, order):
  paths = _write(tmp_path)
  rows = _run(
    tmp_path / "run", **paths, model="B", dim=8, batch=10, negatives=5,
    order=order, epochs=2, eval_every=1,
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
    ({"dim": 7}, "--dim=7: complex takes an even"),
    ({"train": None, "valid": None, "test": None, "columns": "t,h"}, "columns"),
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
    (
      "rules",
      "\nPropTrans\tchild\tchild\tp1\tchild\tp2\n",
      r"no sufficient.*PropTrans\(.*rules.tsv:2",
    ),
  ],
)
def test_bad_files_are_named(tmp_path, name, text, message):
  paths = _write(tmp_path)
  pathlib.Path(paths[name]).write_text(text)
  with pytest.raises(errors.InputError, match=message):
    _run(tmp_path / "run", **paths, **_FAST)


def test_rules_that_cannot_hold_together_tell_where_they_stand(tmp_path):
  paths = _write(tmp_path)
  kb = data.read(*paths.values())
  told = rule_compiler.conflict(kb.rules, lambda kept: 1 not in kept)
  assert told == f"RevImp(child, parent) ({paths['rules']}:2)"


def test_unseen_test_names_are_counted_and_told(tmp_path, capsys):
  paths = _write(tmp_path)
  test = paths["test"]
  with open(paths["test"], "a") as out:
    out.write("p1\tchild\tstranger\n")
    out.write("p1\tuncle\tp2\n")
  pathlib.Path(paths["rules"]).write_text("# none\n")
  rows = _run(tmp_path / "run", **paths, **{**_FAST, "epochs": 1})
  name = f"{tmp_path.name} complex"  # there are no rules
  assert rows[name, "test facts with unseen names"] == 1
  assert rows[name, "test facts with unseen relations"] == 1
  said = capsys.readouterr().err
  assert f"have entities outside training: 'stranger' ({test}:5)\n" in said
  assert f"have relations outside training: 'uncle' ({test}:6)\n" in said
  pathlib.Path(test).write_text("p1\tchild\tstranger\n")
  with pytest.raises(errors.InputError, match="leaves no test fact"):
    _run(tmp_path / "drop", **paths, **_FAST, unseen="drop")
  assert not (tmp_path / "drop" / "checkpoints").exists()


def test_repeated_facts_are_told(tmp_path):
  paths = _write(tmp_path)
  train = pathlib.Path(paths["train"]).read_text()
  pathlib.Path(paths["test"]).write_text(train.splitlines()[0] + "\n")
  pathlib.Path(paths["train"]).write_text(train + train)
  kb = data.read(*paths.values(), duplicates="count")
  count = len(train.splitlines())
  assert data.notes(kb) == [
    f"{paths['train']}: {count} repeated triples left out",
    "1 test facts are training facts too",
  ]


@pytest.mark.parametrize(
  ("name", "value"),
  [("eval_every", "0"), ("eval_every", "-1"), ("held_out", "0"),
   ("held_out", "-3"), ("patience", "0"), ("eval_limit", "0"), ("block", "0")],
)  # fmt: skip
def test_numbers_that_cannot_be_are_refused(name, value):
  with pytest.raises(ValueError, match=r"integer"):
    flags.FLAGS[name].parser.parse(value)


def test_queries_name_anything(tmp_path):
  names = ["Mercury_(planet)", "New York, NY", "?", "a.b", "a"]
  rows = [f"{name}\tis parent\t:)" for name in names]
  for name in ("t", "v", "w"):
    (tmp_path / name).write_text("\n".join([*rows, "a\t_in\ta.b"]) + "\n")
  kb = data.read(*(str(tmp_path / x) for x in "tvw"), None)
  for text, entity, side in (
    ("is parent(?, Mercury_(planet))", "Mercury_(planet)", "head"),
    ("is parent(New York, NY, ?)", "New York, NY", "tail"),
    ('is parent("New York, NY",?)', "New York, NY", "tail"),
    ('"is parent" ( ? , "?" )', "?", "head"),
    ("in(:), ?)", ":)", "tail"),
    ("in(?, a)", "a", "head"),
  ):
    relation, found, open_side = query.parse_query(kb, text)
    assert kb.relations[relation] in ("is parent", "_in")
    assert (kb.entities[found], open_side) == (entity, side)
  for text in ("in(?, ?)", "in(a, a.b)", "in", "in(?)", "(?, a)", "in(?,)"):
    with pytest.raises(errors.InputError, match="expected relation"):
      query.parse_query(kb, text)


def test_offsets_are_named_by_their_facts(tmp_path):
  database = wordnet.load()
  breathe = database.row("breathe.v.01")
  lines = [
    f"00001740\t_hyponym\t{database.tables.offset[row]:08d}"
    for row in database.targets(breathe, "hyponym").tolist()
  ]
  for name in "tvw":
    (tmp_path / name).write_text("\n".join(lines) + "\n")
  kb = data.read(*(str(tmp_path / x) for x in "tvw"), None)
  shown = kb.shown[kb.entities.index("00001740")]
  assert shown == "breathe.v.01"  # entity.n.01 stands there too


def test_puzzle_is_above_the_thesis_with_rules_and_near_chance_without():
  for model, floor in (("B", 0.26),):
    found = puzzle.solve_puzzle(model, 4, 0, 0.8, 0.2)
    assert found[True][0].reciprocal.mean() >= floor
    assert found[True][1] <= 1e-5
    assert found[False][0].reciprocal.mean() < 0.1
    assert found[False][1] > 1


def test_wordnet_knowledge_base_holds_facts_out(tmp_path):
  kb = data.from_wordnet(50, 0, "bird.n.01")
  assert len(kb.splits.valid) == len(kb.splits.test) == 50
  assert Rule("RevImp", ("_hypernym", "_hyponym")) in kb.rules
  (tmp_path / "rules").write_text("Symm\t_hypernym\n")
  other = data.from_wordnet(50, 0, "bird.n.01", str(tmp_path / "rules"))
  assert other.rules == [Rule("Symm", ("_hypernym",))]
  with pytest.raises(errors.InputError, match="at least one"):
    data.from_wordnet(0, 0, "bird.n.01")
  seen = np.unique(kb.splits.train.array[:, [0, 2]])
  assert len(seen) == len(kb.entities)
  relation, entity, side = query.parse_query(kb, "hypernym(?, bird)")
  assert kb.relations[relation] == "_hypernym" and side == "head"
  assert kb.shown[entity].startswith("bird.")
  setting = kb_training.Setting(dim=4, batch=64, trainer="many")
  system = kb_training.prepare(kb, setting)
  assert system.constraints is not None
  assert runlib.SEED.value == 0


def test_what_rules_imply_is_dropped_and_still_known(tmp_path):
  parts = _write(tmp_path)
  whole = data.read(*parts.values())
  kb = data.drop_implied(whole)
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
  (tmp_path / "r").write_text(
    "Symm\tlikes\nRelImp\tlikes\tknows\nknows(x,y)==>knows(x,y)\n"
  )
  whole = data.read(*(str(tmp_path / x) for x in "tvwr"))
  kb = data.drop_implied(whole)
  named = [
    (kb.entities[h], kb.relations[r], kb.entities[t])
    for h, r, t in kb.splits.train.array.tolist()
  ]
  assert ("a", "likes", "a") in named and ("b", "knows", "a") in named
  assert sum(r == "likes" for _, r, _ in named) == 2

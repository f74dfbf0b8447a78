"""The experiment end to end on small data, and its bad input."""

import json
import pathlib

import elkb_world
import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from experiments.elkb import __main__ as elkb
from experiments.elkb import combination, data, evaluate, puzzle, query
from experiments.elkb import train as kb_train
from experiments.elkb.config import Config
from experiments.run import config
from repr_jax import errors
from repr_jax.data import wordnet
from repr_jax.data.rules import Rule
from repr_jax.kb import rule_compiler, scores

if not flags.FLAGS.is_parsed():
  flags.FLAGS(["elkb_test"])

_FAST = elkb_world.FAST


def test_link_prediction_answers_and_combines(tmp_path, capsys):
  paths = elkb_world.write(tmp_path)
  rows = elkb_world.run(
    tmp_path / "one", **paths, **_FAST, ask="child(?, p3)", top=3
  )
  name = f"{tmp_path.name} complex + rules"
  assert rows[name, "mrr filtered both"] > 0.5  # the inverses are in training
  assert rows[name, "largest violation, all pairs"] == 0
  assert rows[name, "rules proven for all pairs"] == 2
  metrics = (tmp_path / "one" / "metrics.jsonl").read_text().splitlines()
  best = max(json.loads(x).get("mrr", 0) for x in metrics)
  assert rows[name, "validation mrr"] == pytest.approx(best)
  assert rows[name, "collapsed"] == 0
  assert (tmp_path / "one" / "params.npz").exists()
  assert (tmp_path / "one" / "vectors.npz").exists()
  said = "".join(capsys.readouterr())
  assert "child(?, p3)" in said and "predicted" in said
  other = {**paths, **_FAST, "model": "T", "regularizer": "l2", "epochs": 1}
  other["constrained"] = False
  again = elkb_world.run(
    tmp_path / "two", **other, combine_with=str(tmp_path / "one")
  )
  merged = f"{tmp_path.name} T+complex"
  assert 0 <= again[merged, "mrr filtered both"] <= 1

  # Runs that have ended are combined without training.
  tables = (tmp_path / "one" / "params.npz").read_bytes()
  lines = (tmp_path / "one" / "metrics.jsonl").read_bytes()
  later = {**paths, **_FAST, "combine_with": str(tmp_path / "two")}
  capsys.readouterr()
  more = elkb_world.run(tmp_path / "one", **later, ask="child(?, p3)", top=3)
  assert (tmp_path / "one" / "params.npz").read_bytes() == tables
  assert (tmp_path / "one" / "metrics.jsonl").read_bytes() == lines
  merged = f"{tmp_path.name} complex+T"
  assert rows.items() <= more.items() and (merged, "hits@3 raw tail") in more
  said = capsys.readouterr().out
  assert said.startswith("child(?, p3):\nby complex + rules") and "by T" in said
  elkb_world.run(
    tmp_path / "one", **later, ask="child(?, p3)", top=3, json=True
  )
  told = json.loads(capsys.readouterr().out)
  assert [x["system"] for x in told["systems"]] == ["complex + rules", "T"]
  first = told["systems"][0]["answers"]
  kinds = [x["kind"] for x in first]
  assert kinds == sorted(kinds, key=["known", "implied", "predicted"].index)
  new = [x for x in first if x["kind"] == "predicted"]
  assert len(new) == 3 and new[0]["score"] >= new[1]["score"]
  assert 0 < sum(x["probability"] for x in new) <= 1
  results = (tmp_path / "one" / "results.json").read_bytes()
  elkb_world.run(tmp_path / "one", **later)
  assert (tmp_path / "one" / "results.json").read_bytes() == results
  # A combination with other tables of that model takes its place.
  made_by = (tmp_path / "one" / "combined.json").read_text()
  later["combine_with"] = str(tmp_path / "three")
  trained = evaluate.load_params(str(tmp_path / "two"))
  twice = trained._replace(
    params=trained.params._replace(entities=-trained.params.entities)
  )
  (tmp_path / "three").mkdir()
  kb = data.read(Config(**paths))
  evaluate.save_params(tmp_path / "three" / "params.npz", kb, twice)
  last = elkb_world.run(tmp_path / "one", **later)
  assert last.keys() == more.keys()
  assert (tmp_path / "one" / "combined.json").read_text() != made_by

  # Two systems of one kind are both heard.
  elkb_world.run(
    tmp_path / "two", **{**other, **later, **other}, ask="child(?, p3)"
  )
  said = capsys.readouterr().out
  assert "by T" in said and f"by T of {tmp_path / 'three'}" in said
  with open(paths["train"], "a") as out:
    out.write("p1\tparent\taa\n")
  with pytest.raises(errors.InputError, match="'aa' is only here"):
    elkb_world.run(tmp_path / "one", **paths, **_FAST, ask="child(?, p3)")


def test_tables_of_other_names_are_refused(tmp_path):
  paths = elkb_world.write(tmp_path)
  kb = data.read(Config(**paths))
  params = scores.Params(np.ones((15, 2), "f"), np.ones((2, 4), "f"))
  trained = evaluate.Trained("B", params, "B")
  evaluate.save_params(tmp_path / "params.npz", kb, trained)
  assert evaluate.load_params(str(tmp_path), kb).label == "B"
  for name in ("parent", "p3"):
    for path in list(paths.values())[:3]:
      text = pathlib.Path(path).read_text()
      pathlib.Path(path).write_text(text.replace(f"{name}\t", "new\t"))
  with pytest.raises(errors.InputError, match=r"has other entities"):
    elkb_world.run(
      tmp_path / "run", **{**paths, **_FAST, "rules": None},
      combine_with=str(tmp_path),
    )  # fmt: skip
  assert not (tmp_path / "run" / "checkpoints").exists()
  np.savez(tmp_path / "params.npz", model="B", **params._asdict())
  with pytest.raises(errors.InputError, match="older versions"):
    evaluate.load_params(str(tmp_path))


def test_dropped_facts_are_dropped_from_a_combination(tmp_path):
  paths = elkb_world.write(tmp_path)
  with open(paths["test"], "a") as out:
    out.write("p1\tchild\tstranger\n")
  kb = data.read(Config(**paths))
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
  paths = elkb_world.write(tmp_path)
  rows = elkb_world.run(
    tmp_path / "run", **paths, model="B", dim=8, batch_size=10, num_negatives=5,
    order=order, epochs=2, eval_every=1,
  )  # fmt: skip
  name = f"{tmp_path.name} B + rules"
  assert rows[name, "largest violation, all pairs"] <= 1e-5


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"valid": None}, "go together"),
    ({"ask": "child(p1, p2)"}, "expected relation"),
    ({"ask": "uncle(?, p2)"}, "unknown relation 'uncle'; known: "),
    ({"ask": "child(?, nobody)"}, "unknown entity 'nobody'"),
    ({"combine_with": "/nowhere"}, "no finished run"),
    ({"batch_size": 10_000}, "larger than .* give --batch_size="),
    ({"dim": 7}, "complex takes an even dim"),
    (
      {"num_candidates": 0, "relation_weight": 1.0},
      "--relation_weight needs --group_answers; for example, give 16",
    ),
    ({"model": "Z"}, "unknown score model 'Z'; there are A, R"),
    ({"model": "nowhere:X"}, "--model: cannot import 'nowhere:X'"),
    ({"model": "json:JSONDecoder"}, "not a ScoreModel"),
    ({"cap": float("inf")}, "cap inf is not positive and finite"),
  ],
)
def test_bad_flags_are_named(tmp_path, change, message):
  paths = elkb_world.write(tmp_path)
  with pytest.raises(errors.InputError, match=message):
    elkb_world.run(tmp_path / "run", **{**paths, **_FAST, **change})


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
  paths = elkb_world.write(tmp_path)
  pathlib.Path(paths[name]).write_text(text)
  with pytest.raises(errors.InputError, match=message):
    elkb_world.run(tmp_path / "run", **paths, **_FAST)


def test_rules_that_cannot_hold_together_tell_where_they_stand(tmp_path):
  paths = elkb_world.write(tmp_path)
  kb = data.read(Config(**paths))
  told = rule_compiler.conflict(kb.rules, lambda kept: 1 not in kept)
  assert told == f"RevImp(child, parent) ({paths['rules']}:2)"


def test_unseen_test_names_are_counted_and_told(tmp_path, capsys):
  paths = elkb_world.write(tmp_path)
  test = paths["test"]
  with open(paths["test"], "a") as out:
    out.write("p1\tchild\tstranger\n")
    out.write("p1\tuncle\tp2\n")
  pathlib.Path(paths["rules"]).write_text("# none\n")
  rows = elkb_world.run(tmp_path / "run", **paths, **{**_FAST, "epochs": 1})
  name = f"{tmp_path.name} complex"  # there are no rules
  assert rows[name, "test facts with unseen names"] == 1
  assert rows[name, "test facts with unseen relations"] == 1
  said = capsys.readouterr().err
  assert f"have entities outside training: 'stranger' ({test}:5)\n" in said
  assert f"have relations outside training: 'uncle' ({test}:6)\n" in said
  pathlib.Path(test).write_text("p1\tchild\tstranger\n")
  with pytest.raises(errors.InputError, match="leaves no test fact"):
    elkb_world.run(tmp_path / "drop", **paths, **_FAST, unseen="drop")
  assert not (tmp_path / "drop" / "checkpoints").exists()


def test_repeated_facts_are_told(tmp_path):
  paths = elkb_world.write(tmp_path)
  train = pathlib.Path(paths["train"]).read_text()
  pathlib.Path(paths["test"]).write_text(train.splitlines()[0] + "\n")
  pathlib.Path(paths["train"]).write_text(train + train)
  kb = data.read(Config(**paths, duplicates="count"))
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
  with pytest.raises(errors.InputError, match=f"--{name}={value}: give 1 or"):
    config.from_values(Config, {name: value})


@pytest.mark.parametrize(
  ("given", "message"),
  [
    *[
      (["--task=puzzle", flag], "is not read with --task=puzzle")
      for flag in ("--model=A", "--dim=4", "--learning_rate=1", "--penalty=1",
                   "--num_negatives=4", "--scale=1", "--order=stay",
                   "--noconstrained")
    ],
    (["--trainer=candidate_softmax", "--order=stay"], "--order is not read"),
    (["--model=complex", "--region=ball"], "--region=ball is for --model=B"),
    (["--optimizer=adam"], "is not read with --trainer=projected_sgd"),
    (["--relation_weight=1"], "--relation_weight is not read with"),
    (["--json"], "--json is not read without --ask"),
    (["--columns=t,h,r"], "--columns is not read without --train"),
    (["--train=x", "--below=y"], "--below is not read with --train=x"),
  ],
)  # fmt: skip
def test_a_flag_that_is_not_read_is_refused(given, message):
  parsed = flagsaver.as_parsed(**_parsed(given))
  with parsed, pytest.raises(errors.InputError, match=message):
    elkb.main([])


def _parsed(given):
  """Flags by name, as `flagsaver.as_parsed` takes them."""
  pairs = [flag[2:].partition("=") for flag in given]
  return {
    name.removeprefix("no") if name == "noconstrained" else name: (
      value or ("false" if name == "noconstrained" else "true")
    )
    for name, _, value in pairs
  }


def test_a_finished_run_goes_on_with_more_epochs(tmp_path):
  paths = elkb_world.write(tmp_path)
  common = {**paths, **_FAST, "eval_every": 1, "patience": 9}
  elkb_world.run(tmp_path / "run", **{**common, "epochs": 2})
  both = [
    elkb_world.run(tmp_path / name, **{**common, "epochs": 5})
    for name in ("run", "whole")
  ]
  assert both[0] == both[1]
  run, whole = (
    [json.loads(x) for x in (folder / "metrics.jsonl").read_text().splitlines()]
    for folder in (tmp_path / "run", tmp_path / "whole")
  )
  assert [x["step"] for x in run] == [0, 1, 2, 3, 4]
  assert [x["loss"] for x in run] == [x["loss"] for x in whole]
  with pytest.raises(errors.InputError, match="it may only grow"):
    elkb_world.run(tmp_path / "run", **{**common, "epochs": 3})


_EXTENSION = """
import jax.numpy as jnp
from repr_jax import kb


def _ask(relation, known):
  return kb.Query(relation * known, jnp.zeros((), known.dtype))


def _equal(ids, config):
  return kb.Conditions(ties=[((ids[0], 0), (ids[1], 0), 1.0)])


MODEL = kb.ScoreModel("twins", _ask, _ask)
KIND = kb.RuleKind(
  "Twin", "r(x,y) ==> s(y,x)", conditions={"twins": _equal}
)
"""


def test_a_model_and_a_kind_of_rule_of_the_user_s_own(tmp_path, monkeypatch):
  (tmp_path / "my_extension.py").write_text(_EXTENSION)
  monkeypatch.syspath_prepend(str(tmp_path))
  paths = elkb_world.write(tmp_path)
  pathlib.Path(paths["rules"]).write_text(
    "my_extension:KIND\tparent\tchild\nmy_extension:KIND(child, parent)\n"
  )
  changes = {**paths, **_FAST, "model": "my_extension:MODEL"}
  rows = elkb_world.run(tmp_path / "run", **changes)
  name = f"{tmp_path.name} twins + rules"
  assert rows[name, "largest violation, sampled"] <= 1e-12
  assert rows[name, "mrr filtered both"] > 0.5
  assert elkb_world.run(tmp_path / "run", **changes, ask="child(?, p3)") == rows
  with pytest.raises(errors.InputError, match=r"rules.tsv:1.*my_extension:NO"):
    pathlib.Path(paths["rules"]).write_text("my_extension:NO\tparent\tchild\n")
    elkb_world.run(tmp_path / "bad", **changes)


def test_queries_name_anything(tmp_path):
  names = ["Mercury_(planet)", "New York, NY", "?", "a.b", "a"]
  rows = [f"{name}\tis parent\t:)" for name in names]
  for name in ("t", "v", "w"):
    (tmp_path / name).write_text("\n".join([*rows, "a\t_in\ta.b"]) + "\n")
  kb = data.read(
    Config(
      train=str(tmp_path / "t"),
      valid=str(tmp_path / "v"),
      test=str(tmp_path / "w"),
    )
  )
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
  with pytest.raises(errors.InputError, match="did you mean New York, NY"):
    query.parse_query(kb, "in(?, york)")


def test_offsets_are_named_by_their_facts(tmp_path):
  database = wordnet.load()
  breathe = database.row("breathe.v.01")
  lines = [
    f"00001740\t_hyponym\t{database.tables.offset[row]:08d}"
    for row in database.targets(breathe, "hyponym").tolist()
  ]
  for name in "tvw":
    (tmp_path / name).write_text("\n".join(lines) + "\n")
  kb = data.read(
    Config(
      train=str(tmp_path / "t"),
      valid=str(tmp_path / "v"),
      test=str(tmp_path / "w"),
    )
  )
  shown = kb.shown[kb.entities.index("00001740")]
  assert shown == "breathe.v.01"  # entity.n.01 stands there too


@pytest.mark.long
def test_puzzle_is_above_the_thesis_with_rules_and_near_chance_without():
  for model, floor in (("B", 0.26),):
    found = puzzle.solve_puzzle(model, Config(puzzle_runs=4))
    assert found[True][0].reciprocal.mean() >= floor
    assert found[True][1] <= 1e-5
    assert found[False][0].reciprocal.mean() < 0.1
    assert found[False][1] > 1


def test_wordnet_knowledge_base_holds_facts_out(tmp_path):
  kb = data.from_wordnet(Config(held_out=50, below="bird.n.01"))
  assert len(kb.splits.valid) == len(kb.splits.test) == 50
  assert Rule("RevImp", ("_hypernym", "_hyponym")) in kb.rules
  (tmp_path / "rules").write_text("Symm\t_hypernym\n")
  other = data.from_wordnet(
    Config(held_out=50, below="bird.n.01", rules=str(tmp_path / "rules"))
  )
  assert other.rules == [Rule("Symm", ("_hypernym",))]
  seen = np.unique(kb.splits.train.array[:, [0, 2]])
  assert len(seen) == len(kb.entities)
  relation, entity, side = query.parse_query(kb, "hypernym(?, bird)")
  assert kb.relations[relation] == "_hypernym" and side == "head"
  assert kb.shown[entity].startswith("bird.")
  asked = Config(dim=4, batch_size=64, trainer="candidate_softmax")
  assert kb_train.prepare(kb, asked).constraints is not None


def test_what_rules_imply_is_dropped_and_still_known(tmp_path):
  parts = elkb_world.write(tmp_path)
  whole = data.read(Config(**parts))
  kb = data.drop_implied(whole)
  child, parent = (kb.relations.index(x) for x in ("child", "parent"))
  train = kb.splits.train.array
  assert (train[:, 1] == parent).all() and kb.splits.unseen_relations == [child]
  assert (np.sum(whole.splits.train.array[:, 1] == parent)) == len(train)
  assert sorted(kb.known.tolist()) == sorted(whole.known.tolist())
  both = {
    ruled: elkb_world.run(
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
  whole = data.read(
    Config(
      train=str(tmp_path / "t"),
      valid=str(tmp_path / "v"),
      test=str(tmp_path / "w"),
      rules=str(tmp_path / "r"),
    )
  )
  kb = data.drop_implied(whole)
  named = [
    (kb.entities[h], kb.relations[r], kb.entities[t])
    for h, r, t in kb.splits.train.array.tolist()
  ]
  assert ("a", "likes", "a") in named and ("b", "knows", "a") in named
  assert sum(r == "likes" for _, r, _ in named) == 2

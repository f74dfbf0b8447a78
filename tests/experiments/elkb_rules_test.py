"""Selection, collapse, implied facts, ordered blocks and mined rules."""

import pathlib

import elkb_world
import numpy as np
import pytest
from absl import flags

from experiments.elkb import data, evaluate, puzzle
from experiments.elkb import train as kb_train
from experiments.elkb.config import Config
from repr_jax import errors
from repr_jax.data.rules import Rule
from repr_jax.kb import puzzle as deduction

if not flags.FLAGS.is_parsed():
  flags.FLAGS(["elkb_rules_test"])

_FAST = elkb_world.FAST


def test_a_collapsed_model_is_named(tmp_path, capsys):
  paths = elkb_world.write(tmp_path)
  # A penalty that outweighs the facts draws all entities to 0.
  changes = {"penalty": 30.0, "regularizer": "l2", "select_by": "hits@10"}
  kept = elkb_world.run(
    tmp_path / "run", **paths,
    **{**_FAST, **changes, "eval_every": 1, "patience": 30},
  )  # fmt: skip
  said = capsys.readouterr().err
  assert (
    said.count("the model has collapsed: ") == 1 and "is kept so far" in said
  )
  name = f"{tmp_path.name} complex + rules"
  assert (name, "validation hits@10") in kept
  assert kb_train.collapse(np.ones((3, 2))) == (
    "all entities are nearly equal (spread 0)"
  )
  assert kb_train.collapse(np.eye(2)) is None


def test_nonnegative_entities_without_rules_are_told(tmp_path, capsys):
  base = data.read(Config(**{**elkb_world.write(tmp_path), "rules": None}))
  words = "no rules, but entities are kept nonnegative; --noconstrained"
  for change, told in (
    ({}, True),
    ({"nonnegative": False}, False),
    ({"constrained": False}, False),
  ):
    kb_train.compile_for(base, Config(**change))
    assert (words in capsys.readouterr().err) == told, change


def test_what_is_not_read_or_is_forbidden_is_told(tmp_path):
  text = ["head,relation,tail,source", '"a, b",r,"a, b",x']
  text += [f"{x},{r},{y},z" for x, y in ("cd", "de", "ce") for r in "qr"]
  (tmp_path / "facts.csv").write_text("\n".join(text))
  (tmp_path / "rules").write_text("RelImp\tr\tq\nDisj\tq\tr\n")
  kb = data.read_and_split(
    Config(
      train=str(tmp_path / "facts.csv"),
      split=(".4", ".3", ".3"),
      rules=str(tmp_path / "rules"),
    )
  )
  unread, forbidden = data.notes(kb)
  assert unread.endswith("facts.csv: not read: column source")
  assert f"({tmp_path / 'rules'}:2) forbids " in forbidden


def test_a_header_of_other_names_is_refused(tmp_path):
  rows = ["who\tlink\twhom", *(f"a\tr\tb{i}" for i in range(10))]
  (tmp_path / "facts").write_text("\n".join(rows))
  config = Config(train=str(tmp_path / "facts"), split=(".8", ".1", ".1"))
  with pytest.raises(errors.InputError, match="facts:1: who, link, whom occur"):
    data.read_and_split(config)


def test_implied_facts_join_training(tmp_path, capsys):
  paths = elkb_world.write(tmp_path)
  rows = elkb_world.run(
    tmp_path / "run", **paths,
    **{**_FAST, "add_implied": True, "constrained": False},
  )  # fmt: skip
  said = capsys.readouterr().err
  assert "rules derive 8 facts for training" in said
  assert "4 test facts follow from training by rules" in said
  assert rows[f"{tmp_path.name} complex", "mrr filtered both"] > 0.9
  with pytest.raises(errors.InputError, match="not both"):
    elkb_world.run(
      tmp_path / "no", **paths,
      **{**_FAST, "add_implied": True, "drop_implied": True},
    )  # fmt: skip


def test_one_way_rules_with_a_block_of_ordered_numbers(tmp_path):
  paths = elkb_world.write(tmp_path)
  pathlib.Path(paths["rules"]).write_text("RevImp\tparent\tchild\n")
  changes = {**paths, **_FAST, "order_share": 0.5}
  rows = elkb_world.run(tmp_path / "run", **changes)
  name = f"{tmp_path.name} complex + rules"
  assert rows[name, "rules proven for all pairs"] == 1
  table = evaluate.load_params(str(tmp_path / "run")).params.entities
  assert (table[:, [4, 5, 6, 7, 12, 13, 14, 15]] >= 0).all()
  assert (np.asarray(table) < 0).any()
  assert elkb_world.run(tmp_path / "run", **changes, ask="child(?, p3)") == rows


def test_rules_are_mined_from_training_alone(tmp_path, capsys):
  paths = elkb_world.write(tmp_path)
  rows = elkb_world.run(
    tmp_path / "mined", task="mine", train=paths["train"], min_support=5,
    min_confidence=0.7, model="A", top=1,
  )  # fmt: skip
  assert rows["mined rules", "RevImp"] == 2
  said = capsys.readouterr().err
  assert "rules.tsv: " in said and "PCA confidence" in said
  path = str(tmp_path / "mined" / "rules.tsv")
  rules = data.read_rules(
    Config(rules=path), data.read(Config(**paths)).splits.train
  )
  assert Rule("RevImp", ("parent", "child")) in rules
  with pytest.raises(errors.InputError, match="needs --train"):
    elkb_world.run(tmp_path / "none", task="mine")


def test_rules_of_other_programs_are_read(tmp_path, capsys):
  paths = elkb_world.write(tmp_path)
  pathlib.Path(paths["rules"]).write_text(
    "-parent,child\t0.9\n-child,parent\t0.9\nparent,uncle\t1\n"
    "parent,child\t.1\n"
  )
  kb = data.load(
    Config(**paths, min_confidence=0.8, columns="h,r,t", duplicates="error")
  )
  assert kb.rules == [
    Rule("RevImp", ("parent", "child")), Rule("RevImp", ("child", "parent"))
  ]  # fmt: skip
  said = capsys.readouterr().err
  assert "1 left out: names an unknown relation" in said
  pathlib.Path(paths["rules"]).write_text("a,b\t1\n")
  with pytest.raises(errors.InputError, match="no rule of this file"):
    data.read(Config(**paths))


def test_paired_tests_of_the_puzzle():
  rng = np.random.default_rng(0)
  low, high = rng.uniform(size=(2, 10)) * 0.1
  same = np.full(10, 0.2)
  before = deduction.Metrics(np.zeros(10), low, same, low)
  after = deduction.Metrics(same, high + 0.5, same, high)
  values = puzzle.paired_tests(before, after)
  assert values["P@10"] == 0 and values["MAP"] == 1
  assert 0 < values["MRR"] < 1e-6

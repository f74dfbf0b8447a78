"""Answers with their grounds, discoveries, types and calibration."""

import pathlib

import elkb_world
import numpy as np
import pytest

from experiments.elkb import answers, classification, data, types
from experiments.elkb.config import Config
from repr_jax import errors
from repr_jax.evaluation.calibration import reliability

_FACTS = [
  ("ann", "wife", "bob"), ("bob", "husband", "ann"), ("cid", "husband", "dee"),
  ("eve", "wife", "fay"), ("ann", "near", "ann"), ("dee", "near", "bob"),
]  # fmt: skip
_RULES = "RelImp\twife\tspouse\nRelImp\thusband\tspouse\nSymm\tspouse\n"


def _base(folder: pathlib.Path):
  rows = ["\t".join(x) for x in _FACTS]
  train = "\n".join([*rows, "ann\tspouse\tbob"])
  return elkb_world.read(
    folder, train=train, valid=rows[0], test=rows[1], rules=_RULES
  )


def _ask(kb, trained, relation, entity, side, **changes):
  query = kb.relations.index(relation), kb.entities.index(entity), side
  grounds = answers.Grounds(kb)
  answering = answers.Answerer(kb, trained, grounds, 1.0, **changes)
  return answering.best(query, 9)


def test_answers_say_why(tmp_path):
  kb, trained = _base(tmp_path)
  rules = tmp_path / "rules"
  best = _ask(kb, trained, "spouse", "ann", "tail")
  assert [x.entity for x in best if x.kind == "known"] == ["bob"]
  (implied,) = [x for x in _ask(kb, trained, "spouse", "dee", "tail")
                if x.kind == "implied"]  # fmt: skip
  assert implied.entity == "cid" and implied.probability == 1
  assert implied.proof == [
    f"spouse(dee, cid) by Symm(spouse) ({rules}:3) from spouse(cid, dee)",
    f"spouse(cid, dee) by RelImp(husband, spouse) ({rules}:2) from "
    "husband(cid, dee)",
  ]
  new = [x for x in best if x.kind == "predicted"]
  assert "ann" not in [x.entity for x in new]  # no spouse of oneself
  assert sum(x.probability for x in new) == pytest.approx(1)
  assert [x.score for x in new] == sorted((x.score for x in new), reverse=True)
  near = _ask(kb, trained, "near", "bob", "tail")
  assert "bob" in [x.entity for x in near]  # ann is near ann


def test_facts_of_rules_in_training_are_implied_not_known(tmp_path):
  kb, trained = _base(tmp_path)
  closed = data.add_implied(kb)
  one, two = (
    [(x.entity, x.kind) for x in _ask(base, trained, "spouse", "dee", "tail")]
    for base in (kb, closed)
  )
  assert one == two


def test_discoveries_are_the_best_answers(tmp_path):
  kb, trained = _base(tmp_path)
  grounds = answers.Grounds(kb)
  rows = answers.Answerer(kb, trained, grounds, 1.0).discover(5, 4)
  every = []
  for head, relation in np.unique(grounds.made.facts[:, :2], axis=0).tolist():
    names = kb.relations[relation], kb.entities[head]
    every += [
      (x.probability, names[1], names[0], x.entity)
      for x in _ask(kb, trained, *names, "tail")
      if x.kind == "predicted"
    ]
  every.sort(reverse=True)
  assert [x[1:] for x in rows] == [x[1:] for x in every[:5]]
  np.testing.assert_allclose([x[0] for x in rows], [x[0] for x in every[:5]])
  text = answers.missing(kb, grounds, 1)
  assert "  spouse(bob, ann) is missing, though husband(bob, ann)\n" in text
  assert text.startswith("5 facts follow by rules and are in no split\n")


def test_types_are_respected(tmp_path):
  kb, trained = _base(tmp_path)
  path = tmp_path / "types"
  path.write_text("ann\tP31\tw\nbob\tm\ncid\tm\ndee\tw\nfay\tm\neve\tw\n")
  table = types.read_types(str(path), kb)
  allowed = types.fitting(kb, table)
  best = _ask(kb, trained, "wife", "dee", "tail", allowed=allowed)
  assert {x.entity for x in best} == {"bob", "cid", "fay"}
  # Classes leave entities out; they make no other one more probable.
  whole = {
    x.entity: x.probability for x in _ask(kb, trained, "wife", "dee", "tail")
  }
  assert all(whole[x.entity] == x.probability for x in best)
  guess = types.fitting(kb, types.learned(kb))
  heads = guess(kb.relations.index("husband"), "head")
  # bob and cid are husbands; fay is the tail of wife, as bob is, and ann that
  # of near. Nobody of them stands where dee or eve do.
  assert {kb.entities[i] for i in np.flatnonzero(heads)} == {
    "ann", "bob", "cid", "fay"
  }  # fmt: skip
  for text, message in (
    ("zoe\tm\n", "types:1: no entity 'zoe'"),
    ("ann\n", "types:1: expected entity"),
    ("", "holds no types"),
  ):
    path.write_text(text)
    with pytest.raises(errors.InputError, match=message):
      types.read_types(str(path), kb)


def test_the_temperature_lowers_the_calibration_error(tmp_path):
  rng = np.random.default_rng(0)
  # Scores that are three times too sure.
  logits = rng.normal(size=(4000, 5))
  mass = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
  right = np.array([rng.choice(5, p=row) for row in mass])
  sure = answers.softmax(3 * logits)
  hit = sure.argmax(axis=1) == right
  assert reliability(mass.max(axis=1), hit).error < 0.04
  assert reliability(sure.max(axis=1), hit).error > 0.15
  kb, trained = _base(tmp_path)
  heat, fitted, plain = answers.calibrate(kb, trained, Config(block=4))
  assert 0.1 <= heat <= 10 and 0 <= fitted <= 1 and 0 <= plain <= 1


def test_triples_are_classified_by_thresholds_of_validation(tmp_path):
  rng = np.random.default_rng(0)
  values, right = rng.normal(size=40), rng.uniform(size=40) < 0.5
  relations = rng.integers(2, size=40)
  limits = classification.thresholds(values, relations, right, 3)
  for relation in range(2):
    here = relations == relation
    hits = [
      np.sum((values[here] > limit) == right[here])
      for limit in (*values, limits[relation], -9.0)
    ]
    assert hits[-2] == max(hits)
  assert np.sum((values > limits[2]) == right) >= 20  # a relation of no triple
  kb, trained = _base(tmp_path)
  for name in ("vn", "wn"):
    (tmp_path / name).write_text("dee\twife\tann\n")
  asked = Config(
    train="t", valid_negatives=str(tmp_path / "vn"),
    test_negatives=str(tmp_path / "wn"),
  )  # fmt: skip
  false = classification.read_negatives(kb, asked)
  rows = {}
  classification.classification_rows(
    lambda name, metric, value: rows.update({metric: value}),
    kb, "x", trained, false,
  )  # fmt: skip
  assert set(rows) == {"classification accuracy", "classification F1"}
  assert all(0 <= value <= 1 for value in rows.values())
  (tmp_path / "wn").write_text("zoe\twife\tann\n")
  with pytest.raises(errors.InputError, match=r"wn:1: the facts have no 'zoe'"):
    classification.read_negatives(kb, asked)

"""Mined rules, against counting all bindings."""

import itertools

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import deduction, rule_mining
from repr_jax.data.rule_kinds import KINDS
from repr_jax.data.rules import Rule, read_rules

_E, _R = 6, 3


def _facts(seed):
  rng = np.random.default_rng(seed)
  columns = [rng.integers(n, size=60) for n in (_E, _R, _E)]
  return np.unique(np.stack(columns, axis=1), axis=0)


def _counted(facts, kind, arguments):
  """Support, body and PCA body, one binding at a time."""
  body, head = KINDS[kind].bind(arguments)
  heads, _ = deduction.apply_rule(facts, body, head)
  known = set(map(tuple, facts.tolist()))
  subjects = {(h, r) for h, r, _ in known}
  rows = list(map(tuple, heads.tolist()))
  support = sum(row in known for row in rows)
  return support, len(rows), sum(row[:2] in subjects for row in rows)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", rule_mining.MINABLE)
def test_counts_are_those_of_all_bindings(seed, kind):
  facts = _facts(seed)
  mined = {
    x.rule.arguments: x
    for x in rule_mining.mine(
      facts, _E, _R, min_support=1, min_confidence=0.2, kinds=[kind]
    )
  }
  sizes = {"r": range(_R), "e": range(_E)}
  names = [sizes[letter] for letter in KINDS[kind].signature]
  expected = 0
  for given in itertools.islice(itertools.product(*names), 0, 6000):
    body, head = KINDS[kind].bind(given)
    support, size, pca = _counted(facts, kind, given)
    wanted = support >= 1 and support >= 0.2 * size and head not in body
    if kind == "RevImp" and given[0] == given[1]:
      wanted = False  # it is Symm
    assert (given in mined) == wanted, given
    if wanted:
      expected += 1
      assert mined[given][1:] == (support, size, pca)
  assert expected
  best = [x.confidence for x in mined.values()]
  assert best == sorted(best, reverse=True)


def test_rules_are_written_and_read(tmp_path):
  facts = np.array([[0, 0, 1], [2, 0, 3], [1, 1, 0], [3, 1, 2]])
  mined = rule_mining.mine(facts, 4, 2, min_support=2)
  names = ["r", "s"], list("abcd")
  written = rule_mining.write_mined(tmp_path / "rules.tsv", mined, *names)
  assert read_rules(tmp_path / "rules.tsv", *names) == written
  assert Rule("RevImp", ("r", "s")) in written
  text = (tmp_path / "rules.tsv").read_text()
  assert "# support 2 of 2, confidence 1.0000, PCA confidence 1.0000\n" in text


def test_bad_input_is_refused():
  with pytest.raises(errors.InputError, match="no facts"):
    rule_mining.mine(np.zeros((0, 3), int), 3, 2)
  with pytest.raises(errors.InputError, match="min_support"):
    rule_mining.mine(_facts(0), _E, _R, min_support=0)
  with pytest.raises(errors.InputError, match=r"cannot mine .* 'Path'"):
    rule_mining.mine(_facts(0), _E, _R, kinds=["Path"])

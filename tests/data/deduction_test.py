"""Facts that rules derive, against deduction one binding at a time."""

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data import deduction
from repr_jax.data.rule_kinds import RuleKind
from repr_jax.data.rules import Rule

_E, _R = [f"e{i}" for i in range(9)], [f"r{i}" for i in range(4)]
_CHAIN = RuleKind("Chain", "r(x,y) & s(y,z) ==> t(x,z)")
_RULES = [
  Rule("RelImp", ("r0", "r1")),
  Rule("RevImp", ("r1", "r2")),
  Rule("Symm", ("r3",)),
  Rule("Entail_A", ("r0", "e1", "r3", "e2")),
  Rule("Entail_B", ("r2", "e3", "r3", "e4")),
  Rule("TypeImp", ("r2", "e5", "r3")),
  Rule("PropTrans", ("r0", "r1", "e6", "r3", "e7")),
  Rule(_CHAIN, ("r0", "r0", "r1")),
]


def _facts(seed, count=12):
  rng = np.random.default_rng(seed)
  columns = [rng.integers(n, size=count) for n in (9, 4, 9)]
  return np.stack(columns, axis=1)


@pytest.mark.parametrize("seed", range(4))
def test_all_that_follows_is_derived_and_proven(seed):
  facts = _facts(seed)
  made = deduction.deduce(facts, _RULES, _R, _E)
  known = set(map(tuple, facts.tolist()))
  while True:  # one fact at a time, by the kinds' own deduction
    more = set()
    for rule in _RULES:
      ids = [int(str(x)[1:]) for x in rule.arguments]
      more |= rule.kind.consequences(ids, known)
    if more <= known:
      break
    known |= more
  assert set(map(tuple, made.facts.tolist())) == known
  assert len(made.facts) == len(known)
  bound = deduction.bind(_RULES, _R, _E)
  for row in range(made.given, len(made.facts)):
    rule, premises = made.rule[row], made.premises[row]
    premises = premises[premises >= 0]
    assert (premises < row).all()
    heads, _ = deduction.apply_rule(made.facts[premises], *bound[rule])
    assert made.facts[row].tolist() in heads.tolist()
  assert made.proof(0) == []


def test_a_proof_goes_back_to_given_facts():
  rules = [Rule("RelImp", (0, 1)), Rule("RelImp", (1, 2)), Rule("Symm", (2,))]
  made = deduction.deduce(np.array([[0, 0, 1]]), rules, _R, _E)
  assert made.derived.tolist() == [[0, 1, 1], [0, 2, 1], [1, 2, 0]]
  assert [step[1] for step in made.proof(3)] == [2, 1, 0]
  assert made.proof(3)[-1][2] == [0]


def test_unknown_names_are_refused():
  with pytest.raises(errors.InputError, match="unknown 'r9'"):
    deduction.deduce(_facts(0), [Rule("Symm", ("r9",))], _R, _E)


def test_denied_heads_derive_nothing_and_are_broken_by_facts():
  rules = [Rule("RelImp", ("r", "s")), Rule("Disj", ("s", "t"))]
  names = rules, ["r", "s", "t"], ["a", "b"]
  facts = np.array([[0, 0, 1], [0, 2, 1], [1, 2, 0]])
  made = deduction.deduce(facts, *names)
  assert made.derived.tolist() == [[0, 1, 1]]
  ((place, row, because),) = deduction.breaches(made, *names)
  assert place == 1
  assert made.facts[row].tolist() == [0, 2, 1]
  assert made.facts[because].tolist() == [[0, 1, 1]]
  clean = deduction.deduce(facts[2:], *names)
  assert deduction.breaches(clean, *names) == []

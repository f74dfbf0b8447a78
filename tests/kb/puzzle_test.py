"""Forward chaining and the ranking of entailed facts."""

import itertools

import numpy as np

from repr_jax.data.deduction import deduce
from repr_jax.data.rule_kinds import KINDS, RuleKind
from repr_jax.data.rules import Rule
from repr_jax.kb import puzzle as deduction


def _holds(kind, ids, facts, x, y, z):
  """The rule for one choice of entities, read as logic."""
  a = ids
  cases = {
    "RelImp": lambda: ([(x, a[0], y)], (x, a[-1], y)),
    "RevImp": lambda: ([(x, a[0], y)], (y, a[-1], x)),
    "Symm": lambda: ([(x, a[0], y)], (y, a[0], x)),
    "Entail_A": lambda: ([(a[1], a[0], x)], (a[3], a[2], x)),
    "Entail_B": lambda: ([(x, a[0], a[1])], (x, a[2], a[3])),
    "TypeImp": lambda: ([(x, a[0], y)], (x, a[2], a[1])),
    "PropTrans": lambda: ([(x, a[0], y), (y, a[1], a[2])], (x, a[3], a[4])),
    "Path": lambda: ([(x, a[0], y), (y, a[1], z)], (x, a[2], z)),
    "Inter": lambda: ([(x, a[0], y), (x, a[1], y)], (x, a[2], y)),
    # Forbids facts and derives none.
    "Disj": lambda: ([(-1, -1, -1)], (x, a[0], y)),
  }
  body, head = cases[kind]()
  return not all(fact in facts for fact in body) or head in facts


def test_entailed_facts_are_closed_and_least():
  rng = np.random.default_rng(0)
  for _ in range(10):
    rules = [
      (kind, tuple(rng.integers(3, size=len(kind.letters)).tolist()))
      for kind in KINDS.values()
      if rng.uniform() < 0.6
    ]
    given = np.unique(rng.integers(3, size=(3, 3)), axis=0)
    added = deduce(given, [Rule(*x) for x in rules], range(3), range(3)).derived
    facts = {tuple(f) for f in np.concatenate([given, added]).tolist()}
    for kind, ids in rules:
      for xyz in itertools.product(range(3), repeat=3):
        assert _holds(kind.name, ids, facts, *xyz)
    for extra in added.tolist():  # each was forced by some rule
      fewer = facts - {tuple(extra)}
      assert not all(
        _holds(kind.name, ids, fewer, *xyz)
        for kind, ids in rules
        for xyz in itertools.product(range(3), repeat=3)
      )


def test_the_puzzle_entails_three_facts():
  puzzle = deduction.criminal_puzzle()
  got = deduce(
    puzzle.facts, puzzle.rules, puzzle.relations, puzzle.entities
  ).derived
  named = {
    (puzzle.relations[r], puzzle.entities[h], puzzle.entities[t])
    for h, r, t in got.tolist()
  }
  assert named == {
    ("TransactWith", "Benedict", "Nono"),
    ("Considered", "Nono", "Enemy"),
    ("Considered", "Benedict", "Criminal"),
  }


def test_a_kind_of_its_own_is_applied():
  chain = RuleKind("Chain", "r(x,y) & s(y,z) ==> t(x,z)")
  facts = np.array([[0, 0, 1], [1, 1, 2], [2, 1, 3], [1, 0, 1]])
  rules = [Rule(chain, (0, 1, 2))]
  got = deduce(facts, rules, range(3), range(4)).derived
  assert sorted(got.tolist()) == [[0, 2, 2], [1, 2, 2]]


def test_metrics_by_hand():
  values = np.arange(24, dtype=float).reshape(1, 2, 3, 4)[..., :3]
  given = np.array([[2, 1, 2]])  # the highest score of all
  right = np.array([[2, 1, 1], [1, 1, 2]])  # ranks 1 and 3 of the others
  got = deduction.rank_metrics(values, given, right)
  np.testing.assert_allclose(got.precision, [0.2])
  np.testing.assert_allclose(got.reciprocal, [(1 + 1 / 3) / 2])
  np.testing.assert_allclose(got.average, [(1 + 2 / 3) / 2])
  np.testing.assert_allclose(got.average_at_10, got.average)
  equal = deduction.rank_metrics(np.zeros((1, 2, 3, 3)), given, right)
  np.testing.assert_allclose(equal.reciprocal, [1 / 9])  # mean of 1..17

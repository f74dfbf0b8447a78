"""Facts that rules derive from others, in any number of steps, with proofs.

Facts are rows of integers and every rule is applied to all facts at once: an
atom of its body is a selection of rows, and two atoms are joined by sorting on
the variables that they share.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax import errors
from repr_jax.data.rule_kinds import Atom, Variable
from repr_jax.data.rules import Rule

_MOST = 50_000_000  # rows of a join


class Deduction(NamedTuple):
  """Given and derived facts, and how each was derived.

  Attributes:
    facts: the given ones and then the derived ones, int32 [n, 3].
    given: how many are given.
    rule: place of the rule that derived a fact, -1 for a given one, [n].
    premises: rows of the facts it was derived from, -1 for none, [n, 2]; they
      stand before the fact that they prove.
  """

  facts: np.ndarray
  given: int
  rule: np.ndarray
  premises: np.ndarray

  @property
  def derived(self) -> np.ndarray:
    """The derived facts, int32 [m, 3]."""
    return self.facts[self.given :]

  def proof(self, row: int) -> list[tuple[int, int, list[int]]]:
    """The steps that lead to a fact, the last one first.

    Returns:
      For each derived fact on the way its row, the place of its rule and the
      rows of its premises; nothing for a given fact.
    """
    steps: list[tuple[int, int, list[int]]] = []
    waiting, seen = [int(row)], set()
    while waiting:
      fact = waiting.pop(0)
      if fact < self.given or fact in seen:
        continue
      seen.add(fact)
      premises = [int(x) for x in self.premises[fact] if x >= 0]
      steps.append((fact, int(self.rule[fact]), premises))
      waiting += premises
    return steps


def deduce(
  facts: np.ndarray,
  rules: Sequence[Rule],
  relations: Sequence[str],
  entities: Sequence[str],
) -> Deduction:
  """Derives all that rules imply.

  >>> from repr_jax.data.rules import Rule
  >>> rules = [Rule("RelImp", ("r", "s")), Rule("Symm", ("s",))]
  >>> made = deduce(np.array([[0, 0, 1]]), rules, ["r", "s"], ["a", "b"])
  >>> made.derived.tolist()
  [[0, 1, 1], [1, 1, 0]]
  >>> made.proof(2)
  [(2, 1, [1]), (1, 0, [0])]

  Args:
    facts: head, relation, tail, int [n, 3].
    rules: with one or two antecedents, their arguments by name or id.
    relations: names of the relations in the order of their ids.
    entities: names of the entities in the order of their ids.

  Returns:
    The facts with their proofs.
  """
  facts = np.unique(np.asarray(facts, np.int64).reshape(-1, 3), axis=0)
  sizes = len(entities), len(relations), len(entities)
  bound = bind(rules, relations, entities)
  given = len(facts)
  origin = np.full(given, -1)
  premises = np.full((given, 2), -1)
  keys = _keys(facts, sizes)
  while True:
    new_facts, new_origin, new_premises = [], [], []
    for place, (body, head) in enumerate(bound):
      if rules[place].kind.negated:
        continue
      rows, reasons = apply_rule(facts, body, head)
      if len(rows):
        new_facts.append(rows)
        new_origin.append(np.full(len(rows), place))
        new_premises.append(reasons)
    if not new_facts:
      break
    rows = np.concatenate(new_facts)
    _, first = np.unique(_keys(rows, sizes), return_index=True)
    first = np.sort(first[~np.isin(_keys(rows[first], sizes), keys)])
    if not len(first):
      break
    facts = np.concatenate([facts, rows[first]])
    keys = _keys(facts, sizes)
    origin = np.concatenate([origin, np.concatenate(new_origin)[first]])
    premises = np.concatenate([premises, np.concatenate(new_premises)[first]])
  return Deduction(facts.astype(np.int32), given, origin, premises)


def breaches(
  made: Deduction,
  rules: Sequence[Rule],
  relations: Sequence[str],
  entities: Sequence[str],
) -> list[tuple[int, int, list[int]]]:
  """Facts that rules with a denied head forbid.

  >>> from repr_jax.data.rules import Rule
  >>> rules = [Rule("Disj", ("r", "s"))]
  >>> names = rules, ["r", "s"], ["a", "b"]
  >>> made = deduce(np.array([[0, 0, 1], [0, 1, 1]]), *names)
  >>> breaches(made, *names)
  [(0, 1, [0])]

  Args:
    rules: as for `deduce`.
    relations: as for `deduce`.
    entities: as for `deduce`.

  Returns:
    Place of the rule, row of the forbidden fact, and rows of the facts that
    forbid it.
  """
  sizes = len(entities), len(relations), len(entities)
  keys = _keys(made.facts.astype(np.int64), sizes)
  order = np.argsort(keys)
  listed = []
  for place, (body, head) in enumerate(bind(rules, relations, entities)):
    if not rules[place].kind.negated:
      continue
    rows, reasons = apply_rule(made.facts.astype(np.int64), body, head)
    wanted = _keys(rows, sizes) if len(rows) else np.zeros(0, keys.dtype)
    spot = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    for i in np.flatnonzero(keys[order][spot] == wanted) if len(keys) else ():
      because = [int(x) for x in reasons[i] if x >= 0]
      listed.append((place, int(order[spot[i]]), because))
  return listed


def bind(
  rules: Sequence[Rule], relations: Sequence[str], entities: Sequence[str]
) -> list[tuple[list[Atom], Atom]]:
  """Bodies and heads of rules with ids in place of names.

  Args:
    relations: names of the relations in the order of their ids.
    entities: names of the entities in the order of their ids.
  """
  tables: Mapping[str, Mapping[str, int]] = {
    "r": {name: i for i, name in enumerate(relations)},
    "e": {name: i for i, name in enumerate(entities)},
  }
  bound = []
  for rule in rules:
    ids = []
    for name, letter in zip(rule.arguments, rule.kind.signature, strict=True):
      place = name if isinstance(name, int) else tables[letter].get(name)
      if place is None:
        raise errors.InputError(f"rule {rule} names the unknown {name!r}")
      ids.append(place)
    bound.append(rule.kind.bind(ids))
  return bound


def apply_rule(
  facts: np.ndarray, body: Sequence[Atom], head: Atom
) -> tuple[np.ndarray, np.ndarray]:
  """One step of one rule.

  Args:
    facts: head, relation, tail, int [n, 3].
    body: one or two atoms with ids and variables.
    head: the consequent.

  Returns:
    The consequents, [m, 3], and the rows of their premises, [m, 2]; a
    consequent may come more than once.
  """
  values, rows = _select(facts, body[0])
  reasons = np.stack([rows, np.full(len(rows), -1)], axis=1)
  for atom in body[1:2]:
    others, other_rows = _select(facts, atom)
    shared = [name for name in others if name in values]
    left, right = _join(
      [values[name] for name in shared],
      [others[name] for name in shared],
      (len(rows), len(other_rows)),
    )
    values = {name: x[left] for name, x in values.items()} | {
      name: x[right] for name, x in others.items()
    }
    reasons = np.stack([rows[left], other_rows[right]], axis=1)
  if len(body) > 2:
    raise errors.InputError("a rule has more than two antecedents")
  count = len(reasons)

  def column(term):
    if isinstance(term, Variable):
      return values[str(term)]
    return np.full(count, term)

  made = [column(head.head), np.full(count, head.relation), column(head.tail)]
  return np.stack(made, axis=1), reasons


def _select(facts, atom):
  """Values of an atom's variables, and the rows that match it."""
  kept = facts[:, 1] == atom.relation
  values = {}
  for term, column in ((atom.head, 0), (atom.tail, 2)):
    if not isinstance(term, Variable):
      kept &= facts[:, column] == term
  if isinstance(atom.head, Variable) and atom.head == atom.tail:
    kept &= facts[:, 0] == facts[:, 2]
  rows = np.flatnonzero(kept)
  for term, column in ((atom.head, 0), (atom.tail, 2)):
    if isinstance(term, Variable):
      values[str(term)] = facts[rows, column]
  return values, rows


def _join(left, right, counts):
  """Places of rows on both sides whose shared values are equal."""
  if not left:
    if counts[0] * counts[1] > _MOST:
      raise errors.InputError("a rule joins two relations without a variable")
    both = np.indices(counts).reshape(2, -1)
    return both[0], both[1]
  span = 1 + max(
    int(x.max(initial=0)) for columns in (left, right) for x in columns
  )
  one, two = (
    sum(x.astype(np.int64) * span**i for i, x in enumerate(columns))
    for columns in (left, right)
  )
  order = np.argsort(two, kind="stable")
  begin = np.searchsorted(two[order], one, "left")
  count = np.searchsorted(two[order], one, "right") - begin
  total = int(count.sum())
  if total > _MOST:
    raise errors.InputError(
      f"a rule has {total:,} matches, more than {_MOST:,}"
    )
  first = np.repeat(np.arange(len(one)), count)
  within = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
  return first, order[np.repeat(begin, count) + within]


def _keys(facts, sizes):
  return np.ravel_multi_index(facts.T, sizes)

"""Rules that hold among facts, found by products of sparse matrices.

For a rule with the body B and the head s(x, y), over all bindings of the body:

  support         bindings for which the head is a fact
  confidence      support / bindings
  PCA confidence  support / bindings for which some fact s(x, .) is known

The last one (Galárraga et al. 2013) does not count a missing fact against a
rule if no fact s(x, .) is known.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from repr_jax import errors
from repr_jax.data.io import files
from repr_jax.data.rule_kinds import KINDS
from repr_jax.data.rules import Rule

# The bodies of Path rules are all paths of two steps, too many to enumerate.
MINABLE = tuple(x for x in KINDS if x not in ("Path", "Inter", "Disj"))
_FEATURES = 20_000  # (relation, entity) pairs that rules with names consider


class Mined(NamedTuple):
  """A rule with its evidence.

  Attributes:
    rule: with ids as arguments.
    support: bindings of the body for which the head is a fact.
    body: bindings of the body.
    pca_body: those whose subject has a known fact of the head's relation.
  """

  rule: Rule
  support: int
  body: int
  pca_body: int

  @property
  def confidence(self) -> float:
    """Share of the bindings for which the head is a fact."""
    return self.support / self.body

  @property
  def pca_confidence(self) -> float:
    """The share among bindings whose subject has a fact of the relation."""
    return self.support / self.pca_body if self.pca_body else 0.0


def mine(
  facts: np.ndarray,
  num_entities: int,
  num_relations: int,
  *,
  min_support: int = 20,
  min_confidence: float = 0.8,
  kinds: Collection[str] = MINABLE,
) -> list[Mined]:
  """Finds the rules of the built-in kinds that facts support.

  >>> facts = [[0, 0, 1], [2, 0, 3], [1, 1, 0], [3, 1, 2]]
  >>> best = mine(np.array(facts), 4, 2, min_support=2, kinds=["RevImp"])
  >>> [(str(x.rule), x.support, x.confidence) for x in best]
  [('RevImp(0, 1)', 2, 1.0), ('RevImp(1, 0)', 2, 1.0)]

  Args:
    facts: training facts as head, relation, tail, int [n, 3]. Facts of other
      splits must not be here.
    num_entities: E.
    num_relations: R.
    min_support: least support.
    min_confidence: least confidence.

  Returns:
    The rules, by confidence and support, the best first. Rules that say
    nothing, such as RelImp(r, r), are left out.
  """
  facts = np.unique(np.asarray(facts, np.int64).reshape(-1, 3), axis=0)
  if not len(facts):
    raise errors.InputError("there are no facts to mine")
  if min_support < 1:
    raise errors.InputError(f"min_support must be 1 or more, not {min_support}")
  unknown = set(kinds) - set(MINABLE)
  if unknown:
    raise errors.InputError(
      f"cannot mine rules of kind {min(unknown)!r}, only of the kinds "
      f"{', '.join(MINABLE)}"
    )
  table = _Facts(facts, num_entities, num_relations, min_support)
  finders = {
    "RelImp": lambda: _pairs(table, False),
    "RevImp": lambda: _pairs(table, True),
    "Entail_A": lambda: _entail(table, turned=True),
    "Entail_B": lambda: _entail(table, turned=False),
    "TypeImp": lambda: _types(table),
    "PropTrans": lambda: _propagated(table),
  }
  rules: list[Mined] = []
  for name, find in finders.items():
    if name in kinds or (name == "RevImp" and "Symm" in kinds):
      rules += _kept(name, find(), min_support, min_confidence, kinds)
  return sorted(rules, key=lambda x: (-x.confidence, -x.support, str(x.rule)))


def write_mined(
  path: files.Path,
  rules: Sequence[Mined],
  relations: Sequence[str],
  entities: Sequence[str],
) -> list[Rule]:
  """Writes rules by name, each below a comment with its evidence.

  Args:
    path: the file, as `read_rules` reads it.
    rules: the rules, with ids.
    relations: names of the relations in the order of their ids.
    entities: names of the entities in the order of their ids.
  """
  named = []
  with files.atomic_write(path) as stream:
    for mined in rules:
      rule = mined.rule
      tables = {"r": relations, "e": entities}
      names = [
        tables[letter][int(i)]
        for i, letter in zip(rule.arguments, rule.kind.signature, strict=True)
      ]
      named.append(Rule(rule.kind, names))
      stream.write(
        f"# support {mined.support} of {mined.body}, confidence "
        f"{mined.confidence:.4f}, PCA confidence {mined.pca_confidence:.4f}\n"
      )
      stream.write("\t".join([rule.kind.name, *names]) + "\n")
  return named


class _Facts:
  """Facts as sparse matrices.

  Attributes:
    pairs: keys of (head, tail) of each fact, [n].
    heads: facts of each relation and head, [R, E].
    tails: facts of each relation and tail, [R, E].
    subjects: whether a relation has a fact with a head, [R, E].
    sizes: facts of each relation, [R].
  """

  def __init__(self, facts, entities, relations, least):
    self.facts, self.entities, self.relations = facts, entities, relations
    self.least = least
    head, relation, tail = facts.T
    self.heads = _count(relation, head, (relations, entities))
    self.tails = _count(relation, tail, (relations, entities))
    self.subjects = _sign(self.heads)
    self.sizes = np.bincount(relation, minlength=relations)

  def features(self, turned: bool):
    """(relation, tail) features of heads: matrix [E, F] and names [F, 2].

    `turned` gives the (relation, head) features of tails. Keeps the most
    frequent ones with at least `least` facts.
    """
    head, relation, tail = self.facts.T
    if turned:
      head, tail = tail, head
    keys, place, count = np.unique(
      relation * self.entities + tail, return_inverse=True, return_counts=True
    )
    kept = np.flatnonzero(count >= self.least)
    kept = np.sort(kept[np.argsort(-count[kept], kind="stable")][:_FEATURES])
    column = np.full(len(keys), -1)
    column[kept] = np.arange(len(kept))
    rows = column[place] >= 0
    matrix = _count(head[rows], column[place][rows], (self.entities, len(kept)))
    names = np.stack(np.divmod(keys[kept], self.entities), axis=1)
    return _sign(matrix), names


def _count(rows, columns, shape):
  ones = np.ones(len(rows), np.int64)
  return sparse.csr_array((ones, (rows, columns)), shape)


def _sign(matrix):
  matrix = matrix.copy()
  matrix.data[:] = 1
  return matrix


class _Found(NamedTuple):
  """Candidates: arguments [m, k], support, body and PCA body [m]."""

  arguments: np.ndarray
  support: np.ndarray
  body: np.ndarray
  pca_body: np.ndarray


def _kept(name, candidates, min_support, min_confidence, kinds):
  """The candidates that pass, as rules."""
  arguments, support, body, pca = candidates
  passed = (support >= min_support) & (support >= min_confidence * body)
  rules = []
  for i in np.flatnonzero(passed).tolist():
    given, kind = arguments[i].tolist(), name
    if name == "RevImp" and given[0] == given[1]:
      given, kind = given[:1], "Symm"
    if kind in kinds and not _says_nothing(kind, given):
      rule = Rule(kind, given)
      rules.append(Mined(rule, int(support[i]), int(body[i]), int(pca[i])))
  return rules


def _says_nothing(kind, given):
  body, head = KINDS[kind].bind(given)
  return head in body


def _pairs(table, turned):
  """RelImp and RevImp: relations that share pairs of entities."""
  head, relation, tail = table.facts.T
  one = head * table.entities + tail
  two = tail * table.entities + head if turned else one
  keys = np.unique(np.concatenate([one, two]))
  shape = (table.relations, len(keys))
  body = _count(relation, np.searchsorted(keys, one), shape)
  other = _count(relation, np.searchsorted(keys, two), shape)
  both = (body @ other.T).tocoo()
  known = (table.tails if turned else table.heads) @ table.subjects.T
  first, second = both.row, both.col
  return _Found(
    np.stack([first, second], axis=1),
    both.data,
    table.sizes[first],
    _at(known, first, second),
  )


def _entail(table, turned):
  """Entail_B: features that heads share; Entail_A those of tails."""
  matrix, names = table.features(turned)
  both = (matrix.T @ matrix).tocoo()
  kept = both.data >= table.least
  first, second, support = both.row[kept], both.col[kept], both.data[kept]
  sizes = np.asarray(matrix.sum(axis=0)).ravel()
  if turned:  # s(f, x): f always has a fact of s, so all bindings count
    pca = sizes[first]
  else:
    known = matrix.T @ table.subjects.T
    pca = _at(known, first, names[second, 0])
  arguments = np.concatenate([names[first], names[second]], axis=1)
  return _Found(arguments, support, sizes[first], pca)


def _types(table):
  """TypeImp(r, e, s): r(x,y) => s(x,e)."""
  matrix, names = table.features(False)
  both = (table.heads @ matrix).tocoo()
  first, second = both.row, both.col
  known = table.heads @ table.subjects.T
  arguments = np.stack([first, names[second, 1], names[second, 0]], axis=1)
  return _Found(
    arguments,
    both.data,
    table.sizes[first],
    _at(known, first, names[second, 0]),
  )


def _propagated(table):
  """PropTrans(r, s, e, t, f): r(x,y) and s(y,e) => t(x,f)."""
  matrix, names = table.features(False)
  parts = []
  for r in np.flatnonzero(table.sizes >= table.least).tolist():
    rows = table.facts[table.facts[:, 1] == r]
    step = _count(rows[:, 0], rows[:, 2], (table.entities, table.entities))
    reached = step @ matrix  # [x, (s, e)]: bindings of the body
    body = np.asarray(reached.sum(axis=0)).ravel()
    enough = np.flatnonzero(body >= table.least)
    if not len(enough):
      continue
    reached = reached[:, enough]
    both = (reached.T @ matrix).tocoo()
    kept = both.data >= table.least
    first, second = enough[both.row[kept]], both.col[kept]
    if not len(first):
      continue
    known = reached.T @ table.subjects.T
    same = np.full((len(first), 1), r)
    parts.append(
      _Found(
        np.concatenate([same, names[first], names[second]], axis=1),
        both.data[kept],
        body[first],
        _at(known, both.row[kept], names[second, 0]),
      )
    )
  if not parts:
    return _Found(np.zeros((0, 5), int), *[np.zeros(0, int)] * 3)
  return _Found(*(np.concatenate(part) for part in zip(*parts)))


def _at(matrix, rows, columns):
  """Values of a sparse matrix at places, [m]."""
  matrix = matrix.tocsr()
  if not len(rows):
    return np.zeros(0, np.int64)
  return np.asarray(matrix[rows, columns]).ravel()

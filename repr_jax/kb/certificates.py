"""Proofs that rules hold, from stored tables alone, in exact arithmetic.

This module shares no code with the projections. The score of an atom is a
polynomial of its entities x and y with rational coefficients (every float is a
rational number),

  c + <a, x> + <b, y> + x' M y + p norm2(x) + q norm2(y),

and so is the gap of a rule, min(antecedents) - consequent, which may be at
most 0. For two antecedents the gap is at most that of any mixture of them. Each
coordinate of the stored entities has a range. The maximum of each term over
these ranges is computed exactly, and the sum of the maxima bounds the gap over
all pairs. A bound of 0 is a proof. If no proof succeeds, gaps without M, p and
q are maximized exactly. For other gaps all pairs are enumerated in float64, and
the gap of the worst pair is computed exactly.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from repr_jax.data.rules import Rule
from repr_jax.errors import InputError
from repr_jax.kb import rule_set, scores
from repr_jax.kb.score_model import ScoreModel
from repr_jax.kb.score_models import get_model

_MIXTURES = [Fraction(k, 10) for k in range(1, 10)]
_BLOCK = 512


class Certificate(NamedTuple):
  """Whether a rule holds for all pairs of stored entities.

  Attributes:
    rule: as text.
    holds: whether the gap is proven to be at most 0 for every pair.
    bound: the gap is proven to be at most this, for every pair.
    worst: ids of the entities of x (and y) with the largest gap seen; None if
      no pairs were searched.
    gap: gap of `worst`, exact but for T_L2; None if `worst` is None.
    pairs: number of choices of entities: E to the number of variables.
  """

  rule: str
  holds: bool
  bound: Fraction
  worst: tuple[int, ...] | None
  gap: Fraction | None
  pairs: int


@dataclasses.dataclass
class _Gap:
  """A polynomial: constant, and coefficients by variable or pair of them.

  `pairs` has for ("x", "y") coefficients by coordinates, {(i, j): m}.
  """

  constant: Fraction
  linear: dict[str, list[Fraction]]
  squares: dict[str, Fraction]
  pairs: dict[tuple[str, str], dict[tuple[int, int], Fraction]]

  def add(self, other: "_Gap", factor: Fraction) -> None:
    """Adds a multiple of another polynomial."""
    self.constant += factor * other.constant
    for name, row in other.linear.items():
      mine = self.linear.setdefault(name, [Fraction(0)] * len(row))
      self.linear[name] = [
        x + factor * y for x, y in zip(mine, row, strict=True)
      ]
    for name, value in other.squares.items():
      self.squares[name] = self.squares.get(name, Fraction(0)) + factor * value
    for (first, second), matrix in other.pairs.items():
      turned = first > second
      key = (second, first) if turned else (first, second)
      mine_pairs = self.pairs.setdefault(key, {})
      for (i, j), value in matrix.items():
        place = (j, i) if turned else (i, j)
        mine_pairs[place] = mine_pairs.get(place, Fraction(0)) + factor * value


def certify(
  model: ScoreModel | str,
  params: scores.Params,
  rules: Sequence[Rule | str],
  relations: rule_set.Names,
  entities: rule_set.Names,
  max_pairs: int = 10**8,
) -> list[Certificate]:
  """Proves rules for all pairs of stored entities, or finds where they fail.

  A rule holds where min(score(antecedents)) <= score(consequent) for every
  choice of entities from the table.

  >>> import jax
  >>> from repr_jax import kb
  >>> named = ["RelImp(r, s)"], ["r", "s"], 3
  >>> constraints = kb.compile_rules("complex", *named)
  >>> params = kb.init_params("complex", jax.random.key(0), 3, 2, 4)
  >>> [x.holds for x in kb.certify("complex", params, *named)]
  [False]
  >>> params = kb.project(constraints, params)
  >>> [x.holds for x in kb.certify("complex", params, *named)]
  [True]

  Args:
    model: a built-in score model, its name, or `order_block` or
      `reciprocal` of one, which is certified in each direction.
    params: entities [E, d] and relations [R, p].
    rules: as for `compile_rules`.
    relations: as for `compile_rules`.
    entities: as for `compile_rules`.
    max_pairs: most pairs that are enumerated where no proof succeeds.

  Returns:
    A certificate for each rule, in their order.
  """
  scores.check_tables(params)
  model = get_model(model)
  if model.base is not None:  # its score is the mean of both directions
    halves = jnp.split(jnp.asarray(params.relations), 2, axis=1)
    named = rules, relations, entities, max_pairs
    each = [
      certify(model.base, scores.Params(params.entities, half), *named)
      for half in halves
    ]
    return [max(two, key=lambda x: x.bound) for two in zip(*each, strict=True)]
  if model.name not in _POLYNOMIALS and model.name != "T_L1":
    raise InputError(
      f"there is no certificate for model {model.name}; the models that have "
      f"one are {', '.join((*_POLYNOMIALS, 'T_L1'))}"
    )
  tables = (
    np.asarray(params.entities, np.float64),
    np.asarray(params.relations, np.float64),
  )
  indexed = rule_set.index_rules(rules, relations, entities)
  texts = map(str, rule_set.parse_rules(rules, relations, entities))
  certify_one = _certify_l1 if model.name == "T_L1" else _certify
  return [
    certify_one(model.name, tables, kind, ids, text, max_pairs)
    for (kind, ids), text in zip(indexed, texts, strict=True)
  ]


def _certify(name, tables, kind, ids, text, max_pairs):
  body, head = kind.bind(ids)
  table = tables[0]
  count = len(table) ** len(kind.variables)
  parts = [_atom(name, tables, atom) for atom in body]
  consequent = _atom(name, tables, head)
  if kind.negated:  # a negated consequent has the opposite sign
    consequent, denied = _Gap(Fraction(0), {}, {}, {}), consequent
    consequent.add(denied, Fraction(-1))
  gaps = [_mixed(parts, weights, consequent) for weights in _weights(parts)]
  ranges = [
    (Fraction(a), Fraction(b))
    for a, b in zip(table.min(axis=0).tolist(), table.max(axis=0).tolist())
  ]
  bound = min(_box_bound(gap, ranges) for gap in gaps)
  worst, gap = None, None
  if bound > 0:
    simple = [x for x in gaps if not x.pairs and not x.squares]
    if len(parts) == 1 and simple:
      worst, gap = _separable(simple[0], table, kind.variables)
      bound = gap
    elif count <= max_pairs and len(kind.variables) < 3:
      seen, worst = _enumerate(parts, consequent, table, kind.variables)
      gap = _value(parts, consequent, table, kind.variables, worst)
      bound = min(bound, max(seen, gap))
  if name == "T_L2" and bound > 0:  # |v| - |u| <= sqrt(|v|^2 - |u|^2)
    bound = Fraction(math.sqrt(bound)) * (1 + Fraction(1, 10**12))
    if worst is not None and gap is not None:
      gap = Fraction(math.copysign(math.sqrt(abs(gap)), gap))
  return Certificate(text, bound <= 0, bound, worst, gap, count)


def _certify_l1(name, tables, kind, ids, text, max_pairs):
  """|v|_1 - |u|_1 <= |v - u|_1 and |v + u|_1, which are constants here."""
  del name, max_pairs
  body, head = kind.bind(ids)
  sides = [_translated(tables, atom) for atom in (*body, head)]
  count = len(tables[0]) ** len(kind.variables)
  if (
    kind.negated
    or len(sides) > 2
    or not any(
      sides[0][1] == {x: sign * y for x, y in sides[1][1].items()}
      for sign in (1, -1)
    )
  ):
    raise InputError(f"model T_L1 has no certificate for {text}")
  bounds = []
  for sign in (1, -1):
    if sides[0][1] == {x: sign * y for x, y in sides[1][1].items()}:
      apart = (
        x - sign * y for x, y in zip(sides[0][0], sides[1][0], strict=True)
      )
      bounds.append(sum(map(abs, apart), Fraction(0)))
  bound = min(bounds)
  return Certificate(text, bound <= 0, bound, None, None, count)


def _translated(tables, atom):
  """r - e + f of an atom: its constant vector and the signs of variables."""
  entities, relations = tables
  row = _rational(relations[atom.relation])
  signs: dict[str, int] = {}
  for end, sign in ((atom.head, -1), (atom.tail, 1)):
    if isinstance(end, str):
      signs[str(end)] = signs.get(str(end), 0) + sign
    else:
      fixed = _rational(entities[end])
      row = [x + sign * y for x, y in zip(row, fixed, strict=True)]
  return row, signs


def _weights(parts):
  if len(parts) == 1:
    return [(Fraction(1),)]
  return [(mix, 1 - mix) for mix in _MIXTURES]


def _mixed(parts, weights, consequent):
  total = _Gap(Fraction(0), {}, {}, {})
  for part, weight in zip(parts, weights, strict=True):
    total.add(part, weight)
  total.add(consequent, Fraction(-1))
  total.squares = {x: value for x, value in total.squares.items() if value}
  total.pairs = {
    x: kept
    for x, matrix in total.pairs.items()
    if (kept := {place: value for place, value in matrix.items() if value})
  }
  return total


def _box_bound(gap: _Gap, ranges) -> Fraction:
  """The sum over terms of their largest value, for coordinates in ranges.

  Terms of one coordinate i of all variables, such as a x_i + b y_i + m x_i y_i,
  are taken together: such a function is largest at a corner.
  """
  total = gap.constant
  names = sorted(gap.linear)
  same: dict[int, list[tuple[int, int, Fraction]]] = {}
  for (first, second), matrix in gap.pairs.items():
    places = names.index(first), names.index(second)
    for (i, j), value in matrix.items():
      if i == j:
        same.setdefault(i, []).append((*places, value))
      else:
        corners = itertools.product(ranges[i], ranges[j])
        total += max(value * x * y for x, y in corners)
  for i, ends in enumerate(ranges):
    row = [gap.linear[name][i] for name in names]
    if i not in same:
      total += sum((max(x * ends[0], x * ends[1]) for x in row), Fraction(0))
      continue
    total += max(
      sum((x * y for x, y in zip(row, corner, strict=True)), Fraction(0))
      + sum((m * corner[a] * corner[b] for a, b, m in same[i]), Fraction(0))
      for corner in itertools.product(ends, repeat=len(names))
    )
  for value in gap.squares.values():
    for low, high in ranges:
      inside = [Fraction(0)] if low <= 0 <= high else []
      total += max(value * x * x for x in (low, high, *inside))
  return total


def _separable(gap, table, variables):
  """The largest value of a gap that is a sum over its variables, exactly.

  float64 leaves out entities that rounding cannot make the largest; the
  others are compared as rational numbers.
  """
  worst, total = [], gap.constant
  for name in variables:
    row = gap.linear.get(name)
    if row is None or not any(row):
      worst.append(0)
      continue
    plain = np.array([float(x) for x in row])
    values = table @ plain
    error = 2 * (len(row) + 2) * 2.0**-52 * (np.abs(table) @ np.abs(plain))
    near = np.flatnonzero(values + error >= np.max(values - error))
    exact = [(_dot(row, _rational(table[i])), -i) for i in near.tolist()]
    best, place = max(exact)
    total += best
    worst.append(-place)
  return tuple(worst), total


def _enumerate(parts, consequent, table, variables):
  """The largest gap over all pairs by float64, as (bound, worst pair)."""
  best, worst = -np.inf, (0,) * len(variables)
  spread = float(np.abs(table).max(initial=0)) * table.shape[1] ** 0.5
  for start in range(0, len(table), _BLOCK):
    rows = table[start : start + _BLOCK]
    values = np.minimum.reduce(
      [_floats(part, rows, table, variables) for part in parts]
    ) - _floats(consequent, rows, table, variables)
    place = np.unravel_index(np.argmax(values), values.shape)
    if values[place] > best:
      best = float(values[place])
      worst = (start + int(place[0]), int(place[1]))[: len(variables)]
  # Rounding of sums of products, generously.
  size = sum(_size(part, spread) for part in (*parts, consequent))
  return Fraction(best + 1e-15 * table.shape[1] * size), worst


def _floats(part, rows, table, variables):
  """Values of a polynomial for x in rows and y in the table, [b, E]."""
  x, y = variables[0], variables[-1]
  one = len(variables) == 1
  total = np.full((len(rows), 1 if one else len(table)), float(part.constant))
  for name, entities, axis in ((x, rows, 1), (y, table, 0)):
    if one and axis == 0:
      continue
    value = np.zeros(len(entities))
    if name in part.linear:
      value += entities @ np.array([float(z) for z in part.linear[name]])
    if name in part.squares:
      value += float(part.squares[name]) * np.sum(entities**2, axis=1)
    total += np.expand_dims(value, axis)
  for (first, _), matrix in part.pairs.items():
    dense = np.zeros((table.shape[1],) * 2)
    for place, value in matrix.items():
      dense[place] = float(value)
    total += rows @ (dense if first == x else dense.T) @ table.T
  return total


def _size(part, spread):
  """Approximate size of a polynomial's terms."""
  total = abs(float(part.constant))
  for row in part.linear.values():
    total += spread * math.sqrt(sum(float(z) ** 2 for z in row))
  total += sum(abs(float(z)) * spread**2 for z in part.squares.values())
  for matrix in part.pairs.values():
    squares = sum(float(z) ** 2 for z in matrix.values())
    total += spread**2 * math.sqrt(squares)
  return total


def _value(parts, consequent, table, variables, worst):
  """The exact gap of one choice of entities."""
  given = {
    name: _rational(table[i]) for name, i in zip(variables, worst, strict=True)
  }

  def at(part):
    total = part.constant
    for name, row in part.linear.items():
      total += _dot(row, given[name])
    for name, value in part.squares.items():
      total += value * _dot(given[name], given[name])
    for (first, second), matrix in part.pairs.items():
      for (i, j), value in matrix.items():
        total += value * given[first][i] * given[second][j]
    return total

  return min(map(at, parts)) - at(consequent)


def _atom(name, tables, atom) -> _Gap:
  """The polynomial of an atom; named entities are replaced by their vectors."""
  entities, relations = tables
  size = entities.shape[1]
  made = _POLYNOMIALS[name](_rational(relations[atom.relation]), size)
  constant, ends, matrix, squares = made
  fixed = [
    None if isinstance(end, str) else _rational(entities[end])
    for end in (atom.head, atom.tail)
  ]
  names = [str(end) for end in (atom.head, atom.tail)]
  rows = [list(row) for row in ends]
  gap = _Gap(constant, {}, {}, {})
  if fixed[0] is None and fixed[1] is None:
    gap.pairs[names[0], names[1]] = matrix
  for (i, j), value in matrix.items():
    if fixed[0] is not None and fixed[1] is not None:
      gap.constant += value * fixed[0][i] * fixed[1][j]
    elif fixed[0] is not None:
      rows[1][j] += value * fixed[0][i]
    elif fixed[1] is not None:
      rows[0][i] += value * fixed[1][j]
  for name, given, row in zip(names, fixed, rows, strict=True):
    if given is None:
      gap.linear[name] = row
      gap.squares[name] = squares
    else:
      gap.constant += _dot(row, given) + squares * _dot(given, given)
  if names[0] == names[1]:  # pragma: no cover - no kind of rule has r(x, x)
    raise InputError("an atom has one variable in both places")
  # Normal form: pairs by the order of names.
  total = _Gap(Fraction(0), {}, {}, {})
  total.add(gap, Fraction(1))
  return total


def _rational(row) -> list[Fraction]:
  return [Fraction(x) for x in row.tolist()]


def _dot(one, two):
  return sum((x * y for x, y in zip(one, two, strict=True)), Fraction(0))


def _diagonal(size, value):
  return {(i, i): Fraction(value) for i in range(size)}


def _linear(product, weight, scale):
  """A, B, C and D: (constant, (a, b), M, p = q) of r = (r1; r2)."""

  def make(row, size):
    ends = [scale * x for x in row[:size]], [scale * x for x in row[size:]]
    constant = -_dot(row, row) if weight else Fraction(0)
    matrix = _diagonal(size, product) if product else {}
    return constant, ends, matrix, Fraction(-weight)

  return make


def _translate(row, size):
  ends = [2 * x for x in row], [-2 * x for x in row]
  return -_dot(row, row), ends, _diagonal(size, 2), Fraction(-1)


def _zeros(size):
  return [Fraction(0)] * size, [Fraction(0)] * size


def _matrix(row, size):
  matrix = {divmod(i, size): value for i, value in enumerate(row)}
  return Fraction(0), _zeros(size), matrix, Fraction(0)


def _product(row, size):
  matrix = {(i, i): value for i, value in enumerate(row)}
  return Fraction(0), _zeros(size), matrix, Fraction(0)


def _complex(row, size):
  half = size // 2
  matrix = {}
  for i in range(half):
    real, imaginary = row[i], row[half + i]
    matrix[i, i] = matrix[half + i, half + i] = real
    matrix[i, half + i] = imaginary
    matrix[half + i, i] = -imaginary
  return Fraction(0), _zeros(size), matrix, Fraction(0)


def _blocks(row, size):
  half = size // 2
  matrix = {}
  for place, value in enumerate(row):
    part, i = divmod(place, half)
    matrix[part // 2 * half + i, part % 2 * half + i] = value
  return Fraction(0), _zeros(size), matrix, Fraction(0)


_POLYNOMIALS = {
  "A": _linear(0, 0, 1),
  "B": _linear(1, 0, 1),
  "C": _linear(0, 1, 2),
  "D": _linear(2, 2, 2),
  "T": _translate,
  "T_L2": _translate,
  "R": _matrix,
  "distmult": _product,
  "complex": _complex,
  "blocks": _blocks,
}

"""What each logical rule asks of the vectors (thesis tables 5.4 to 5.6).

A rule is met when score(consequent) >= min(score(antecedents)) for every
entity of a region, not only for the entities that were trained. For each
model and kind of rule this module gives sufficient conditions of four forms
over *nodes*, which are halves r1, r2 of relations (A, B, C, D), a matrix and
its transpose (R), real and imaginary parts (complex) or whole vectors (T,
distmult):

  tie       node j = ratio * node i, or node = 0
  order     node a <= node b (for C and D: a <= b <= -a)
  linear    sum of factors * nodes and named entities <= bound, elementwise
  bilinear  sum of factors * <node, named entity> <= 0

Conditions that differ from the thesis' text, with the reason:

* RevImp for R compares with the transpose, R'^T >= R.
* RevImp for T is r' = -r: then both scores are equal.
* RelImp for T is the thesis' r' = (4p - 1) / (4p + 1) r with
  norm(r) >= 2p + 1/2, which is not convex; it is met by tying r' to r and a
  floor on the norm.
* Entail_B for T, which the thesis does not have, is r + e = r' + e', and
  Entail_A r - e = r' - e': then both scores are equal for every x.
* PropTrans and TypeImp for B need <x, y> <= <x, a> + <y, b> + c for all
  entities. The thesis takes a = b and entities in a ball that moves with a.
  With entities in the box [0, m]^d the condition is met if and only if
  a >= 0, b >= 0, a + b >= m (each coordinate is bilinear in x_i and y_i, so
  its corners decide) and c >= 0. That is convex in the relations and in the
  entities, and the box stands still.
* Rules that imply one another need equality only, which holds for entities
  of any sign; the sign conditions are for one-way rules.
"""

import dataclasses
from collections.abc import Callable

from repr_jax import errors
from repr_jax.data import rules as rule_files

# Kinds of rules that a sufficient condition is known for.
_ORDER = ("RelImp", "RevImp", "Symm")
_ENTAIL = (*_ORDER, "Entail_A", "Entail_B")
SUPPORTED = {
  "A": (*_ENTAIL, "PropTrans", "TypeImp"),
  "R": _ORDER,
  "B": (*_ENTAIL, "PropTrans", "TypeImp"),
  "C": _ENTAIL,
  "T": _ENTAIL,
  "D": _ENTAIL,
  "distmult": _ORDER,
  "complex": _ORDER,
}


@dataclasses.dataclass(frozen=True)
class Settings:
  """Numbers that some conditions depend on.

  Attributes:
    mixing: lambda of PropTrans, in (0, 1): weight of the first antecedent.
    cap: m, the upper end of the box of B's PropTrans and TypeImp.
    radius: p, the radius of the ball of T's RelImp; above 1/4.
  """

  mixing: float = 0.5
  cap: float = 1.0
  radius: float = 1.0

  def __post_init__(self):
    if not 0 < self.mixing < 1:
      raise errors.InputError(f"mixing {self.mixing} is not within (0, 1)")
    if not self.cap > 0:
      raise errors.InputError(f"cap {self.cap} is not positive")
    if not self.radius > 0.25:
      raise errors.InputError(f"radius {self.radius} is not above 1/4")

  @property
  def shrink(self) -> float:
    """The ratio of T's RelImp, (4p - 1) / (4p + 1)."""
    return (4 * self.radius - 1) / (4 * self.radius + 1)

  @property
  def floor(self) -> float:
    """The least norm of the antecedent of T's RelImp, 2p + 1/2."""
    return 2 * self.radius + 0.5


@dataclasses.dataclass
class Conditions:
  """Conditions of a rule set; a node is (relation, part), an entity an int.

  Attributes:
    ties: (node, node, ratio); a ratio of 0. pins the second node to 0.
    order: (antecedent, consequent).
    implied: (antecedent relation, consequent relation) of T's RelImp.
    linear: (node factors, entity factors, bound).
    bilinear: lists of (factor, node, entity).
    box: whether entities must lie in the box of `Settings.cap`.
    floors: relations (T) whose norm is at least `Settings.floor`; entities
      then lie in the ball of `Settings.radius`. Filled when compiled.
    orthant: whether they must be nonnegative whatever the order.
  """

  ties: list = dataclasses.field(default_factory=list)
  order: list = dataclasses.field(default_factory=list)
  implied: list = dataclasses.field(default_factory=list)
  linear: list = dataclasses.field(default_factory=list)
  bilinear: list = dataclasses.field(default_factory=list)
  box: bool = False
  floors: list = dataclasses.field(default_factory=list)
  orthant: bool = False


def conditions(
  model: str,
  indexed: list[tuple[str, tuple[int, ...]]],
  settings: Settings,
) -> Conditions:
  """Collects the conditions of a rule set.

  Args:
    model: one of `kb.scores.SCORES`.
    indexed: kind and ids of each rule, as from `index_rules`.
    settings: the numbers.

  Returns:
    The conditions.
  """
  found = Conditions()
  for kind, ids in indexed:
    if kind not in SUPPORTED[model]:
      able = [name for name, kinds in SUPPORTED.items() if kind in kinds]
      raise errors.InputError(
        f"model {model} has no sufficient condition for {kind}; the models "
        f"that have one are {', '.join(able)}"
      )
    if kind in _ORDER:
      _ADD_ORDER.get(model, _order_halves)(found, kind, ids)
    else:
      _ADD[kind](found, model, ids, settings)
  return found


def index_rules(
  rules: list[rule_files.Rule], relations: list[str], entities: list[str]
) -> list[tuple[str, tuple[int, ...]]]:
  """Rules with ids in place of names; an unknown name is an error.

  Args:
    rules: the rules.
    relations: names of the relations in the order of their ids.
    entities: names of the entities in the order of their ids.

  Returns:
    The kind and the ids of each rule's arguments.
  """
  tables = {
    "r": ("relation", {name: i for i, name in enumerate(relations)}),
    "e": ("entity", {name: i for i, name in enumerate(entities)}),
  }
  indexed = []
  for rule in rules:
    ids = []
    for name, letter in zip(rule.arguments, rule_files.SIGNATURES[rule.kind]):
      what, table = tables[letter]
      if name not in table:
        raise errors.InputError(
          f"rule {rule.kind}({', '.join(rule.arguments)}) names the unknown "
          f"{what} {name!r}"
        )
      ids.append(table[name])
    indexed.append((rule.kind, tuple(ids)))
  return indexed


def _order_halves(found, kind, ids):
  """A, B, C, D by halves; R by a matrix and its transpose."""
  r, s = ids[0], ids[-1]
  if kind == "Symm":
    found.ties.append(((r, 0), (r, 1), 1.0))
    return
  for part in (0, 1):
    other = part if kind == "RelImp" else 1 - part
    found.order.append(((r, part), (s, other)))


def _order_distmult(found, kind, ids):
  """Every relation is symmetric: RevImp is RelImp and Symm is free."""
  if kind != "Symm":
    found.order.append(((ids[0], 0), (ids[1], 0)))


def _order_complex(found, kind, ids):
  """RevImp(r, r') is RelImp(r, conj r'); imaginary parts are tied."""
  r, s = ids[0], ids[-1]
  if kind == "Symm":
    found.ties.append(((r, 1), (r, 1), 0.0))
    return
  found.order.append(((r, 0), (s, 0)))
  ratio = 1.0 if kind == "RelImp" else -1.0
  found.ties.append(((r, 1), (s, 1), ratio))


def _order_translation(found, kind, ids):
  r, s = ids[0], ids[-1]
  if kind == "RelImp":
    found.implied.append((r, s))
  elif kind == "Symm":
    found.ties.append(((r, 0), (r, 0), 0.0))
  else:
    found.ties.append(((r, 0), (s, 0), -1.0))


def _entail(found, model, ids, near):
  """Entail_B(r,e,s,f) with near = 0: r(x,e) => s(x,f); Entail_A: near = 1."""
  r, e, s, f = ids
  far = 1 - near
  if model == "T":
    for sign in (1, -1):
      turned = -sign if near else sign
      nodes = [(sign, (r, 0)), (-sign, (s, 0))]
      found.linear.append((nodes, [(turned, e), (-turned, f)], 0.0))
    return
  found.orthant = True
  if model != "B":
    found.order.append(((r, near), (s, near)))
  if model in ("B", "D"):
    found.linear.append(
      ([(1, (r, near)), (-1, (s, near))], [(1, e), (-1, f)], 0.0)
    )
  if model in ("A", "B"):
    found.bilinear.append([(1, (r, far), e), (-1, (s, far), f)])
    return
  found.linear.append(([(1, (r, far)), (-1, (s, far))], [(-1, e), (1, f)], 0.0))
  found.linear.append(([(1, (r, far)), (1, (s, far))], [(-1, e), (-1, f)], 0.0))
  if model == "D":
    found.linear.append(([], [(-1, e), (1, f)], 0.0))


def _bound_product(found, a, b, cap):
  """a >= 0, b >= 0, a + b >= cap for (node factors, entity factors) pairs."""

  def negative(factors):
    return [(-value, item) for value, item in factors]

  found.box = True
  pairs = ((a, 0.0), (b, 0.0), ((a[0] + b[0], a[1] + b[1]), cap))
  for (nodes, entities), least in pairs:
    found.linear.append((negative(nodes), negative(entities), -least))


def _proptrans(found, model, ids, settings):
  """r(x,y) and s(y,e) => t(x,f)."""
  r, s, e, t, f = ids
  mix = settings.mixing
  found.orthant = True
  found.bilinear.append([(1 - mix, (s, 1), e), (-1, (t, 1), f)])
  first = [(1, (t, 0)), (-mix, (r, 0))]
  second = [(-mix, (r, 1)), (mix - 1, (s, 0))]
  if model == "B":
    # a and b of the docstring times lambda.
    a, b = (first, [(1, f)]), (second, [(mix - 1, e)])
    _bound_product(found, a, b, mix * settings.cap)
    return
  for nodes in (first, second):
    found.linear.append(([(-value, node) for value, node in nodes], [], 0.0))


def _typeimp(found, model, ids, settings):
  """r(x,y) => s(x,e)."""
  r, e, s = ids
  found.orthant = True
  found.bilinear.append([(-1, (s, 1), e)])
  if model == "B":
    a = ([(1, (s, 0)), (-1, (r, 0))], [(1, e)])
    _bound_product(found, a, ([(-1, (r, 1))], []), settings.cap)
    return
  found.order.append(((r, 0), (s, 0)))
  found.linear.append(([(1, (r, 1))], [], 0.0))


_ADD_ORDER: dict[str, Callable] = {
  "distmult": _order_distmult,
  "complex": _order_complex,
  "T": _order_translation,
}
_ADD: dict[str, Callable] = {
  "Entail_A": lambda found, model, ids, _: _entail(found, model, ids, 1),
  "Entail_B": lambda found, model, ids, _: _entail(found, model, ids, 0),
  "PropTrans": _proptrans,
  "TypeImp": _typeimp,
}

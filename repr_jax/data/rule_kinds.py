"""Kinds of logical rules: their arguments and their logical form.

A kind is one object. The form is an implication over relations r, s, ...,
variables x, y, z and entities:

    RuleKind("Chain", "r(x,y) & s(y,z) ==> t(x,z)")

`Chain` then takes the relations r, s and t. A head that begins with ! is
negated: if the body holds, the head must not. Such a rule derives no fact, and
facts can break it. Deduction and the check of a rule need the form alone.
`conditions` maps the name of a score model to the conditions on its vectors
that make the rule hold (`repr_jax.kb`). The built-in models define those of
the built-in kinds themselves.
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from repr_jax import errors

VARIABLES = ("x", "y", "z")
_ATOM = re.compile(r"\s*(\w+)\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*")
_NOT = "!"


class Variable(str):
  """A variable of an implication; not equal to a name of the same text."""


class Atom(NamedTuple):
  """relation(head, tail): letters of a form, names or ids."""

  relation: Any
  head: Any
  tail: Any


@dataclasses.dataclass(frozen=True)
class RuleKind:
  """A kind of rule.

  Attributes:
    name: as it stands in rule files.
    form: body ==> head, or body ==> !head; x, y and z are variables.
    order: the letters of the arguments in their order, such as "r,e,s"; by
      default in the order of the form.
    conditions: by the name of a score model, a function of the arguments'
      ids and a `kb.RuleConfig` that returns `kb.Conditions`.
  """

  name: str
  form: str
  order: str = ""
  conditions: Mapping[str, Callable] = dataclasses.field(
    default_factory=dict, compare=False
  )

  def __post_init__(self):
    body, arrow, head = self.form.partition("==>")
    head = head.strip().removeprefix(_NOT)
    parts = [_ATOM.fullmatch(part) for part in (*body.split("&"), head)]
    if not arrow or None in parts:
      raise errors.InputError(
        f"rule kind {self.name}: the form {self.form!r} is not like "
        "r(x,y) & s(y,z) ==> t(x,z)"
      )
    atoms = [Atom(*match.groups()) for match in parts if match]
    bound = {term for atom in atoms[:-1] for term in atom[1:]}
    free = (set(atoms[-1][1:]) & set(VARIABLES)) - bound
    if free:
      raise errors.InputError(
        f"rule kind {self.name}: the head has {min(free)}, the body has not"
      )
    letters = list(dict.fromkeys(itertools.chain(*atoms)))
    letters = [x for x in letters if x not in VARIABLES]
    chosen = [x.strip() for x in self.order.split(",")] if self.order else None
    if chosen is not None and sorted(chosen) != sorted(letters):
      raise errors.InputError(
        f"rule kind {self.name}: the order {self.order!r} does not have the "
        f"letters {','.join(letters)}"
      )
    object.__setattr__(self, "order", ",".join(chosen or letters))

  @property
  def body(self) -> list[Atom]:
    """The antecedents."""
    text = self.form.partition("==>")[0]
    return [Atom(*x.groups()) for x in _ATOM.finditer(text)]

  @property
  def head(self) -> Atom:
    """The consequent."""
    (atom,) = _ATOM.finditer(self.form.partition("==>")[2])
    return Atom(*atom.groups())

  @property
  def negated(self) -> bool:
    """Whether the consequent is negated."""
    return self.form.partition("==>")[2].strip().startswith(_NOT)

  @property
  def signature(self) -> str:
    """The arguments in order, r for a relation and e for an entity."""
    relations = {atom.relation for atom in (*self.body, self.head)}
    return "".join("r" if x in relations else "e" for x in self.letters)

  @property
  def letters(self) -> list[str]:
    """The letters of the arguments, in order."""
    return self.order.split(",")

  @property
  def variables(self) -> list[str]:
    """The variables, in order of first use."""
    terms = [x for atom in self.body for x in atom[1:] if x in VARIABLES]
    return list(dict.fromkeys(terms))

  def bind(self, arguments: Sequence[Any]) -> tuple[list[Atom], Atom]:
    """Body and head with the letters of arguments replaced.

    Args:
      arguments: names or ids, in the order of `letters`.

    Returns:
      The atoms, with arguments in place of their letters.
    """
    given = dict(zip(self.letters, arguments, strict=True))

    def put(atom):
      return Atom(*(given.get(x, Variable(x)) for x in atom))

    return [put(atom) for atom in self.body], put(self.head)

  def consequences(
    self, arguments: Sequence[Any], facts: Collection[tuple[Any, Any, Any]]
  ) -> set[tuple[Any, Any, Any]]:
    """Facts that one rule derives from others in one step.

    >>> sorted(KINDS["RevImp"].consequences(["r", "s"], [("a", "r", "b")]))
    [('b', 's', 'a')]

    Args:
      arguments: names or ids, in the order of `letters`.
      facts: head, relation and tail of each, as names or as ids.

    Returns:
      The heads of the rule for every body among the facts; none if the head
      is negated.
    """
    if self.negated:
      return set()
    body, head = self.bind(arguments)
    bindings: list[dict[str, Any]] = [{}]
    for relation, *ends in body:
      pairs = [(h, t) for h, r, t in facts if r == relation]
      bindings = [
        more
        for bound in bindings
        for pair in pairs
        if (more := _extend(bound, ends, pair)) is not None
      ]
    return {
      (_value(head.head, bound), head.relation, _value(head.tail, bound))
      for bound in bindings
    }


KINDS: Mapping[str, RuleKind] = {
  kind.name: kind
  for kind in (
    RuleKind("RelImp", "r(x,y) ==> s(x,y)"),
    RuleKind("RevImp", "r(x,y) ==> s(y,x)"),
    RuleKind("Symm", "r(x,y) ==> r(y,x)"),
    RuleKind("Entail_A", "r(e,x) ==> s(f,x)"),
    RuleKind("Entail_B", "r(x,e) ==> s(x,f)"),
    RuleKind("PropTrans", "r(x,y) & s(y,e) ==> t(x,f)"),
    RuleKind("TypeImp", "r(x,y) ==> s(x,e)", "r,e,s"),
    RuleKind("Path", "r(x,y) & s(y,z) ==> t(x,z)"),
    RuleKind("Inter", "r(x,y) & s(x,y) ==> t(x,y)"),
    RuleKind("Disj", "r(x,y) ==> !s(x,y)"),
  )
}


def _value(term, bound):
  return bound[term] if isinstance(term, Variable) else term


def _extend(bound, ends, pair):
  """Values of the variables under which an atom is a fact, or None."""
  bound = dict(bound)
  for term, entity in zip(ends, pair):
    if isinstance(term, Variable):
      term = bound.setdefault(term, entity)
    if term != entity:
      return None
  return bound


def match(
  kinds: Iterable[RuleKind], body: Sequence[Atom], head: Atom
) -> tuple[RuleKind, tuple[Any, ...]] | None:
  """The kind whose form an implication has, and its arguments.

  Args:
    kinds: those that are tried, the ones with the fewest arguments first.
    body: the antecedents, in any order; variables are `Variable`s.
    head: the consequent.

  Returns:
    The kind and the arguments; None where no kind has this form.
  """
  for kind in sorted(kinds, key=lambda kind: len(kind.letters)):
    if kind.negated or len(kind.body) != len(body):
      continue
    for order in itertools.permutations(body):
      given = _unify([*kind.body, kind.head], [*order, head])
      if given is not None:
        return kind, tuple(given[letter] for letter in kind.letters)
  return None


def _unify(form, atoms):
  """Terms that the letters of a form stand for, or None.

  Different variables of the form are different variables of the atoms.
  """
  given: dict[str, Any] = {}
  for letters, terms in zip(form, atoms):
    for place, (letter, term) in enumerate(zip(letters, terms)):
      variable = place > 0 and isinstance(term, Variable)
      if (letter in VARIABLES) != variable:
        return None
      if given.setdefault(letter, term) != term:
        return None
  used = [given[x] for x in VARIABLES if x in given]
  return given if len(set(used)) == len(used) else None

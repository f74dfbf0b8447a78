"""Logical rules over a knowledge base (thesis chapter 5).

A file has one rule on each line, either tab-separated,

    RevImp<TAB>hypernym<TAB>hyponym

or as an implication, in which x, y and z are variables and every other
argument is the name of an entity:

    hypernym(x,y)==>hyponym(y,x)
    transact(x,y)&considered(y,Enemy)==>considered(x,Criminal)

Blank lines and lines that begin with # are passed over.
"""

import dataclasses
import difflib
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from repr_jax import errors
from repr_jax.data import files

# The arguments of each kind: r a relation, e an entity.
SIGNATURES = {
  "RelImp": "rr",  # r(x,y) => r'(x,y)
  "RevImp": "rr",  # r(x,y) => r'(y,x)
  "Symm": "r",  # r(x,y) => r(y,x)
  "Entail_A": "rere",  # r(e,x) => r'(e',x)
  "Entail_B": "rere",  # r(x,e) => r'(x,e')
  "PropTrans": "rrere",  # r(x,y) & r'(y,e') => r''(x,e'')
  "TypeImp": "rer",  # r(x,y) => r'(x,e)
}

_VARIABLES = ("x", "y", "z")
_LONGEST = 200  # Characters of a name that is compared with others.
_ATOM = re.compile(r"\s*([^\s(),&]+)\s*\(([^(),&]+),([^(),&]+)\)\s*")


@dataclasses.dataclass(frozen=True)
class Rule:
  """One rule.

  Attributes:
    kind: a key of `SIGNATURES`.
    arguments: names of relations and entities, as the signature says.
  """

  kind: str
  arguments: tuple[str, ...]

  def __post_init__(self):
    object.__setattr__(self, "arguments", tuple(self.arguments))
    if self.kind not in SIGNATURES:
      raise errors.InputError(
        f"unknown kind of rule {self.kind!r}"
        f"{_nearest(self.kind, SIGNATURES)}; the kinds are "
        f"{', '.join(SIGNATURES)}"
      )
    wanted = len(SIGNATURES[self.kind])
    if len(self.arguments) != wanted:
      raise errors.InputError(
        f"{self.kind} takes {wanted} arguments, not {len(self.arguments)}"
      )
    if not all(name and name == name.strip() for name in self.arguments):
      raise errors.InputError(f"{self.kind} has an empty argument")

  @property
  def relations(self) -> tuple[str, ...]:
    """The relations among the arguments, in order."""
    return self._of("r")

  @property
  def entities(self) -> tuple[str, ...]:
    """The entities among the arguments, in order."""
    return self._of("e")

  def _of(self, letter: str) -> tuple[str, ...]:
    signature = SIGNATURES[self.kind]
    pairs = zip(self.arguments, signature)
    return tuple(name for name, kind in pairs if kind == letter)


def read_rules(
  path: files.Path,
  relations: Collection[str] | None = None,
  entities: Collection[str] | None = None,
) -> list[Rule]:
  """Reads rules and checks their names.

  Args:
    path: the file.
    relations: the relations that exist; None to take any name.
    entities: the entities that exist; None to take any name.

  Returns:
    The rules in the order of the file.
  """
  relations = None if relations is None else frozenset(relations)
  entities = None if entities is None else frozenset(entities)
  seen: dict[Rule, int] = {}
  for line, text in enumerate(files.open_text(path), 1):
    if not text.strip() or text.lstrip().startswith("#"):
      continue
    try:
      rule = parse_rule(text)
      _check_names(rule.relations, relations, "relation")
      _check_names(rule.entities, entities, "entity")
    except errors.InputError as error:
      raise errors.InputError(str(error), path=path, line=line) from error
    if rule in seen:
      raise errors.InputError(
        f"the rule stands already on line {seen[rule]}", path=path, line=line
      )
    seen[rule] = line
  return list(seen)


def parse_rule(text: str) -> Rule:
  """Parses one rule in either notation.

  Args:
    text: a tab-separated rule or an implication.

  Returns:
    The rule.
  """
  body, arrow, head = text.partition("==>")
  if not arrow:
    fields = [field.strip() for field in text.strip().split("\t")]
    if len(fields) == 1:
      raise errors.InputError(
        "expected kind<TAB>argument<TAB>... or body==>head, "
        f"found {text.strip()[:60]!r}"
      )
    return Rule(fields[0], tuple(fields[1:]))
  rule = _match([_atom(part) for part in body.split("&")], _atom(head))
  if rule is None:
    raise errors.InputError(
      f"no kind of rule has the shape {text.strip()[:80]!r}; x, y and z are "
      f"variables, and the kinds are {', '.join(SIGNATURES)}"
    )
  return rule


def write_rules(path: files.Path, rules: Sequence[Rule]) -> None:
  """Writes rules as tab-separated lines.

  Args:
    path: the file to write.
    rules: the rules.
  """
  for rule in rules:
    names = "".join(rule.arguments)
    if set(names) & set("\t\n\r") or "==>" in names:
      raise errors.InputError(f"{rule} does not fit a line", path=path)
  with files.atomic_write(path) as stream:
    for rule in rules:
      stream.write("\t".join((rule.kind, *rule.arguments)) + "\n")


class _Atom(NamedTuple):
  relation: str
  first: str
  second: str

  @property
  def shape(self) -> str:
    """v or c for each argument: variable or constant."""
    pair = (self.first, self.second)
    return "".join("v" if name in _VARIABLES else "c" for name in pair)


def _atom(text: str) -> _Atom:
  match = _ATOM.fullmatch(text)
  if not match:
    raise errors.InputError(
      f"expected relation(first,second), found {text.strip()[:60]!r}"
    )
  return _Atom(*(group.strip() for group in match.groups()))


def _match(body: list[_Atom], head: _Atom) -> Rule | None:
  """The rule with this body and head, or None if no kind has that shape."""
  if len(body) == 1:
    return _match_one(body[0], head)
  if len(body) == 2:
    # The atom with a constant comes second.
    link, kind = sorted(body, key=lambda atom: atom.shape, reverse=True)
    if (link.shape, kind.shape, head.shape) == ("vv", "vc", "vc") and (
      link.first == head.first != link.second == kind.first
    ):
      return Rule(
        "PropTrans",
        (link.relation, kind.relation, kind.second, head.relation, head.second),
      )
  return None


def _match_one(body: _Atom, head: _Atom) -> Rule | None:
  r, s = body.relation, head.relation
  shapes = body.shape, head.shape
  if body.first == body.second:
    return None
  if shapes == ("vv", "vv"):
    if (body.first, body.second) == (head.first, head.second):
      return Rule("RelImp", (r, s))
    if (body.first, body.second) == (head.second, head.first):
      return Rule("Symm", (r,)) if r == s else Rule("RevImp", (r, s))
  if shapes == ("vv", "vc") and body.first == head.first:
    return Rule("TypeImp", (r, head.second, s))
  if shapes == ("vc", "vc") and body.first == head.first:
    return Rule("Entail_B", (r, body.second, s, head.second))
  if shapes == ("cv", "cv") and body.second == head.second:
    return Rule("Entail_A", (r, body.first, s, head.first))
  return None


def _check_names(
  names: Sequence[str], known: Collection[str] | None, what: str
) -> None:
  for name in names:
    if known is not None and name not in known:
      raise errors.InputError(f"no {what} {name!r}{_nearest(name, known)}")


def _nearest(name: str, known: Collection[str]) -> str:
  """A suggestion to add to a message, or nothing."""
  if len(name) > _LONGEST:
    return ""
  close = difflib.get_close_matches(name, sorted(known), n=1)
  return f" (did you mean {close[0]!r}?)" if close else ""

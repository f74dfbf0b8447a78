"""Logical rules over a knowledge base (thesis chapter 5).

A file has one rule on each line, tab-separated or as a call,

    RevImp<TAB>hypernym<TAB>hyponym
    RevImp(hypernym, hyponym)

or as an implication, in which x, y and z are variables and every other
argument is the name of an entity:

    hypernym(x,y)==>hyponym(y,x)
    transact(x,y)&considered(y,Enemy)==>considered(x,Criminal)

A name may hold blanks, commas and brackets, and may stand in double quotes,
in which x, y and z are names too: in(x,"New York, NY")==>in(x,USA). Blank
lines and lines that begin with # are passed over.
"""

import csv
import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Collection, Sequence

from repr_jax import errors
from repr_jax.data import rule_kinds
from repr_jax.data.io import files
from repr_jax.data.rule_kinds import KINDS, VARIABLES, Atom, RuleKind, Variable

_QUOTED = re.compile(r'(?:^|(?<=[(,&]))\s*"[^"]*"(?=\s*[(),])')


@dataclasses.dataclass(frozen=True, init=False)
class Rule:
  """One rule.

  >>> str(Rule("RevImp", ("hypernym", "hyponym")))
  'RevImp(hypernym, hyponym)'

  Attributes:
    kind: a key of `KINDS`, or a kind of your own.
    arguments: relations and entities, as the kind orders them, by name or id.
    origin: file and line, for messages; rules are the same without it.
  """

  kind: RuleKind
  arguments: tuple[str | int, ...]
  origin: str | None = dataclasses.field(default=None, compare=False)

  def __init__(
    self,
    kind: RuleKind | str,
    arguments: Sequence[str | int],
    origin: str | None = None,
  ):
    if isinstance(kind, str):
      kind = kind_by_name(kind)
    arguments = tuple(arguments)
    if len(arguments) != len(kind.letters):
      raise errors.InputError(
        f"{kind.name} takes {len(kind.letters)} arguments, not {len(arguments)}"
      )
    names = [name for name in arguments if isinstance(name, str)]
    if not all(name and name == name.strip() for name in names):
      raise errors.InputError(f"{kind.name} has an empty argument")
    object.__setattr__(self, "kind", kind)
    object.__setattr__(self, "arguments", arguments)
    object.__setattr__(self, "origin", origin)

  def __str__(self) -> str:
    place = f" ({self.origin})" if self.origin else ""
    names = (quoted(str(name)) for name in self.arguments)
    return f"{self.kind.name}({', '.join(names)}){place}"

  @property
  def relations(self) -> tuple[str | int, ...]:
    """The relations among the arguments, in order."""
    return self._of("r")

  @property
  def entities(self) -> tuple[str | int, ...]:
    """The entities among the arguments, in order."""
    return self._of("e")

  def _of(self, letter: str) -> tuple[str | int, ...]:
    pairs = zip(self.arguments, self.kind.signature)
    return tuple(name for name, kind in pairs if kind == letter)


def kind_by_name(name: str) -> RuleKind:
  """The built-in kind of a name.

  Args:
    name: a key of `KINDS`.

  Raises:
    InputError: no kind has this name; the message lists them.
  """
  if name not in KINDS:
    close = errors.did_you_mean(name, KINDS)
    raise errors.InputError(
      f"unknown kind of rule {name!r}{close}; the kinds are {', '.join(KINDS)}"
    )
  return KINDS[name]


def read_rules(
  path: files.Path,
  relations: Collection[str] | None = None,
  entities: Collection[str] | None = None,
  kind_of: Callable[[str], RuleKind] = kind_by_name,
) -> list[Rule]:
  """Reads rules and checks their names.

  Args:
    path: the file.
    relations: the relations that exist; None to take any name.
    entities: the entities that exist; None to take any name.
    kind_of: the kind that a name in the file stands for.

  Returns:
    The rules in the order of the file.
  """
  relations = None if relations is None else frozenset(relations)
  entities = None if entities is None else frozenset(entities)
  seen: dict[Rule, int] = {}
  for line, text in files.numbered_lines(path):
    if text.lstrip().startswith("#"):
      continue
    with errors.placed(path, line):
      rule = parse_rule(text, relations, entities, kind_of)
      _check_names(rule.relations, relations, "relation")
      _check_names(rule.entities, entities, "entity")
      if rule in seen:
        raise errors.InputError(f"the rule is already on line {seen[rule]}")
    placed = Rule(rule.kind, rule.arguments, f"{os.fspath(path)}:{line}")
    seen[placed] = line
  return list(seen)


def parse_rule(
  text: str,
  relations: Collection[str] | None = None,
  entities: Collection[str] | None = None,
  kind_of: Callable[[str], RuleKind] = kind_by_name,
) -> Rule:
  """Parses one rule in any of its notations.

  >>> parse_rule("r(x,y) ==> s(y,x)") == parse_rule("RevImp(r, s)")
  True

  Args:
    text: a tab-separated rule, an implication or Kind(argument, ...).
    relations: the relations that exist; they resolve ambiguous lines. Other
      names are accepted too.
    entities: the entities that exist, likewise.
  """
  body, arrow, head = text.partition("==>")
  if not arrow:
    fields = [field.strip() for field in text.strip().split("\t")]
    if len(fields) == 1:
      fields = _call(text)
    return Rule(kind_of(fields[0]), tuple(fields[1:]))
  known = frozenset(relations or ()), frozenset(entities or ())
  readings = [
    _match(list(atoms[:-1]), atoms[-1])
    for parts in _bodies(body)
    for atoms in itertools.product(
      *(_readings(part, known) for part in (*parts, head))
    )
  ]
  if not readings:
    bad = next((x for x in (body, head) if not _readings(x, known)), text)
    raise errors.InputError(
      f"expected relation(first,second), found {bad.strip()[:60]!r}"
    )
  valid = [rule for rule in readings if rule is not None]
  if not valid:
    raise errors.InputError(
      f"no kind of rule has the shape {text.strip()[:80]!r}; x, y and z are "
      f"variables, and the kinds are {', '.join(KINDS)}"
    )
  real = [
    rule
    for rule in valid
    if known[0].issuperset(rule.relations)
    and known[1].issuperset(rule.entities)
  ]
  return (real or valid)[0]


def split_atom(
  text: str, variables: Collection[str] = VARIABLES
) -> list[tuple[str, str, str]]:
  """The ways to read `relation(first, second)`, from outside in.

  The first bracket ends the relation and the last one closes the atom. Of
  several commas, the first or the last separates the arguments if a variable
  stands outside of it. If both do, there are two readings.

  Args:
    text: the atom; brackets and commas in double quotes are part of a name.

  Returns:
    Relation, first and second argument as written, with their quotes; nothing
    where the text has another form.
  """
  plain = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text)
  begin, end = plain.find("("), plain.rfind(")")
  if begin < 0 or end < begin or plain[end + 1 :].strip():
    return []
  first, last = plain.find(",", begin, end), plain.rfind(",", begin, end)
  splits = []
  for comma in dict.fromkeys((first, last)):
    pair = text[begin + 1 : comma].strip(), text[comma + 1 : end].strip()
    told = first == last or pair[comma == last] in variables
    parts = (text[:begin].strip(), *pair)
    if comma > 0 and told and all(parts):
      splits.append(parts)
  return splits


def unquote(name: str) -> str:
  """A name without the double quotes around it, if it has them."""
  quoted = len(name) > 2 and name[0] == name[-1] == '"'
  return name[1:-1].strip() if quoted else name


def quoted(name: str) -> str:
  """A name, in double quotes if it has commas or brackets."""
  return f'"{name}"' if set(name) & set(",()") else name


def write_rules(path: files.Path, rules: Sequence[Rule]) -> None:
  """Writes rules as tab-separated lines.

  Args:
    path: the file to write.
    rules: the rules.
  """
  for rule in rules:
    names = "".join(map(str, rule.arguments))
    if set(names) & set("\t\n\r") or "==>" in names:
      raise errors.InputError(f"{rule} does not fit a line", path=path)
  with files.atomic_write(path) as stream:
    for rule in rules:
      fields = (rule.kind.name, *map(str, rule.arguments))
      stream.write("\t".join(fields) + "\n")


def _call(text: str) -> list[str]:
  """The fields of Kind(argument, ...)."""
  call = re.fullmatch(r"\s*([^\s(]+)\s*\((.*)\)\s*", text)
  if call is None:
    raise errors.InputError(
      "expected kind<TAB>argument<TAB>..., Kind(argument, ...) or "
      f"body==>head, found {text.strip()[:60]!r}"
    )
  try:
    (parts,) = csv.reader([call[2]], skipinitialspace=True)
  except csv.Error as error:
    raise errors.InputError(f"{text.strip()[:60]!r}: {error}") from error
  return [call[1], *(part.strip() for part in parts)]


def _bodies(text: str) -> list[list[str]]:
  """The body as one atom, and cut at each & that is outside brackets."""
  plain = _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), text)
  depth, cuts = 0, [-1]
  for place in re.finditer(r"[()&]", plain):
    depth += {"(": 1, ")": -1, "&": 0}[place[0]]
    if place[0] == "&" and depth == 0:
      cuts.append(place.start())
      if len(cuts) > 3:  # no rule has this many
        break
  cuts.append(len(text))
  parts = [text[a + 1 : b] for a, b in itertools.pairwise(cuts)]
  return [[text]] if len(parts) == 1 else [parts, [text]]


def _readings(text: str, known: tuple[Collection[str], ...]) -> list[Atom]:
  """The atoms that a text may be, given the known relations and entities."""
  atoms = []
  for atom in split_atom(text):
    relation = _name(atom[0], known[0])
    first, second = (
      Variable(name) if name in VARIABLES else _name(name, known[1])
      for name in atom[1:]
    )
    if relation and first and second:
      atoms.append(Atom(relation, first, second))
  return atoms


def _name(text: str, known: Collection[str]) -> str | None:
  """The name that a text stands for, or None where it cannot be one.

  A name with more closing than opening brackets must be known or in quotes.
  """
  plain = unquote(text)
  if text in known or plain != text:
    return text if text in known else plain
  depth = 0
  for bracket in re.finditer(r"[()]", text):
    depth += 1 if bracket[0] == "(" else -1
    if depth < 0:
      return None
  return None if depth else text


def _match(body: list[Atom], head: Atom) -> Rule | None:
  """The rule with this body and head, or None if no kind has that form."""
  matched = rule_kinds.match(KINDS.values(), body, head)
  return None if matched is None else Rule(*matched)


def _check_names(
  names: Sequence[str | int], known: Collection[str] | None, what: str
) -> None:
  for name in names:
    if known is not None and name not in known:
      close = errors.did_you_mean(str(name), known)
      raise errors.InputError(f"no {what} {name!r}{close}")

"""Rules as other programs write them: AMIE, AnyBURL and `_cons` files.

AMIE prints atoms as three names separated by two spaces, the body before `=>`.
AnyBURL prints `head(X,Y) <= body(X,A), body(A,Y)` after counts and a
confidence. A `_cons` file has `r,s<TAB>confidence`; `-r,s` exchanges the
arguments of r. Rules that no built-in kind expresses are counted by reason.
"""

import collections
import math
import re
from collections.abc import Collection
from typing import NamedTuple

from repr_jax import errors
from repr_jax.data import rule_kinds
from repr_jax.data.io import files
from repr_jax.data.rule_kinds import KINDS, Atom, Variable
from repr_jax.data.rules import Rule

FORMATS = ("amie", "anyburl", "cons")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Foreign(NamedTuple):
  """Rules of another program's file.

  Attributes:
    rules: those that can be expressed, in the order of the file.
    skipped: how many rules were left out, by the reason.
  """

  rules: list[Rule]
  skipped: dict[str, int]


def detect_format(path: files.Path) -> str | None:
  """Which of `FORMATS` a file has.

  Returns:
    The format; None for a file of the project's own form.
  """
  for line, text in enumerate(files.open_text(path)):
    first = text.split("\t")[0]
    if re.search(r"\?\w+ +.*=> ", first):
      return "amie"
    if "<=" in text and text.count("\t") >= 3:
      return "anyburl"
    cells = text.rstrip("\r\n").split("\t")
    pair = len(cells) == 2 and cells[0].count(",") == 1
    if pair and _NUMBER.fullmatch(cells[1].strip()):
      return "cons"
    if line > 1000:
      break
  return None


def read_foreign(
  path: files.Path,
  form: str,
  relations: Collection[str] | None = None,
  entities: Collection[str] | None = None,
  min_confidence: float = 0.0,
) -> Foreign:
  """Reads rules of another program.

  Args:
    form: one of `FORMATS`.
    relations: the relations that exist; None to take any name.
    entities: the entities that exist; None to take any name.
    min_confidence: rules below it are left out.
  """
  parse = {"amie": _amie, "anyburl": _anyburl, "cons": _cons}.get(form)
  if parse is None:
    raise errors.InputError(
      f"unknown format of rules {form!r}; there are {', '.join(FORMATS)}"
    )
  rules: dict[Rule, None] = {}
  skipped: collections.Counter[str] = collections.Counter()
  lines = 0
  for line, text in enumerate(files.open_text(path), 1):
    cells = text.rstrip("\r\n").split("\t")
    try:
      parsed = parse(cells)
    except ValueError as error:
      raise errors.InputError(str(error), path=path, line=line) from error
    if parsed is None:
      continue
    lines += 1
    body, head, confidence = parsed
    reason = _reason(body, head, relations, entities)
    if reason is None and confidence < min_confidence:
      reason = "confidence below the least"
    rule = None
    if reason is None:
      match = rule_kinds.match(KINDS.values(), body, head)
      reason = None if match else _shape(body)
      if match and head in body:
        reason = "says nothing: its head is in its body"
      elif match:
        rule = Rule(*match, origin=f"{path}:{line}")
        if rule in rules:
          reason = "repeats another rule"
    if reason is not None:
      skipped[reason] += 1
    elif rule is not None:
      rules[rule] = None
  if not lines:
    raise errors.InputError(f"holds no rules as {form} writes them", path=path)
  return Foreign(list(rules), dict(skipped))


def _reason(body, head, relations, entities) -> str | None:
  """Why a rule cannot be used, apart from its shape."""
  if not body:
    return "no body"
  for atom in (*body, head):
    if relations is not None and atom.relation not in relations:
      return "names an unknown relation"
    for term in atom[1:]:
      if isinstance(term, Variable) or entities is None:
        continue
      if term not in entities:
        return "names an unknown entity"
  return None


def _shape(body) -> str:
  if len(body) > 2:
    return f"a body of {len(body)} atoms"
  constants = any(
    not isinstance(term, Variable) for atom in body for term in atom[1:]
  )
  name = "a body of two atoms" if len(body) == 2 else "a body of one atom"
  return f"{name}, of another shape" + (" with constants" * constants)


def _number(text: str) -> float:
  text = text.strip().replace(",", ".")
  if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
    raise ValueError(f"expected a number, found {text[:40]!r}")
  return float(text)


def _amie(cells):
  """Rule, head coverage, standard confidence, ...; other lines are a log."""
  left, arrow, right = cells[0].partition("=>")
  if not arrow or len(cells) < 4 or "?" not in cells[0]:
    return None

  def atoms(text):
    words = [word for word in re.split(r"\s{2,}", text.strip()) if word]
    if len(words) % 3:
      raise ValueError(
        "expected three names in an atom, separated by two spaces: "
        f"{text.strip()!r}"
      )
    return [
      Atom(words[i + 1], _amie_term(words[i]), _amie_term(words[i + 2]))
      for i in range(0, len(words), 3)
    ]

  heads = atoms(right)
  if len(heads) != 1:
    raise ValueError(f"expected one atom after =>: {right.strip()[:60]!r}")
  return atoms(left), heads[0], _number(cells[2])


def _amie_term(word):
  return Variable(word[1:]) if word.startswith("?") else word


def _anyburl(cells):
  """Predictions, right ones, confidence, head <= body."""
  if len(cells) < 4:
    if not "".join(cells).strip():
      return None
    raise ValueError(f"expected 4 tab-separated columns, found {len(cells)}")
  left, arrow, right = cells[3].partition("<=")
  if not arrow:
    raise ValueError(f"expected head <= body, found {cells[3][:60]!r}")
  parts = re.split(r"(?<=\)),\s+(?=[^\s,()]+\()", right.strip())
  body = [_call(part) for part in parts if part]
  return body, _call(left.strip()), _number(cells[2])


def _call(text):
  """relation(first,second); a single capital letter is a variable."""
  relation, bracket, rest = text.partition("(")
  if not bracket or not rest.endswith(")") or "," not in rest:
    raise ValueError(f"expected relation(first,second), found {text[:60]!r}")
  inner = rest[:-1]
  first, _, second = inner.partition(",")
  if not re.fullmatch("[A-Z]", first) and re.search(",[A-Z]$", inner):
    first, _, second = inner.rpartition(",")
  return Atom(relation, *(
    Variable(x) if re.fullmatch("[A-Z]", x) else x for x in (first, second)
  ))  # fmt: skip


def _cons(cells):
  """r,s or -r,s, and the confidence."""
  if not "".join(cells).strip():
    return None
  if len(cells) != 2 or cells[0].count(",") != 1:
    raise ValueError(f"expected r,s<TAB>confidence, found {cells[0][:60]!r}")
  first, second = cells[0].split(",")
  x, y = Variable("x"), Variable("y")
  head = Atom(second.strip(), x, y)
  body = Atom(first.strip(), x, y)
  if body.relation.startswith("-"):
    body = Atom(body.relation[1:], y, x)
  return [body], head, _number(cells[1])

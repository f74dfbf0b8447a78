"""Queries of entity relatedness: a seed and candidates, graded or ranked.

Two public forms are read, plain or compressed:

- the SVMlight files of Ceccarelli et al. (2013), a candidate on each line:
  `label qid:QUERY feature:value ... # SEED-CANDIDATE`, entities by the ids of
  their Wikipedia pages, label 1 for a related one and 0 for another;
- KORE (Hoffart et al. 2012): `seed<TAB>rank<TAB>entity`, rank 1 for the most
  related.
"""

import re
from typing import NamedTuple

from repr_jax.data import files
from repr_jax.errors import InputError

_SVMLIGHT = re.compile(
  r"(?P<label>[01]) +qid:(?P<query>\S+) (?:.* )?# *"
  r"(?P<seed>\S+?)-(?P<other>\S+)"
)


class RelatednessQuery(NamedTuple):
  """One seed with its candidates.

  Attributes:
    name: of the query.
    seed: the entity that is asked about.
    candidates: entities to rank.
    gold: of each candidate, higher for the more related: 1 or 0, or minus its
      rank where candidates are ranked.
  """

  name: str
  seed: str
  candidates: tuple[str, ...]
  gold: tuple[float, ...]


def read_relatedness(path: files.Path) -> list[RelatednessQuery]:
  """Reads a file of either form, which its first line shows.

  Args:
    path: the file.

  Returns:
    The queries, in the order of the file. A line of another form, or a
    candidate that stands twice for a query, is an `InputError`.
  """
  seeds: dict[str, str] = {}
  gold: dict[str, dict[str, float]] = {}
  ranked = None
  for line, text in enumerate(files.open_text(path), 1):
    if not text.strip():
      continue
    if ranked is None:
      ranked = "\t" in text and " qid:" not in text
    found = _ranked(text) if ranked else _labelled(text)
    if found is None:
      form = (
        "seed<TAB>rank<TAB>entity"
        if ranked
        else "label qid:QUERY ... # SEED-CANDIDATE"
      )
      raise InputError(
        f"expected {form}, got {text[:60]!r}", path=path, line=line
      )
    query, seed, candidate, value = found
    if seeds.setdefault(query, seed) != seed:
      raise InputError(
        f"query {query} has two seeds, {seeds[query]} and {seed}",
        path=path,
        line=line,
      )
    row = gold.setdefault(query, {})
    if candidate in row:
      raise InputError(
        f"{candidate} stands twice for query {query}", path=path, line=line
      )
    row[candidate] = value
  if not gold:
    raise InputError("has no line to read", path=path)
  return [
    RelatednessQuery(query, seeds[query], tuple(row), tuple(row.values()))
    for query, row in gold.items()
  ]


def _labelled(text: str) -> tuple[str, str, str, float] | None:
  match = _SVMLIGHT.match(text.strip())
  if match is None:
    return None
  label, query, seed, other = match.groups()
  return query, seed, other, float(label)


def _ranked(text: str) -> tuple[str, str, str, float] | None:
  fields = [field.strip() for field in text.split("\t")]
  if len(fields) != 3 or not all(fields):
    return None
  seed, rank, entity = fields
  if not (rank.isascii() and rank.isdigit() and len(rank) < 10):
    return None
  return seed, seed, entity, -float(rank)

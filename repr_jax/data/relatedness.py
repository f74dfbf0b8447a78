"""Queries of entity relatedness: a seed and candidates, graded or ranked.

Two public forms are read, plain or compressed:

- the SVMlight files of Ceccarelli et al. (2013), a candidate on each line:
  `label qid:QUERY feature:value ... # SEED-CANDIDATE`, entities by the ids of
  their Wikipedia pages, label 1 for a related one and 0 for another (names
  may have hyphens: all lines of a query begin with the same seed);
- KORE (Hoffart et al. 2012): `seed<TAB>rank<TAB>entity`, rank 1 for the most
  related.
"""

import re
from typing import NamedTuple

from repr_jax.data.io import files
from repr_jax.errors import InputError

_SVMLIGHT = re.compile(
  r"(?P<label>[01]) +qid:(?P<query>\S+) (?:.* )?# *(?P<pair>\S+?-\S+)"
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


class _Row(NamedTuple):
  """A line of a file, about one candidate.

  Attributes:
    line: its number.
    query: the query's name.
    seeds: what the seed may be, the shortest first.
    pair: seed and candidate, joined by one character.
    value: the candidate's gold value.
  """

  line: int
  query: str
  seeds: tuple[str, ...]
  pair: str
  value: float

  def candidate(self, seed: str) -> str:
    """The candidate, if the seed is this one."""
    return self.pair[len(seed) + 1 :]


def read_relatedness(path: files.Path) -> list[RelatednessQuery]:
  """Reads a file of either form, which its first line shows.

  Args:
    path: the file.

  Returns:
    The queries, in the order of the file. A line of another form, or a
    candidate that occurs twice for a query, is an `InputError`. Hyphens can
    make a query's seed ambiguous. The seed is then the one that leaves the most
    names known from other queries; among equals, the longest. A query of one
    line whose seed stays ambiguous is an `InputError`.
  """
  queries: dict[str, list[_Row]] = {}
  ranked = None
  for line, text in files.numbered_lines(path):
    if ranked is None:
      ranked = "\t" in text and " qid:" not in text
    row = _ranked(text, line) if ranked else _labeled(text, line)
    if row is None:
      form = (
        "seed<TAB>rank<TAB>entity"
        if ranked
        else "label qid:QUERY ... # SEED-CANDIDATE"
      )
      raise InputError(
        f"expected {form}, got {text[:60]!r}", path=path, line=line
      )
    queries.setdefault(row.query, []).append(row)
  if not queries:
    raise InputError("has no line to read", path=path)
  shared = {name: _shared(rows, path) for name, rows in queries.items()}
  known = {
    name
    for query, seeds in shared.items()
    if len(seeds) == 1
    for row in queries[query]
    for name in (seeds[0], row.candidate(seeds[0]))
  }
  return [
    _query(rows, _choose(rows, shared[name], known, path), path)
    for name, rows in queries.items()
  ]


def _shared(rows: list[_Row], path: files.Path) -> list[str]:
  """The seeds that all lines of a query may have, the shortest first."""
  shared = list(rows[0].seeds)
  for row in rows[1:]:
    left = [seed for seed in shared if seed in row.seeds]
    if not left:
      raise InputError(
        f"query {row.query} has two seeds, {shared[-1]} and {row.seeds[-1]}",
        path=path,
        line=row.line,
      )
    shared = left
  return shared


def _choose(
  rows: list[_Row], seeds: list[str], known: set[str], path: files.Path
) -> str:
  """The seed of a query among those that its lines allow."""
  if len(seeds) == 1:
    return seeds[0]
  votes = [
    (seed in known) + sum(row.candidate(seed) in known for row in rows)
    for seed in seeds
  ]
  best = [seed for seed, count in zip(seeds, votes) if count == max(votes)]
  # Candidates seldom all begin alike, so a shared beginning is the seed.
  if len(best) == 1 or len(rows) > 1:
    return best[-1]
  raise InputError(
    f"{rows[0].pair!r} may have the seed {' or '.join(map(repr, best))}: name "
    "entities by page ids, or use seed<TAB>rank<TAB>entity",
    path=path,
    line=rows[0].line,
  )


def _query(rows: list[_Row], seed: str, path: files.Path) -> RelatednessQuery:
  gold: dict[str, float] = {}
  for row in rows:
    candidate = row.candidate(seed)
    if candidate in gold:
      raise InputError(
        f"{candidate} occurs twice for query {row.query}",
        path=path,
        line=row.line,
      )
    gold[candidate] = row.value
  return RelatednessQuery(
    rows[0].query, seed, tuple(gold), tuple(gold.values())
  )


def _labeled(text: str, line: int) -> _Row | None:
  match = _SVMLIGHT.match(text.strip())
  if match is None:
    return None
  label, query, pair = match.groups()
  hyphens = [i for i in range(1, len(pair) - 1) if pair[i] == "-"]
  seeds = tuple(pair[:i] for i in hyphens)
  return _Row(line, query, seeds, pair, float(label))


def _ranked(text: str, line: int) -> _Row | None:
  fields = [field.strip() for field in text.split("\t")]
  if len(fields) != 3 or not all(fields):
    return None
  seed, rank, entity = fields
  if not (rank.isascii() and rank.isdigit() and len(rank) < 10):
    return None
  return _Row(line, seed, (seed,), f"{seed}\t{entity}", -float(rank))

"""Entities as people name them: typed, pasted, or by id."""

from typing import Any

import numpy as np

from repr_jax.data.entities import features
from repr_jax.data.entities.query_text import Member, parse_members
from repr_jax.errors import InputError

_NEAREST = 3  # Names that stand in for an unknown one.
_LOOKED_AT = 200  # Names with a common beginning that are put in order.
_HELPED = 20  # Unknown names that the nearest are looked for.


class Entities:
  """The entities of a model, to be found."""

  def __init__(self, table: features.FeatureTable, most: int):
    """Prepares the search.

    Args:
      table: the entities.
      most: how many a pasted list may name.
    """
    self._table = table
    self._most = most
    self._told = np.diff(table.sentences.entity_starts).tolist()
    self._sizes = np.diff(table.counts.indptr).tolist()
    table.name_index.prepare()

  def search(self, text: str, limit: int) -> dict[str, Any]:
    """Entities by the beginning of their names, then by likeness.

    Names that have the text as whole words come first, and among those the
    entities that most is told about.

    Args:
      text: what was typed.
      limit: entities at most.
    """
    text = text.strip()
    index = self._table.name_index
    begun = index.begin(text, _LOOKED_AT)
    rows = sorted(begun, key=lambda row: self._rank(row, text))[:limit]
    if text in self._table.rows:
      own = self._table.rows[text]
      rows = [own, *(row for row in rows if row != own)][:limit]
    near = []
    if len(rows) < limit and len(text) > 2:
      near = [x for x in index.suggest(text, limit) if x not in rows]
    found = [{**self.describe(row), "match": "prefix"} for row in rows]
    found += [{**self.describe(row), "match": "similar"} for row in near]
    return {"entities": found[:limit]}

  def resolve(self, text: str) -> dict[str, Any]:
    """Entities that a pasted list names.

    Args:
      text: names or ids, one on each line or between commas, with weights
        as in "Bach:2".

    Returns:
      Those found, and the others with the nearest names of the first few.
    """
    found: list[dict[str, Any]] = []
    unknown: list[dict[str, Any]] = []
    for line in text.splitlines():
      if not line.strip():
        continue
      for member in self._members(line):
        row = self._find(member.name)
        if len(found) + len(unknown) == self._most:
          raise InputError(f"the list has more than {self._most} names")
        if row is None:
          near = []
          if len(unknown) < _HELPED:
            near = self._table.name_index.suggest(member.name, _NEAREST)
          unknown.append(
            {"name": member.name, "nearest": [self.describe(x) for x in near]}
          )
        else:
          found.append({**self.describe(row), "weight": member.weight})
    return {"found": found, "unknown": unknown}

  def row(self, entity: str) -> int:
    """The row of an entity's id; `InputError` where there is none."""
    row = self._table.rows.get(entity)
    if row is None:
      raise InputError(
        f"there is no entity with the id {entity[:100]!r}: look ids up at "
        "/api/entities"
      )
    return row

  def describe(self, row: int) -> dict[str, Any]:
    """What the page shows of an entity."""
    return {
      "id": self._table.entities[row],
      "name": self._table.names[row],
      "sentences": self._told[row],
      "usable": self._sizes[row] > 0,
    }

  def _members(self, line: str) -> list[Member]:
    """Members of a line, which may be a name that has commas itself."""
    if self._find(line.strip()) is not None:
      return [Member(line.strip(), 1.0)]
    return parse_members(self._table, line, self._most)

  def _rank(self, row: int, text: str) -> tuple[bool, bool, int]:
    """Smaller for an entity that is likelier meant."""
    name, wanted = self._table.names[row].casefold(), text.casefold()
    return name != wanted, f" {wanted} " not in f" {name} ", -self._sizes[row]

  def _find(self, name: str) -> int | None:
    """The entity of an id or a name; of several, the one told of most."""
    if name in self._table.rows:
      return self._table.rows[name]
    found = self._table.name_index.find(name)
    return max(found, key=self._sizes.__getitem__, default=None)

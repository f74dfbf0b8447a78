"""Entities as people name them: typed, pasted, or by id."""

from typing import Any

import numpy as np

from repr_jax.data.entities import features
from repr_jax.data.entities.names import choices
from repr_jax.data.entities.query_text import Member, parse_members
from repr_jax.errors import InputError

_CHOICES = 5  # Entities shown for an ambiguous name.
_NEAREST = 3  # Suggestions for an unknown name.
_MAX_PREFIXED = 200  # Most names with a prefix that are ranked.
_MAX_HELPED = 20  # Most unknown names of a list that get suggestions.


class Entities:
  """The entities of a model, by name and id."""

  def __init__(self, table: features.FeatureTable, max_names: int):
    """Prepares the search.

    Args:
      max_names: names in a pasted list at most.
    """
    self._table = table
    self._max_names = max_names
    self._sentences = np.diff(table.sentences.entity_starts).tolist()
    self._sizes = np.diff(table.counts.indptr).tolist()
    table.name_index.prepare()

  def search(self, text: str, limit: int) -> dict[str, Any]:
    """Entities whose names have a prefix, then those with similar names.

    Names that contain the text as whole words come first, and among those
    the entities with most features.

    Args:
      text: the prefix, or an id.
      limit: entities at most.
    """
    text = text.strip()
    index = self._table.name_index
    begun = index.begin(text, _MAX_PREFIXED)
    rows = sorted(begun, key=lambda row: self._rank(row, text))[:limit]
    if text in self._table.rows:
      own = self._table.rows[text]
      rows = [own, *(row for row in rows if row != own)][:limit]
    near = []
    if len(rows) < limit and len(text) > 2:
      near = [x for x in index.suggest(text, limit) if x not in rows]
    matches = [{**self.describe(row), "match": "prefix"} for row in rows]
    matches += [{**self.describe(row), "match": "similar"} for row in near]
    return {"entities": matches[:limit]}

  def resolve(self, text: str) -> dict[str, Any]:
    """Entities that a pasted list names.

    Args:
      text: names or ids, one on each line or between commas, with weights
        as in "Bach:2".

    Returns:
      "entities", and "unknown": each name that is ambiguous, with the
      entities of that name, or unknown, with the nearest names.
    """
    known: list[dict[str, Any]] = []
    unknown: list[dict[str, Any]] = []
    for line in text.splitlines():
      if not line.strip():
        continue
      for member in self._members(line):
        rows = choices(self._table, member.name)
        if len(known) + len(unknown) == self._max_names:
          raise InputError(f"the list has more than {self._max_names} names")
        if len(rows) != 1:
          # The reader chooses among several entities of one name.
          near = rows[:_CHOICES]
          if not near and len(unknown) < _MAX_HELPED:
            near = self._table.name_index.suggest(member.name, _NEAREST)
          unknown.append(
            {
              "name": member.name,
              "ambiguous": len(rows) > 1,
              "nearest": [self.describe(x) for x in near],
            }
          )
        else:
          known.append({**self.describe(rows[0]), "weight": member.weight})
    return {"entities": known, "unknown": unknown}

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
    """An entity as the page shows it."""
    return {
      "id": self._table.entities[row],
      "name": self._table.names[row],
      "sentences": self._sentences[row],
      "usable": self._sizes[row] > 0,
    }

  def _members(self, line: str) -> list[Member]:
    """Members of a line. A line that is a known name is one member."""
    if line.strip() in self._table.rows or self._table.name_index.find(line):
      return [Member(line.strip(), 1.0)]
    return parse_members(self._table, line, self._max_names)

  def _rank(self, row: int, text: str) -> tuple[bool, bool, int]:
    """Sort key: smaller for likelier entities."""
    name, wanted = self._table.names[row].casefold(), text.casefold()
    return name != wanted, f" {wanted} " not in f" {name} ", -self._sizes[row]

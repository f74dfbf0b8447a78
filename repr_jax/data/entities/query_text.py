"""Queries of entities as people write them."""

import csv
import math
from typing import TYPE_CHECKING, NamedTuple

from repr_jax.errors import InputError

if TYPE_CHECKING:
  from repr_jax.data.entities.features import FeatureTable


class Member(NamedTuple):
  """A name of a query with its weight."""

  name: str
  weight: float


def parse_members(table: "FeatureTable", text: str, most: int) -> list[Member]:
  """Reads "Abraham Lincoln, George Washington:2, Richard Nixon:-0.5".

  Args:
    table: the entities; a known name may itself end in a colon and a number.
    text: names or ids between commas, quoted where they hold a comma.
    most: members at most.

  Returns:
    The members, each with weight 1 unless told.
  """
  try:
    parts = next(csv.reader([text], skipinitialspace=True), [])
  except csv.Error as error:
    raise InputError(f"the query cannot be read: {error}") from None
  members = []
  for part in (x.strip() for x in parts):
    if not part:
      continue
    name, colon, tail = part.rpartition(":")
    weight = _number(tail)
    known = part in table.rows or bool(table.name_index.find(part))
    if not colon or not name or weight is None or known:
      members.append(Member(part, 1.0))
    else:
      members.append(Member(name.strip(), weight))
  if not members:
    raise InputError("the query is empty: name one entity or more")
  if len(members) > most:
    raise InputError(
      f"the query has {len(members)} entities; --max_members allows {most}"
    )
  return members


def _number(text: str) -> float | None:
  try:
    value = float(text)
  except ValueError:
    return None
  if not math.isfinite(value):
    raise InputError(f"a weight in the query is not finite: {text.strip()}")
  return value

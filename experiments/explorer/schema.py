"""What each address of the API takes: one table checks input and documents it.

`ENDPOINTS` is the only description; `check` holds a request to it, and
`openapi.document` writes it down.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from experiments.explorer.answers import MOST_RESULTS
from repr_jax.errors import InputError
from repr_jax.setexp.systems import RANKINGS, SYSTEMS

LARGEST_BODY = 64 * 1024
LARGEST_WEIGHT = 100.0
_MEMBERS = 1000


class Field(NamedTuple):
  """One value of a request.

  Attributes:
    kind: "string", "integer", "number", "boolean", "strings" or "members".
    text: what it means.
    default: taken where it is absent; None if it must be there.
    least: smallest value, or length.
    most: greatest value, or length.
    choices: the strings that there are, where not every one is.
  """

  kind: str
  text: str
  default: Any = None
  least: float = 0
  most: float = 0
  choices: tuple[str, ...] = ()


class Endpoint(NamedTuple):
  """One address: its method, what it does, and its values by name."""

  method: str
  text: str
  fields: Mapping[str, Field]


_QUERY = {
  "members": Field(
    "members", "Entities of the query with weights.", None, 1, _MEMBERS
  ),
  "system": Field("string", "Who is asked.", "nvse", 1, 20, SYSTEMS),
  "ranking": Field(
    "string",
    "Score that nvse ranks by; its usual one by default.",
    "",
    0,
    20,
    ("", *RANKINGS),
  ),
}
ENDPOINTS = {
  "/api/model": Endpoint(
    "GET", "Systems, ranking scores, limits and two example queries.", {}
  ),
  "/api/status": Endpoint(
    "GET",
    "Requests, calls and compilations since the start; bytes of memory.",
    {},
  ),
  "/api/entities": Endpoint(
    "GET",
    "Entities whose names begin like a text or are similar to it.",
    {
      "q": Field("string", "What was typed.", None, 1, 200),
      "limit": Field("integer", "Entities at most.", 10, 1, 50),
    },
  ),
  "/api/resolve": Endpoint(
    "POST",
    "Entities of a pasted list of names.",
    {
      "text": Field(
        "string",
        "Names or ids on lines or between commas, weights as in Bach:2.",
        None,
        1,
        20_000,
      )
    },
  ),
  "/api/expand": Endpoint(
    "POST",
    "The best entities for a query, its own members left out.",
    {**_QUERY, "k": Field("integer", "Entities.", 10, 1, MOST_RESULTS)},
  ),
  "/api/rationale": Endpoint(
    "POST",
    "The features that a query stands for, and its concept.",
    {
      **_QUERY,
      "features": Field("integer", "Features.", 10, 1, 100),
      "relative": Field(
        "boolean", "Weigh features against what any entity has.", False
      ),
      "previous": Field(
        "members",
        "Members of the query before: what entered and left is told.",
        (),
        0,
        _MEMBERS,
      ),
    },
  ),
  "/api/sentences": Endpoint(
    "POST",
    "The sentences that speak best for entities, words marked.",
    {
      **_QUERY,
      "entities": Field("strings", "Ids of entities.", None, 1, 25),
      "sentences": Field("integer", "Sentences of each.", 1, 1, 10),
    },
  ),
}


def read_json(body: bytes) -> dict[str, Any]:
  """An object of a request's body.

  Args:
    body: UTF-8; NaN, infinities and names that come twice are refused.
  """

  def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in items}) < len(items):
      raise ValueError("a name comes twice in an object")
    return dict(items)

  def constant(name: str) -> None:
    raise ValueError(f"{name} is no number")

  try:
    found = json.loads(
      body.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant
    )
  except (ValueError, RecursionError) as error:
    raise InputError(f"the body is not JSON: {error}") from None
  if not isinstance(found, dict):
    raise InputError("the body is not a JSON object")
  return found


def check(
  fields: Mapping[str, Field], values: Mapping[str, Any]
) -> dict[str, Any]:
  """The values of a request, whole and in range.

  Args:
    fields: what is asked for.
    values: what came.

  Returns:
    A value for each field; anything else is an `InputError`.
  """
  for name in values:
    if name not in fields:
      known = ", ".join(fields) or "none"
      raise InputError(f"there is no field {name[:100]!r}; there are {known}")
  found = {}
  for name, field in fields.items():
    if name in values:
      found[name] = _CHECKS[field.kind](name, field, values[name])
    elif field.default is None:
      raise InputError(f"{name} is missing")
    else:
      found[name] = field.default
  return found


def from_text(
  fields: Mapping[str, Field], pairs: Iterable[tuple[str, str]]
) -> dict[str, Any]:
  """Values of an address' query string, integers read as such.

  Args:
    fields: what is asked for.
    pairs: names and values as they came.
  """
  found: dict[str, Any] = {}
  for name, value in pairs:
    if name in found:
      raise InputError(f"{name[:100]} comes twice")
    found[name] = value
    if name in fields and fields[name].kind == "integer":
      plain = value.isascii() and value.isdecimal() and len(value) < 10
      found[name] = int(value) if plain else value
  return check(fields, found)


def _string(name: str, field: Field, value: Any) -> str:
  if not isinstance(value, str):
    raise InputError(f"{name} must be a string")
  if not field.least <= len(value) <= field.most:
    raise InputError(
      f"{name} must have {field.least:g} to {field.most:g} characters, not "
      f"{len(value)}"
    )
  if field.choices and value not in field.choices:
    known = ", ".join(filter(None, field.choices))
    raise InputError(f"{name} must be one of {known}, not {value!r}")
  return value


def _integer(name: str, field: Field, value: Any) -> int:
  if isinstance(value, bool) or not isinstance(value, int):
    raise InputError(f"{name} must be a whole number")
  if not field.least <= value <= field.most:
    raise InputError(f"{name} must be from {field.least:g} to {field.most:g}")
  return value


def _boolean(name: str, field: Field, value: Any) -> bool:
  del field
  if not isinstance(value, bool):
    raise InputError(f"{name} must be true or false")
  return value


def _list(name: str, field: Field, value: Any) -> list[Any]:
  if not isinstance(value, list):
    raise InputError(f"{name} must be a list")
  if not field.least <= len(value) <= field.most:
    raise InputError(
      f"{name} must have {field.least:g} to {field.most:g} entries, not "
      f"{len(value)}"
    )
  return value


def _strings(name: str, field: Field, value: Any) -> tuple[str, ...]:
  each = Field("string", "", None, 1, 1000)
  return tuple(
    _string(f"{name}[{i}]", each, x)
    for i, x in enumerate(_list(name, field, value))
  )


def _members(
  name: str, field: Field, value: Any
) -> tuple[tuple[str, float], ...]:
  found = []
  each = Field("string", "", None, 1, 1000)
  for i, item in enumerate(_list(name, field, value)):
    place = f"{name}[{i}]"
    if not isinstance(item, dict) or set(item) - {"id", "weight"}:
      raise InputError(f"{place} must be an object of id and weight")
    entity = _string(f"{place}.id", each, item.get("id"))
    weight = item.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
      raise InputError(f"{place}.weight must be a number")
    if not abs(weight) <= LARGEST_WEIGHT or not math.isfinite(weight):
      raise InputError(
        f"{place}.weight must be from -{LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
      )
    found.append((entity, float(weight)))
  return tuple(found)


_CHECKS: dict[str, Callable[[str, Field, Any], Any]] = {
  "string": _string,
  "integer": _integer,
  "boolean": _boolean,
  "strings": _strings,
  "members": _members,
}

"""Judged queries of set expansion: what systems returned and how they fared.

One JSON object on each line, plain or compressed:

    {"qid": 102, "stratum": "1", "n_entities": 3, "category": "Composers",
     "entities": [{"name": "Bach", "abstract": "Bach was ...",
                   "candidate_ids": ["e7"]}, ...],
     "group": 1, "systems": {"NVSE": ["e1", "e9"], "BM25": ["e4"]},
     "judgement": {"NVSE": 1, "BM25": 2}}

`candidate_ids` may be absent and a judgment may be null.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from repr_jax.data.io import files, json_files
from repr_jax.errors import InputError


class Member(NamedTuple):
  """One entity of a query.

  Attributes:
    name: its name.
    abstract: a text about it, "" where there is none.
    candidate_ids: entities that have this name; any of them may be meant.
  """

  name: str
  abstract: str
  candidate_ids: tuple[str, ...]


class JudgedQuery(NamedTuple):
  """A query with the lists that systems returned and the judges' places.

  Attributes:
    qid: the query's id; the same query may be judged in several groups.
    group: which systems were compared.
    stratum: how often the members are mentioned, such as "2-10".
    category: what the members have in common.
    members: the query's entities.
    systems: ids of entities in rank order, by system.
    places: 1 for the best, by system; None where there is no judgment.
  """

  qid: str
  group: str
  stratum: str
  category: str
  members: tuple[Member, ...]
  systems: dict[str, tuple[str, ...]]
  places: dict[str, int | None]


def read_judged_queries(path: files.Path) -> list[JudgedQuery]:
  """Reads a file of judged queries.

  Args:
    path: the file.

  Returns:
    The queries in the order of the file.

  Raises:
    InputError: naming the line that is not such an object, or a file without
      any query.
  """
  queries = []
  for number, line in files.numbered_lines(path):
    try:
      queries.append(_query(json_files.parse_json(line)))
    except (KeyError, TypeError, ValueError) as error:
      what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
      raise InputError(
        f"not a judged query: {what}", path=path, line=number
      ) from error
  if not queries:
    raise InputError("there is no query in the file", path=path)
  return queries


def _query(record: Any) -> JudgedQuery:
  if not isinstance(record, dict):
    raise ValueError("a JSON object is needed")
  members = tuple(_member(item) for item in _list(record, "entities"))
  if not members:
    raise ValueError('"entities" is empty')
  systems = _by_system(record, "systems", _ids)
  places = _by_system(record, "judgement", _place)
  unknown = sorted(set(places) - set(systems))
  if unknown:
    raise ValueError(f'"judgement" names {unknown[0]!r}, "systems" does not')
  return JudgedQuery(
    qid=_name(record, "qid"),
    group=_name(record, "group"),
    stratum=_name({"stratum": "", **record}, "stratum"),
    category=_name({"category": "", **record}, "category"),
    members=members,
    systems=systems,
    places=places,
  )


def _member(item: Any) -> Member:
  name = item["name"] if isinstance(item, dict) else None
  if not isinstance(name, str) or not name.strip():
    raise ValueError('each of "entities" needs a "name"')
  abstract = item.get("abstract") or ""
  if not isinstance(abstract, str):
    raise ValueError('an "abstract" must be a text')
  return Member(name, abstract, _ids(item.get("candidate_ids") or []))


def _name(record: dict[str, Any], key: str) -> str:
  """A text, or a whole number as text."""
  if type(record[key]) not in (str, int):
    raise ValueError(f'"{key}" must be a text or a whole number')
  return str(record[key])


def _list(record: dict[str, Any], key: str) -> list[Any]:
  if not isinstance(record[key], list):
    raise ValueError(f'"{key}" must be a list')
  return record[key]


def _by_system(
  record: dict[str, Any], key: str, read: Callable[[Any], Any]
) -> dict[str, Any]:
  if not isinstance(record[key], dict):
    raise ValueError(f'"{key}" must be an object, one entry for each system')
  return {name: read(value) for name, value in record[key].items()}


def _ids(value: Any) -> tuple[str, ...]:
  if not isinstance(value, list) or not all(
    isinstance(x, str) and x.strip() for x in value
  ):
    raise ValueError("ids of entities must be a list of strings")
  return tuple(value)


def _place(value: Any) -> int | None:
  if value is None:
    return None
  if isinstance(value, bool) or not isinstance(value, int) or value < 1:
    raise ValueError(f"a place must be 1 or more or null, not {value!r}")
  return value

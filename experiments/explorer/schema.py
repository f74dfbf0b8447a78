"""Requests of the API, as pydantic models that check and describe them."""

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import pydantic
from pydantic import Field

from experiments.explorer.answers import MAX_RESULTS
from experiments.run.expander import SYSTEMS
from repr_jax.errors import InputError
from repr_jax.setexp import SCORES

MAX_BODY = 64 * 1024
_MAX_MEMBERS = 1000


class Request(pydantic.BaseModel):
  """A request whose values are checked strictly: "1" is no number."""

  model_config = pydantic.ConfigDict(
    strict=True, extra="forbid", frozen=True, allow_inf_nan=False
  )


R = TypeVar("R", bound=Request)
Id = Annotated[str, Field(min_length=1, max_length=1000)]


class Member(Request):
  """An entity of a query."""

  id: Id
  weight: float = Field(1.0, ge=-100, le=100)


class Search(Request):
  """Entities whose names begin like a text or are similar to it."""

  q: str = Field(description="Text to look for.", min_length=1, max_length=200)
  limit: int = Field(
    10, description="Most entities.", ge=1, le=50, strict=False
  )


class Resolve(Request):
  """Entities of a pasted list of names."""

  text: str = Field(
    description="Names or ids on lines or between commas; weights as in "
    "Bach:2.",
    min_length=1,
    max_length=20_000,
  )


class _Members(Request):
  members: list[Member] = Field(
    description="Entities of the query.", min_length=1, max_length=_MAX_MEMBERS
  )


class Query(_Members):
  """A weighted set of entities, put to one system."""

  system: Literal[SYSTEMS] = Field(  # type: ignore[valid-type]
    "nvse", description="System to ask."
  )
  ranking: Literal[("", *SCORES)] = Field(  # type: ignore[valid-type]
    "", description="Score that nvse ranks by; its usual one by default."
  )


class Expand(Query):
  """The best entities for a query, its own members left out."""

  k: int = Field(10, description="Most entities.", ge=1, le=MAX_RESULTS)


class Reasons(Query):
  """The features that added most to the scores of entities, with shares."""

  entities: list[Id] = Field(
    description="Ids of entities.", min_length=1, max_length=MAX_RESULTS
  )
  features: int = Field(10, description="Most for each score.", ge=1, le=100)


class Concept(_Members):
  """The autoencoder's concept of a query: its features and dimensions."""

  features: int = Field(10, description="Most features.", ge=1, le=100)
  relative: bool = Field(
    False, description="Weigh features against the prior's mean."
  )


class Sentences(Query):
  """The sentences that support entities most, with words marked."""

  entities: list[Id] = Field(
    description="Ids of entities.", min_length=1, max_length=25
  )
  sentences: int = Field(1, description="Most for each entity.", ge=1, le=10)


class Chances(Query):
  """Chances of entities to belong to the set, and the size of the set."""

  entities: list[Id] = Field(
    description="Ids of entities.", min_length=1, max_length=MAX_RESULTS
  )


class Entity(Request):
  """An entity: its features, its sentences, and the entities nearest to it."""

  id: Id = Field(description="Id of the entity.")
  sentences: int = Field(
    20, description="Most sentences.", ge=1, le=200, strict=False
  )


class Document(Request):
  """The sentences of a document that the model has, in order."""

  name: Id = Field(description="Name of the document.")


class Model(Request):
  """Systems, ranking scores, limits and two example queries."""


class Status(Request):
  """Requests, calls and compilations since the start; bytes of memory."""


class Endpoint(NamedTuple):
  """The method of an address, and the requests that it takes."""

  method: str
  request: type[Request]


ENDPOINTS = {
  "/api/model": Endpoint("GET", Model),
  "/api/status": Endpoint("GET", Status),
  "/api/entities": Endpoint("GET", Search),
  "/api/resolve": Endpoint("POST", Resolve),
  "/api/expand": Endpoint("POST", Expand),
  "/api/reasons": Endpoint("POST", Reasons),
  "/api/concept": Endpoint("POST", Concept),
  "/api/sentences": Endpoint("POST", Sentences),
  "/api/chances": Endpoint("POST", Chances),
  "/api/entity": Endpoint("GET", Entity),
  "/api/document": Endpoint("GET", Document),
}


def read_json(body: bytes) -> dict[str, Any]:
  """Reads a request's body; refuses NaN and keys that come twice.

  Args:
    body: a JSON object in UTF-8.
  """

  def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(items)
    if len(values) < len(items):
      raise ValueError("a name comes twice in an object")
    return values

  def constant(name: str) -> None:
    raise ValueError(f"{name} is no number")

  try:
    values = json.loads(
      body.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant
    )
  except (ValueError, RecursionError) as error:
    raise InputError(f"the body is not JSON: {error}") from None
  if not isinstance(values, dict):
    raise InputError("the body is not a JSON object")
  return values


def check(kind: type[R], values: dict[str, Any]) -> R:
  """Checks the values of a request.

  Raises:
    InputError: one line that names the first wrong field.
  """
  try:
    return kind.model_validate(values)
  except pydantic.ValidationError as error:
    raise InputError(_first_error(error)) from None


def check_text(kind: type[R], pairs: Iterable[tuple[str, str]]) -> R:
  """Checks the values of an address' query string."""
  values: dict[str, str] = {}
  for name, value in pairs:
    if name in values:
      raise InputError(f"{name[:100]} comes twice")
    values[name] = value
  return check(kind, values)


_MESSAGES = {
  "missing": "is missing",
  "extra_forbidden": "is not a field of this request",
  "model_type": "should be an object",
}


def _first_error(error: pydantic.ValidationError) -> str:
  first = error.errors(include_url=False, include_input=False)[0]
  place = "".join(
    f"[{part}]" if isinstance(part, int) else f".{part[:100]}"
    for part in first["loc"]
  )
  text = re.sub("^(Input|List|String) ", "", first["msg"])
  return f"{place[1:] or 'a name'} {_MESSAGES.get(first['type'], text)}"

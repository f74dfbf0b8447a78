"""Requests: what is accepted, and the line that refuses the rest."""

import pytest

from experiments.explorer import schema
from repr_jax.errors import InputError


def test_values_are_taken_with_their_defaults():
  body = b'{"members": [{"id": "a"}, {"id": "b", "weight": -1}], "k": 5}'
  request = schema.check(schema.Expand, schema.read_json(body))
  assert [(x.id, x.weight) for x in request.members] == [("a", 1), ("b", -1)]
  assert (request.system, request.ranking, request.k) == ("nvse", "", 5)
  request = schema.check(
    schema.Expand, {"members": [{"id": "a"}], "system": "gcca"}
  )
  assert request.system == "gcca"
  search = schema.check_text(schema.Search, [("q", "x"), ("limit", "5")])
  assert (search.q, search.limit) == ("x", 5)


@pytest.mark.parametrize(
  ("body", "message"),
  [
    (b"{", "not JSON"),
    (b"[1]", "not a JSON object"),
    (b'{"k": NaN}', "NaN is no number"),
    (b'{"k": -Infinity}', "-Infinity is no number"),
    (b'{"a": {"k": 1, "k": 2}}', "twice"),
    (b'{"k": "\xff"}', "not JSON"),
    (b'{"a":' * 30_000, "not JSON"),
    (b'{"k": ' + b"9" * 5_000 + b"}", "not JSON"),
  ],
)
def test_bodies_are_refused(body, message):
  with pytest.raises(InputError, match=message):
    schema.read_json(body)


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({}, "members is missing"),
    (
      {"members": [{"id": "a", "weight": float("nan")}]},
      r"members\[0\].weight",
    ),
    (
      {"members": [{"id": "a", "weight": 1e999}]},
      r"^members\[0\].weight should",
    ),
    ({"members": [{"id": "a"}], "k": 10**400}, "k should be less than"),
    ({"members": [{"id": "a"}], "k": True}, "k should be a valid integer"),
    ({"members": [{"id": "a"}], "y" * 999: 1}, "^y{100} is not a field"),
    ({"members": [{"id": "a"}], "\ud800": 1}, "a name should be a valid"),
  ],
)
def test_the_first_wrong_field_is_named_in_one_line(values, message):
  with pytest.raises(InputError, match=message) as caught:
    schema.check(schema.Expand, values)
  assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_a_value_that_comes_twice_is_refused():
  with pytest.raises(InputError, match="q comes twice"):
    schema.check_text(schema.Search, [("q", "a"), ("q", "b")])

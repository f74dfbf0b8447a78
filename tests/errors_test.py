"""The error of bad input: one line that names its place."""

import pathlib

import pytest

from repr_jax import errors


@pytest.mark.parametrize(
  ("place", "text"),
  [
    ({}, "is odd"),
    ({"path": "a.txt"}, "a.txt: is odd"),
    ({"path": pathlib.Path("a.txt"), "line": 3}, "a.txt:3: is odd"),
    ({"line": 3}, "is odd"),
  ],
)
def test_the_message_names_file_and_line(place, text):
  error = errors.InputError("is odd", **place)
  assert str(error) == text and isinstance(error, ValueError)
  assert error.path == (str(place["path"]) if "path" in place else None)
  assert error.line == place.get("line")


def test_a_long_message_keeps_both_of_its_ends():
  text = str(errors.InputError("begin " + "x" * 10_000 + " end", path="a"))
  assert text.startswith("a: begin") and text.endswith("end")
  assert len(text) < 2000


def test_the_most_similar_name_is_suggested():
  known = {"oak", "elm", "tree"}
  assert errors.did_you_mean("oka", known) == " (did you mean 'oak'?)"
  assert errors.did_you_mean("fir", known) == ""
  assert errors.did_you_mean("oak" * 1000, known | {"oak" * 1001}) == ""

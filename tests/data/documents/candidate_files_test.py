"""Documents with candidates: read whole, refused with file and line."""

import json

import pytest

from repr_jax.data.documents import candidate_files
from repr_jax.errors import InputError

_DOCUMENT = {
  "doc_id": "d",
  "text": "Bonn beat Paris and Rome",
  "mentions": [
    {"start": 10, "end": 15, "wikipedia_title": "paris,_Texas"},
    {"start": 0, "end": 4, "wikipedia_title": None},
  ],
  "unlinked_mentions": [{"start": 20, "end": 24}],
}
_LINE = {
  "doc": "d", "mention": 0, "start": 10, "end": 15,
  "candidates": [
    {"id": 1, "title": "Paris", "in_links": 9, "out_links": 3, "links": [2]},
    {"id": 2, "title": "Paris,_Texas", "in_links": 0, "links": []},
  ],
}  # fmt: skip


def _read(tmp_path, document=_DOCUMENT, line=_LINE):
  first, second = tmp_path / "d.jsonl", tmp_path / "c.jsonl"
  first.write_text(json.dumps(document) + "\n")
  second.write_text("\n" + json.dumps(line) + "\n")
  return candidate_files.read_candidate_documents(first, second)


def test_mentions_are_in_the_order_of_the_text(tmp_path):
  (document,) = _read(tmp_path)
  first, second = document.mentions
  assert (first.surface, first.entity, first.candidates) == ("Bonn", None, ())
  assert (second.surface, second.entity) == ("Paris", "Paris, Texas")
  assert [x.title for x in second.candidates] == ["Paris", "Paris, Texas"]
  assert second.candidates[0].links == (2,)
  assert document.unlinked == ("Rome",)


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"doc": "e"}, "no document 'e'"),
    ({"mention": 7}, "no mention 7"),
    ({"mention": True}, "no mention True"),
    ({"start": 9}, "stands at"),
    ({"candidates": [{"id": 1}]}, "expected"),
    ({"candidates": 2 * _LINE["candidates"]}, "twice"),
    (
      {"candidates": [{"id": 1, "title": "A", "in_links": -1}]},
      "not from 0",
    ),
    (
      {"candidates": [{"id": 1, "title": "A", "in_links": 10**20}]},
      "not from 0",
    ),
    (
      {"candidates": [{"id": 1, "title": "A", "in_links": float("inf")}]},
      "expected",
    ),
  ],
)
def test_a_wrong_candidate_line_is_refused_with_its_line(
  tmp_path, change, message
):
  with pytest.raises(InputError, match=message) as caught:
    _read(tmp_path, line={**_LINE, **change})
  assert caught.value.line == 2
  assert caught.value.path.endswith("c.jsonl")


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"mentions": [{"start": 10, "end": 99}]}, "outside"),
    ({"mentions": [{"start": 10}]}, "whole numbers"),
    ({"mentions": [3]}, "list of objects"),
    ({"mentions": [{"start": 1, "end": 2, "surface": "x"}]}, "not stand"),
    ({"mentions": [{"start": 1, "end": 2, "entity": 3}]}, "not a name"),
    ({"unlinked_mentions": "x"}, "list of objects"),
    ({"mentions": 2 * [{"start": 1, "end": 2}]}, "twice"),
    ({"text": 3}, "both texts"),
  ],
)
def test_a_wrong_document_is_refused_with_its_line(tmp_path, change, message):
  with pytest.raises(InputError, match=message) as caught:
    _read(tmp_path, document={**_DOCUMENT, **change})
  assert caught.value.line == 1


@pytest.mark.parametrize("unlinked", [None, []])
def test_null_stands_for_no_mentions(tmp_path, unlinked):
  path = tmp_path / "d.jsonl"
  record = {"doc": "d", "text": "x", "mentions": None}
  path.write_text(json.dumps({**record, "unlinked_mentions": unlinked}))
  (document,) = candidate_files.read_gold_documents(path)
  assert document.mentions == ()


def test_popularity_is_read_by_title(tmp_path):
  path = tmp_path / "p.tsv"
  path.write_text("A b\t1.5\nC\t2\n")
  assert candidate_files.read_popularity(path) == {"A b": 1.5, "C": 2.0}
  path.write_text("A b\t1.5\nC 2\n")
  with pytest.raises(InputError, match=":2: expected"):
    candidate_files.read_popularity(path)
  path.write_text("A\tinf\n")
  with pytest.raises(InputError, match=":1: expected"):
    candidate_files.read_popularity(path)

"""Documents with linked mentions: what is read, and what is refused."""

import gzip
import json

import pytest

from repr_jax import errors
from repr_jax.data.documents import linked_documents
from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)

_TEXT = "Bob Nardelli left Home Depot's board."


def _write(path, *records):
  path.write_text("".join(json.dumps(record) + "\n" for record in records))
  return path


def _record(*mentions, text=_TEXT, unlinked=()):
  named = [dict(zip(("start", "end", "wikipedia_title"), m)) for m in mentions]
  others = [{"start": a, "end": b} for a, b in unlinked]
  return {
    "doc_id": "d",
    "text": text,
    "mentions": named,
    "unlinked_mentions": others,
  }


def test_json_lines_with_offsets(tmp_path):
  record = _record(
    (18, 28, "The_Home_Depot"), (0, 12, "Robert Nardelli"), unlinked=[(31, 36)]
  )
  path = tmp_path / "x.jsonl.gz"
  path.write_bytes(gzip.compress(json.dumps(record).encode()))
  (found,) = linked_documents.read_documents(path)
  assert found.id == "d"
  assert found.tokens[:5] == ("Bob", "Nardelli", "left", "Home", "Depot")
  assert found.mentions == (
    LinkedMention(0, 2, "Bob Nardelli", "Robert Nardelli"),
    LinkedMention(3, 5, "Home Depot", "The Home Depot"),
    LinkedMention(6, 7, "board", None),
  )


def test_mentions_without_text_are_joined(tmp_path):
  record = {
    "doc_id": "a",
    "mentions": [
      {"surface": "EU", "wikipedia_title": None, "source_offset": 0},
      {"surface": "New York", "wikipedia_title": "New York City"},
    ],
  }
  (found,) = linked_documents.read_documents(_write(tmp_path / "x", record))
  assert found.tokens == ("EU", "New", "York")
  assert found.mentions == (
    LinkedMention(0, 1, "EU", None),
    LinkedMention(1, 3, "New York", "New York City"),
  )


def test_wikidata_ids_become_titles(tmp_path):
  both = {"start": 0, "end": 3, "wikidata_id": "Q1", "wikipedia_title": "Bob_B"}
  ids = [{"start": 0, "end": 3, "wikidata_id": q} for q in ("Q1", "Q2")]
  ids[1] |= {"start": 4, "end": 12}
  first = _write(tmp_path / "a", {"text": _TEXT, "mentions": [both]})
  second = _write(tmp_path / "b", {"text": _TEXT, "mentions": ids})
  titles = linked_documents.read_titles([first, second])
  assert titles == {"Q1": "Bob B"}
  (found,) = linked_documents.read_documents(second, titles)
  assert [m.entity for m in found.mentions] == ["Bob B", "Q2"]


@pytest.mark.parametrize(
  ("given", "kept", "title"),
  [
    ("New_York_City", "New York City", "New York City"),
    ("eBay", "eBay", "EBay"),
    ("bach#1", "bach#1", "Bach#1"),
  ],
)
def test_an_entity_is_written_as_a_prior_has_it(tmp_path, given, kept, title):
  record = {"text": "NYC", "mentions": [{"start": 0, "end": 3}]}
  record["mentions"][0]["entity"] = given
  path = _write(tmp_path / "x", record)
  (found,) = linked_documents.read_documents(path)
  assert found.mentions[0].entity == kept
  (found,) = linked_documents.read_documents(path, as_titles=True)
  assert found.mentions[0].entity == title


def test_mentions_may_overlap(tmp_path):
  record = _record((0, 12, "Robert Nardelli"), (4, 12, "Nardelli"))
  (found,) = linked_documents.read_documents(_write(tmp_path / "x", record))
  assert [(m.start, m.end) for m in found.mentions] == [(0, 2), (1, 2)]


def test_a_document_without_mentions_is_kept(tmp_path):
  (found,) = linked_documents.read_documents(_write(tmp_path / "x", _record()))
  assert not found.mentions and found.tokens


@pytest.mark.parametrize(
  ("record", "message"),
  [
    (_record((30, 99, "X")), "outside the text, which has 37 characters"),
    (_record((-1, 3, "X")), "outside"),
    (_record((5, 5, "X")), "empty"),
    (_record((0, 3, "X"), (0, 3, "Y")), "two entities"),
    (_record((0, 3, "X"), unlinked=[(0, 3)]), "two entities"),
    ({"text": _TEXT, "mentions": [{"start": 0, "end": 3, "surface": "Rob"}]},
     "'Rob' does not stand at 0 to 3"),
    ({"text": _TEXT, "mentions": [{"start": True, "end": 3}]}, "whole numbers"),
    ({"text": 3}, '"text"'),
    ({"text": _TEXT, "mentions": ["x"]}, '"mentions"'),
    ({"mentions": [{"start": 0}]}, "surface"),
    (_record((0, 3, "")), "wikipedia_title"),
    ([1], "object"),
  ],
)  # fmt: skip
def test_bad_lines_are_named(tmp_path, record, message):
  path = _write(tmp_path / "x.jsonl", _record((0, 3, "Bob")), record)
  with pytest.raises(errors.InputError, match=r"x\.jsonl:2: ") as raised:
    list(linked_documents.read_documents(path))
  assert message in str(raised.value)


def test_no_json_and_no_documents(tmp_path):
  (tmp_path / "x").write_text('{"text": \n')
  with pytest.raises(errors.InputError, match="x:1: is not JSON"):
    list(linked_documents.read_documents(tmp_path / "x"))
  (tmp_path / "y").write_text("\n")
  with pytest.raises(errors.InputError, match="has no documents"):
    list(linked_documents.read_documents(tmp_path / "y"))


def test_context_takes_both_sides_in_turn_and_stops_at_breaks():
  mention = LinkedMention(3, 4, "M", None)
  document = LinkedDocument("d", tuple("abcMefg"), (mention,))
  around = linked_documents.context
  assert around(document, mention, 2) == ("c", "e", "b", "f")
  assert around(document, mention, 9) == ("c", "e", "b", "f", "a", "g")
  cut = document._replace(breaks=(0, 2, 6))
  assert around(cut, mention, 9) == ("c", "e", "f")
  first = LinkedMention(0, 1, "a", None)
  assert around(document, first, 2) == ("b", "c")


def test_public_documents_have_the_published_numbers(shared_data):
  folder = shared_data / "ned"
  if not folder.is_dir():
    pytest.skip(f"no entity linking documents at {folder}")
  published = {
    "elevant/aida-conll-test": (231, 4485, 1131),
    "entity-fishing/ace": (36, 257, 49),
    "entity-fishing/aida-train.mentions": (946, 18541, 4855),
  }
  for name, counts in published.items():
    found = list(linked_documents.read_documents(folder / f"{name}.jsonl.gz"))
    golds = [m.entity for d in found for m in d.mentions]
    nil = golds.count(None)
    assert (len(found), len(golds) - nil, nil) == counts

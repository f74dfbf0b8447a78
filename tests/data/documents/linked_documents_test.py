"""Documents with linked mentions: what is read, and what is refused."""

import gzip
import json

import pytest

from repr_jax import errors
from repr_jax.data.documents import linked_documents, linked_formats
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


_AIDA = """-DOCSTART- (1 EU)
EU\tB\tEU\t--NME--
rejects
German\tB\tGerman\tGermany\thttp://en.wikipedia.org/wiki/Germany\t11867\t/m/0345h
.

Peter\tB\tPeter Blackburn\tPeter_Blackburn
Blackburn\tI\tPeter Blackburn\tPeter_Blackburn
-DOCSTART- (2 Rare)
BEIJING\tB\tBEIJING\tX\thttp://en.wikipedia.org/wiki/S%C3%A3o_Paulo\t1\t
BEIJING\tB\tBEIJING\tX\thttp://en.wikipedia.org/wiki/S%C3%A3o_Paulo\t1\t
"""


def test_aida(tmp_path):
  (tmp_path / "aida.tsv").write_text(_AIDA)
  first, second = linked_formats.read_aida(tmp_path / "aida.tsv")
  assert first.id == "1 EU"
  assert first.tokens == ("EU", "rejects", "German", ".", "Peter", "Blackburn")
  assert first.mentions == (
    LinkedMention(0, 1, "EU", None),
    LinkedMention(2, 3, "German", "Germany"),
    LinkedMention(4, 6, "Peter Blackburn", "Peter Blackburn"),
  )
  assert [m.entity for m in second.mentions] == ["São Paulo"] * 2
  assert [m.start for m in second.mentions] == [0, 1]


@pytest.mark.parametrize(
  ("name", "entity"),
  [
    (r"S\u0026P_500", "S&P 500"),
    (r"Ren\u00e9_\u0028x\u0029", "René (x)"),
    (r"\ud83d\ude00", "\U0001f600"),
    (r"A\ud83d", r"A\ud83d"),
    (r"A\u0000", r"A\u0000"),
  ],
)
def test_escapes_of_yago_are_read(tmp_path, name, entity):
  path = tmp_path / "aida.tsv"
  path.write_text(f"-DOCSTART- (1 A)\nx\tB\tx\t{name}\n")
  (found,) = linked_formats.read_aida(path)
  assert found.mentions[0].entity == entity


def test_parts_of_aida():
  names = ["1 EU", "947testa CRICKET", "1163testb SOCCER", "5 testa", "x"]
  assert [linked_formats.aida_part(name) for name in names] == [
    "train", "testa", "testb", "train", "train",
  ]  # fmt: skip


@pytest.mark.parametrize(
  ("text", "line", "message"),
  [
    ("word\n", 1, "before the first"),
    ("-DOCSTART- (1)\nx\tI\tx\tX\n", 2, "begun"),
    ("-DOCSTART- (1)\na\tB\ta\tA\nb\nx\tI\tx\tX\n", 4, "begun"),
    ("-DOCSTART- (1)\nx\tB\tx\n", 2, "expected"),
    ("-DOCSTART- (1)\nx\tQ\tx\tX\n", 2, "expected"),
    ("-DOCSTART- (1)\nx\tB\tx\t\n", 2, "no entity"),
  ],
)
def test_bad_aida_is_named(tmp_path, text, line, message):
  (tmp_path / "a.tsv").write_text(text)
  with pytest.raises(errors.InputError, match=f"a.tsv:{line}: ") as raised:
    list(linked_formats.read_aida(tmp_path / "a.tsv"))
  assert message in str(raised.value)


def _ganea(document, mention, left, right, candidates, gold):
  before = [document, document, mention, left, right, "CANDIDATES"]
  return "\t".join([*before, *candidates, "GT:", gold])


def test_ganea(tmp_path):
  lines = [
    _ganea("1", "EU", "EMPTYCTXT", "rejects call",
           ["9317,0.9,European_Union", "5,0.1,Eu, a place"],
           "0,9317,0.9,European_Union"),
    _ganea("1", "New York", "in", "EMPTYCTXT", ["EMPTYCAND"],
           "-1,645042,New York City"),
    _ganea("2", "x", "a", "b", ["5,0.1,X"], "-1"),
  ]  # fmt: skip
  (tmp_path / "g.csv").write_text("\n".join(lines) + "\n")
  first, second = linked_formats.read_ganea(tmp_path / "g.csv")
  assert first.mentions == (
    LinkedMention(0, 1, "EU", "European Union",
                  (("European Union", 0.9), ("Eu, a place", 0.1))),
    LinkedMention(4, 6, "New York", "New York City", ()),
  )  # fmt: skip
  around = linked_documents.context
  assert around(first, first.mentions[0], 9) == ("rejects", "call")
  assert around(first, first.mentions[1], 9) == ("in",)
  assert second.mentions[0].entity is None


def test_equal_candidates_of_ganea_are_added_up(tmp_path):
  line = _ganea("1", "eBay", "a", "b", ["1,0.5,eBay", "2,0.4,EBay", "3,0.1,X"],
                "1,1,0.5,eBay")  # fmt: skip
  (tmp_path / "g.csv").write_text(f"{line}\t\n")  # and a tab at the end
  (found,) = linked_formats.read_ganea(tmp_path / "g.csv")
  (mention,) = found.mentions
  assert mention.entity == "EBay"
  assert mention.candidates == (("EBay", pytest.approx(0.9)), ("X", 0.1))


@pytest.mark.parametrize(
  "line",
  [
    "a\tb",
    _ganea("1", "x", "a", "b", ["5;0.1;X"], "-1"),
    _ganea("1", "x", "a", "b", ["5,nan,X"], "-1"),
    _ganea("1", "x", "a", "b", ["5,0.1,X"], "7,5,0.1,X"),
    _ganea("1", "x", "a", "b", ["5,0.1,X"], "first"),
  ],
)
def test_bad_ganea_is_named(tmp_path, line):
  good = _ganea("1", "x", "a", "b", ["5,0.1,X"], "-1")
  (tmp_path / "g.csv").write_text(f"{good}\n{line}\n")
  with pytest.raises(errors.InputError, match=r"g\.csv:2: "):
    list(linked_formats.read_ganea(tmp_path / "g.csv"))


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

"""Corpora of entities: what the files say comes out, bad lines are named."""

import bz2
import gzip
import json

import pytest

from repr_jax import errors
from repr_jax.data import entities


def _write(path, *records):
  path.write_text("".join(json.dumps(r) + "\n" for r in records), "utf-8")
  return path


def _mention(start, end, entity):
  return {"start": start, "end": end, "entity": entity}


@pytest.mark.parametrize(
  ("text", "tokens"),
  [
    ("O'Keeffe's art", ("O'Keeffe", "'s", "art")),
    ("the U.S. in 1,200-1,300", ("the", "U.S.", "in", "1,200", "-", "1,300")),
    ("a 19th-century poet.", ("a", "19th", "-", "century", "poet", ".")),
    ("Dvořák – naïve", ("Dvořák", "–", "naïve")),
    (" \n", ()),
  ],
)
def test_tokens(text, tokens):
  assert entities.tokenize(text) == tokens


def test_sentences_of_both_forms(tmp_path):
  path = _write(
    tmp_path / "c.jsonl",
    {
      "doc": "d",
      "tokens": ["Bach", "met", "Handel"],
      "mentions": [_mention(0, 1, "b"), _mention(2, 3, "h")],
      "other": 1,
    },
    {"text": "Bach's fugues", "mentions": [_mention(0, 4, 7)]},
    {"doc": None, "text": "no mention"},
  )
  with path.open("a", encoding="utf-8") as stream:
    stream.write("\n")
  first, second, third = entities.read_sentences(path)
  assert first == entities.Sentence(
    "d", ("Bach", "met", "Handel"), ((0, 1, "b"), (2, 3, "h"))
  )
  assert second == entities.Sentence(
    "", ("Bach", "'s", "fugues"), ((0, 1, "7"),)
  )
  assert third.mentions == () and third.doc == ""


def test_no_token_crosses_a_mention():
  text = "the pro-U.S.based FrenchBach fugues"
  spans = [
    (text.index("U.S."), text.index("U.S.") + 4, "us"),
    (text.index("Bach"), text.index("Bach") + 4, "b"),
    (text.index("French"), len(text), "phrase"),
    (5, 5, "about"),
  ]
  got = entities.sentence_from_text(text, spans)
  for (a, b, entity), (start, end, same) in zip(spans, got.mentions):
    assert entity == same
    assert "".join(got.tokens[start:end]) == text[a:b].replace(" ", "")
  assert "".join(got.tokens) == text.replace(" ", "")


def test_names_are_found_longest_first():
  finder = entities.NameFinder(
    {("New",): "n", ("New", "York"): "ny", ("New", "York", "City"): "nyc"}
  )
  tokens = ("New", "York", "City", "is", "in", "New", "York")
  assert finder.find(tokens) == [(0, 3, "nyc"), (5, 7, "ny")]
  assert finder.find(("York", "New")) == [(1, 2, "n")]
  assert finder.may_find("a New house") and not finder.may_find("Newer")


def test_entity_files(tmp_path):
  path = _write(
    tmp_path / "e.jsonl",
    {"id": "e1", "name": "J. S. Bach", "sentences": ["j s bach", "B", 'x "y"']},
    {"id": 2, "sentences": [{"doc": "d", "text": "a 2 b", "mentions": []}]},
    {"id": "e3", "name": "None", "sentences": []},
  )
  packed = tmp_path / "e.jsonl.gz"
  packed.write_bytes(gzip.compress(path.read_bytes()))
  for source in (path, packed):
    (first, texts), (second, objects), (third, none) = list(
      entities.read_entity_file(source)
    )
    assert first == entities.EntityInfo("e1", "J. S. Bach")
    assert [s.mentions for s in texts] == [((0, 0, "e1"),)] * 3
    assert second == entities.EntityInfo("2", "2")
    assert objects[0].mentions == ((1, 2, "2"),) and objects[0].doc == "d"
    assert third.name == "None" and none == []


def test_the_name_is_the_mention_whatever_its_case(tmp_path):
  record = {"id": "e", "name": "Kim Jong", "sentences": ["so kim jong said"]}
  path = _write(tmp_path / "e.jsonl", record)
  ((_, (sentence,)),) = entities.read_entity_file(path)
  assert sentence.mentions == ((1, 3, "e"),)


@pytest.mark.parametrize(
  ("record", "words"),
  [
    ({"text": "abc", "mentions": [_mention(1, 4, "e")]}, "'e' at 1 to 4"),
    ({"tokens": ["a"], "mentions": [_mention(0, 2, "e")]}, "has 1 tokens"),
    ({"text": "abc", "mentions": [_mention(2, 1, "e")]}, "outside"),
    ({"text": "abc", "mentions": [_mention(-1, 1, "e")]}, "outside"),
    ({"text": "abc", "mentions": [_mention(True, 1, "e")]}, "whole numbers"),
    ({"text": "abc", "mentions": [{"entity": "e"}]}, "whole numbers"),
    ({"text": "abc", "mentions": [{"start": 0, "end": 1}]}, '"entity"'),
    ({"text": "abc", "mentions": {}}, '"mentions"'),
    ({"text": "abc", "tokens": []}, "either"),
    ({"doc": "d"}, "either"),
    ({"tokens": ["a", 1]}, "list of strings"),
    ({"text": 1.5}, '"text"'),
    ({"text": "a", "doc": []}, '"doc"'),
    ({"text": "a", "mentions": [_mention(0, 1, "\ud800")]}, "half of a"),
    ([1], "object"),
  ],
)
def test_bad_sentences_name_their_line(tmp_path, record, words):
  path = _write(tmp_path / "c.jsonl", {"text": "fine"}, record)
  with pytest.raises(errors.InputError) as caught:
    list(entities.read_sentences(path))
  assert caught.value.line == 2 and str(path) in str(caught.value)
  assert words in str(caught.value)


@pytest.mark.parametrize(
  ("record", "words"),
  [
    ({"id": "a", "sentences": ["x"]}, "already on line 1"),
    ({"sentences": ["x"]}, '"id"'),
    ({"id": "b"}, '"sentences"'),
    ({"id": "b", "sentences": "x"}, '"sentences"'),
    ({"id": "b", "sentences": [3]}, "not a text"),
    ({"id": "b", "name": 1.5, "sentences": []}, '"name"'),
    (
      {
        "id": "b",
        "sentences": [{"text": "", "mentions": [_mention(0, 1, "b")]}],
      },
      "outside",
    ),
  ],
)
def test_bad_entities_name_their_line(tmp_path, record, words):
  path = _write(tmp_path / "e.jsonl", {"id": "a", "sentences": []}, record)
  with pytest.raises(errors.InputError) as caught:
    list(entities.read_entity_file(path))
  assert caught.value.line == 2 and words in str(caught.value)


@pytest.mark.parametrize("read", ["read_sentences", "read_entity_file"])
def test_unreadable_files(tmp_path, read):
  read = getattr(entities, read)
  good = json.dumps({"id": "a", "text": "x", "sentences": []}).encode() + b"\n"
  cases = {
    b"": None,
    b"\n\n": None,
    good + b"{\n": 2,
    good + b'{"text": "\xff"}\n': 2,
    good + b"[" * 100_000 + b"\n": 2,
    bz2.compress(good * 1000)[:-20]: 1,
  }
  for number, (content, line) in enumerate(cases.items()):
    path = tmp_path / f"{number}.jsonl"
    path.write_bytes(content)
    with pytest.raises(errors.InputError) as caught:
      list(read(path))
    assert caught.value.line == line, content[:50]
    assert str(path) in str(caught.value)
  with pytest.raises(errors.InputError, match="no such file"):
    list(read(tmp_path / "absent"))


def test_the_published_entities(shared_data):
  path = shared_data / "tinkerbell" / "entities.jsonl.gz"
  found = list(entities.read_entity_file(path))
  assert len(found) == 20_151
  assert sum(len(sentences) for _, sentences in found) == 51_890
  named = sum(s.mentions[0][1] > 0 for _, x in found for s in x)
  assert named > 0.5 * 51_890

"""A knowledge base: what a mention may refer to, read and written."""

import json

import pytest

from repr_jax.data.documents import entity_base
from repr_jax.data.documents.candidate_features import Links
from repr_jax.data.documents.candidate_files import (
  Candidate,
  Document,
  Mention,
)
from repr_jax.data.documents.entity_base import Entity
from repr_jax.errors import InputError

_ENTITIES = (
  Entity("Paris", in_links=90, links=("Texas",)),
  Entity("Paris, Texas", in_links=3, links=("Texas", "Paris")),
  Entity("Paris Hilton", in_links=50),
  Entity("Texas", ("Lone Star State",), "A state", in_links=40),
)


def _base(**mentions):
  return entity_base.build_base(_ENTITIES, Links(mentions, {}))


def _names(base, surface, **settings):
  return [x.name for x in entity_base.look_up(base, surface, **settings)]


def test_names_come_before_names_that_contain_the_mention():
  assert _names(_base(), "PARIS") == ["Paris", "Paris, Texas", "Paris Hilton"]
  assert _names(_base(), "Paris", top=2) == ["Paris", "Paris, Texas"]
  assert _names(_base(), "Hilton") == ["Paris Hilton"]
  assert _names(_base(), "lone star state") == ["Texas"]
  assert _names(_base(), "Nobody") == []


def test_acronyms_and_other_forms_of_a_name():
  more = Entity("World Trade Organization", in_links=7)
  base = entity_base.build_base(
    [*_ENTITIES, more, Entity("WTO (band)")], Links({}, {})
  )
  assert _names(base, "W.T.O.") == ["WTO (band)", more.name]
  assert _names(base, "wto") == ["WTO (band)"]
  assert _names(base, "World Trade Organisation") == [more.name]
  assert _names(base, "Paris, France")[0] == "Paris"
  assert _names(base, "Tex.") == ["Texas", "Paris, Texas"]


def test_training_links_add_entities_of_the_base_alone():
  base = _base(austin={"Texas": 2, "Unknown": 9})
  assert _names(base, "Austin") == ["Texas"]


def test_a_document_has_the_links_between_its_candidates():
  text = "Paris Hilton of Texas and Hilton"
  document = entity_base.base_document(
    _base(), "d", text, [(16, 21, "Texas"), (0, 5, None), (26, 32, None)]
  )
  first, second, third = document.mentions
  assert (first.surface, second.entity, third.surface) == (
    "Paris", "Texas", "Hilton",
  )  # fmt: skip
  links = {x.title: set(x.links) for x in first.candidates}
  numbers = {x.title: x.id for m in document.mentions for x in m.candidates}
  assert links["Paris, Texas"] == {numbers["Texas"], numbers["Paris"]}
  assert links["Paris Hilton"] == set()


def test_a_short_mention_takes_the_candidates_of_a_longer_one():
  base = _base(**{"jane doe": {"Texas": 1}})
  document = entity_base.base_document(
    base, "d", "Jane Doe met Doe", [(0, 8, None), (13, 16, None)]
  )
  assert [x.title for x in document.mentions[1].candidates] == ["Texas"]


@pytest.mark.parametrize("span", [(0, 99), (3, 3), (-1, 2)])
def test_a_span_outside_the_text_is_refused(span):
  with pytest.raises(InputError, match="outside"):
    entity_base.base_document(_base(), "d", "Paris", [(*span, None)])


def test_entities_of_documents_gather_their_links():
  def mention(*listed):
    return Mention(0, 1, "x", None, listed)

  documents = [
    Document("a", "x", (mention(Candidate(1, "A", 5, 2, (2,))),)),
    Document(
      "b",
      "x",
      (mention(Candidate(1, "A", 5, 2, (3, 9)), Candidate(2, "B", 1, 1, ())),),
    ),
    Document("c", "x", (mention(Candidate(3, "C", 1, 1, ())),)),
  ]
  first, *_ = entity_base.collect_entities(documents, {"A": 2.5})
  assert first == Entity("A", (), "", 5, 2, ("B", "C"), 2.5)


def test_entities_are_read_as_written(tmp_path):
  path = tmp_path / "e.jsonl.gz"
  entity_base.write_entities(path, _ENTITIES)
  assert entity_base.read_entities(path) == list(_ENTITIES)


@pytest.mark.parametrize(
  "record",
  [
    {},
    [],
    {"name": " "},
    {"name": 3},
    {"name": "A", "aliases": "B"},
    {"name": "A", "aliases": [1]},
    {"name": "A", "description": 4},
    {"name": "A", "in_links": -1},
    {"name": "A", "in_links": 10**20},
    {"name": "A", "out_links": float("inf")},
    {"name": "A", "popularity": "x"},
  ],
)
def test_a_wrong_entity_is_refused_with_its_line(tmp_path, record):
  path = tmp_path / "e.jsonl"
  path.write_text('{"name": "A"}\n' + json.dumps(record))
  with pytest.raises(InputError, match=r"e.jsonl:2: expected"):
    entity_base.read_entities(path)


def test_an_empty_file_is_refused(tmp_path):
  path = tmp_path / "e.jsonl"
  path.write_text("\n")
  with pytest.raises(InputError, match="no entities"):
    entity_base.read_entities(path)

"""Mentions: what stands in each field, by hand and by counting."""

import pytest

from repr_jax.data.documents import mentions
from repr_jax.data.entities import Sentence, sentence_from_text
from repr_jax.errors import InputError


def _sentence(text, spans, doc=""):
  return sentence_from_text(text, spans, doc)


@pytest.fixture
def found():
  return mentions.collect(
    [
      _sentence("Keith Wiggans sailed to the isle", [(0, 13, "kw")], "d1"),
      _sentence("Wiggans met Mary Ann", [(0, 7, "kw"), (12, 20, "ma")], "d1"),
      Sentence("", ("he", "sailed", "again"), ((0, 0, "kw"),)),
      _sentence("Keith painted Keith Moon", [(0, 5, "km"), (14, 24, "km")]),
    ],
    {"ma": "PER"},
  )


def _row(field, i):
  row = field.counts[[i]].tocoo()
  return {field.features[c]: v for c, v in zip(row.coords[1], row.data)}


def test_each_sentence_and_entity_is_one_mention(found):
  assert [m.entity for m in found] == ["kw", "kw", "ma", "kw", "km"]
  assert [m.id for m in found] == ["m0", "m1", "m2", "m3", "m4"]
  assert found[4].words == ("Keith", "Moon")
  assert found[3].words == ()
  assert found[2].kind == "PER"


def test_words_are_lower_cased_without_stop_words_and_marks():
  tokens = ("The", "King", "'s", "Ship", ",", "of", "1602")
  assert mentions.content_words(tokens) == ["king", "ship", "1602"]


def test_mention_field_by_hand(found):
  fields = mentions.featurize(found)
  assert _row(fields.mention, 2) == {
    "word:mary": 1,
    "word:ann": 1,
    "type:PER": 1,
    "string:mary ann": 1,
    "trigram:mar": 1,
    "trigram:ary": 1,
    "trigram:ry ": 1,
    "trigram:y a": 1,
    "trigram: an": 1,
    "trigram:ann": 1,
    "acronym:ma": 1,
  }
  assert _row(fields.mention, 3) == {}
  real = [f for f, r in zip(fields.mention.features, fields.mention.real) if r]
  assert all(feature.startswith("word:") for feature in real)


def test_document_field_has_sentence_document_and_chain(found):
  plain = mentions.featurize(found, document_words=0)
  # "Keith" comes through the chain alone: "Wiggans" is shared.
  assert _row(plain.document, 1) == {
    "word:wiggans": 2,
    "word:met": 1,
    "word:mary": 1,
    "word:ann": 1,
    "word:keith": 1,
  }
  # Without a document there is neither.
  assert _row(plain.document, 3) == {
    "word:he": 1,
    "word:sailed": 1,
    "word:again": 1,
  }
  assert _row(plain.document, 4)["word:keith"] == 2


def test_document_words_are_the_most_telling_ones():
  found = mentions.collect(
    [
      _sentence("Ann likes red red fish", [(0, 3, "a")], "d1"),
      _sentence("Bob likes fish", [(0, 3, "b")], "d2"),
      _sentence("Ann walks", [(0, 3, "a")], "d1"),
    ]
  )
  fields = mentions.featurize(found, document_words=1)
  # "red" occurs twice in d1 and nowhere else, as "ann" does; by name then.
  assert _row(fields.document, 2) == {"word:ann": 1 + 1 + 1, "word:walks": 1}
  more = mentions.featurize(found, document_words=2)
  assert _row(more.document, 2)["word:red"] == 1


@pytest.mark.parametrize(
  ("text", "span"),
  [
    ("then Wiggans sailed", (1, 2)),
    ("keith and Keith A Wiggans", (0, 1)),
    ("wiggans said Keith WIGGANS sailed", (2, 4)),
    ("he is a sailor", (0, 0)),
    ("", (0, 0)),
  ],
)
def test_parts_of_a_name_are_found(text, span):
  assert mentions.locate(("Keith", "A", "Wiggans"), text.split()) == span


def test_a_corpus_without_mentions_is_refused():
  with pytest.raises(InputError, match="no sentence that mentions"):
    mentions.collect([Sentence("d", ("nobody",))])


@pytest.mark.parametrize(
  ("words", "acronym"),
  [
    (("U.S.",), "acronym:us"),
    (("US",), "acronym:us"),
    (("United", "States"), "acronym:us"),
    (("Us",), None),
    (("A",), None),
  ],
)
def test_acronyms_have_no_dots(words, acronym):
  (mention,) = mentions.collect(
    [Sentence("d", (*words, "won"), ((0, len(words), "e"),))]
  )
  _, binary = mentions.mention_features(mention)
  made = [x for x in binary if x.startswith("acronym:")]
  assert made == ([acronym] if acronym else [])

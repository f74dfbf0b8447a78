"""Documents cut into sentences, with the mentions where they were."""

import pytest

from repr_jax.data.documents import document_sentences, linked_documents
from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)


def _split(text, spans=()):
  document = linked_documents.make_document("d", text, spans)
  return list(document_sentences.split(document))


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("Bach wrote. He died.", ["Bach wrote .", "He died ."]),
    ("Mr. Bach met J. Krebs.", ["Mr . Bach met J . Krebs ."]),
    ("He paid 3.5 million. 12 came!", ["He paid 3.5 million .", "12 came !"]),
    ('He said "No." Then he left.', ['He said " No . "', "Then he left ."]),
    (
      'He left. "Why?" (Nobody knew.)',
      ["He left .", '" Why ? "', "( Nobody knew . )"],
    ),
    ("The U.S. won. so it did.", ["The U.S. won . so it did ."]),
    ("no mark at all", ["no mark at all"]),
  ],
)
def test_sentences_end_at_marks_before_capitals(text, expected):
  found = [" ".join(sentence.tokens) for sentence in _split(text)]
  assert found == expected


def test_mentions_stay_where_they_are_and_are_not_cut():
  text = "He read Who Am I? No One by Bach. Krebs did not. Who knows."
  title = "Who Am I? No One"
  spans = [
    (text.index(name), text.index(name) + len(name), entity)
    for name, entity in ((title, "book"), ("Bach", "bach"), ("Krebs", None))
  ]
  first, second, third = _split(text, spans)
  assert [first.tokens[a:b] for a, b, _ in first.mentions] == [
    ("Who", "Am", "I", "?", "No", "One"),
    ("Bach",),
  ]
  assert [entity for _, _, entity in first.mentions] == ["book", "bach"]
  # What refers to nothing known is no mention.
  assert second.mentions == third.mentions == ()
  assert {x.doc for x in (first, second, third)} == {"d"}


def test_stretches_of_text_are_parted():
  mentions = (LinkedMention(0, 1, "a", "x"), LinkedMention(2, 3, "c", "y"))
  document = LinkedDocument("d", ("a", "b", "c"), mentions, (0, 2))
  first, second = document_sentences.split(document)
  assert first.tokens == ("a", "b")
  assert second.mentions == ((0, 1, "y"),)


def test_a_list_of_mentions_is_one_sentence_and_nothing_is_none():
  document = linked_documents.joined_mentions("d", [("Bach", "b"), ("K", "k")])
  (sentence,) = document_sentences.split(document)
  assert sentence.mentions == ((0, 1, "b"), (1, 2, "k"))
  assert not list(document_sentences.split(LinkedDocument("d", (), ())))

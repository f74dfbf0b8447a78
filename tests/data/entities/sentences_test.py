"""Sentences as flat arrays, against plain lists."""

import numpy as np
import pytest

from repr_jax.data.entities import Sentence, sentences
from repr_jax.errors import InputError

_TEXTS = (
  ("The fox ( a dog ) ran .", (1, 2, "fox"), (4, 5, "dog")),
  ("A dog , then a fox .", (1, 2, "dog"), (5, 6, "fox"), (0, 2, "dog")),
  ("Nothing is named here ."),
  ("The fox again .", (0, 2, "fox")),
)


def _stream():
  for number, entry in enumerate(_TEXTS):
    text, *spans = (entry,) if isinstance(entry, str) else entry
    yield Sentence("d" if number else "", tuple(text.split()), tuple(spans))


def test_collected_sentences_are_those_of_a_plain_loop():
  held, ids = sentences.collect(_stream(), known=["cat"])
  assert ids == ["cat", "dog", "fox"]
  kept = [x for x in _stream() if x.mentions]
  for number, sentence in enumerate(kept):
    begin, end = held.starts[number : number + 2]
    words = [held.vocabulary[i] for i in held.tokens[begin:end]]
    assert words == list(sentence.tokens)
    inside = [
      any(start <= i < end for start, end, _ in sentence.mentions)
      for i in range(len(words))
    ]
    assert held.linked[begin:end].tolist() == inside
  for row, entity in enumerate(ids):
    own = [
      number
      for number, sentence in enumerate(kept)
      if entity in [name for _, _, name in sentence.mentions]
    ]
    assert held.of(row).tolist() == own
  assert held.documents.tolist() == [-1, 0, 0] and held.document_names == ["d"]
  sentences.check(held, 3)


def test_the_first_sentences_of_an_entity_count():
  held, ids = sentences.collect(_stream(), max_sentences=1)
  assert [held.of(row).tolist() for row in range(len(ids))] == [[0], [0]]
  with pytest.raises(InputError, match="max_sentences must be positive"):
    sentences.collect(_stream(), max_sentences=0)


def test_text_is_written_as_people_do():
  held, _ = sentences.collect(_stream())
  assert held.text(0) == "The fox (a dog) ran."
  assert held.text(1) == "A dog, then a fox."


def test_a_mention_outside_its_sentence_is_named():
  wrong = Sentence("", ("a", "b"), ((1, 3, "x"),))
  with pytest.raises(InputError, match=r"sentence 1: .*'x' at 1 to 3"):
    sentences.collect([wrong])


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"tokens": np.array([99] * 19, np.int32)}, "tokens points"),
    ({"starts": np.array([0, 3, 1, 19])}, "starts does not divide"),
    ({"linked": np.zeros(19)}, "linked has another form"),
    ({"linked": np.zeros(18, bool)}, "other lengths"),
  ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
  held, ids = sentences.collect(_stream())
  assert len(held.tokens) == 19
  with pytest.raises(ValueError, match=message):
    sentences.check(held._replace(**change), len(ids))

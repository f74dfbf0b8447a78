"""Kinds of titles and features of contexts."""

import numpy as np

from repr_jax.data.documents import title_kinds
from repr_jax.data.documents.candidate_files import Candidate, Document, Mention

_TEXT = "SOCCER - CUP RESULTS .\nROME 1996-08-30\nItaly 2 Chile 1\n( Italy )"


def _context(surface, nth=0):
  place = -1
  for _ in range(nth + 1):
    place = _TEXT.index(surface, place + 1)
  return title_kinds.context_features(_TEXT, place, place + len(surface))


def test_a_context_has_words_beside_it_its_line_and_the_topic():
  first = _context("Italy")
  assert "next word: 0" in first and "word before: (none)" in first
  assert "later line" in first and "topic: soccer" in first
  assert "digits after it in the line" in first
  assert "topic and next word: soccer, 0" in first
  second = _context("Italy", 1)
  assert {"word before: (", "next word: )"} <= set(second)
  place = _context("ROME")
  assert "second line" in place and "in capitals" in place
  assert "no topic" in title_kinds.context_features("Rome fell", 0, 4)


def test_a_title_is_described_relative_to_the_mention():
  def kind(surface, title):
    return title_kinds.title_kinds(surface, title)[:2]

  assert kind("Italy", "Italy") == ["shape: *", "kind: is the mention"]
  assert kind("ITALY", "Italy national football team") == [
    "shape: * national football team",
    "kind: begins with the mention, 3 more",
  ]
  assert kind("Paris", "Paris, Texas")[1] == "kind: has a comma"
  assert kind("Paris", "Paris (band)")[1] == "kind: has brackets"
  assert kind("Clinton", "Bill Clinton")[1] == (
    "kind: ends with the mention, 1 more"
  )
  assert kind("U.S.", "United States")[1] == "kind: lacks the mention"


def _document(name, entity):
  titles = (name, f"{name} F.C.")
  listed = tuple(
    Candidate(i, title, 9 - i, 0, ()) for i, title in enumerate(titles)
  )
  mention = Mention(0, len(name), name, entity, listed)
  return Document(name, f"{name} won 2", (mention,))


def test_arrays_have_known_features_and_the_gold_place():
  names = ("Bonn", "Kiel", "Trier")
  documents = [_document(name, f"{name} F.C.") for name in names]
  known = title_kinds.build_vocabulary(documents, 3, 3)
  assert "shape: * f c" in known.kinds or "shape: * fc" in known.kinds
  assert not any("bonn" in x for x in known.kinds)
  assert title_kinds.build_vocabulary(documents, 4, 4).kinds == {}
  arrays = title_kinds.encode_kinds(documents, known, top=3)
  assert arrays.gold.tolist() == [1, 1, 1]
  np.testing.assert_array_equal(arrays.mask, [[True, True, False]] * 3)
  assert (arrays.kinds[:, 2] == -1).all()
  np.testing.assert_array_equal(arrays.kinds[0], arrays.kinds[1])
  np.testing.assert_allclose(arrays.log_links[0, :2], np.log([10, 9]))
  names = list(known.contexts)
  told = [names[i] for i in arrays.contexts[0] if i >= 0]
  assert "next word: won" in told

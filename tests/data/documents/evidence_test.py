"""Padded arrays hold the documents and nothing else."""

import numpy as np
import pytest

from repr_jax.data.documents import evidence
from repr_jax.data.documents.candidate_files import Candidate, Document, Mention
from repr_jax.errors import InputError


def _document(name="d", mentions=3):
  spain = (
    Candidate(7, "Spain", 5, 1, (9, 100)),
    Candidate(8, "Spain national team", 2, 1, ()),
  )
  italy = (Candidate(9, "Italy national team", 1, 1, (8, 9)),)
  listed = [
    Mention(0, 5, "Spain", "Spain national team", spain),
    Mention(6, 11, "Italy", None, italy),
    Mention(12, 17, "Nowhere", "Nowhere", ()),
    Mention(18, 23, "SPAIN", "Spain", spain),
  ]
  return Document(name, "x" * 30, tuple(listed[:mentions]))


def _features(document):
  return [
    np.full((len(m.candidates), 2), i, np.float32)
    for i, m in enumerate(document.mentions)
  ]


def _pack(documents, **settings):
  made = [_features(d) for d in documents]
  settings = {"shapes": ((2, 3), (4, 6)), "top": 3, **settings}
  return evidence.pack_evidence(documents, made, **settings)


def test_arrays_of_a_document():
  (group,) = _pack([_document(mentions=4)])
  assert group.mentions.tolist() == [[0, 1, 3, -1]]
  one = evidence.Evidence(*(field[0] for field in group.evidence))
  assert one.nodes.tolist() == [[0, 1, -1], [2, -1, -1], [0, 1, -1], [-1] * 3]
  # A link to an entity that is no candidate, or to itself, is no edge.
  assert one.edges[:2].tolist() == [[0, 2], [2, 1]]
  assert one.edges[2:].tolist() == [[-1, -1]] * 14
  assert one.groups.tolist() == [0, 1, 0, -1]
  assert one.shapes[0, 0] == 0
  assert one.shapes[0, 1] == one.shapes[1, 0] > 0
  assert one.degrees.tolist() == [1, 1, 2, 1, 1, 1]
  assert one.gold.tolist() == [1, -1, 0, -1]
  assert one.features[2, 0].tolist() == [3, 3]


def test_documents_of_one_shape_are_stacked():
  small, large = _pack([_document("a"), _document("b", 4), _document("c")])
  assert small.mentions.tolist() == [[0, 1], [7, 8]]
  assert large.mentions.tolist() == [[3, 4, 6, -1]]


def test_links_are_padded_to_powers_of_two():
  for linked in (0, 5, 6):
    listed = [
      Mention(i, i + 1, f"x{i}", None, (
        Candidate(i, f"t{i}", 0, 0, tuple(range(linked))),
      ))
      for i in range(linked or 1)
    ]  # fmt: skip
    document = Document("d", "x" * 9, tuple(listed))
    (group,) = _pack([document], shapes=((8, 8),))
    links = linked * max(linked - 1, 0)
    edges = group.evidence.edges[0]
    assert len(edges) == (16 if links <= 16 else 32)
    assert (edges >= 0).all(axis=1).sum() == links


def test_a_document_with_many_mentions_is_cut():
  first = _pack([_document(mentions=4)], shapes=((2, 3),))[0]
  assert first.mentions.tolist() == [[0, 1], [3, -1]]


def test_a_document_with_many_candidates_is_cut():
  listed = [
    Mention(i, i + 1, "x", None, tuple(
      Candidate(10 * i + j, f"t{i}{j}", 0, 0, ()) for j in range(3)
    ))
    for i in range(3)
  ]  # fmt: skip
  (group,) = _pack([Document("d", "xxx", tuple(listed))], shapes=((3, 6),))
  assert group.mentions.tolist() == [[0, 1, -1], [2, -1, -1]]


def test_shapes_must_hold_the_candidates_of_a_mention():
  with pytest.raises(InputError, match="distinct"):
    _pack([_document()], top=9)

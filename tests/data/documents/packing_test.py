"""Documents as arrays: padding, parts, batches."""

import numpy as np
import pytest

from repr_jax import errors
from repr_jax.data.documents import packing
from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)

_ENTITIES = {"A": 0, "B": 1, "C": 2}
_WORDS = {"x": 0, "y": 1}


def _document(count, name="d"):
  tokens = ("X", "m", "y", "unknown") * count
  mentions = tuple(
    LinkedMention(4 * i + 1, 4 * i + 2, "m", "B") for i in range(count)
  )
  return LinkedDocument(name, tokens, mentions)


def _pack(*counts, lists=(("A", 0.75), ("B", 0.25)), **options):
  documents = [_document(n) for n in counts]
  listed = [[list(lists)] * n for n in counts]
  options = {"top": 3, "context": 4, "widths": (2, 4)} | options
  return packing.pack(documents, listed, _ENTITIES, _WORDS, **options)


def test_arrays_of_a_document():
  (group,) = _pack(1)
  packed = group.packed
  np.testing.assert_array_equal(packed.candidates, [[[0, 1, -1], [-1] * 3]])
  np.testing.assert_allclose(packed.log_prior[0, 0, :2], np.log([0.75, 0.25]))
  np.testing.assert_array_equal(packed.words[0], [[0, 1, -1, -1], [-1] * 4])
  np.testing.assert_array_equal(packed.gold, [[1, -1]])


def test_documents_are_grouped_by_width_and_long_ones_cut():
  small, large = _pack(1, 3, 0, 6)
  assert small.places.tolist() == [0, 3]
  assert large.places.tolist() == [1, 3]
  assert small.packed.gold.shape == (2, 2)
  assert large.packed.gold.shape == (2, 4)
  assert small.mentions.tolist() == [[0, -1], [8, 9]]
  assert large.mentions.tolist() == [[1, 2, 3, -1], [4, 5, 6, 7]]
  for group in (small, large):
    assert ((group.packed.gold >= 0) == (group.mentions >= 0)).all()


def test_a_mention_without_candidates_and_a_gold_that_is_not_among_them():
  documents = [_document(2), _document(1)]
  lists = [[[], [("A", 1.0)]], [[]]]
  (group,) = packing.pack(documents, lists, _ENTITIES, _WORDS, widths=(2,))
  assert group.places.tolist() == [0]
  assert group.mentions.tolist() == [[1, -1]]
  assert group.packed.candidates[0, :, 0].tolist() == [0, -1]
  assert (group.packed.gold == -1).all()


def test_a_candidate_without_vector_is_named():
  with pytest.raises(errors.InputError, match="'Z' of 'm' has no vector"):
    _pack(1, lists=[("Z", 1.0)])
  with pytest.raises(errors.InputError, match="widths"):
    _pack(1, widths=(4, 2))


@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)])
def test_batches_hold_every_document_once_in_one_shape(rng):
  groups = _pack(1, 2, 1, 2, 1, 3, 4, 3)
  seen, shapes = [], set()
  for mentions, packed in packing.batches(groups, 4, rng):
    assert mentions.shape == packed.gold.shape
    seen += mentions[mentions >= 0].tolist()
    shapes.add(packed.candidates.shape)
    assert (packed.candidates[mentions < 0] == -1).all()
    assert (packed.gold[mentions < 0] == -1).all()
  assert sorted(seen) == list(range(17))
  assert shapes == {(2, 2, 3), (1, 4, 3)}
  # What fills up a batch must not reach the documents themselves.
  assert all((g.packed.gold >= 0).any(axis=1).all() for g in groups)

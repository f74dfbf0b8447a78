"""Contexts of mentions."""

import numpy as np
import pytest

from repr_jax.data.entities import skip_grams
from repr_jax.errors import InputError


def test_skip_grams_leave_the_mention_out():
  tokens = ["the", "great", "city", "of", "paris", "is", "in", "france"]
  found = set(skip_grams.skip_grams(tokens, 4, 5))
  assert found == {
    "of __ is",
    "city of __ is",
    "great city of __ is",
    "of __ is in france",
    "city of __ is in",
    "of __ is in",
  }
  assert list(skip_grams.skip_grams(["paris"], 0, 1)) == []
  assert list(skip_grams.skip_grams(["a", "b"], 1, 1)) == []
  assert list(skip_grams.skip_grams(["in", "paris"], 1, 2)) == ["in __"]
  with pytest.raises(InputError, match="outside"):
    list(skip_grams.skip_grams(tokens, 7, 9))


def test_skip_gram_counts_keep_what_is_shared():
  mentions = [
    (0, ["i", "saw", "anna", "today"], 2, 3),
    (1, ["i", "saw", "bert", "today"], 2, 3),
    (1, ["i", "saw", "bert", "today"], 2, 3),
    (2, ["nobody", "knows", "carl"], 2, 3),
  ]
  counts, contexts = skip_grams.skip_gram_counts(mentions, 3)
  assert contexts == ["i saw __ today", "saw __ today"]
  np.testing.assert_array_equal(counts.toarray(), [[1, 1], [2, 2], [0, 0]])


def test_contexts_come_back_from_a_file(tmp_path):
  mentions = [(i, ["in", "x", "today"], 1, 2) for i in range(2)]
  path = tmp_path / "contexts.npz"
  for contexts in (
    skip_grams.skip_gram_counts(mentions, 3),
    skip_grams.skip_gram_counts([], 3),
  ):
    skip_grams.save(path, contexts)
    back = skip_grams.load(path, 3)
    assert back.names == contexts.names
    np.testing.assert_array_equal(
      back.counts.toarray(), contexts.counts.toarray()
    )
    with pytest.raises(InputError, match="7 entities"):
      skip_grams.load(path, 7)

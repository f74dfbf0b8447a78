"""Explanations by name."""

import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import errors
from repr_jax.setexp import explain

_NAMES = [f"word:{x}" for x in "abcdef"]


def test_top_features_by_sorting():
  rng = np.random.default_rng(0)
  for _ in range(20):
    weights = rng.integers(-3, 4, 6).astype(np.float32)
    for k in (0, 1, 4, 6, 9):
      order = sorted(range(6), key=lambda i: (-weights[i], i))[:k]
      found = explain.top_features(weights, _NAMES, k)
      assert found == [(_NAMES[i], weights[i]) for i in order]
  with pytest.raises(errors.InputError, match="feature names"):
    explain.top_features(np.ones(5), _NAMES)


def test_nan_is_never_first():
  weights = np.array([np.nan, 1, 2, np.nan, 0, -1])
  assert [x.name[-1] for x in explain.top_features(weights, _NAMES, 3)] == [
    "c",
    "b",
    "e",
  ]


def test_justifications_are_ordered_by_the_systems_own_score():
  def featurize(sentence):
    row = [[float(sentence.count(x)) for x in "abcdef"]]
    return sp.csr_array(np.array(row, np.float32))

  weights = np.array([1, 5, -2, 0, 0, 0.5])
  sentences = ["a", "bb", "c", "xyz", "a", "ab"]
  found = explain.justifications(
    lambda rows: rows @ weights, featurize, sentences, k=9
  )
  # "xyz" has no known feature: last, though "c" scores lower.
  assert [x.sentence for x in found] == ["bb", "ab", "a", "c", "xyz"]
  assert found[0].score == 10
  assert explain.justifications(lambda x: x, featurize, []) == []


def test_concepts_are_the_decoder_at_unit_vectors():
  decoder = np.random.default_rng(1).standard_normal((6, 4))
  found = explain.concept_table(decoder, _NAMES, 2, both_signs=True)
  assert len(found) == 3
  for j, concept in enumerate(found):
    for sign, side in ((1, concept.positive), (-1, concept.negative)):
      z = np.zeros(3)
      z[j] = sign
      logits = decoder @ np.append(z, 1)
      assert [x.name for x in side] == [
        _NAMES[i] for i in np.argsort(-logits)[:2]
      ]
  assert explain.concept_table(decoder, _NAMES)[0].negative == []

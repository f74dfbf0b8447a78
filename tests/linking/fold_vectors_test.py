"""Vectors of folds: nothing of a fold is in its own block."""

import jax
import numpy as np
import pytest

from repr_jax.data.documents import packing
from repr_jax.data.entities.bags import Bags
from repr_jax.linking import fold_vectors

_KEY = jax.random.key(0)
_WORDS = np.eye(6, dtype=np.float32)
_COUNTS = np.arange(1, 7)


def _bags(second=(3, 4)):
  """Entity 0 has contexts in both folds, entity 1 a page alone."""
  return Bags(
    ["a", "b"],
    np.array([0, 1, 3]),
    np.array([0, 5, 5], np.int32),
    np.array([0, 4, 4]),
    np.array([1, 2, *second], np.int32),
    np.array([0, 0, 1, 1], np.int8),
  )


@pytest.mark.parametrize("objective", fold_vectors.OBJECTIVES)
def test_blocks(objective):
  settings = fold_vectors.Settings(steps=20, epochs=2)
  fit = fold_vectors.fit_vectors
  found = fit(objective, _bags(), _WORDS, _COUNTS, settings, _KEY)
  assert found.entities.shape == (6, 6) and found.blocks == 3
  assert found.words.shape == (6, 6)
  np.testing.assert_array_equal(found.last, found.entities[4:])
  np.testing.assert_allclose(np.linalg.norm(found.entities, axis=1), 1, 1e-5)
  alone = fit(
    objective, _bags(), _WORDS, _COUNTS,
    fold_vectors.Settings(False, steps=20, epochs=2), _KEY,
  )  # fmt: skip
  assert alone.entities.shape == (2, 6) and alone.blocks == 1
  # Other words in fold 1 change all blocks but its own; those of the encoder
  # are the same only where nothing is trained.
  other = fit(objective, _bags((4, 5)), _WORDS, _COUNTS, settings, _KEY)
  if objective == "max_margin":
    same = np.isclose(other.entities, found.entities).all(axis=1)
    assert same.tolist() == [False, True, True, True, False, True]


def test_shift_points_at_the_block_of_the_fold():
  packed = packing.Packed(
    np.array([[[0, 1, -1]], [[1, -1, -1]]], np.int32),
    np.zeros((2, 1, 3), np.float32),
    np.zeros((2, 1, 1), np.int32),
    np.zeros((2, 1), np.int32),
  )
  group = packing.Group(np.array([2, 0]), np.zeros((2, 1)), packed)
  (moved,) = fold_vectors.shift([group], np.array([1, 9, 0]), 10)
  np.testing.assert_array_equal(
    moved.packed.candidates, [[[0, 1, -1]], [[11, -1, -1]]]
  )


@pytest.mark.parametrize(
  "change",
  [
    {"beta": 5.0},
    {"hidden": 2},
    {"lower_bounded_variance": True},
    {"word_start": True},
    {"activation": "relu"},
    {"anneal": True},
  ],
)
def test_each_setting_of_the_autoencoder_reaches_it(change):
  def fit(**settings):
    made = fold_vectors.Settings(epochs=5, **settings)
    return fold_vectors.fit_vectors(
      "vae", _bags(), _WORDS, _COUNTS, made, _KEY
    ).entities

  assert np.abs(fit(**change) - fit()).max() > 1e-6


def test_components_keep_distances_and_order_by_spread():
  rng = np.random.default_rng(0)
  words = rng.standard_normal((9, 3)).astype(np.float32) * [5, 1, 0.1]
  got = fold_vectors.components(words, 5)
  assert got.shape == (9, 5) and not got[:, 3:].any()
  spread = got.std(axis=0)[:3]
  assert (np.diff(spread) < 0).all()
  expected = np.linalg.norm(words[0] - words[1])
  assert np.linalg.norm(got[0] - got[1]) == pytest.approx(expected, rel=1e-4)

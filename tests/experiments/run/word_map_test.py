"""Maps of words: labels lie apart, likeness is nearness, names are escaped."""

import re

import numpy as np

from experiments.run import word_map


def test_labels_of_a_map_lie_apart_and_near_their_points():
  words = [f"word{i}" for i in range(30)]
  points = np.random.default_rng(0).normal(450, 5, (30, 2))
  places = word_map._apart(words, points)
  size = np.array([word_map._LETTER * 5, word_map._LINE])
  for i in range(30):
    for j in range(i):
      assert (np.abs(places[i] - places[j]) >= size).any()
  assert np.linalg.norm(places - points, axis=1).max() < 150


def test_like_words_lie_together_and_names_are_escaped():
  words = ["<b>", "cat", "dog", "car"]
  vectors = np.array([[9, 1, 0], [8, 1, 0.1], [9, 1.2, 0], [0, 0, 1.0]])
  drawn = word_map.draw(words, vectors, ["cat"], paper=None)
  assert "&lt;b&gt;</text>" in drawn and "<b>" not in drawn
  assert drawn.count("bold") == 1 and "<rect" not in drawn
  assert "<rect" in word_map.draw(words, vectors)
  spots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)
  points = np.array(spots, float)
  near = np.linalg.norm(points[1] - points[2])
  assert near < 0.3 * np.linalg.norm(points[1] - points[3])


def test_one_word_has_a_map():
  assert word_map.draw(["a"], np.ones((1, 3))).count("<text") == 1

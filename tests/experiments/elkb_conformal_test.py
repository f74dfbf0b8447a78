"""Conformal answer sets."""

import numpy as np

from experiments.elkb import conformal


def test_sets_cover_what_was_chosen():
  rng = np.random.default_rng(0)
  covered = []
  for _ in range(300):
    right = rng.beta(2, 3, size=60)
    least = conformal.threshold(right[:50], 0.8)
    covered.append(np.mean(right[50:] >= least))
  # The mean is k / (n + 1) = 41 / 51; its standard error is about .01.
  assert abs(np.mean(covered) - 41 / 51) < 0.03


def test_too_few_questions_let_all_entities_in():
  assert conformal.threshold(np.array([0.5, 0.4]), 0.9) == 0
  assert conformal.threshold(np.array([0.3, 0.5, 0.4]), 0.75) == 0.3
  assert conformal.threshold(np.array([0.3, 0.5, 0.4]), 0.5) == 0.4

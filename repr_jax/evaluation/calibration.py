"""Calibration of probabilities: reliability by bins and its mean error."""

from typing import NamedTuple

import numpy as np


class Reliability(NamedTuple):
  """Mean probabilities and accuracies of answers, by bin.

  Attributes:
    confidence: mean probability in each bin, NaN where it is empty, [bins].
    accuracy: share right in each bin, [bins].
    counts: answers in each bin, int [bins].
    error: expected calibration error, the mean of |confidence - accuracy|
      over answers.
  """

  confidence: np.ndarray
  accuracy: np.ndarray
  counts: np.ndarray
  error: float


def reliability(
  probabilities: np.ndarray, correct: np.ndarray, bins: int = 10
) -> Reliability:
  """Compares the probabilities of answers with the share that is right.

  Args:
    probabilities: of the answers given, from 0 to 1, [n].
    correct: which are right, bool [n].
    bins: number of bins of equal width.
  """
  probabilities = np.asarray(probabilities, float)
  correct = np.asarray(correct, float)
  if len(probabilities) == 0:
    raise ValueError("calibration needs one answer at least")
  place = np.clip((probabilities * bins).astype(int), 0, bins - 1)
  counts = np.bincount(place, minlength=bins)
  with np.errstate(invalid="ignore", divide="ignore"):
    confidence = np.bincount(place, probabilities, bins) / counts
    accuracy = np.bincount(place, correct, bins) / counts
  gaps = np.nan_to_num(np.abs(confidence - accuracy)) * counts
  return Reliability(
    confidence, accuracy, counts, float(gaps.sum() / counts.sum())
  )

"""Calibration: by hand, and in the limit of many calibrated answers."""

import numpy as np
import pytest

from repr_jax.evaluation import calibration


def test_bins_by_hand():
  got = calibration.reliability([0.1, 0.2, 0.9, 1.0], [0, 1, 1, 1], bins=2)
  assert got.counts.tolist() == [2, 2]
  np.testing.assert_allclose(got.confidence, [0.15, 0.95])
  np.testing.assert_allclose(got.accuracy, [0.5, 1.0])
  assert got.error == pytest.approx((0.35 * 2 + 0.05 * 2) / 4)


def test_answers_drawn_by_their_probabilities_are_calibrated():
  rng = np.random.default_rng(0)
  p = rng.random(200_000)
  correct = rng.random(len(p)) < p
  assert calibration.reliability(p, correct).error < 0.01
  assert calibration.reliability(p**2, correct).error > 0.1


def test_empty_bins_have_no_share():
  got = calibration.reliability([0.95], [1])
  assert np.isnan(got.accuracy[0])
  assert got.error == pytest.approx(0.05)
  with pytest.raises(ValueError, match="one answer"):
    calibration.reliability([], [])

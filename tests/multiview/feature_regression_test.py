"""Predictions from features against the normal equations."""

import numpy as np
import scipy.sparse

from repr_jax import multiview, ops


def test_predictions_solve_the_weighted_ridge_regression():
  rng = np.random.default_rng(0)
  dense = rng.poisson(0.5, (30, 8)).astype(np.float32)
  y = rng.normal(size=(30, 3)).astype(np.float32)
  w = rng.integers(0, 3, 30).astype(np.float32)
  y[w == 0] = np.nan  # not read
  known = np.where(w[:, None] > 0, y, 0)
  gram = dense.T @ (w[:, None] * dense) + 0.7 * np.eye(8)
  expected = dense @ np.linalg.solve(gram, dense.T @ (w[:, None] * known))
  for features in (dense, ops.from_scipy(scipy.sparse.csr_array(dense))):
    made = multiview.predict_from_features(features, y, w, ridge=0.7)
    np.testing.assert_allclose(made, expected, atol=2e-5)

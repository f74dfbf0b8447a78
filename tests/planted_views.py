"""Views that share planted directions, and how spaces are compared."""

import numpy as np


def views(n=200, widths=(8, 6, 8), shared=3, seed=0, dtype=np.float32):
  """Noisy views [n, d] of common columns [n, shared]."""
  rng = np.random.default_rng(seed)
  signal = rng.standard_normal((n, shared))
  return [
    (
      signal @ rng.standard_normal((shared, d))
      + 0.7 * rng.standard_normal((n, d))
      + rng.standard_normal(d)
    ).astype(dtype)
    for d in widths
  ]


def projector(x, ridge):
  """The regularized projector onto the columns of x, [n, n]."""
  return x @ np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T)


def same_space(one, two, atol):
  """Asserts that two matrices span the same space."""
  a, b = (np.linalg.qr(np.asarray(g, np.float64))[0] for g in (one, two))
  np.testing.assert_allclose(a @ a.T, b @ b.T, atol=atol)

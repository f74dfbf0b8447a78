"""Problems of SVD and GCCA with known answers."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax import multiview, ops
from repr_jax.data import synthetic
from repr_jax.ops import operators, spectral, svd_updates


def centering(n: int, k: int, seed: int) -> dict[str, float]:
  """Errors of three ways to the centered SVD of sparse counts [n, 600].

  Returns:
    Mean relative error in the k singular values against LAPACK, by method:
    implicit centering, rank-one update of the truncated SVD, no centering.
  """
  rng = np.random.default_rng(seed)
  counts = synthetic.zipf_counts(rng, n, 600, 30 * n)
  counts.data = np.sqrt(np.sqrt(counts.data))
  dense = counts.toarray().astype(np.float64)
  centered = dense - dense.mean(axis=0)
  exact = np.linalg.svd(centered, compute_uv=False)[:k]
  x = ops.from_scipy(counts)
  key = jax.random.key(seed)
  mean = operators.column_means(x, None)
  implicit = _centered_svd(x, mean, k, key)
  plain, _ = ops.truncated_svd(x, k, key)
  updated = svd_updates.rank_one_update(plain, -jnp.ones(n), mean)
  return {
    name: float(np.mean(np.abs(np.asarray(svd.s) / exact - 1)))
    for name, svd in (
      ("implicit centering", implicit),
      ("rank-one update", updated),
      ("no centering", plain),
    )
  }


@functools.partial(jax.jit, static_argnames="k")
def _centered_svd(x, mean, k, key):
  return spectral.truncated_svd(operators.centered(x, mean), k, key)[0]


def spectrum(n: int, k: int, seed: int) -> dict[str, np.ndarray]:
  """Errors and bounds [k] of singular values that are known."""
  values = 100 / np.arange(1, 401) ** 0.7
  rng = np.random.default_rng(seed)
  x = jnp.asarray(synthetic.with_spectrum(rng, n, 400, list(values)).matrix)
  svd, info = ops.truncated_svd(x.astype(jnp.float32), k, jax.random.key(seed))
  return {
    "true": values[:k],
    "error": np.abs(np.asarray(svd.s) / values[:k] - 1),
    "bound": np.asarray(info.bound),
  }


def missing_rows(n: int, seed: int) -> dict[str, Any]:
  """How much of the true space GCCA recovers as more rows go missing.

  Returns:
    Shares of missing rows, and for each the mean squared cosine between the
    true and the recovered space: with missing rows left out, taken as zeros,
    and left out in the streamed fit.
  """
  shares = [0.0, 0.2, 0.4, 0.6]
  recovered: dict[str, list[float]] = {
    "left out": [], "as zeros": [], "left out, streamed": []
  }  # fmt: skip
  rng = np.random.default_rng(seed)
  signal = np.linalg.qr(rng.standard_normal((n, 5)))[0]
  views = []
  for _ in range(6):
    mix = rng.standard_normal((5, 40))
    noise = rng.standard_normal((n, 40))
    views.append(10 * signal @ mix + noise / np.sqrt(n) * 2)
  for share in shares:
    held = [
      np.where(rng.random((n, 1)) < share, 0, v).astype(np.float32)
      for v in views
    ]
    kept = np.any([(v != 0).any(axis=1) for v in held], axis=0)
    truth = np.linalg.qr(signal[kept])[0]
    fits = {
      "left out": multiview.fit(held, 5, m=40, projections=False),
      "left out, streamed": multiview.fit(
        held, 5, m=40, method="stream", projections=False
      ),
      "as zeros": multiview.fit(
        [v + np.float32(1e-12) for v in held], 5, m=40, projections=False
      ),
    }
    for name, fitted in fits.items():
      space = np.linalg.qr(np.asarray(fitted.model.embedding)[kept])[0]
      recovered[name].append(float(np.sum((truth.T @ space) ** 2) / 5))
  return {"shares": shares, "recovered": recovered}

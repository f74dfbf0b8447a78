"""Spectral fits at a size at which threads share the work, as a program.

For `killing.Programs`; its work directory is there already.
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from experiments.run import runlib
from repr_jax import multiview, ops

FILE = "fitted.npz"


def main(argv: list[str]) -> None:
  """Writes the vectors, which have signs of their own, and their values."""
  del argv
  rng = np.random.default_rng(0)
  # Directions of their own lengths: equal ones could be turned freely.
  topics = rng.gamma(0.3, 1, (4000, 8)) * np.linspace(2, 0.6, 8)
  means = [topics @ rng.gamma(0.3, 1, (8, 300)) / 8 for _ in range(3)]
  views = [sp.csr_array(rng.poisson(x).astype(np.float32)) for x in means]
  fitted = multiview.fit(views, 4, m=40).model
  svd, _ = ops.truncated_svd(ops.from_scipy(views[0]), 4, jax.random.key(0))
  shared = rng.standard_normal((20000, 4)) * np.linspace(2, 0.5, 4)
  dense = [
    jnp.asarray(
      shared @ rng.standard_normal((4, 32)) + rng.standard_normal((20000, 32)),
      jnp.float32,
    )
    for _ in range(2)
  ]
  pair = multiview.cca_fit(*dense, 4)
  exact = multiview.gcca_exact(dense, 4)
  np.savez(
    pathlib.Path(runlib.WORKDIR.value) / FILE,
    mvlsa=fitted.embedding,
    mvlsa_values=fitted.values,
    svd=svd.u,
    svd_values=svd.s,
    cca=pair.projections[0],
    cca_values=pair.correlations,
    gcca=exact.embedding,
    gcca_values=exact.values,
  )

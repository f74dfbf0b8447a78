"""Word vectors from one view alone, to hold multiview LSA against.

LSA is the truncated SVD of all views side by side; PPMI-SVD (Levy, Goldberg
and Dagan 2015) that of the positive pointwise mutual information of a window.
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from repr_jax.errors import InputError
from repr_jax.multiview import mvlsa, weighting
from repr_jax.ops import operators, spectral


def concatenated(matrices: Sequence[scipy.sparse.csr_array]):
  """Views side by side: one view with all their columns, [n, sum of d_j]."""
  if not matrices:
    raise InputError("no view to put beside others")
  rows = {matrix.shape[0] for matrix in matrices}
  if len(rows) > 1:
    raise InputError(f"views with different numbers of rows: {sorted(rows)}")
  return scipy.sparse.csr_array(scipy.sparse.hstack(matrices, format="csr"))


def factors(
  matrix,
  k: int,
  *,
  center: bool = True,
  tolerance: float = 1e-2,
  max_cycles: int = 2,
  seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
  """Left singular vectors and values, from which LSA with any power is made.

  Args:
    matrix: weighted counts [n, d], scipy sparse or dense.
    k: how many.
    center: subtract column means over the rows that are not empty.
    tolerance: relative error at which the SVD stops.
    max_cycles: how often the SVD may fill its basis.
    seed: of the SVD's starting block.

  Returns:
    U [n, k] and s [k], float32.
  """
  if not 1 <= k <= min(matrix.shape):
    raise InputError(
      f"k = {k} dimensions asked of a {matrix.shape[0]} x {matrix.shape[1]} "
      "view"
    )
  rows = weighting.observed(matrix).astype(np.float32)
  x = mvlsa.load(matrix, "the view")
  u, s = _svd(x, k, rows, jax.random.key(seed), center, tolerance, max_cycles)
  return np.asarray(u), np.asarray(s)


def lsa(
  matrix, k: int, *, power: float = 1.0, center: bool = True, seed: int = 0
) -> np.ndarray:
  """Latent semantic analysis: U S^power of the truncated SVD.

  Args:
    matrix: weighted counts [n, d], scipy sparse or dense.
    k: dimension of the vectors.
    power: of the singular values; 1 keeps inner products as well as k
      dimensions can, 0 gives all dimensions the same weight.
    center: subtract column means over the rows that are not empty.
    seed: of the SVD's starting block.

  Returns:
    Vectors, float32 [n, k].
  """
  u, s = factors(matrix, k, center=center, seed=seed)
  return u * s ** np.float32(power)


def ppmi_svd(
  counts,
  k: int,
  *,
  smoothing: float = 0.75,
  power: float = 0.5,
  seed: int = 0,
) -> np.ndarray:
  """SVD of the positive pointwise mutual information, U S^power.

  Args:
    counts: counts of a window, [n, d], scipy sparse.
    k: dimension of the vectors.
    smoothing: exponent of the context frequencies.
    power: of the singular values; 1/2 and 0 do better than 1 on similarity.
    seed: of the SVD's starting block.

  Returns:
    Vectors, float32 [n, k].
  """
  weights = weighting.ppmi(weighting.validate(counts), smoothing)
  return lsa(weights, k, power=power, center=False, seed=seed)


@functools.partial(
  jax.jit, static_argnames=("k", "center", "tolerance", "max_cycles")
)
def _svd(x, k, rows, key, center, tolerance, max_cycles):
  op = operators.as_operator(x)
  mean = jnp.zeros(op.shape[1], op.dtype)
  if center:
    mean = operators.column_means(op, rows)
    op = operators.centered(op, mean, rows)
  svd, _ = spectral.truncated_svd(
    op, k, key, tolerance=tolerance, max_cycles=max_cycles
  )
  noise = operators.centering_noise(mean, rows, svd.v)
  svd = spectral.without_noise(svd, noise)
  return svd.u, svd.s

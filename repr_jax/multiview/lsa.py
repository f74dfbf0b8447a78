"""Word vectors from a single matrix, for comparison with multiview LSA.

LSA is the truncated SVD of all views side by side; PPMI-SVD (Levy, Goldberg
and Dagan 2015) is `lsa` of `host_views.weigh` with PPMI, without centering.
"""

from collections.abc import Sequence

import jax
import numpy as np
import scipy.sparse

from repr_jax.errors import InputError
from repr_jax.multiview import factoring, host_views


def concatenated(matrices: Sequence[scipy.sparse.csr_array]):
  """Views side by side: one view with all their columns, [n, sum of d_j]."""
  if not matrices:
    raise InputError("no view to put beside others")
  rows = {matrix.shape[0] for matrix in matrices}
  if len(rows) > 1:
    raise InputError(f"views with different numbers of rows: {sorted(rows)}")
  return scipy.sparse.csr_array(scipy.sparse.hstack(matrices, format="csr"))


def factors(
  matrix, k: int, *, center: bool = True, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
  """Left singular vectors and values, the factors of LSA with any power.

  Args:
    matrix: weighted counts [n, d], of the kinds that `mvlsa.fit` takes.
    k: number of singular vectors.
    center: subtract column means over the rows that are not empty.
    seed: of the SVD's starting block.

  Returns:
    U [n, k] and s [k].
  """
  (host,) = hosts = host_views.open_views([matrix])
  width = host.load().shape[1]
  if not 1 <= k <= min(host.rows, width):
    raise InputError(
      f"k = {k} dimensions asked of a {host.rows} x {width} view"
    )
  weights, _ = host_views.observe(hosts)
  ((factor, _),) = factoring.factor_views(
    hosts, k, weights, jax.random.key(seed), center=center,
    tolerance=1e-2, max_cycles=2,
  )  # fmt: skip
  return np.asarray(factor.left), np.asarray(factor.s)


def lsa(
  matrix, k: int, *, power: float = 1.0, center: bool = True, seed: int = 0
) -> np.ndarray:
  """Latent semantic analysis: U S^power of the truncated SVD.

  Args:
    matrix: weighted counts [n, d], scipy sparse or dense.
    k: dimension of the vectors.
    power: of the singular values; 1 approximates inner products best, 0 weights
      all dimensions equally.
    center: subtract column means over the rows that are not empty.
    seed: of the SVD's starting block.

  Returns:
    Vectors, float32 [n, k].
  """
  u, s = factors(matrix, k, center=center, seed=seed)
  return u * s ** np.float32(power)

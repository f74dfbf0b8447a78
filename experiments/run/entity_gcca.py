"""Entities by generalized CCA over the kinds of their features (thesis 3.3).

Tokens, documents, links and contexts are views Y_j of the entities. Each view
has some columns of the matrix that LSA factors. With the SVD Y_j = A_j S_j B_j'
and the common space V with eigenvalues L,

    P_j = B_j (r + S_j^2)^(-1/2) C_j L^(power - 1),
    C_j = S_j (r + S_j^2)^(-1/2) A_j' V.

The parts Y_j P_j sum to V L^power, up to the length of each row, so that LSA's
functions score and explain entities in this space.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax import multiview, ops
from repr_jax.multiview import gcca
from repr_jax.setexp.baselines import lsa

RANK, POWER, RIDGE = 100, 1.0, 1.0
_TOLERANCE = 1e-2  # of the singular values, as in LSA


def fit(
  counts: sp.csr_array,
  features: Sequence[str],
  *,
  rank: int = RANK,
  power: float = POWER,
  ridge: float = RIDGE,
  seed: int = 0,
) -> lsa.Model:
  """Entities in the common space, as a model of LSA.

  Args:
    counts: feature counts, [X, F].
    features: their names; the part before the colon names the view.
    rank: dimensions r; the SVD of a view has twice as many.
    power: exponent of the eigenvalues.
    ridge: ridge of a view, as a multiple of its mean squared singular value.
    seed: seed of the SVDs.

  Returns:
    The model.
  """
  _, rows = lsa.unit_rows(counts)
  kinds = np.array([name.partition(":")[0] for name in features])
  columns = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
  columns = [x for x in columns if rows[:, x].nnz]
  keys = jax.random.split(jax.random.key(seed), len(columns) + 1)
  factors = []
  for own, key in zip(columns, keys[1:]):
    view = sp.csr_array(rows[:, own])
    seen = (np.diff(view.indptr) > 0).astype(np.float32)
    factor, _ = multiview.factor_view(
      ops.from_scipy(view), 2 * rank, seen, key, center=False,
      tolerance=_TOLERANCE,
    )  # fmt: skip
    factors.append(factor)
  rank = min(rank, rows.shape[0], sum(factor.s.size for factor in factors))
  common = multiview.combine(
    factors, rank, keys[0], ridge=ridge, relative_ridge=True
  )
  scale = jnp.maximum(common.values, 1e-6 * common.values[0]) ** (power - 1)
  projection = np.zeros((rows.shape[1], rank), np.float32)
  ridges = gcca.view_ridges(factors, ridge, relative=True)
  for own, factor, r, inside in zip(
    columns, factors, ridges, common.coordinates
  ):
    root = gcca.ridge_root(factor.s, r)
    projection[own] = (factor.right * root) @ (inside * scale)
  return lsa.fit(counts, projection=projection)

"""Decompositions that follow a matrix as it changes or streams by.

`rank_one_update` is Brand's (2006) update of a thin SVD by a b', which the
thesis uses to center a view after its SVD (3.3.1). `IncrementalSVD` takes a
matrix a block of columns at a time and keeps k left singular vectors (Brand
2002; thesis 3.3): memory is [n, k + block].
"""

from typing import NamedTuple

import chex
import jax.numpy as jnp
from jax import Array

from repr_jax.ops import dense_factorizations as dense
from repr_jax.ops.precision import exact_products
from repr_jax.ops.spectral import SVD, column_signs, fix_signs, tall_svd


class IncrementalSVD(NamedTuple):
  """The left side of the SVD of all columns seen so far.

  Attributes:
    u: left singular vectors, [n, k]; zero columns where rank is missing.
    s: singular values, [k].
    lost: squared Frobenius norm of what truncation has dropped so far, [].
    total: squared Frobenius norm of all columns seen so far, [].
  """

  u: Array
  s: Array
  lost: Array
  total: Array


@exact_products
def rank_one_update(svd: SVD, a: Array, b: Array) -> SVD:
  """SVD of U S V' + a b', at the same rank k.

  Exact when the sum has rank at most k or when the given SVD is complete;
  otherwise the best approximation within the enlarged subspaces.

  Args:
    svd: thin SVD with u [n, k], s [k], v [d, k].
    a: left vector, [n]; minus the observed-row mask to center.
    b: right vector, [d]; the column means to center.
  """
  chex.assert_rank([a, b], 1)
  k = svd.s.shape[0]
  in_u, p, norm_p = _split_off(svd.u, a)
  in_v, q, norm_q = _split_off(svd.v, b)
  left = jnp.append(in_u, norm_p)
  right = jnp.append(in_v, norm_q)
  core = jnp.diag(jnp.append(svd.s, 0)) + jnp.outer(left, right)
  cu, s, cvt = dense.svd(core)
  u = jnp.column_stack([svd.u, p]) @ cu[:, :k]
  v = jnp.column_stack([svd.v, q]) @ cvt[:k].T
  return fix_signs(SVD(u, s[:k], v))


def incremental_init(n: int, k: int, dtype=jnp.float32) -> IncrementalSVD:
  """The state before any column: u [n, k] and s [k] are zero."""
  # Two scalars of their own: a buffer cannot be donated twice.
  lost, total = jnp.zeros((), dtype), jnp.zeros((), dtype)
  return IncrementalSVD(
    jnp.zeros((n, k), dtype), jnp.zeros(k, dtype), lost, total
  )


def incremental_update(state: IncrementalSVD, columns: Array) -> IncrementalSVD:
  """Adds a block of columns [n, m] and truncates to rank k again.

  The k + m columns [U S, block] are decomposed through their Gram matrix, so
  values below sqrt(eps) times the largest are not resolved. `lost` grows by the
  energy that is cut; by Weyl's inequality each singular value of all columns
  seen is within sqrt(lost) of the singular value that is kept.
  """
  chex.assert_rank(columns, 2)
  k = state.s.shape[0]
  svd = tall_svd(jnp.concatenate([state.u * state.s, columns], axis=1))
  energy = jnp.sum(columns**2)
  lost = jnp.sum(svd.s[k:] ** 2)
  left = svd.u[:, :k] * column_signs(svd.v[:, :k])
  return IncrementalSVD(
    left, svd.s[:k], state.lost + lost, state.total + energy
  )


@exact_products
def _split_off(basis: Array, x: Array) -> tuple[Array, Array, Array]:
  """x as basis @ inside + norm * outside, with a unit (or zero) outside."""
  inside = basis.T @ x
  rest = x - basis @ inside
  again = basis.T @ rest
  rest, inside = rest - basis @ again, inside + again
  norm = jnp.linalg.norm(rest)
  scale = jnp.finfo(x.dtype).eps * 8 * jnp.linalg.norm(x)
  unit = jnp.where(norm > scale, rest / jnp.maximum(norm, scale + 1e-37), 0)
  return inside, unit, jnp.where(norm > scale, norm, 0)

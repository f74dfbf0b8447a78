"""The common space of views that come one at a time (thesis 3.3).

The state is the left side of the SVD of M~, whose columns are the views'
blocks (`gcca.view_block`). It holds [n, k + m] at most.
"""

import chex
import jax.numpy as jnp
from jax import Array

from repr_jax.multiview import gcca
from repr_jax.ops import dense_factorizations as dense
from repr_jax.ops.precision import exact_products
from repr_jax.ops.spectral import column_signs
from repr_jax.ops.svd_updates import (
  IncrementalSVD,
  incremental_init,
  incremental_update,
)


def stream_init(n: int, k: int, dtype=jnp.float32) -> IncrementalSVD:
  """The state of a streamed combination before any view: u [n, k].

  Keep k + m directions for views of rank m. The first view's directions have
  nearly equal weights; with k alone, those that it shares with later views
  could be dropped.

  Args:
    n: rows.
    k: directions to keep.
    dtype: float type of the state.

  Returns:
    The state; the eigenvalues are the squares of `s`.

  Example:
    >>> from repr_jax import multiview
    >>> multiview.stream_init(50, 4).u.shape
    (50, 4)
  """
  return incremental_init(n, k, dtype)


def stream_update(state: IncrementalSVD, block: Array) -> IncrementalSVD:
  """Takes in one view's block of M~ (`view_block`); holds [n, k + m].

  Args:
    state: the state, u [n, k].
    block: K^(-1/2) W_j A_j T_j, [n, m].

  Returns:
    The new state. Each singular value is within sqrt(lost) of that of all
    blocks; `lost / total` is the share of their energy that was dropped.

  Example:
    >>> import numpy as np
    >>> from repr_jax import multiview
    >>> blocks = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> state = multiview.stream_init(50, 6)
    >>> for block in blocks:
    ...   state = multiview.stream_update(state, block)
    >>> s = np.linalg.svd(np.hstack(blocks), compute_uv=False)
    >>> bool(np.allclose(state.s, s, rtol=1e-3))
    True
  """
  return incremental_update(state, jnp.asarray(block, state.u.dtype))


@exact_products
def stream_remove(
  state: IncrementalSVD, block: Array, rescale: Array | None = None
) -> IncrementalSVD:
  """Takes a view's block out again: U S^2 U' - M~_j M~_j' within span(U).

  Exact while nothing was dropped (`lost` is 0 up to rounding). After
  truncation let s be the singular values of the remaining blocks: the new
  ones are at most s, and sqrt(s'^2 + lost) is at least s - sqrt(lost).
  Values below about sqrt(eps) times the largest are lost to cancellation.

  Args:
    state: the state, u [n, k].
    block: as it was given to `stream_update`, [n, m].
    rescale: factor of each row after the removal, [n]. Without the view, K
      is smaller: pass sqrt(K_before / K_after), 0 for rows that no view has.

  Returns:
    The state without the view. `lost` is unchanged, since the dropped part of
    the view is unknown.

  Example:
    >>> import numpy as np
    >>> from repr_jax import multiview
    >>> one, two = np.random.default_rng(0).normal(size=(2, 50, 3))
    >>> state = multiview.stream_update(multiview.stream_init(50, 6), one)
    >>> both = multiview.stream_update(state, two)
    >>> again = multiview.stream_remove(both, two)
    >>> bool(np.allclose(again.s, state.s, atol=1e-2))
    True
  """
  dtype = state.u.dtype
  block = jnp.asarray(block, dtype)
  chex.assert_rank(block, 2)
  inside = gcca.inner(state.u, block)
  core = jnp.diag(state.s**2) - inside @ inside.T
  values, vectors = dense.eigh((core + core.T) / 2)
  values, vectors = values[::-1], vectors[:, ::-1]
  floor = 64 * jnp.finfo(dtype).eps * jnp.max(state.s) ** 2
  present = values > floor
  s = jnp.where(present, jnp.sqrt(jnp.where(present, values, 1)), 0)
  u = jnp.where(present, state.u @ vectors, 0)
  total = jnp.maximum(state.total - jnp.sum(block**2), 0)
  state = IncrementalSVD(u * column_signs(u), s, state.lost, total)
  if rescale is None:
    return state
  scaled = jnp.asarray(rescale, dtype)[:, None] * state.u * s
  empty = incremental_init(scaled.shape[0], scaled.shape[1], dtype)
  moved = incremental_update(empty, scaled)
  most = jnp.max(jnp.asarray(rescale, dtype), initial=0) ** 2
  return moved._replace(lost=most * state.lost, total=most * total)

"""Scalable MAX-VAR GCCA: one space for many sparse views (thesis 3.3).

Each view goes through a rank-m SVD (`factor_view`); the factors are combined
in memory (`combine`) or one view at a time (`repr_jax.multiview.streaming`).
No [n, n] matrix is ever formed.

With row weights the objective sum_j c_j ||W_j K_j (G - X_j U_j)||^2 is
minimized under G' K G = I, K = sum_j c_j W_j^2 K_j, by the eigenvectors V of
K^(-1/2) (sum_j c_j W_j P_j W_j) K^(-1/2), where P_j projects onto the columns
of W_j X_j and G = K^(-1/2) V. K_j marks the rows that view j observes: those
with a nonzero count, before any weighting of the counts. The weight c_j of a
view multiplies its loss, its ridge penalty included.
"""

from collections.abc import Sequence
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from repr_jax.errors import InputError
from repr_jax.ops.operators import (
  Operator,
  centered,
  centering_noise,
  column_means,
  row_scaled,
)
from repr_jax.ops.precision import exact_products
from repr_jax.ops.sharded import Sharded
from repr_jax.ops.sparse import Sparse
from repr_jax.ops.spectral import (
  SVDInfo,
  column_signs,
  top_eigenpairs,
  truncated_svd,
  without_noise,
)

_FEW_CYCLES = 2  # up to here wide blocks are more accurate than large bases
_WIDE = 1024  # least number of columns in a product of the combination


class ViewFactor(NamedTuple):
  """Rank-m SVD of a centered, weighted view: W X = A diag(s) B'.

  Attributes:
    left: A, [n, m].
    s: singular values, [m]; zero where the view has lower rank.
    right: B, [d, m].
    mean: column means over the observed rows, [d].
    row_weights: diagonal of W_j K_j, [n].
  """

  left: Array
  s: Array
  right: Array
  mean: Array
  row_weights: Array


class Combination(NamedTuple):
  """The common space of some views.

  Attributes:
    v: V, unit columns, [n, k]; zero where the rank is less than k.
    values: eigenvalues, descending, [k].
    coordinates: T_j A_j' W_j K^(-1/2) V of each view, [m_j, k].
    shares: explained share of the space by each view, in [0, 1], [J].
  """

  v: Array
  values: Array
  coordinates: tuple[Array, ...]
  shares: Array


def factor_view(
  x: Array | Sparse | Sharded | Operator,
  m: int,
  row_weights: Array,
  key: Array,
  *,
  center: bool = True,
  tolerance: float = 1e-3,
  max_cycles: int = 12,
) -> tuple[ViewFactor, SVDInfo]:
  """Rank-m SVD of W (Y - k mu'), centered over the observed rows only.

  Args:
    x: counts or features Y of one view, [n, d].
    m: rank; min(d, m) is used.
    row_weights: diagonal of W_j K_j, zero for rows that are unobserved or
      dropped, [n].
    key: random key of the SVD.
    center: subtract mu, the column means over rows of nonzero weight.
    tolerance: relative error at which the SVD stops.
    max_cycles: bound on the SVD's work where the spectrum is flat: how often
      its basis may be filled. Up to 2, blocks are wider and the basis smaller.

  Returns:
    The factors, and how the SVD ended.

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> views = np.random.default_rng(0).poisson(1.0, (3, 50, 8)) * 1.0
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> weights = np.ones((3, 50))
    >>> rank_4 = lambda x, w, key: multiview.factor_view(x, 4, w, key)
    >>> factors, info = jax.vmap(rank_4)(views, weights, keys)
    >>> factors.left.shape, factors.right.shape
    ((3, 50, 4), (3, 8, 4))
  """
  n, d = x.shape
  chex.assert_shape(row_weights, (n,))
  weights = jnp.asarray(row_weights).astype(x.dtype)
  weighted = row_scaled(x, weights)
  mean = jnp.zeros(d, x.dtype)
  if center:
    mean = column_means(x, weights > 0)
    weighted = centered(weighted, mean, weights)
  rank = min(m, n, d)
  block = basis = None
  if max_cycles <= _FEW_CYCLES:
    block, basis = max(8, min(rank // 2, 128)), 3 * rank
  svd, info = truncated_svd(
    weighted, rank, key, tolerance=tolerance, max_cycles=max_cycles,
    block=block, basis=basis,
  )  # fmt: skip
  if center:
    svd = without_noise(svd, centering_noise(mean, weights, svd.v))
  return ViewFactor(svd.u, svd.s, svd.v, mean, weights), info


@exact_products
def combine(
  factors: Sequence[ViewFactor] | ViewFactor,
  k: int,
  key: Array,
  *,
  ridge: float | Array = 1e-8,
  relative_ridge: bool | Array = False,
  view_weights: Array | None = None,
  rank: int | Array | None = None,
  products: Array | None = None,
) -> Combination:
  """The common space of factored views: top-k left singular vectors of M~.

    M~ = K^(-1/2) [.. sqrt(c_j) W_j A_j T_j ..],  T = diag(s / sqrt(r + s^2))

  It goes through the Gram matrix of all columns, a few views at a time; M~
  itself is never held.

  Args:
    factors: of each view, or of views stacked along the first axis. `right`
      and `mean` are not read.
    k: dimension, at most the sum of m_j.
    key: random key for the eigensolver.
    ridge: r_j, for all views or for each, [] or [J].
    relative_ridge: whether r_j is in units of the view's mean squared
      singular value.
    view_weights: c_j, the weight of each view's loss, [J]; 0 leaves a view
      out, None is 1 for each.
    rank: how many singular vectors of each view count, [] or [J]; None for
      all.
    products: `view_products` of the same factors and view_weights, which
      serve every ridge, rank and k; None to compute them.

  Returns:
    The combination.

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> views = np.random.default_rng(0).poisson(1.0, (3, 50, 8)) * 1.0
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> rank_4 = lambda x, key: multiview.factor_view(x, 4, np.ones(50), key)
    >>> factors, _ = jax.vmap(rank_4)(views, keys)
    >>> combined = multiview.combine(factors, 2, keys[0])
    >>> combined.v.shape, combined.shares.shape
    ((50, 2), (3,))
  """
  factors = unstacked(factors)
  widths = [factor.s.shape[0] for factor in factors]
  check_rank(k, sum(widths), factors[0].left.shape[0])
  c, present = _row_scales(factors, view_weights)
  if products is None:
    products = view_products(factors, c)
  ranks = jnp.broadcast_to(
    jnp.asarray(sum(widths) if rank is None else rank), (len(factors),)
  )
  ridges = view_ridges(factors, ridge, relative_ridge)
  shrink = [
    shrinkage(f.s, r) * (jnp.arange(f.s.shape[0]) < top)
    for f, r, top in zip(factors, ridges, ranks)
  ]
  t = jnp.concatenate(shrink)
  columns = jnp.repeat(jnp.sqrt(c), np.array(widths)) * t
  values, vectors = _top_eigenpairs(_scaled(products, columns, columns), k, key)
  scaled, values = scaled_eigenvectors(values, vectors)
  scaled = columns[:, None] * scaled
  v = jnp.zeros((factors[0].left.shape[0], k), c.dtype)
  start = 0
  for group in _groups(widths):
    part = _block(factors, present, group)
    v = v + part @ scaled[start : start + part.shape[1]]
    start += part.shape[1]
  signs = column_signs(v)
  v = v * signs
  lengths = jnp.sum(v**2, axis=1)
  # T A' W K^(-1/2) V without another pass over the rows.
  inside = t[:, None] * (products @ (scaled * signs))
  coordinates = tuple(jnp.split(inside, np.cumsum(widths)[:-1]))
  shares = jnp.stack(
    [share(inside, p, lengths) for inside, p in zip(coordinates, present)]
  )
  return Combination(v, values, coordinates, shares)


@exact_products
def view_products(
  factors: Sequence[ViewFactor] | ViewFactor, view_weights: Array | None = None
) -> Array:
  """Products of the columns of K^(-1/2) [.. W_j A_j ..], [sum m_j, sum m_j].

  They take most of the time of `combine` and do not depend on its ridge, rank
  and k. View weights enter through K alone.

  Args:
    factors: as in `combine`.
    view_weights: c_j, [J]; None for ones.

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> views = np.random.default_rng(0).poisson(1.0, (3, 50, 8)) * 1.0
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> rank_4 = lambda x, key: multiview.factor_view(x, 4, np.ones(50), key)
    >>> factors, _ = jax.vmap(rank_4)(views, keys)
    >>> products = multiview.view_products(factors)
    >>> products.shape
    (12, 12)
    >>> many = [multiview.combine(factors, 2, keys[0], ridge=r,
    ...   products=products) for r in (0.1, 1.0)]
  """
  factors = unstacked(factors)
  _, present = _row_scales(factors, view_weights)
  groups = _groups([factor.s.shape[0] for factor in factors])
  rows: list[list[Array]] = []
  for i, group in enumerate(groups):
    left = _block(factors, present, group)
    own = [inner(left, left)]
    own += [
      inner(left, _block(factors, present, other)) for other in groups[i + 1 :]
    ]
    rows.append([rows[j][i].T for j in range(i)] + own)
  return jnp.block(rows)


def _row_scales(
  factors: Sequence[ViewFactor], view_weights: Array | None
) -> tuple[Array, Array]:
  """c_j [J] and diagonals of W_j K^(-1/2) [J, n]."""
  dtype = factors[0].s.dtype
  weights = jnp.stack([jnp.asarray(f.row_weights) for f in factors])
  c = jnp.ones(len(factors), dtype) if view_weights is None else view_weights
  c = jnp.asarray(c, dtype)
  chex.assert_shape(c, (len(factors),))
  return c, weights * support_scale(weights, c)


def _block(
  factors: Sequence[ViewFactor], present: Array, group: Sequence[int]
) -> Array:
  """Columns K^(-1/2) W_j A_j of some views, side by side."""
  parts = [present[j][:, None] * jnp.asarray(factors[j].left) for j in group]
  return jnp.concatenate(parts, axis=1)


def unstacked(factors: Sequence[ViewFactor] | ViewFactor) -> list[ViewFactor]:
  """The factors of each view, given a list of them or stacked ones."""
  if not isinstance(factors, ViewFactor):
    return list(factors)
  count = factors.s.shape[0]
  return [jax.tree.map(lambda x, j=j: x[j], factors) for j in range(count)]


def check_rank(k: int, columns: int, rows: int) -> None:
  """Raises `InputError` unless 1 <= k <= min(columns, rows)."""
  if not 1 <= k <= min(columns, rows):
    raise InputError(
      f"k = {k} dimensions asked of views with {columns} singular vectors and "
      f"{rows} rows in all; choose a smaller k or a larger m"
    )


def support_scale(
  row_weights: Array, view_weights: Array | None = None
) -> Array:
  """The rows' scale K^(-1/2), K = sum_j c_j W_j^2 K_j.

  Args:
    row_weights: diagonals of W_j K_j, [J, n].
    view_weights: c_j, [J]; None for ones.

  Returns:
    The scale, [n]; 0 for rows that no view has.

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> multiview.support_scale(jnp.array([[1.0, 1, 0]] * 4)).tolist()
    [0.5, 0.5, 0.0]
  """
  chex.assert_rank(row_weights, 2)
  squares = row_weights**2
  if view_weights is not None:
    squares = squares * view_weights[:, None]
  support = jnp.sum(squares, axis=0)
  present = support > 0
  return jnp.where(present, 1 / jnp.sqrt(jnp.where(present, support, 1)), 0)


def view_ridges(
  factors: Sequence[ViewFactor],
  ridge: float | Array,
  relative: bool | Array = False,
) -> list[Array]:
  """r_j of each view, [] each; relative ones times the mean of s^2."""
  dtype = factors[0].s.dtype
  given = jnp.broadcast_to(jnp.asarray(ridge, dtype), (len(factors),))
  return [
    r * jnp.where(relative, _mean_square(jnp.asarray(f.s)), 1)
    for r, f in zip(given, factors)
  ]


def shrinkage(s: Array, ridge: float | Array) -> Array:
  """T = s / sqrt(r + s^2) of singular values s [m]; zero where s is."""
  return s * ridge_root(s, ridge)


def ridge_root(s: Array, ridge: float | Array) -> Array:
  """1 / sqrt(r + s^2) of singular values s [m], zero where s is."""
  present = s > 0
  total = jnp.where(present, ridge + s**2, 1)
  return jnp.where(present, 1 / jnp.sqrt(total), 0)


def view_block(factor: ViewFactor, scale: Array, ridge: float | Array) -> Array:
  """A view's block of M~: K^(-1/2) W_j A_j T_j, [n, m].

  Args:
    factor: the view's factors.
    scale: diagonal of K^(-1/2), times sqrt(c_j) where views have weights, [n].
    ridge: r_j; T_j = diag(s / sqrt(r_j + s^2)).

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> x = np.random.default_rng(0).poisson(1.0, (50, 8)) * 1.0
    >>> key, ones = jax.random.key(0), np.ones(50)
    >>> factor, _ = multiview.factor_view(x, 4, ones, key)
    >>> block = multiview.view_block(factor, ones, 0.0)
    >>> bool(np.allclose(block.T @ block, np.eye(4), atol=1e-5))
    True
  """
  t = shrinkage(factor.s, ridge)
  return _scaled(factor.left, factor.row_weights * scale, t)


def share(coordinates: Array, present: Array, lengths: Array) -> Array:
  """Explained share [] from coordinates [m, k], W_j K^(-1/2) and |v|^2 [n]."""
  whole = jnp.sum(present**2 * lengths)
  inside = jnp.sum(coordinates**2)
  return jnp.where(whole > 0, inside / jnp.where(whole > 0, whole, 1), 0)


def scaled_eigenvectors(values: Array, vectors: Array) -> tuple[Array, Array]:
  """Scales eigenvectors of M~' M~ so that M~ times them is V.

  Args:
    values: eigenvalues, descending, [k].
    vectors: eigenvectors, [c, k].

  Returns:
    E diag(values)^(-1/2) [c, k] and the values [k]; both are zero where a
    value is under the rounding level.
  """
  floor = vectors.shape[0] * jnp.finfo(values.dtype).eps * values[0]
  present = values > floor
  safe = jnp.where(present, values, 1)
  inverse = jnp.where(present, 1 / jnp.sqrt(safe), 0)
  return vectors * inverse, jnp.where(present, values, 0)


def offsets(arrays: Sequence[Array]) -> list[int]:
  """Where the columns of all arrays [n, d_j] but the first begin."""
  stops, end = [], 0
  for array in arrays[:-1]:
    end += array.shape[1]
    stops.append(end)
  return stops


_top_eigenpairs = jax.jit(top_eigenpairs, static_argnums=1)


@jax.jit
def _scaled(left: Array, rows: Array, columns: Array) -> Array:
  return rows[:, None] * left * columns


@jax.jit
@exact_products
def inner(left: Array, right: Array) -> Array:
  """left' right without a transposed copy, [a, b] of [n, a] and [n, b]."""
  return lax.dot_general(left, right, (((0,), (0,)), ((), ())))


def _mean_square(s: Array) -> Array:
  """Mean of the squares of the singular values that are not zero, []."""
  return jnp.sum(s**2) / jnp.maximum(jnp.sum(s > 0), 1)


def _groups(widths: Sequence[int]) -> list[list[int]]:
  """Views side by side in a few wide blocks: fewer and larger products."""
  groups: list[list[int]] = [[]]
  held = 0
  for j, width in enumerate(widths):
    if held >= _WIDE:
      groups.append([])
      held = 0
    groups[-1].append(j)
    held += width
  return groups

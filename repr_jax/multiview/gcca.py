"""MAX-VAR generalized CCA: one space for many views (thesis 2.1.3 and 3.3).

Complete dense views have an exact solution through one Gram matrix
(`gcca_exact`). Many sparse views with missing and weighted rows go through a
rank-m SVD of each (`factor_view`) and a combination of the factors, in memory
(`combine`) or one view at a time (`combine_init`, `combine_update`). No matrix
with rows on both sides is ever formed.

With row weights the objective sum_j ||W_j K_j (G - X_j U_j)||^2 is minimized
under G' K G = I, K = sum_j W_j^2 K_j, by the eigenvectors V of
K^(-1/2) (sum_j W_j P_j W_j) K^(-1/2), where P_j projects onto the columns of
W_j X_j and G = K^(-1/2) V. Weights of 0 and 1 give the missing rows of 3.3.2.
"""

from collections.abc import Sequence
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array, lax

from repr_jax.errors import InputError
from repr_jax.multiview.cca import exact_mean, inverse_root_values, rounding
from repr_jax.ops.operators import (
  Operator,
  as_operator,
  centered,
  centering_noise,
  column_means,
  row_scaled,
)
from repr_jax.ops.sharded import Sharded
from repr_jax.ops.sparse import Sparse
from repr_jax.ops.spectral import (
  SVDInfo,
  column_signs,
  top_eigenpairs,
  truncated_svd,
  without_noise,
)
from repr_jax.ops.svd_updates import (
  IncrementalSVD,
  incremental_init,
  incremental_update,
)


class GCCA(NamedTuple):
  """A fitted generalized CCA.

  Attributes:
    embedding: G, one row per word, [n, k].
    values: how much of each dimension the mean view explains, in [0, 1] and
      descending, [k]: eigenvalues of K^(-1/2) (sum_j W_j P_j W_j) K^(-1/2),
      which is the mean of the P_j for complete views.
    projections: U_j of each view, each [d_j, k].
    means: column means of each view, each [d_j].
    objective: sum_j ||W_j K_j (G - X_j U_j)||^2 plus the ridge penalty, [].
    shares: explained share of the embedding by each view, in [0, 1], [J].
  """

  embedding: Array
  values: Array
  projections: tuple[Array, ...]
  means: tuple[Array, ...]
  objective: Array
  shares: Array


class ViewFactor(NamedTuple):
  """Rank-m SVD of a centered, weighted view: W X = A diag(s) B'.

  Attributes:
    left: A, [n, m].
    s: singular values, [m]; zero where the view has lower rank.
    right: B, [d, m].
    mean: column means over the observed rows, [d].
  """

  left: Array
  s: Array
  right: Array
  mean: Array


def gcca_exact(
  views: Sequence[Array],
  k: int,
  *,
  ridge: float | Sequence[float] = 0.0,
  center: bool = True,
  rows_per_block: int = 8192,
  key: Array | None = None,
) -> GCCA:
  """Exact MAX-VAR GCCA of complete dense views, G'G = I.

  Args:
    views: matrices [n, d_j] with the same rows; finite, as everything is NaN
      if one entry is.
    k: dimension of the common space, at most the sum of d_j. Columns past the
      rank of all views together are zero, and so are their values.
    ridge: r_j, one for all views or one each.
    center: subtract column means.
    rows_per_block: rows that are centered and multiplied at a time.
    key: random key for the eigensolver where the sum of d_j is large.
  """
  check_views(views, k)
  n = views[0].shape[0]
  means = tuple(
    exact_mean(v) if center else jnp.zeros(v.shape[1], v.dtype) for v in views
  )
  ridges = _each_ridge(ridge, len(views))
  grams = _gram_rows(views, means, min(rows_per_block, n))
  whitening = []
  for j, r in enumerate(ridges):
    values, vectors = jnp.linalg.eigh(grams[j][0])
    noise = n * rounding(means[j], vectors)
    roots = inverse_root_values(values, r, noise)
    whitening.append(vectors * roots)
  matrix = _whitened(grams, whitening)
  key = jax.random.key(0) if key is None else key
  values, vectors = top_eigenpairs(matrix, k, key)
  parts = jnp.split(vectors, _offsets(views), axis=0)
  root = jnp.sqrt(scaled_eigenvectors(values, vectors)[1])
  projections = [w @ (p * root) for w, p in zip(whitening, parts)]
  # Signs by the columns of the views: those of the whitened have none fixed.
  signs = column_signs(jnp.concatenate(projections))
  vectors = vectors * signs
  scaled, values = scaled_eigenvectors(values, vectors)
  embedding = jnp.zeros((n, k), values.dtype)
  for view, mean, w, part in zip(
    views, means, whitening, jnp.split(scaled, _offsets(views), axis=0)
  ):
    right = w @ part
    embedding = embedding + (view @ right - mean @ right)
  return GCCA(
    embedding=embedding,
    values=values / len(views),
    projections=tuple(u * signs for u in projections),
    means=means,
    objective=jnp.maximum(len(views) * k - values.sum(), 0),
    shares=jnp.stack([jnp.sum((p * root) ** 2) / k for p in parts]),
  )


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
    max_cycles: bound on the SVD's work where the spectrum is flat.
  """
  n, d = x.shape
  chex.assert_shape(row_weights, (n,))
  weights = row_weights.astype(x.dtype)
  weighted = row_scaled(x, weights)
  mean = jnp.zeros(d, x.dtype)
  if center:
    mean = column_means(x, weights > 0)
    weighted = centered(weighted, mean, weights)
  svd, info = truncated_svd(
    weighted, min(m, n, d), key, tolerance=tolerance, max_cycles=max_cycles
  )
  if center:
    svd = without_noise(svd, centering_noise(mean, weights, svd.v))
  return ViewFactor(svd.u, svd.s, svd.v, mean), info


def support_scale(row_weights: Array) -> Array:
  """K^(-1/2) [n] from the diagonals of W_j K_j [J, n], zero where K is."""
  chex.assert_rank(row_weights, 2)
  support = jnp.sum(row_weights**2, axis=0)
  present = support > 0
  return jnp.where(present, 1 / jnp.sqrt(jnp.where(present, support, 1)), 0)


def weighted_basis(
  factor: ViewFactor, row_weights: Array, scale: Array, ridge: float | Array
) -> Array:
  """K^(-1/2) W_j A_j T_j, a view's block of M~, [n, m].

  Args:
    factor: the view's factors.
    row_weights: diagonal of W_j K_j, [n].
    scale: diagonal of K^(-1/2), [n].
    ridge: r_j; T_j = diag(s / sqrt(r_j + s^2)).
  """
  shrink = factor.s * ridge_root(factor.s, ridge)
  return (row_weights * scale)[:, None] * factor.left * shrink


def ridge_root(s: Array, ridge: float | Array) -> Array:
  """1 / sqrt(r + s^2) of singular values s [m], zero where s is."""
  present = s > 0
  total = jnp.where(present, ridge + s**2, 1)
  return jnp.where(present, 1 / jnp.sqrt(total), 0)


def combine(blocks: Sequence[Array], k: int, key: Array) -> tuple[Array, Array]:
  """Top-k left singular vectors of M~ = [M~_1 ... M~_J].

  Goes through the Gram matrix of all columns, block by block, so that M~ itself
  is never copied.

  Args:
    blocks: the views' blocks of M~, [n, m_j] each.
    k: how many, at most the sum of m_j.
    key: random key for the eigensolver.

  Returns:
    V [n, k] and the eigenvalues of M~ M~' [k], descending; both are zero where
    the rank is less than k.
  """
  columns = sum(block.shape[1] for block in blocks)
  if k > min(columns, blocks[0].shape[0]):
    raise InputError(
      f"k = {k} dimensions asked of views with {columns} singular vectors in "
      "all; choose a smaller k or a larger m"
    )
  rows: list[list[Array]] = []
  for i, left in enumerate(blocks):
    mirrored = [rows[j][i].T for j in range(i)]
    rows.append(mirrored + [_inner(left, right) for right in blocks[i:]])
  values, vectors = _top_eigenpairs(jnp.block(rows), k, key)
  vectors = vectors * column_signs(vectors)
  scaled, values = scaled_eigenvectors(values, vectors)
  parts = jnp.split(scaled, _offsets(blocks), axis=0)
  v = sum(block @ part for block, part in zip(blocks, parts))
  return jnp.asarray(v), values


def scaled_eigenvectors(values: Array, vectors: Array) -> tuple[Array, Array]:
  """Eigenpairs of M~' M~ as what M~ is multiplied with to give V.

  Args:
    values: eigenvalues, descending, [k].
    vectors: eigenvectors, [c, k].

  Returns:
    E diag(values)^(-1/2) [c, k] and the values [k]; both are zero where a
    value is under the rounding level.
  """
  floor = vectors.shape[0] * jnp.finfo(values.dtype).eps * values[0]
  present = values > floor
  inverse = jnp.where(present, 1 / jnp.sqrt(jnp.abs(values)), 0)
  return vectors * inverse, jnp.where(present, values, 0)


def combine_init(n: int, k: int, dtype=jnp.float32) -> IncrementalSVD:
  """The state of a streamed combination before any view: u [n, k]."""
  return incremental_init(n, k, dtype)


def combine_update(state: IncrementalSVD, basis: Array) -> IncrementalSVD:
  """Takes in one view's block of M~, [n, m]; holds [n, k + m] at most.

  The eigenvalues are the squares of `state.s`; `state.lost / state.total` is
  the share of the views' energy that truncation has dropped.
  """
  return incremental_update(state, basis)


def view_coordinates(basis: Array, v: Array) -> Array:
  """M~_j' V [m, k] of a view's block [n, m] and V [n, k]."""
  return _inner(basis, v)


def view_projection(
  factor: ViewFactor, coordinates: Array, ridge: float | Array
) -> Array:
  """U_j = B diag(1 / sqrt(r_j + s^2)) M~_j' V, for G = K^(-1/2) V.

  Args:
    factor: the view's factors; `left` is not used.
    coordinates: M~_j' V, [m, k].
    ridge: r_j.

  Returns:
    U_j, [d, k].
  """
  root = ridge_root(factor.s, ridge)
  return factor.right @ (root[:, None] * coordinates)


def gcca_transform(
  model: GCCA,
  rows: Sequence[Array | Sparse],
  row_weights: Array | None = None,
  *,
  calibrate: bool = True,
) -> Array:
  """Embeds unseen rows: the mean of the observed views' projections.

  Args:
    model: a fit with `projections` and `means`.
    rows: the new rows in each view, [n', d_j].
    row_weights: weight of each row in each view, zero where unobserved,
      [J, n']; None for all observed.
    calibrate: divide by the eigenvalues, so that training rows come out as
      their own embedding.

  Returns:
    Embeddings, [n', k]; zero for a row that no view has.
  """
  count = rows[0].shape[0]
  dtype = model.values.dtype
  if row_weights is None:
    row_weights = jnp.ones((len(rows), count), dtype)
  squares = row_weights.astype(dtype) ** 2
  support = squares.sum(axis=0)
  total = jnp.zeros((count, model.values.shape[0]), dtype)
  for x, mean, u, square in zip(rows, model.means, model.projections, squares):
    projected = as_operator(x).matmat(u) - mean @ u
    total = total + square[:, None] * projected
  mean_projection = total / jnp.where(support > 0, support, 1)[:, None]
  if not calibrate:
    return mean_projection
  return mean_projection / jnp.where(model.values > 0, model.values, 1)


def check_views(views: Sequence[Array | Sparse], k: int) -> None:
  """Raises `InputError` unless all views [n, d_j] share n and can hold k."""
  if not views:
    raise InputError("no view was given")
  n = views[0].shape[0]
  for j, view in enumerate(views):
    if view.shape[0] != n:
      raise InputError(
        f"view {j} has {view.shape[0]} rows, view 0 has {n}; all views must "
        "have one row per word of the same vocabulary"
      )
    if view.shape[1] == 0:
      raise InputError(f"view {j} has no column")
  total = sum(view.shape[1] for view in views)
  if not 1 <= k <= min(n, total):
    raise InputError(
      f"k = {k} dimensions asked of {n} rows and {total} columns in all"
    )


_top_eigenpairs = jax.jit(top_eigenpairs, static_argnums=1)


def _inner(left: Array, right: Array) -> Array:
  """left' right without a transposed copy, [a, b] of [n, a] and [n, b]."""
  return lax.dot_general(left, right, (((0,), (0,)), ((), ())))


def _gram_rows(views, means, block: int) -> list[list[Array]]:
  """Blocks X_i' X_j for j >= i of the centered views, summed by rows."""
  n = views[0].shape[0]
  steps = n // block

  def products(start, size):
    z = [
      lax.dynamic_slice_in_dim(v, start, size) - mean
      for v, mean in zip(views, means)
    ]
    return [z[i].T @ jnp.concatenate(z[i:], axis=1) for i in range(len(z))]

  def step(index, total):
    return jax.tree.map(jnp.add, total, products(index * block, block))

  total = lax.fori_loop(1, steps, step, products(0, block))
  if n % block:
    rest = products(steps * block, n % block)
    total = jax.tree.map(jnp.add, total, rest)
  widths = [v.shape[1] for v in views]
  split = []
  for i, row in enumerate(total):
    stops, end = [], 0
    for width in widths[i:-1]:
      end += width
      stops.append(end)
    split.append(jnp.split(row, stops, axis=1))
  return split


def _whitened(grams, whitening) -> Array:
  """The [c, c] matrix of blocks W_i' X_i'X_j W_j."""
  count = len(whitening)
  rows: list[list[Array]] = []
  for i in range(count):
    right = [
      whitening[i].T @ grams[i][j - i] @ whitening[j] for j in range(i, count)
    ]
    left = [rows[j][i].T for j in range(i)]
    rows.append(left + right)
  return jnp.block(rows)


def _offsets(views) -> list[int]:
  stops, end = [], 0
  for view in views[:-1]:
    end += view.shape[1]
    stops.append(end)
  return stops


def _each_ridge(ridge, count: int) -> list:
  if isinstance(ridge, Sequence):
    if len(ridge) != count:
      raise InputError(f"{len(ridge)} ridges for {count} views")
    return list(ridge)
  return [ridge] * count

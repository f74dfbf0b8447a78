"""Exact MAX-VAR GCCA of complete dense views (thesis 2.1.3)."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax

from repr_jax.errors import InputError
from repr_jax.multiview.cca import exact_mean, inverse_root_values, rounding
from repr_jax.multiview.gcca import offsets, scaled_eigenvectors
from repr_jax.multiview.model import GCCA
from repr_jax.ops import dense_factorizations as dense
from repr_jax.ops.precision import exact_products
from repr_jax.ops.spectral import column_signs, top_eigenpairs


@exact_products
def gcca_exact(
  views: Sequence[Array],
  k: int,
  *,
  ridge: float | Sequence[float] | Array = 0.0,
  center: bool = True,
  rows_per_block: int = 8192,
  key: Array | None = None,
) -> GCCA:
  """Exact MAX-VAR GCCA of complete dense views.

    minimize sum_j ||G - X_j U_j||^2 + r_j ||U_j||^2 with G'G = I

  through one Gram matrix of all columns; no [n, n] matrix is formed.

  Args:
    views: matrices [n, d_j] with the same rows; one NaN makes all results NaN.
    k: dimension of the common space, at most the sum of d_j. Columns past the
      rank of all views together are zero, as are their eigenvalues.
    ridge: r_j, a number for all views or one for each, [] or [J].
    center: subtract column means.
    rows_per_block: rows that are centered and multiplied at a time.
    key: random key for the eigensolver where the sum of d_j is large.

  Returns:
    The fit: embedding [n, k], projections [d_j, k] and the rest of `GCCA`.

  Example:
    >>> import numpy as np
    >>> from repr_jax import multiview
    >>> x = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
    >>> model = multiview.gcca_exact([x[:, :4], x[:, 2:]], 2)
    >>> model.embedding.shape, [u.shape for u in model.projections]
    ((40, 2), [(4, 2), (4, 2)])
    >>> bool((model.values > 0.99).all())  # two columns are shared
    True
  """
  views = [jnp.asarray(view) for view in views]
  check_views(views, k)
  n = views[0].shape[0]
  means = tuple(
    exact_mean(v) if center else jnp.zeros(v.shape[1], v.dtype) for v in views
  )
  ridges = _each_ridge(ridge, len(views), means[0].dtype)
  grams = _gram_rows(views, means, min(rows_per_block, n))
  whitening = []
  for j, r in enumerate(ridges):
    values, vectors = dense.eigh(grams[j][0])
    noise = n * rounding(means[j], vectors)
    roots = inverse_root_values(values, r, noise)
    whitening.append(vectors * roots)
  matrix = _whitened(grams, whitening)
  key = jax.random.key(0) if key is None else key
  values, vectors = top_eigenpairs(matrix, k, key)
  parts = jnp.split(vectors, offsets(views), axis=0)
  root = jnp.sqrt(scaled_eigenvectors(values, vectors)[1])
  projections = [w @ (p * root) for w, p in zip(whitening, parts)]
  # Signs are fixed by the projections, since the signs of `whitening` are
  # arbitrary.
  signs = column_signs(jnp.concatenate(projections))
  vectors = vectors * signs
  scaled, values = scaled_eigenvectors(values, vectors)
  embedding = jnp.zeros((n, k), values.dtype)
  for view, mean, w, part in zip(
    views, means, whitening, jnp.split(scaled, offsets(views), axis=0)
  ):
    right = w @ part
    embedding = embedding + (view @ right - mean @ right)
  return GCCA(
    embedding=embedding,
    values=values / len(views),
    projections=tuple(u * signs for u in projections),
    loadings=tuple(
      (gram[0] @ u + r * u).T * signs[:, None]
      for gram, u, r in zip(grams, projections, ridges)
    ),
    means=means,
    objective=jnp.maximum(len(views) * k - values.sum(), 0),
    shares=jnp.stack([jnp.sum((p * root) ** 2) / k for p in parts]),
  )


@exact_products
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


@exact_products
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


def check_views(views: Sequence[Array], k: int) -> None:
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


def _each_ridge(ridge, count: int, dtype) -> Array:
  """One ridge for each view, [J]."""
  ridges = jnp.asarray(ridge, dtype)
  if ridges.shape not in ((), (count,)):
    raise InputError(
      f"ridge has shape {ridges.shape}; give one number, or one for each of "
      f"{count} views"
    )
  return jnp.broadcast_to(ridges, (count,))

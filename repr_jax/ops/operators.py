"""Linear operators: a matrix by its products alone.

An operator is three products. Dense, sparse, centered and row-weighted views
share every algorithm of `repr_jax.ops.spectral`, and no matrix is ever formed.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax.numpy as jnp
from jax import Array, lax

from repr_jax.ops import dense_factorizations as dense
from repr_jax.ops import precision, sharded, sparse
from repr_jax.ops.precision import exact_products
from repr_jax.ops.sharded import Sharded
from repr_jax.ops.sparse import Sparse

# Parts in which rows are summed: the rounding of a sum grows with its length.
_PARTS = 16
# A TPU's compiler takes 15 s for a sparse product of 16 columns, 3 s for 128.
_PARTS_ELSEWHERE = 128


class Operator(NamedTuple):
  """A matrix X [n, d] given by its products with dense blocks.

  Attributes:
    shape: (n, d).
    dtype: type of the products.
    matmat: Q [d, k] to X Q [n, k].
    rmatmat: P [n, k] to X' P [d, k].
    normal: Q [d, k] to X'X Q [d, k].
    tall_qr: Q R decomposition of arrays [n, k] in rows as X has them, which
      may be on many devices.
  """

  shape: tuple[int, int]
  dtype: Any
  matmat: Callable[[Array], Array]
  rmatmat: Callable[[Array], Array]
  normal: Callable[[Array], Array]
  tall_qr: Callable[[Array], tuple[Array, Array]] = dense.qr


def as_operator(x: Array | Sparse | Sharded | Operator) -> Operator:
  """The operator of a dense or sparse matrix [n, d], or the one given."""
  if isinstance(x, Operator):
    return x
  if isinstance(x, Sparse):
    return Operator(
      shape=x.shape,
      dtype=x.dtype,
      matmat=lambda q: sparse.matmat(x, q),
      rmatmat=lambda p: sparse.rmatmat(x, p),
      normal=lambda q: sparse.normal_matmat(x, q),
    )
  if isinstance(x, Sharded):
    return Operator(
      shape=x.shape,
      dtype=x.dtype,
      matmat=functools.partial(sharded.matmat, x),
      rmatmat=functools.partial(sharded.rmatmat, x),
      normal=functools.partial(sharded.normal_matmat, x),
      tall_qr=functools.partial(sharded.tall_qr, x.mesh, x.axes),
    )
  chex.assert_rank(x, 2)
  return Operator(
    shape=(x.shape[0], x.shape[1]),
    dtype=x.dtype,
    matmat=exact_products(lambda q: x @ q),
    rmatmat=exact_products(lambda p: x.T @ p),
    normal=exact_products(lambda q: x.T @ (x @ q)),
  )


def scaled(x: Array | Sparse | Sharded | Operator, scale: Array) -> Operator:
  """c X for a scale c [] and X [n, d], without forming it.

  The factor Q is scaled, not the product, which avoids overflow and underflow.
  """
  op = as_operator(x)
  return Operator(
    shape=op.shape,
    dtype=op.dtype,
    matmat=lambda q: op.matmat(scale * q),
    rmatmat=lambda p: op.rmatmat(scale * p),
    normal=lambda q: scale * op.normal(scale * q),
    tall_qr=op.tall_qr,
  )


def range_scale(x: Array | Sparse) -> Array:
  """The power of two that brings the largest entry of X [n, d] near 1, []."""
  largest = jnp.max(jnp.abs(sparse.entries(x)), initial=0)
  return precision.near_one(largest)


def transposed(x: Operator) -> Operator:
  """The operator of X' [d, n] for X [n, d]."""
  return Operator(
    shape=(x.shape[1], x.shape[0]),
    dtype=x.dtype,
    matmat=x.rmatmat,
    rmatmat=x.matmat,
    normal=lambda p: x.matmat(x.rmatmat(p)),
  )


def column_means(
  x: Array | Sparse | Sharded | Operator, rows: Array | None
) -> Array:
  """Column means mu over the rows that are marked (thesis 3.3.1, with its 1/N).

  Args:
    x: matrix [n, d].
    rows: weight of each row, usually 0/1 for observed, [n]; None for all.

  Returns:
    The means, [d]; zero where no row is marked.
  """
  op = as_operator(x)
  marked = jnp.ones(op.shape[0], op.dtype) if rows is None else rows
  marked = marked.astype(op.dtype)

  def total(parts, marked):
    part = jnp.arange(op.shape[0]) * parts // op.shape[0]
    inside = part[:, None] == jnp.arange(parts)
    return op.rmatmat(jnp.where(inside, marked[:, None], 0)).sum(axis=1)

  count = jnp.maximum(marked.sum(), 1)
  if isinstance(x, Sharded):
    # It is summed by device already; more parts cost messages.
    return total(1, marked) / count
  summed = lax.platform_dependent(
    marked,
    cpu=functools.partial(total, _PARTS),
    default=functools.partial(total, _PARTS_ELSEWHERE),
  )
  return summed / count


def centering_noise(mean: Array, rows: Array, right: Array) -> Array:
  """Rounding error of centering, along each right singular vector.

  Centering removes a direction if columns, or sums of them, are constant. A
  singular value below this bound marks such a direction.

  Args:
    mean: mu, [d].
    rows: how far each row is centered, as in `centered`, [n].
    right: right singular vectors, [d, k].

  Returns:
    A bound on the rounding error of k mu' along each of them, [k].
  """
  chex.assert_rank([mean, rows, right], [1, 1, 2])
  eps = jnp.finfo(mean.dtype).eps
  along = jnp.linalg.norm(mean[:, None] * right, axis=0)
  return 64 * eps * jnp.linalg.norm(rows) * along


def centered(
  x: Array | Sparse | Sharded | Operator, mean: Array, rows: Array | None = None
) -> Operator:
  """Y - k mu' without forming it (thesis 3.3.1 and 3.3.2).

  Args:
    x: Y [n, d].
    mean: mu [d]. The fused product X'X Q is one product with Y'Y and a rank-two
      correction.
    rows: k, which rows are centered, [n]; None for all.
  """
  op = as_operator(x)
  chex.assert_shape(mean, (op.shape[1],))
  k = jnp.ones(op.shape[0], op.dtype) if rows is None else rows.astype(op.dtype)
  mu = mean.astype(op.dtype)
  total = op.rmatmat(k[:, None])[:, 0]
  count = jnp.sum(k * k)

  @exact_products
  def normal(q):
    along = mu @ q
    return (
      op.normal(q)
      - mu[:, None] * (total @ q)
      + (count * mu - total)[:, None] * along
    )

  return Operator(
    shape=op.shape,
    dtype=op.dtype,
    matmat=exact_products(lambda q: op.matmat(q) - k[:, None] * (mu @ q)),
    rmatmat=exact_products(lambda p: op.rmatmat(p) - mu[:, None] * (k @ p)),
    normal=normal,
    tall_qr=op.tall_qr,
  )


def row_scaled(
  x: Array | Sparse | Sharded | Operator, scale: Array
) -> Operator:
  """diag(scale) X for a scale [n] and X [n, d], without forming it.

  Entries of a sparse matrix are scaled once, so that its fused product stays.
  """
  if isinstance(x, Sparse):
    return as_operator(sparse.scale_rows(x, scale.astype(x.dtype)))
  if isinstance(x, Sharded):
    return as_operator(sharded.scale_rows(x, scale.astype(x.dtype)))
  op = as_operator(x)
  chex.assert_shape(scale, (op.shape[0],))
  w = scale.astype(op.dtype)[:, None]
  return Operator(
    shape=op.shape,
    dtype=op.dtype,
    matmat=lambda q: w * op.matmat(q),
    rmatmat=lambda p: op.rmatmat(w * p),
    normal=lambda q: op.rmatmat(w * w * op.matmat(q)),
    tall_qr=op.tall_qr,
  )

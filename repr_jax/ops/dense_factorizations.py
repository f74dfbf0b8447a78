"""Small dense factorizations with a route per platform.

On CPUs and GPUs LAPACK, cuSOLVER and their like are fast and compile at once.
On a TPU the same calls are programs of XLA or JAX that may not compile in ten
minutes, so other routes are taken there. Seconds to compile for one TPU v5e:

| problem | default | route here, CPU seconds |
|---|---|---|
| symmetric eigenproblem, 2,000 x 2,000 | more than 600 | 4, Jacobi |
| SVD, 1,300 x 1,300 | more than 600 | 20, polar factor and Jacobi |
| QR, 14,336 x 128 | 24 to 33 | 19, Cholesky, else by columns |

JAX has Jacobi's method on TPUs alone, so no test of this project runs it.
`cholesky_qr` and `polar_svd` are matrix products for the most part. Tests
compare them with LAPACK on the CPU; their products are exact everywhere.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax import Array, lax

from repr_jax.ops.precision import exact_products

_TILE = 128  # width of a triangle that is inverted at once
_ROUNDS = 5  # of Cholesky, before columns are orthogonalized one by one


def eigh(x: Array) -> tuple[Array, Array]:
  """Eigenvalues and eigenvectors of a symmetric matrix, x = V diag(w) V'.

  Args:
    x: symmetric, [c, c].

  Returns:
    w [c], ascending, and V [c, c].
  """
  return lax.platform_dependent(x, tpu=_jacobi_eigh, default=_lapack_eigh)


def svd(x: Array) -> tuple[Array, Array, Array]:
  """Singular value decomposition, x = U diag(s) V'.

  Args:
    x: [n, c]; at most one of n and c is large.

  Returns:
    U [n, r], s [r] descending and V' [r, c], r = min(n, c). On a TPU columns
    of U or rows of V' whose value is under the rounding level of the largest
    need not be orthonormal.
  """
  return lax.platform_dependent(
    x,
    tpu=functools.partial(polar_svd, eigensolver=_jacobi_eigh),
    default=_lapack_svd,
  )


def qr(x: Array) -> tuple[Array, Array]:
  """Orthonormal Q and triangular R with x = Q R.

  Args:
    x: [n, c], n >= c.

  Returns:
    Q [n, c] and R [c, c]. Q is orthonormal also where columns of x depend on
    each other.
  """
  return lax.platform_dependent(x, tpu=cholesky_qr, default=_lapack_qr)


def column_qr(x: Array) -> tuple[Array, Array]:
  """`qr` by columns on a TPU: slower, but compiled in half the time.

  Args:
    x: [n, c], n >= c.

  Returns:
    Q [n, c] and R [c, c].
  """
  return lax.platform_dependent(x, tpu=gram_schmidt, default=_lapack_qr)


@exact_products
def orthonormal_basis(x: Array) -> Array:
  """Orthonormal columns that span those of x [n, c]: rounds of Cholesky.

  Faster than `qr` on every platform, since it is made of matrix products;
  if the rounds do not converge, the basis is that of `qr`.
  """
  basis, _, done = _cholesky_rounds(x)
  return lax.cond(done, lambda: basis, lambda: column_qr(x)[0])


@exact_products
def cholesky_qr(x: Array) -> tuple[Array, Array]:
  """`qr` by repeated Cholesky, or by columns where that does not converge.

  Args:
    x: [n, c], n >= c.

  Returns:
    Q [n, c] and R [c, c].
  """
  basis, upper, done = _cholesky_rounds(x)
  return lax.cond(done, lambda: (basis, upper), lambda: gram_schmidt(x))


@exact_products
def gram_schmidt(x: Array) -> tuple[Array, Array]:
  """`qr` column by column, each orthogonalized twice.

  A column that depends on those before it gives way to a pseudorandom one.

  Args:
    x: [n, c], n >= c.

  Returns:
    Q [n, c] and R [c, c], whose diagonal is 0 at such a column.
  """
  n, c = x.shape
  eps = jnp.finfo(x.dtype).eps
  spare = jax.random.normal(jax.random.key(0), (n, c), x.dtype)

  def away(basis, column):
    first = basis.T @ column
    rest = column - basis @ first
    again = basis.T @ rest
    return rest - basis @ again, first + again

  def step(j, carry):
    basis, upper = carry
    column = x[:, j]
    rest, along = away(basis, column)
    norm = jnp.linalg.norm(rest)
    good = norm > 8 * eps * jnp.linalg.norm(column)
    other = away(basis, away(basis, spare[:, j])[0])[0]
    chosen = jnp.where(good, rest, other)
    basis = basis.at[:, j].set(chosen / jnp.linalg.norm(chosen))
    along = along.at[j].set(jnp.where(good, norm, 0))
    return basis, upper.at[:, j].set(along)

  zeros = jnp.zeros_like(x), jnp.zeros((c, c), x.dtype)
  return lax.fori_loop(0, c, step, zeros)


@exact_products
def polar_svd(x: Array, eigensolver=eigh) -> tuple[Array, Array, Array]:
  """`svd` from the polar decomposition x = W H and the eigenvectors of H.

  Newton-Schulz iterations W <- W (3 I - W'W) / 2 take each singular value that
  is not under the rounding level to 1. Errors are absolute: of the order of
  the rounding level of the largest value.

  Args:
    x: [n, c].
    eigensolver: of a symmetric matrix, as `eigh`.

  Returns:
    U [n, r], s [r] and V' [r, c], r = min(n, c).
  """
  if x.shape[0] < x.shape[1]:
    u, s, vt = polar_svd(x.T, eigensolver)
    return vt.T, s, u.T
  size = jnp.max(jnp.abs(x))
  unit = x / jnp.where(size > 0, size, 1)
  absolute = jnp.abs(unit)
  bound = jnp.max(absolute.sum(0)) * jnp.max(absolute.sum(1))
  start = unit * lax.rsqrt(jnp.where(bound > 0, bound, 1))
  # The least value that counts grows by 1.5 a step; the bound may be too
  # large by a factor of sqrt(c); the last steps converge quadratically.
  smallest = float(jnp.finfo(x.dtype).eps) / math.sqrt(x.shape[1])
  steps = math.ceil(-math.log(smallest) / math.log(1.5)) + 6

  def step(_, w):
    return 1.5 * w - 0.5 * (w @ (w.T @ w))

  w = lax.fori_loop(0, steps, step, start)
  h = w.T @ unit
  values, vectors = eigensolver((h + h.T) / 2)
  values, vectors = values[::-1], vectors[:, ::-1]
  return w @ vectors, jnp.maximum(values, 0) * size, vectors.T


@exact_products
def _cholesky_rounds(x: Array) -> tuple[Array, Array, Array]:
  """Q and R of x [n, c] by repeated Cholesky, and whether Q is orthonormal.

  All products are in one loop, since a TPU's compiler takes seconds for each.
  """
  eye = jnp.eye(x.shape[1], dtype=x.dtype)

  def unfinished(carry):
    _, _, done, rounds = carry
    return ~done & (rounds < _ROUNDS)

  def closer(carry):
    basis, upper, _, rounds = carry
    gram = basis.T @ basis
    near = jnp.max(jnp.sum(jnp.abs(gram - eye), axis=1)) < 0.5
    # The shift keeps a Gram matrix of dependent columns positive.
    shift = jnp.where(near, 0, 100 * jnp.finfo(x.dtype).eps).astype(x.dtype)
    turn, factor = _whitening(gram, shift)
    return basis @ turn, factor @ upper, near, rounds + 1

  start = x, eye, jnp.zeros((), bool), jnp.zeros((), jnp.int32)
  return lax.while_loop(unfinished, closer, start)[:3]


def _whitening(gram: Array, shift: Array | float = 0.0) -> tuple[Array, Array]:
  """W and its inverse: W' (gram + shift) W = I, gram scaled to diagonal 1."""
  length = jnp.sqrt(jnp.diagonal(gram))
  scale = 1 / length
  eye = jnp.eye(len(gram), dtype=gram.dtype)
  scaled = gram * scale[:, None] * scale + shift * eye
  lower = jnp.linalg.cholesky(scaled)
  inverse = lax.platform_dependent(
    lower, tpu=lower_inverse, default=_solved_inverse
  )
  return scale[:, None] * inverse.T, lower.T * length


def _solved_inverse(lower: Array) -> Array:
  eye = jnp.eye(len(lower), dtype=lower.dtype)
  return jax.scipy.linalg.solve_triangular(lower, eye, lower=True)


@exact_products
def lower_inverse(lower: Array) -> Array:
  """Inverse of a lower triangular matrix [c, c] by halves, all of one level
  at once: of [[A, 0], [B, C]] it is [[A^-1, 0], [-C^-1 B A^-1, C^-1]]."""
  c = len(lower)
  levels = max(0, math.ceil(math.log2(c / _TILE)))
  width = c if levels == 0 else _TILE
  size = width << levels
  more = size - c
  whole = jnp.pad(lower, (0, more)) + jnp.diag(
    (jnp.arange(size) >= c).astype(lower.dtype)
  )

  def tiles(width, below):
    at = jnp.arange(0, size, width * (1 + below))
    cut = jax.vmap(
      lambda i: lax.dynamic_slice(whole, (i + below * width, i), (width, width))
    )
    return cut(at)

  parts = jax.vmap(_solved_inverse)(tiles(width, 0))
  while len(parts) > 1:
    first, second = parts[::2], parts[1::2]
    corner = -second @ tiles(width, 1) @ first
    upper = jnp.concatenate([first, jnp.zeros_like(corner)], axis=2)
    parts = jnp.concatenate(
      [upper, jnp.concatenate([corner, second], axis=2)], axis=1
    )
    width *= 2
  return parts[0][:c, :c]


def _lapack_eigh(x: Array) -> tuple[Array, Array]:
  values, vectors = jnp.linalg.eigh(x)
  return values, vectors


def _lapack_qr(x: Array) -> tuple[Array, Array]:
  q, r = jnp.linalg.qr(x)
  return q, r


def _lapack_svd(x: Array) -> tuple[Array, Array, Array]:
  u, s, vt = jnp.linalg.svd(x, full_matrices=False)
  return u, s, vt


def _jacobi_eigh(x: Array) -> tuple[Array, Array]:
  kinds = getattr(lax.linalg, "EighImplementation", None)
  if kinds is None:  # an older JAX: its own choice
    return _lapack_eigh(x)
  vectors, values = lax.linalg.eigh(
    (x + x.T) / 2, implementation=kinds.JACOBI, symmetrize_input=False
  )
  return values, vectors

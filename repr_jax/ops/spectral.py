"""Truncated singular value decomposition of an operator, in float32 too.

The method is a block Krylov iteration on X'X with full reorthogonalisation and
thick restarts: a basis of fixed size is filled block by block, the leading Ritz
vectors are kept, and the basis is filled again until the residuals say that the
wanted singular values are good enough. The values themselves are then read off
X V, not off X'X, so that their relative accuracy is that of the arithmetic.

How good: with r_i = ||X'X v_i - t_i v_i|| every value obeys
|sigma_i - sigma| <= r_i / sigma_i for some singular value sigma of X, whatever
the spectrum. On decaying spectra the error is of second order in r_i, and this
is what the stopping rule estimates; `SVDInfo` carries both.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array, lax

from repr_jax.errors import InputError
from repr_jax.ops.operators import Operator, as_operator, transposed
from repr_jax.ops.sparse import Sparse


class SVD(NamedTuple):
  """X ~ u diag(s) v', values in descending order, signs fixed by v.

  Values under the rounding level are zero, and so are their columns of u.

  Attributes:
    u: left singular vectors, [n, k].
    s: singular values, [k].
    v: right singular vectors, [d, k].
  """

  u: Array
  s: Array
  v: Array


class SVDInfo(NamedTuple):
  """How an iteration ended.

  Attributes:
    bound: guaranteed relative distance of each value to a true one, [k].
    estimate: estimated relative error of each value, [k].
    cycles: how often the basis was filled, [].
  """

  bound: Array
  estimate: Array
  cycles: Array


class _Basis(NamedTuple):
  q: Array  # [d, M + b], orthonormal columns; the last b are the next block
  t: Array  # [M, M], Q' X'X Q
  values: Array  # [M] Ritz values, descending
  vectors: Array  # [M, M] their coordinates in the basis
  residuals: Array  # [k]
  cycles: Array


def truncated_svd(
  x: Array | Sparse | Operator,
  k: int,
  key: Array,
  *,
  tolerance: float = 1e-3,
  block: int | None = None,
  basis: int | None = None,
  max_cycles: int = 12,
) -> tuple[SVD, SVDInfo]:
  """The k leading singular triples of an operator.

  Args:
    x: matrix or operator [n, d].
    k: how many, at most min(n, d).
    key: random key of the starting block.
    tolerance: stop when the estimated relative error of each of the k values
      is below this.
    block: columns per product; default about k / 5.
    basis: columns of the Krylov basis; default about 3 k. Memory is
      [min(n, d), basis] and [n, k].
    max_cycles: give up after filling the basis this often.

  Returns:
    The decomposition and how the iteration ended.
  """
  op = as_operator(x)
  n, d = op.shape
  if not 1 <= k <= min(n, d):
    raise InputError(
      f"k = {k} singular values asked of a {n} x {d} matrix; "
      f"choose k between 1 and {min(n, d)}"
    )
  if d > n:
    svd, info = truncated_svd(
      transposed(op), k, key, tolerance=tolerance, block=block, basis=basis,
      max_cycles=max_cycles,
    )  # fmt: skip
    return fix_signs(SVD(svd.v, svd.s, svd.u)), info
  block, blocks, kept = _sizes(k, d, block, basis)
  if block * blocks + block > d:
    return _small_svd(op, k)
  state = _krylov(op, k, key, tolerance, block, blocks, kept, max_cycles)
  right = state.q[:, : block * blocks] @ state.vectors[:, :k]
  svd = svd_of_image(op, right)
  bound, estimate = _errors(state, k, kept)
  return svd, SVDInfo(bound, estimate, state.cycles)


def top_eigenpairs(
  matrix: Array, k: int, key: Array, *, tolerance: float = 1e-5
) -> tuple[Array, Array]:
  """The k largest eigenpairs of a positive semidefinite matrix [c, c].

  Small matrices are decomposed directly, large ones by the iteration of
  `truncated_svd`.

  Returns:
    Eigenvalues [k], descending, and eigenvectors [c, k].
  """
  chex.assert_rank(matrix, 2)
  size = matrix.shape[0]
  block, blocks, kept = _sizes(k, size, None, None)
  if size <= 512 or block * blocks + block > size // 2:
    values, vectors = jnp.linalg.eigh(matrix)
    return values[::-1][:k], vectors[:, ::-1][:, :k]

  def product(q):
    return matrix @ q

  op = Operator((size, size), matrix.dtype, product, product, product)
  state = _krylov(op, k, key, tolerance, block, blocks, kept, 40)
  return state.values[:k], state.q[:, : block * blocks] @ state.vectors[:, :k]


def svd_of_image(x: Operator, right: Array) -> SVD:
  """SVD of X V V' for orthonormal V [d, k] (Rayleigh-Ritz on X itself)."""
  image = x.matmat(right)
  svd = tall_svd(image)
  return fix_signs(SVD(svd.u, svd.s, right @ svd.v))


def tall_svd(x: Array) -> SVD:
  """SVD of a tall matrix [n, c], n >> c, through its c x c Gram matrix.

  Columns are scaled to unit length first, so that columns of very different
  length, but nearly orthogonal, lose no accuracy; in general values below
  sqrt(eps) times the largest are not resolved and come out as zero.
  """
  chex.assert_rank(x, 2)
  tiny = jnp.finfo(x.dtype).tiny
  length = jnp.linalg.norm(x, axis=0)
  inverse = jnp.where(length > tiny, 1 / jnp.maximum(length, tiny), 0)
  gram = (x.T @ x) * inverse * inverse[:, None]
  values, vectors = jnp.linalg.eigh(gram)
  cut = _cut(x.shape[1], x.dtype)
  good = values > cut * jnp.maximum(values[-1], tiny)
  root = jnp.where(good, jnp.sqrt(jnp.maximum(values, 0)), 0)
  core = (root[:, None] * vectors.T) * length
  left, s, right_t = jnp.linalg.svd(core, full_matrices=False)
  s = jnp.where(s > cut * s[0], s, 0)
  inverse_root = jnp.where(good, 1 / jnp.maximum(root, tiny), 0)
  mix = (inverse[:, None] * vectors) @ (inverse_root[:, None] * left)
  u = x @ (mix * (s > 0))
  return SVD(_polish(u), s, right_t.T)


def fix_signs(svd: SVD) -> SVD:
  """Makes the largest entry of each column of v [d, k] positive."""
  largest = jnp.argmax(jnp.abs(svd.v), axis=0)
  picked = jnp.take_along_axis(svd.v, largest[None], axis=0)[0]
  sign = jnp.where(picked < 0, -1, 1).astype(svd.v.dtype)
  return SVD(svd.u * sign, svd.s, svd.v * sign)


def check_rank(svd: SVD, what: str) -> None:
  """Raises `InputError` where fewer than the k values in s [k] are nonzero."""
  rank = int((svd.s > 0).sum())
  if rank < svd.s.shape[0]:
    raise InputError(
      f"{what} has numerical rank {rank}, less than k = {svd.s.shape[0]}; "
      f"choose k <= {rank}"
    )


def _sizes(k: int, d: int, block: int | None, basis: int | None):
  """Block width, blocks in a full basis, columns kept at a restart."""
  width = block or min(max(8, -(-k // 5)), 128)
  guard = max(8, k // 10)
  total = basis or max(3 * k, k + guard + 6 * width)
  blocks = max(2, -(-total // width))
  per_cycle = max(1, (width * blocks - k - guard) // width)
  return width, blocks, width * (blocks - per_cycle)


def _krylov(op, k, key, tolerance, block, blocks, kept, max_cycles) -> _Basis:
  """Fills and restarts the basis until the k values are good."""
  d, size = op.shape[1], block * blocks
  start = jax.random.normal(key, (d, block), op.dtype)
  first = _Basis(
    q=jnp.zeros((d, size + block), op.dtype)
    .at[:, :block]
    .set(jnp.linalg.qr(start)[0]),
    t=jnp.zeros((size, size), op.dtype),
    values=jnp.zeros(size, op.dtype),
    vectors=jnp.zeros((size, size), op.dtype),
    residuals=jnp.full(k, jnp.inf, op.dtype),
    cycles=jnp.zeros((), jnp.int32),
  )
  first = _fill(op, first, k, block, 0, blocks)

  def unfinished(state):
    _, estimate = _errors(state, k, kept)
    return (jnp.max(estimate) > tolerance) & (state.cycles < max_cycles)

  def cycle(state):
    state = _restart(state, kept, block)
    return _fill(op, state, k, block, kept, (size - kept) // block)

  return lax.while_loop(unfinished, cycle, first)


def _fill(op, state: _Basis, k, block, start, blocks) -> _Basis:
  """Adds `blocks` blocks from column `start` on, then solves in the basis."""
  size = state.t.shape[0]

  def step(index, carry):
    q, t, _ = carry
    at = start + index * block
    current = lax.dynamic_slice_in_dim(q, at, block, axis=1)
    image = op.normal(current)
    coefficients = q[:, :size].T @ image
    t = lax.dynamic_update_slice_in_dim(t, coefficients, at, axis=1)
    fresh, upper = _orthonormal_to(q, image - q[:, :size] @ coefficients)
    q = lax.dynamic_update_slice_in_dim(q, fresh, at + block, axis=1)
    return q, t, upper

  clean = jnp.where(jnp.arange(size + block) < start + block, state.q, 0)
  upper = jnp.zeros((block, block), state.q.dtype)
  q, t, upper = lax.fori_loop(0, blocks, step, (clean, state.t, upper))
  # A block's image was measured against the blocks before it only.
  values, vectors = jnp.linalg.eigh(jnp.triu(t) + jnp.triu(t, 1).T)
  values, vectors = values[::-1], vectors[:, ::-1]
  residuals = jnp.linalg.norm(upper @ vectors[-block:, :k], axis=0)
  return _Basis(q, t, values, vectors, residuals, state.cycles + 1)


def _orthonormal_to(q: Array, image: Array) -> tuple[Array, Array]:
  """Splits off what of `image` is outside q; two rounds, for float32.

  Returns:
    The new orthonormal block [d, b], and R [b, b] with image ~ block R.
  """
  rest = image - q @ (q.T @ image)
  fresh, upper = jnp.linalg.qr(rest)
  again = fresh - q @ (q.T @ fresh)
  fresh, correction = jnp.linalg.qr(again)
  return fresh, correction @ upper


def _restart(state: _Basis, kept: int, block: int) -> _Basis:
  """Keeps the leading Ritz vectors and the block that comes next."""
  size = state.t.shape[0]
  ritz = state.q[:, :size] @ state.vectors[:, :kept]
  q = state.q.at[:, :kept].set(ritz)
  q = q.at[:, kept : kept + block].set(state.q[:, size:])
  t = jnp.zeros_like(state.t)
  t = t.at[jnp.arange(kept), jnp.arange(kept)].set(state.values[:kept])
  return state._replace(q=q, t=t)


def _errors(state: _Basis, k: int, kept: int) -> tuple[Array, Array]:
  """Bound and estimate of the relative error of each singular value."""
  tiny = jnp.finfo(state.q.dtype).tiny
  # Directions under the rounding level cannot be resolved and do not count.
  floor = jnp.finfo(state.q.dtype).eps * jnp.maximum(state.values[0], tiny)
  values = state.values[:k]
  scale = jnp.maximum(values, floor)
  bound = state.residuals / scale
  gap = jnp.maximum(values - state.values[kept], floor)
  estimate = jnp.minimum(
    bound, state.residuals * (state.residuals / gap) / scale
  )
  resolved = values > 16 * floor
  return jnp.where(resolved, bound, 0), jnp.where(resolved, estimate / 2, 0)


def _small_svd(op: Operator, k: int) -> tuple[SVD, SVDInfo]:
  """Direct decomposition where d is too small for an iteration to pay."""
  d = op.shape[1]
  q, r = jnp.linalg.qr(op.matmat(jnp.eye(d, dtype=op.dtype)))
  left, s, right_t = jnp.linalg.svd(r)
  s = jnp.where(s > _cut(d, op.dtype) * s[0], s, 0)[:k]
  svd = SVD(q @ left[:, :k] * (s > 0), s, right_t[:k].T)
  exact = jnp.zeros(k, op.dtype)
  return fix_signs(svd), SVDInfo(exact, exact, jnp.zeros((), jnp.int32))


def _cut(columns: int, dtype) -> float:
  return float(columns * jnp.finfo(dtype).eps)


def _polish(u: Array) -> Array:
  """One Newton-Schulz step towards orthonormal columns; keeps zero ones."""
  gram = u.T @ u
  present = jnp.diagonal(gram) > 0.5
  correction = 1.5 * jnp.eye(u.shape[1], dtype=u.dtype) - 0.5 * gram
  return jnp.where(present, u @ correction, 0)

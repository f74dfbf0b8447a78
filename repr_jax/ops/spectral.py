"""Truncated singular value decomposition of an operator, in float32 too.

The method is a block Krylov iteration on X'X with full reorthogonalization and
thick restarts: a basis is filled block by block until the residuals show that
the wanted singular values are accurate enough. When the basis is full, the
leading Ritz vectors are kept and it is filled again. The values are then
computed from X V, not from X'X, so their relative accuracy is that of the
arithmetic.

Accuracy: with r_i = ||X'X v_i - t_i v_i|| every value obeys
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
from repr_jax.ops import dense_factorizations as dense
from repr_jax.ops.operators import (
  Operator,
  as_operator,
  range_scale,
  scaled,
  transposed,
)
from repr_jax.ops.precision import exact_products
from repr_jax.ops.sharded import Sharded
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
    products: columns that were multiplied by X'X, [].
  """

  bound: Array
  estimate: Array
  products: Array


class _Basis(NamedTuple):
  q: Array  # [d, M + b], orthonormal columns, then the next block, then zeros
  t: Array  # [M, M], Q' X'X Q
  filled: Array  # columns that count
  values: Array  # [M] Ritz values, descending
  vectors: Array  # [M, M] their coordinates in the basis
  residuals: Array  # [k]
  products: Array  # columns multiplied so far


@exact_products
def truncated_svd(
  x: Array | Sparse | Sharded | Operator,
  k: int,
  key: Array,
  *,
  tolerance: float = 1e-3,
  block: int | None = None,
  basis: int | None = None,
  max_cycles: int = 12,
) -> tuple[SVD, SVDInfo]:
  """The k leading singular triples of an operator, X ~ U diag(s) V'.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import ops
  >>> x = jnp.diag(jnp.array([3.0, 2.0, 1.0]))
  >>> svd, info = ops.truncated_svd(x, 2, jax.random.key(0))
  >>> [round(float(x), 3) for x in svd.s]
  [3.0, 2.0]

  Args:
    x: matrix or operator [n, d]; squares of an operator's entries must be in
      the range of floats, those of a matrix need not be.
    k: number of triples, at most min(n, d).
    key: random key of the starting block.
    tolerance: stop when the estimated relative error of each of the k values
      is below this.
    block: columns per product; default about k / 4.
    basis: columns of the Krylov basis; default about 4 k. Memory is
      [min(n, d), basis] and [n, k].
    max_cycles: stop, whatever the error, after as many products as would fill
      the basis this often.

  Returns:
    The decomposition and how the iteration ended.
  """
  n, d = x.shape
  if not 1 <= k <= min(n, d):
    raise InputError(
      f"k = {k} singular values asked of a {n} x {d} matrix; "
      f"choose k between 1 and {min(n, d)}"
    )
  if not isinstance(x, (Sharded, Operator)):
    # X'X of tiny or huge entries would leave the range of floats.
    scale = range_scale(x)
    svd, info = truncated_svd(
      scaled(x, scale), k, key, tolerance=tolerance, block=block, basis=basis,
      max_cycles=max_cycles,
    )  # fmt: skip
    return svd._replace(s=svd.s / scale), info
  op = as_operator(x)
  if d > n:
    svd, info = truncated_svd(
      transposed(op), k, key, tolerance=tolerance, block=block, basis=basis,
      max_cycles=max_cycles,
    )  # fmt: skip
    return fix_signs(SVD(svd.v, svd.s, svd.u)), info
  plan = _plan(k, block, basis)
  if plan.size + plan.block > d:
    return _small_svd(op, k)
  state = _krylov(op, k, key, tolerance, plan, max_cycles)
  svd = svd_of_image(op, state.q[:, :k])
  bound, estimate = _errors(state, k, plan)
  return svd, SVDInfo(bound, estimate, state.products)


@exact_products
def top_eigenpairs(
  matrix: Array | Operator, k: int, key: Array, *, tolerance: float = 1e-5
) -> tuple[Array, Array]:
  """The k largest eigenpairs of a positive semidefinite matrix [c, c].

  Small matrices are decomposed directly, large ones by the iteration of
  `truncated_svd`. Of an operator only `matmat` is used.

  Returns:
    Eigenvalues [k], descending, and eigenvectors [c, k].
  """
  size = matrix.shape[0]
  product = as_operator(matrix).matmat
  plan = _plan(k, None, None)
  if size <= 512 or plan.size + plan.block > size // 2:
    if isinstance(matrix, Operator):
      matrix = product(jnp.eye(size, dtype=matrix.dtype))
    values, vectors = dense.eigh(matrix)
    return values[::-1][:k], vectors[:, ::-1][:, :k]
  op = Operator((size, size), matrix.dtype, product, product, product)
  state = _krylov(op, k, key, tolerance, plan, 40)
  return state.values[:k], state.q[:, :k]


@exact_products
def svd_of_image(x: Operator, right: Array) -> SVD:
  """SVD of X V V' for orthonormal V [d, k] (Rayleigh-Ritz on X itself)."""
  image = x.matmat(right)
  svd = tall_svd(image)
  return fix_signs(SVD(svd.u, svd.s, right @ svd.v))


@exact_products
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
  values, vectors = dense.eigh(gram)
  cut = _cut(x.shape[1], x.dtype)
  good = values > cut * jnp.maximum(values[-1], tiny)
  root = jnp.where(good, jnp.sqrt(jnp.maximum(values, 0)), 0)
  core = (root[:, None] * vectors.T) * length
  left, s, right_t = dense.svd(core)
  s = _above(s, cut * s[0])
  inverse_root = jnp.where(good, 1 / jnp.maximum(root, tiny), 0)
  mix = (inverse[:, None] * vectors) @ (inverse_root[:, None] * left)
  u = x @ (mix * (s != 0))
  return SVD(_polish(u), s, right_t.T)


def fix_signs(svd: SVD) -> SVD:
  """Makes the largest entry of each column of v [d, k] positive."""
  sign = column_signs(svd.v)
  return SVD(svd.u * sign, svd.s, svd.v * sign)


def column_signs(x: Array) -> Array:
  """1 or -1 [k], the sign of the largest entry of each column of x [d, k]."""
  largest = jnp.argmax(jnp.abs(x), axis=0)
  picked = jnp.take_along_axis(x, largest[None], axis=0)[0]
  return jnp.where(picked < 0, -1, 1).astype(x.dtype)


def without_noise(svd: SVD, level: Array) -> SVD:
  """Sets values of s [k] that are not above their level [k] to zero."""
  s = _above(svd.s, level)
  return SVD(jnp.where(s == 0, 0, svd.u), s, svd.v)


class _Plan(NamedTuple):
  block: int  # columns per product
  size: int  # columns of a full basis
  first: int  # blocks before the first look at the residuals
  more: int  # blocks between two looks
  kept: int  # Ritz vectors kept at a restart


def _plan(k: int, block: int | None, basis: int | None) -> _Plan:
  # Sparse products take eight columns at once.
  width = block or min(8 * -(-k // 32), 128)
  guard = max(8, k // 10)
  blocks = max(4, -(-(basis or max(4 * k, k + guard + 8 * width)) // width))
  kept = min(k + guard, width * (blocks - 2))
  first = max(2, min(blocks, -(-3 * k // width)))
  return _Plan(width, width * blocks, first, max(1, blocks // 10), kept)


@exact_products
def _krylov(op, k, key, tolerance, plan: _Plan, cycles: int) -> _Basis:
  """Fills and restarts the basis until the k values are good.

  Then its first columns are the Ritz vectors.
  """
  d, size, block = op.shape[1], plan.size, plan.block
  start = jax.random.normal(key, (d, block), op.dtype)
  # Gaussian columns are well conditioned: `dense.qr` is not needed.
  start = lax.fori_loop(0, 2, lambda _, x: x @ _cholesky_inverse(x)[0], start)
  first = _Basis(
    q=jnp.zeros((d, size + block), op.dtype).at[:, :block].set(start),
    t=jnp.zeros((size, size), op.dtype),
    filled=jnp.zeros((), jnp.int32),
    values=jnp.zeros(size, op.dtype),
    vectors=jnp.zeros((size, size), op.dtype),
    residuals=jnp.full(k, jnp.inf, op.dtype),
    products=jnp.zeros((), jnp.int32),
  )

  def unfinished(state):
    _, estimate = _errors(state, k, plan)
    more = state.products < cycles * size
    far = (jnp.max(estimate) > tolerance) & more
    return far | (state.products == 0)

  def proceed(state):
    # One loop makes the first and all later checks, so it is compiled once.
    blocks = jnp.where(state.products == 0, plan.first, plan.more)
    state = _fill(op, state, k, block, blocks)
    full = state.filled + plan.more * block > size
    return lax.cond(
      full | ~unfinished(state),
      lambda s: _restart(s, plan.kept, block),
      lambda s: s,
      state,
    )

  return lax.while_loop(unfinished, proceed, first)


@exact_products
def _fill(op, state: _Basis, k: int, block: int, blocks: Array) -> _Basis:
  """Adds blocks to the basis, then solves the problem within it."""
  size = state.t.shape[0]

  def step(index, carry):
    q, t, _ = carry
    at = state.filled + index * block
    # In exact arithmetic the image is orthogonal to all blocks but the last
    # two. It is projected off these first, so that one pass over the whole
    # basis then suffices.
    near = jnp.maximum(at - block, 0)
    window = lax.dynamic_slice_in_dim(q, near, 2 * block, axis=1)
    image = op.normal(lax.dynamic_slice_in_dim(q, at, block, axis=1))
    local = window.T @ image
    image = image - window @ local
    fresh, upper, whole = _orthonormal_to(q[:, :size], image)
    t = lax.dynamic_update_slice(t, whole, (jnp.zeros_like(at), at))
    here = lax.dynamic_slice(t, (near, at), (2 * block, block))
    t = lax.dynamic_update_slice(t, here + local, (near, at))
    q = lax.dynamic_update_slice_in_dim(q, fresh, at + block, axis=1)
    return q, t, upper

  upper = jnp.zeros((block, block), state.q.dtype)
  q, t, upper = lax.fori_loop(0, blocks, step, (state.q, state.t, upper))
  filled = state.filled + blocks * block
  # Only the upper triangle is filled: images meet no later blocks.
  counts = jnp.arange(size) < filled
  whole = jnp.where(counts, jnp.triu(t) + jnp.triu(t, 1).T, 0)
  values, vectors = dense.eigh(jnp.where(counts[:, None], whole, 0))
  values, vectors = values[::-1], vectors[:, ::-1]
  last = lax.dynamic_slice_in_dim(vectors, filled - block, block)
  scale = jnp.maximum(jnp.max(jnp.abs(upper)), jnp.finfo(t.dtype).tiny)
  residuals = scale * jnp.linalg.norm((upper / scale) @ last[:, :k], axis=0)
  products = state.products + blocks * block
  return _Basis(q, t, filled, values, vectors, residuals, products)


@exact_products
def _orthonormal_to(q: Array, x: Array) -> tuple[Array, Array, Array]:
  """An orthonormal basis of the part of x [d, b] that is orthogonal to q.

  Two Cholesky factorizations where columns are well conditioned, else a slower
  method and another pass. Each product is in a loop, since a TPU's compiler
  takes seconds for every large product in float32.

  Returns:
    The new block [d, b], R [b, b] and C with x ~ q C + block R.
  """

  eye = jnp.eye(x.shape[1], dtype=x.dtype)

  def unfinished(carry):
    passes, good, *_ = carry
    return ~good & (passes < 3)

  def again(carry):
    passes, _, block, upper, whole = carry
    along = q.T @ block
    rest = block - q @ along

    def closer(_, carry):
      inverse, factor = _cholesky_inverse(carry[0])
      return carry[0] @ inverse, factor @ carry[1]

    fast = lax.fori_loop(0, 2, closer, (rest, eye))
    diagonal = jnp.abs(jnp.diagonal(fast[1]))
    # NaN, where a column depends on others, compares as false.
    good = jnp.min(diagonal) > 1e-2 * jnp.max(diagonal)
    fresh, factor = lax.cond(good, lambda: fast, lambda: dense.column_qr(rest))
    return passes + 1, good, fresh, factor @ upper, whole + along @ upper

  start = (
    jnp.zeros((), jnp.int32),
    jnp.zeros((), bool),
    x,
    eye,
    jnp.zeros((q.shape[1], x.shape[1]), x.dtype),
  )
  return lax.while_loop(unfinished, again, start)[2:]


@exact_products
def _cholesky_inverse(x: Array) -> tuple[Array, Array]:
  """R^(-1) and R for x = Q R, through the Gram matrix of x [d, b]."""
  scale = jnp.max(jnp.abs(x))  # so that squares neither under- nor overflow
  unit = x / jnp.where(scale > 0, scale, 1)
  upper = jnp.linalg.cholesky(unit.T @ unit, upper=True)
  eye = jnp.eye(x.shape[1], dtype=x.dtype)
  inverse = jax.scipy.linalg.solve_triangular(upper, eye)
  return inverse / jnp.where(scale > 0, scale, 1), upper * scale


@exact_products
def _restart(state: _Basis, kept: int, block: int) -> _Basis:
  """Keeps the leading Ritz vectors and the block that comes next."""
  size = state.t.shape[0]
  ritz = state.q[:, :size] @ state.vectors[:, :kept]
  following = lax.dynamic_slice_in_dim(state.q, state.filled, block, axis=1)
  q = jnp.zeros_like(state.q).at[:, :kept].set(ritz)
  q = q.at[:, kept : kept + block].set(following)
  values = jnp.where(jnp.arange(size) < kept, state.values, 0)
  filled = jnp.full_like(state.filled, kept)
  return state._replace(q=q, t=jnp.diag(values), filled=filled)


def _errors(state: _Basis, k: int, plan: _Plan) -> tuple[Array, Array]:
  """Bound and estimate of the relative error of each singular value."""
  tiny = jnp.finfo(state.q.dtype).tiny
  # Directions under the rounding level cannot be resolved and do not count.
  floor = jnp.finfo(state.q.dtype).eps * jnp.maximum(state.values[0], tiny)
  values = state.values[:k]
  scale = jnp.maximum(values, floor)
  bound = state.residuals / scale
  gap = jnp.maximum(values - state.values[plan.kept], floor)
  second_order = state.residuals * (state.residuals / gap) / scale
  estimate = jnp.minimum(bound, second_order)
  resolved = values > 16 * floor
  return jnp.where(resolved, bound, 0), jnp.where(resolved, estimate / 2, 0)


@exact_products
def _small_svd(op: Operator, k: int) -> tuple[SVD, SVDInfo]:
  """Direct decomposition where d is too small for an iteration to pay."""
  d = op.shape[1]
  q, r = op.tall_qr(op.matmat(jnp.eye(d, dtype=op.dtype)))
  left, s, right_t = dense.svd(r)
  s = _above(s, _cut(d, op.dtype) * s[0])[:k]
  svd = SVD(q @ left[:, :k] * (s != 0), s, right_t[:k].T)
  exact = jnp.zeros(k, op.dtype)
  return fix_signs(svd), SVDInfo(exact, exact, jnp.asarray(d, jnp.int32))


def _above(s: Array, level: Array) -> Array:
  """Zero for values up to a level; NaN, which compares as false, stays."""
  return jnp.where(s <= level, 0, s)


def _cut(columns: int, dtype) -> float:
  return float(columns * jnp.finfo(dtype).eps)


@exact_products
def _polish(u: Array) -> Array:
  """One Newton-Schulz step towards orthonormal columns; keeps zero ones."""
  gram = u.T @ u
  present = jnp.diagonal(gram) > 0.5
  correction = 1.5 * jnp.eye(u.shape[1], dtype=u.dtype) - 0.5 * gram
  return jnp.where(present, u @ correction, 0)

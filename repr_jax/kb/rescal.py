"""RESCAL by alternating least squares, with one or two vectors per entity.

Relation k is a matrix X_k [v, v], approximated by A R_k A' (RESCAL, Nickel
2011) or, with vectors for each role, by A R_k B' (Tucker2; thesis 5.2). All
entries of a slice count, zeros included. The slices are sums of a few sparse
matrices and a constant, so that the complement 11' - E costs no more than E.

Without ridge the factors are kept orthonormal. The fit depends on the space
they span alone, and in that gauge the two updates read

  A <- orthonormal basis of sum_k X_k A R_k' + X_k' A R_k,   R_k <- A' X_k A,

which are the textbook's updates with their inverses cancelled: float32 is
then enough although X_k'X_k may have a condition number past 1e16.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array, lax

from repr_jax.errors import InputError
from repr_jax.ops import sparse, spectral
from repr_jax.ops.operators import Operator


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Slices:
  """K relations: X_k = sum_b mixing[k, b] bases[b] + ones[k] 11'.

  Attributes:
    bases: sparse matrices, each [v, v].
    mixing: [K, number of bases].
    ones: [K].
    norms: squared Frobenius norm of each X_k, [K].
  """

  bases: tuple[sparse.Sparse, ...]
  mixing: Array
  ones: Array
  norms: Array

  @property
  def entities(self) -> int:
    """Number of entities v."""
    return self.bases[0].shape[0]


class Model(NamedTuple):
  """Score of (i, k, j): left_i' cores_k right_j.

  Attributes:
    left: vectors of entities as first argument, [v, d].
    right: as second argument, [v, d]; equal to `left` unless roles differ.
    cores: [K, d, d].
  """

  left: Array
  right: Array
  cores: Array


class State(NamedTuple):
  """A model on its way.

  Attributes:
    model: as it stands.
    images: bases[b] @ right, kept for the next update, [bases, v, d].
    fit: 1 - |X - model|^2 / |X|^2 over all slices, [].
    change: of the fit in the last update, []; infinite before the first.
    step: updates made, int32 [].
  """

  model: Model
  images: Array
  fit: Array
  change: Array
  step: Array


class Ridge(NamedTuple):
  """Penalties on the squared norms of factors and cores."""

  factors: float = 0.0
  cores: float = 0.0


NO_RIDGE = Ridge()


def make_slices(
  bases: Sequence[scipy.sparse.spmatrix | scipy.sparse.sparray],
  mixing: np.ndarray | None = None,
  ones: np.ndarray | None = None,
  *,
  dtype=np.float32,
) -> Slices:
  """Puts relations on the device.

  Args:
    bases: matrices [v, v] in any scipy format.
    mixing: weight of each matrix in each relation, [K, number of bases]; one
      relation per matrix where None.
    ones: the constant added to all entries of each relation, [K]; 0 where None.
    dtype: of all arrays.

  Returns:
    The slices.
  """
  size = bases[0].shape[0]
  for index, base in enumerate(bases):
    if base.shape != (size, size):
      raise InputError(
        f"relation matrix {index} has shape {base.shape}, not {(size, size)}"
      )
  weights = np.eye(len(bases)) if mixing is None else np.asarray(mixing)
  constant = np.zeros(len(weights)) if ones is None else np.asarray(ones)
  norms = []
  for row, one in zip(weights, constant):
    part = sum(w * base for w, base in zip(row, bases) if w)
    part = (
      scipy.sparse.csr_matrix((size, size)) if isinstance(part, int) else part
    )
    square = scipy.sparse.csr_matrix(part).power(2).sum()
    norms.append(square + 2 * one * part.sum() + one**2 * float(size) ** 2)
  return Slices(
    tuple(sparse.from_scipy(base, dtype=dtype) for base in bases),
    *(jnp.asarray(array, dtype) for array in (weights, constant, norms)),
  )


def stack(runs: Sequence[Slices]) -> Slices:
  """Slices of several runs as one batch: every array gets a leading axis.

  Stored entries are padded to the longest run, which adds zeros only.
  """

  def join(*arrays):
    width = max(array.shape[-1] for array in arrays)
    return jnp.stack(
      [
        jnp.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, width - a.shape[-1])])
        for a in arrays
      ]
    )

  return jax.tree.map(join, *runs)


@functools.partial(jax.jit, static_argnames=("rank", "start", "roles", "ridge"))
def init(
  slices: Slices,
  rank: int,
  key: Array,
  *,
  start: str = "nvecs",
  roles: bool = False,
  ridge: Ridge = NO_RIDGE,
) -> State:
  """The state before the first update (thesis 5.2.2).

  Args:
    slices: the relations, [v, v] each.
    rank: d.
    key: of the random start and of the eigenvector iteration.
    start: "nvecs" for leading eigenvectors of sum_k X_k + X_k', and leading
      singular vectors of sum_k X_k where roles differ; "random" for a random
      orthonormal basis. Where the sum has a rank below d, as it has for E and
      its complement, whose sum is 11', the rest of the basis is random.
    roles: two vectors per entity (Tucker2).
    ridge: penalties.

  Returns:
    The state; its cores are optimal for its factors.
  """
  if not 1 <= rank <= slices.entities:
    raise InputError(
      f"rank {rank} must lie between 1 and the {slices.entities} entities"
    )
  if start not in ("nvecs", "random"):
    raise InputError(f"start must be 'nvecs' or 'random', not {start!r}")
  shape = (slices.entities, rank)
  krylov, *keys = jax.random.split(key, 3)
  factors = [jax.random.normal(k, shape, slices.ones.dtype) for k in keys]
  if start == "nvecs":
    # ALS goes on from here, so that a rough subspace is enough.
    svd, _ = spectral.truncated_svd(
      _sum(slices, not roles), rank, krylov, tolerance=1e-2
    )
    sound = svd.s > 1e-5 * svd.s[0]
    scale = jnp.sqrt(1.0 / slices.entities)
    factors = [
      jnp.where(sound, vectors, scale * noise)
      for vectors, noise in zip((svd.u, svd.v), factors)
    ]
  left, right = (_orthonormal(factor) for factor in factors)
  return from_factors(slices, left, right if roles else left, ridge=ridge)


@functools.partial(jax.jit, static_argnames="ridge")
def from_factors(
  slices: Slices, left: Array, right: Array, *, ridge: Ridge = NO_RIDGE
) -> State:
  """The state of given factors, with cores that are optimal for them.

  Args:
    slices: the relations.
    left: vectors of entities as first argument, [v, d]; with orthonormal
      columns unless there is a ridge.
    right: as second argument, [v, d]; the same array for one vector each.
    ridge: penalties.

  Returns:
    The state, before its first update.
  """
  chex.assert_rank([left, right], [2, 2])
  images = _images(slices, right)
  cores, explained = _best_cores(slices, left, right, images, ridge)
  return State(
    model=Model(left, right, cores),
    images=images,
    fit=explained / slices.norms.sum(),
    change=jnp.full((), jnp.inf, left.dtype),
    step=jnp.int32(0),
  )


@functools.partial(jax.jit, static_argnames=("roles", "ridge"))
def update(
  slices: Slices, state: State, *, roles: bool = False, ridge: Ridge = NO_RIDGE
) -> State:
  """One round of alternating least squares: factors, then cores.

  Args:
    slices: the relations.
    state: what `init` or `update` returned.
    roles: as in `init`.
    ridge: as in `init`.

  Returns:
    The next state. Without ridge the fit never falls but for rounding.
  """
  left, right, cores = state.model
  chex.assert_rank([left, right, cores], [2, 2, 3])
  target, weight = _left_equations(slices, state)
  if roles:
    left = _solved(target, weight, ridge)
    cores, _ = _best_cores(slices, left, right, state.images, ridge)
    target, weight = _right_equations(slices, left, cores)
    right = _solved(target, weight, ridge)
  else:
    more, added = _right_equations(slices, left, cores)
    left = right = _solved(target + more, weight + added, ridge)
  images = _images(slices, right)
  cores, explained = _best_cores(slices, left, right, images, ridge)
  reached = explained / slices.norms.sum()
  return State(
    model=Model(left, right, cores),
    images=images,
    fit=reached,
    change=jnp.abs(reached - state.fit),
    step=state.step + 1,
  )


@functools.partial(jax.jit, static_argnames=("roles", "ridge"))
def fit(
  slices: Slices,
  state: State,
  *,
  tolerance: float = 1e-4,
  max_steps: int = 500,
  roles: bool = False,
  ridge: Ridge = NO_RIDGE,
) -> State:
  """Updates until the fit changes by less than `tolerance`.

  Args:
    slices: the relations.
    state: where to start.
    tolerance: on the change of the fit in one update.
    max_steps: `state.step` at which to stop in any case.
    roles: as in `init`.
    ridge: as in `init`.

  Returns:
    The last state.
  """

  def unfinished(state):
    return (state.change >= tolerance) & (state.step < max_steps)

  def advance(state):
    return update(slices, state, roles=roles, ridge=ridge)

  return lax.while_loop(unfinished, advance, state)


@functools.partial(jax.jit, static_argnames=("rank", "start", "roles", "ridge"))
def fit_runs(
  slices: Slices,
  keys: Array,
  *,
  rank: int,
  start: str = "nvecs",
  tolerance: float = 1e-4,
  max_steps: int = 500,
  roles: bool = False,
  ridge: Ridge = NO_RIDGE,
) -> tuple[Model, Array, Array]:
  """Several runs in one program, one after another.

  A run fills all cores by itself, and sparse products are fast one matrix at
  a time only, so runs share the program and not the instruction.

  Args:
    slices: of all runs, from `stack`; leading axis n.
    keys: a random key per run, [n].
    rank: d.
    start: as in `init`.
    tolerance: as in `fit`.
    max_steps: as in `fit`.
    roles: as in `init`.
    ridge: as in `init`.

  Returns:
    The models, fields [n, ...]; their fits [n]; and the updates made [n].
  """

  def one(run):
    relations, key = run
    state = init(relations, rank, key, start=start, roles=roles, ridge=ridge)
    state = fit(
      relations,
      state,
      tolerance=tolerance,
      max_steps=max_steps,
      roles=roles,
      ridge=ridge,
    )
    return state.model, state.fit, state.step

  return lax.map(one, (slices, keys))


def _sum(slices: Slices, symmetric: bool) -> Operator:
  """sum_k X_k, plus its transpose where symmetric, as an operator."""
  weights, constant = slices.mixing.sum(0), slices.ones.sum()

  def product(q, forward):
    total = jnp.broadcast_to(constant * q.sum(0), (slices.entities, q.shape[1]))
    for weight, base in zip(weights, slices.bases):
      multiply = sparse.matmat if forward else sparse.rmatmat
      total = total + weight * multiply(base, q)
    return total

  def matmat(q):
    return (
      product(q, True) + product(q, False) if symmetric else product(q, True)
    )

  def rmatmat(q):
    return matmat(q) if symmetric else product(q, False)

  shape = (slices.entities, slices.entities)
  return Operator(
    shape, slices.ones.dtype, matmat, rmatmat, lambda q: rmatmat(matmat(q))
  )


def _images(slices: Slices, right: Array) -> Array:
  return jnp.stack([sparse.matmat(base, right) for base in slices.bases])


def _left_equations(slices: Slices, state: State) -> tuple[Array, Array]:
  """sum_k X_k B R_k' and sum_k R_k B'B R_k', for factors B."""
  _, right, cores = state.model
  mixed = jnp.einsum("kb,kij->bji", slices.mixing, cores)
  constant = jnp.einsum("k,kij,j->i", slices.ones, cores, right.sum(0))
  target = sum(image @ mix for image, mix in zip(state.images, mixed))
  gram = right.T @ right
  weight = jnp.einsum("kij,jl,kml->im", cores, gram, cores)
  return target + constant, weight


def _right_equations(
  slices: Slices, left: Array, cores: Array
) -> tuple[Array, Array]:
  """sum_k X_k' A R_k and sum_k R_k' A'A R_k, for factors A."""
  mixed = jnp.einsum("kb,kij->bij", slices.mixing, cores)
  constant = jnp.einsum("k,kij,i->j", slices.ones, cores, left.sum(0))
  target = sum(
    sparse.rmatmat(base, left) @ mix for base, mix in zip(slices.bases, mixed)
  )
  gram = left.T @ left
  weight = jnp.einsum("kij,il,klm->jm", cores, gram, cores)
  return target + constant, weight


def _solved(target: Array, weight: Array, ridge: Ridge) -> Array:
  """target (weight + ridge I)^-1, or a basis of its space without ridge."""
  if not any(ridge):
    return _orthonormal(target)
  values, vectors = jnp.linalg.eigh((weight + weight.T) / 2)
  inverse = _inverse(jnp.maximum(values, 0) + ridge.factors)
  return target @ ((vectors * inverse) @ vectors.T)


def _best_cores(
  slices: Slices, left: Array, right: Array, images: Array, ridge: Ridge
) -> tuple[Array, Array]:
  """The best cores for the factors, and how much of |X|^2 they explain."""
  inner = jnp.einsum("vi,bvj->bij", left, images)
  target = jnp.einsum("kb,bij->kij", slices.mixing, inner)
  target += jnp.einsum("k,i,j->kij", slices.ones, left.sum(0), right.sum(0))
  if any(ridge):
    return _penalised_cores(left, right, target, ridge.cores)
  return target, jnp.sum(target**2)


def _penalised_cores(left, right, target, penalty):
  """Minimises |X_k - A R B'|^2 + penalty |R|^2 in the factors' eigenbases."""
  row_values, rows = jnp.linalg.eigh(left.T @ left)
  column_values, columns = jnp.linalg.eigh(right.T @ right)
  row_values, column_values = (
    jnp.maximum(values, 0) for values in (row_values, column_values)
  )
  scale = row_values[:, None] * column_values
  turned = jnp.einsum("ai,kab,bj->kij", rows, target, columns)
  solved = turned * _inverse(scale + penalty)
  explained = jnp.sum(2 * solved * turned - scale * solved**2)
  return jnp.einsum("ai,kij,bj->kab", rows, solved, columns), explained


def _inverse(values: Array) -> Array:
  """1 / values, or 0 for those under the rounding level of the largest."""
  cut = values.size * jnp.finfo(values.dtype).eps * values.max()
  return jnp.where(values > cut, 1 / jnp.where(values > cut, values, 1), 0)


def _orthonormal(factor: Array) -> Array:
  return jnp.linalg.qr(factor)[0]

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
from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh, PartitionSpec

from repr_jax.errors import InputError
from repr_jax.kb import slices
from repr_jax.kb.slices import Slices
from repr_jax.ops import mesh as meshes
from repr_jax.ops import spectral
from repr_jax.ops.dense_factorizations import eigh, orthonormal_basis, qr
from repr_jax.ops.operators import Operator
from repr_jax.ops.precision import exact_products


class RescalModel(NamedTuple):
  """Score of (i, k, j): left_i' cores_k right_j.

  Attributes:
    left: vectors of entities as first argument, [v, d].
    right: as second argument, [v, d]; equal to `left` unless roles differ.
    cores: [K, d, d].
  """

  left: Array
  right: Array
  cores: Array


class Ridge(NamedTuple):
  """Penalties on the squared norms of factors and cores, scalars."""

  factors: Array | float = 0.0
  cores: Array | float = 0.0


class RescalState(NamedTuple):
  """State of alternating least squares.

  Attributes:
    model: the factors and cores.
    images: rows of base_b B for the factors B, kept for the next update,
      [T, t, d] for each lane (`slices.images`).
    fit: 1 - |X - model|^2 / |X|^2 over all slices, [].
    change: of the fit in the last update, []; infinite before the first.
    step: updates made, int32 [].
    ridge: penalties; None for none, which keeps the factors orthonormal.
  """

  model: RescalModel
  images: tuple[Array, ...]
  fit: Array
  change: Array
  step: Array
  ridge: Ridge | None = None


@functools.partial(jax.jit, static_argnames=("rank", "start", "roles"))
def init(
  relations: Slices,
  rank: int,
  key: Array,
  *,
  start: str = "nvecs",
  roles: bool = False,
  ridge: Ridge | None = None,
) -> RescalState:
  """The state before the first update (thesis 5.2.2).

  Args:
    relations: the matrices, [v, v] each.
    rank: d.
    key: of the random start and of the eigenvector iteration.
    start: "nvecs" for leading eigenvectors of sum_k X_k + X_k', and leading
      singular vectors of sum_k X_k where roles differ; "random" for a random
      orthonormal basis. If the sum has a rank below d, the rest of the basis is
      random; E and its complement sum to 11', of rank 1.
    roles: two vectors per entity (Tucker2).
    ridge: penalties, traced; None for none.

  Returns:
    The state; its cores are optimal for its factors.
  """
  if not 1 <= rank <= relations.entities:
    raise InputError(
      f"rank {rank} must lie between 1 and the {relations.entities} entities"
    )
  if start not in ("nvecs", "random"):
    raise InputError(f"start must be 'nvecs' or 'random', not {start!r}")
  shape = (relations.entities, rank)
  krylov, *keys = jax.random.split(key, 3)
  factors = [jax.random.normal(k, shape, relations.ones.dtype) for k in keys]
  if start == "nvecs":
    # ALS refines this subspace, so a rough one is enough.
    svd, _ = spectral.truncated_svd(
      _sum(relations, not roles), rank, krylov, tolerance=1e-2
    )
    usable = svd.s > 1e-5 * svd.s[0]
    scale = jnp.sqrt(1.0 / relations.entities)
    factors = [
      jnp.where(usable, vectors, scale * noise)
      for vectors, noise in zip((svd.u, svd.v), factors)
    ]
  left, right = (qr(factor)[0] for factor in factors)
  return from_factors(relations, left, right if roles else left, ridge=ridge)


@jax.jit
def from_factors(
  relations: Slices, left: Array, right: Array, *, ridge: Ridge | None = None
) -> RescalState:
  """The state of given factors, with cores that are optimal for them.

  Args:
    left: vectors of entities as first argument, [v, d]; with orthonormal
      columns unless there is a ridge.
    right: as second argument, [v, d]; the same array for one vector each.
    ridge: penalties, traced; None for none.

  Returns:
    The state, before its first update.
  """
  chex.assert_rank([left, right], [2, 2])
  images = slices.images(relations.by_row, right)
  cores, explained = _best_cores(relations, left, right, images, ridge)
  return RescalState(
    model=RescalModel(left, right, cores),
    images=images,
    fit=explained / relations.norms.sum(),
    change=jnp.full((), jnp.inf, left.dtype),
    step=jnp.int32(0),
    ridge=None if ridge is None else Ridge(*_scalars(ridge, left.dtype)),
  )


@functools.partial(jax.jit, static_argnames="roles")
def update(
  relations: Slices, state: RescalState, *, roles: bool = False
) -> RescalState:
  """One round of alternating least squares: factors, then cores.

  Args:
    state: what `init` or `update` returned.
    roles: as in `init`.

  Returns:
    The next state. Without ridge the fit never falls but for rounding.
  """
  ridge, (left, right, cores) = state.ridge, state.model
  chex.assert_rank([left, right, cores], [2, 2, 3])
  equations, weight = _left_equations(relations, state)
  if roles:
    left = _solved(relations, equations, weight, ridge)
    cores, _ = _best_cores(relations, left, right, state.images, ridge)
    equations, weight = _right_equations(relations, left, cores, ridge)
    right = _solved(relations, equations, weight, ridge)
  else:
    more, added = _right_equations(relations, left, cores, ridge)
    left = right = _solved(relations, equations + more, weight + added, ridge)
  images = slices.images(relations.by_row, right)
  cores, explained = _best_cores(relations, left, right, images, ridge)
  reached = explained / relations.norms.sum()
  return RescalState(
    model=RescalModel(left, right, cores),
    images=images,
    fit=reached,
    change=jnp.abs(reached - state.fit),
    step=state.step + 1,
    ridge=ridge,
  )


@functools.partial(jax.jit, static_argnames="roles")
def fit(
  relations: Slices,
  state: RescalState,
  *,
  tolerance: float = 1e-4,
  max_steps: int = 500,
  roles: bool = False,
) -> RescalState:
  """Updates until the fit changes by less than `tolerance`.

  Args:
    relations: the matrices.
    state: where to start.
    tolerance: on the change of the fit in one update.
    max_steps: `state.step` at which to stop in any case.
    roles: as in `init`.

  Returns:
    The last state.
  """

  def unfinished(state):
    return (state.change >= tolerance) & (state.step < max_steps)

  def advance(state):
    return update(relations, state, roles=roles)

  return lax.while_loop(unfinished, advance, state)


@functools.partial(jax.jit, static_argnames=("rank", "start", "roles", "mesh"))
def fit_runs(
  relations: Slices,
  keys: Array,
  *,
  rank: int,
  start: str = "nvecs",
  tolerance: Array | float = 1e-4,
  max_steps: Array | int = 500,
  roles: bool = False,
  ridge: Ridge | None = None,
  mesh: Mesh | None = None,
) -> tuple[RescalModel, Array, Array]:
  """Several runs in one program, one after another.

  Runs share the compiled program but are not vmapped: one run fills all cores,
  and batched sparse products would be slower.

  Args:
    relations: of all runs, from `slices.stack`; leading axis n.
    keys: a random key per run, [n].
    rank: d.
    start: as in `init`.
    tolerance: as in `fit`, [] or one per run [n].
    max_steps: as in `fit`, [] or [n].
    roles: as in `init`.
    ridge: as in `init`, fields [] or [n].
    mesh: devices that share the runs, all axes together; None for one device.

  Returns:
    The models, fields [n, ...]; their fits [n]; and the updates made [n].
  """
  count = keys.shape[0]
  more = 0 if mesh is None else -count % mesh.size

  def filled(x):
    """[n + more, ...], the last run again for those that are missing."""
    return jnp.concatenate([x, *[x[-1:]] * more]) if more else x

  def own(x):
    return filled(jnp.broadcast_to(jnp.asarray(x), (count,)))

  def one(run):
    matrices, key, tolerance, max_steps, ridge = run
    state = init(matrices, rank, key, start=start, roles=roles, ridge=ridge)
    state = fit(
      matrices, state, tolerance=tolerance, max_steps=max_steps, roles=roles
    )
    return state.model, state.fit, state.step

  def all_runs(runs):
    return lax.map(one, runs)

  runs = (
    *jax.tree.map(filled, (relations, keys)),
    *jax.tree.map(own, (tolerance, max_steps, ridge)),
  )
  if mesh is None:
    return all_runs(runs)
  cut = PartitionSpec(mesh.axis_names)
  spread = meshes.shard_map(all_runs, mesh, (cut,), cut)
  return jax.tree.map(lambda x: x[:count], spread(runs))


@dataclasses.dataclass(frozen=True)
class RescalConfig:
  """Static part of RESCAL.

  Attributes:
    dim: d, numbers per entity.
    start: "nvecs" for leading eigenvectors, "random" for a random basis.
    roles: two vectors per entity (Tucker2).
  """

  dim: int
  start: str = "nvecs"
  roles: bool = False


def rescal(
  config: RescalConfig,
) -> tuple[Callable[..., RescalState], Callable[..., RescalState]]:
  """RESCAL, X_k ~ A R_k A', by alternating least squares (thesis 5.2).

  >>> import jax, scipy.sparse
  >>> from repr_jax import kb
  >>> edges = scipy.sparse.csr_matrix([[0.0, 1, 1], [0, 0, 1], [0, 0, 0]])
  >>> relations = kb.make_slices([edges])
  >>> init, update = kb.rescal(kb.RescalConfig(dim=3))
  >>> state = init(relations, jax.random.key(0))
  >>> state = update(state, relations)
  >>> print(state.fit > 0.99)  # three numbers per entity say it all
  True

  Args:
    config: static part.

  Returns:
    `init(relations, key, ridge=None) -> RescalState` and `update(state,
    relations) -> state`, both jitted. `ridge` is a `Ridge` of traced numbers.
  """

  def start(relations: Slices, key: Array, ridge: Ridge | None = None):
    return init(
      relations,
      config.dim,
      key,
      start=config.start,
      roles=config.roles,
      ridge=ridge,
    )

  def step(state: RescalState, relations: Slices):
    return update(relations, state, roles=config.roles)

  return jax.jit(start), jax.jit(step)


def _scalars(ridge, dtype):
  return (jnp.asarray(value, dtype) for value in ridge)


def _sum(relations: Slices, symmetric: bool) -> Operator:
  """sum_k X_k, plus its transpose where symmetric, as an operator."""
  weights, constant = relations.mixing.sum(0), relations.ones.sum()
  by_row, by_column = relations.by_row, relations.by_column

  def product(q, *sides):
    shape = relations.entities, q.shape[1]
    total = jnp.broadcast_to(len(sides) * constant * q.sum(0), shape)
    for tiles in sides:
      lanes = zip(slices.images(tiles, q), tiles.owner, tiles.rows)
      for rows, owner, place in lanes:
        scaled = weights[owner][:, None, None] * rows
        total = total.at[place].add(scaled, mode="drop")
    return total

  def matmat(q):
    return product(q, by_row, by_column) if symmetric else product(q, by_row)

  def rmatmat(q):
    return matmat(q) if symmetric else product(q, by_column)

  shape = (relations.entities, relations.entities)
  return Operator(
    shape, relations.ones.dtype, matmat, rmatmat, lambda q: rmatmat(matmat(q))
  )


class _Term(NamedTuple):
  """sum_b Y_b weights_b + 1 constant', with Y_b's rows in tiles."""

  tiles: slices.Tiles
  rows: tuple[Array, ...]
  weights: Array
  constant: Array


@exact_products
def _left_equations(
  relations: Slices, state: RescalState
) -> tuple[list[_Term], Array]:
  """sum_k X_k B R_k' and sum_k R_k B'B R_k', for factors B.

  Without ridge B'B is the identity.
  """
  _, right, cores = state.model
  mixed = jnp.einsum("kb,kij->bji", relations.mixing, cores)
  constant = jnp.einsum("k,kij,j->i", relations.ones, cores, right.sum(0))
  inner = cores if state.ridge is None else cores @ (right.T @ right)
  weight = jnp.einsum("kij,kmj->im", inner, cores)
  return [_Term(relations.by_row, state.images, mixed, constant)], weight


@exact_products
def _right_equations(
  relations: Slices, left: Array, cores: Array, ridge: Ridge | None
) -> tuple[list[_Term], Array]:
  """sum_k X_k' A R_k and sum_k R_k' A'A R_k, for factors A."""
  mixed = jnp.einsum("kb,kij->bij", relations.mixing, cores)
  constant = jnp.einsum("k,kij,i->j", relations.ones, cores, left.sum(0))
  images = slices.images(relations.by_column, left)
  inner = cores if ridge is None else (left.T @ left) @ cores
  weight = jnp.einsum("kij,kim->jm", inner, cores)
  return [_Term(relations.by_column, images, mixed, constant)], weight


@exact_products
def _solved(
  relations: Slices, terms: list[_Term], weight: Array, ridge: Ridge | None
) -> Array:
  """Terms times (weight + ridge I)^-1, or a basis of that without ridge.

  Small factors, [d, d], are applied before long ones, [v, d]. Without ridge the
  basis comes from U / values, where weight = U values U'. It is nearly
  orthonormal close to the solution, whatever the condition of the weight.
  """
  values, vectors = eigh((weight + weight.T) / 2)
  if ridge is not None:
    inverse = _inverse(jnp.maximum(values, 0) + ridge.factors)
    turn = (vectors * inverse) @ vectors.T
  else:
    numbers = jnp.finfo(values.dtype)
    turn = vectors / jnp.maximum(
      values, numbers.eps * jnp.max(values) + numbers.tiny
    )
  target = sum(term.constant for term in terms) @ turn
  for tiles, rows, weights, _ in terms:
    target += slices.mixed_sum(tiles, rows, weights @ turn, relations.entities)
  return target if ridge is not None else orthonormal_basis(target)


@exact_products
def _best_cores(
  relations: Slices,
  left: Array,
  right: Array,
  images: tuple[Array, ...],
  ridge: Ridge | None,
) -> tuple[Array, Array]:
  """The best cores for the factors, and how much of |X|^2 they explain."""
  inner = slices.inner(
    relations.by_row, left, images, relations.mixing.shape[1]
  )
  target = jnp.einsum("kb,bij->kij", relations.mixing, inner)
  target += jnp.einsum("k,i,j->kij", relations.ones, left.sum(0), right.sum(0))
  if ridge is not None:
    return _penalized_cores(left, right, target, ridge.cores)
  return target, jnp.sum(target**2)


@exact_products
def _penalized_cores(left, right, target, penalty):
  """Minimizes |X_k - A R B'|^2 + penalty |R|^2 in the factors' eigenbases."""
  row_values, rows = eigh(left.T @ left)
  column_values, columns = eigh(right.T @ right)
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

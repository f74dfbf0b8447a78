"""Doors of `repr_jax.ops`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from doors.door import Door
from jax.sharding import Mesh

from repr_jax import ops
from repr_jax.ops import normalize

_NO_SLOPE = "a count has none"
_ITERATION = "a while loop has no reverse derivative"


def _arrays(*makers):
  """Arguments from functions of a numpy generator, floats in the dtype."""

  def args(seed, dtype):
    rng = np.random.default_rng(seed)

    def put(x):
      x = np.asarray(x)
      return jnp.asarray(x.astype(dtype) if x.dtype.kind == "f" else x)

    return tuple(jax.tree.map(put, make(rng)) for make in makers)

  return args


def _normal(*shape):
  return lambda rng: rng.normal(size=shape)


def _positive(*shape):
  return lambda rng: rng.uniform(0.5, 2, shape)


def _constant(value):
  return lambda rng: np.asarray(value)


def _natural(*shape):
  return lambda rng: ops.Natural(_normal(*shape)(rng), _positive(*shape)(rng))


def _pca(rng):
  components, _ = np.linalg.qr(rng.normal(size=(4, 2)))
  return ops.PCA(
    rng.normal(size=4), components, 1 + rng.uniform(size=2), np.asarray(0.5)
  )


def _with_key(make):
  return lambda seed, dtype: (*make(seed, dtype), jax.random.key(seed))


def _matrix(seed, dtype):
  """A sparse [6, 5] in which the place of entries is the same for all seeds."""
  rng = np.random.default_rng(seed)
  there = np.random.default_rng(0).random((6, 5)) < 0.5
  dense = np.where(there, rng.uniform(1, 2, (6, 5)), 0)
  return ops.from_scipy(dense, blocks=2, dtype=dtype)


def _sparse(*shape):
  """A sparse matrix, and a dense array where a shape is given."""

  def args(seed, dtype):
    more = (_arrays(_normal(*shape))(seed, dtype)) if shape else ()
    return (_matrix(seed, dtype), *more)

  return args


def _unused_entries(x, *rest):
  """Garbage behind the last entry of each block, and in its index."""
  end = x.indptr[:, -1:]
  spare = jnp.arange(x.values.shape[1]) >= end
  assert spare.any(), "no padding"
  indices = jnp.where(spare, 3, x.indices)
  return type(x)(
    jnp.where(spare, 7.0, x.values), indices, x.indptr,
    jnp.where(spare, 7.0, x.t_values), jnp.where(spare, 1, x.t_indices),
    x.t_indptr, x.shape,
  ), *rest  # fmt: skip


def _garbage_member(natural, weights):
  return ops.Natural(*(x.at[3].set(jnp.nan) for x in natural)), weights


def _rows(rng):
  index = np.array([[0, 1], [1, 2], [0, 0]], np.int32)
  coef = np.array([[1.0, -1.0], [1.0, 0.5], [0.0, 0.0]])
  bound = rng.normal(size=(3, 2)) * np.array([1.0, 1.0, 0.0])[:, None]
  return ops.Rows(index, coef, bound)


def _planes(rng):
  normal = rng.normal(size=(2, 2, 2)) * np.array([1.0, 0.0])[:, None, None]
  return ops.Planes(np.array([[0, 2], [1, 1]], np.int32), normal, np.ones(2))


def _garbage_row(z, weight, rows, planes, *rest):
  rows = rows._replace(index=rows.index.at[2].set(1))
  planes = planes._replace(index=planes.index.at[1].set(0))
  return z, weight, rows, planes, *rest


def _padded_pair(z, below, above, *rest):
  return z, below.at[2].set(2), above.at[2].set(2), *rest


def _pairwise(rng):
  scores = rng.normal(size=(3, 3, 2, 2))
  return scores + scores.transpose(1, 0, 3, 2)


def _garbage_state(unary, pairwise, mask, *rest):
  unary = unary.at[2, 1].set(jnp.nan)
  pairwise = pairwise.at[2, :, 1].set(jnp.nan).at[:, 2, :, 1].set(jnp.nan)
  return unary, pairwise, mask, *rest


def _sharded(scores):
  mesh = Mesh(np.array(jax.devices()[:1]), ("items",))
  return ops.sharded_top_k(scores, 3, mesh=mesh)


_ORDER = (
  _normal(4, 2),
  _constant(np.array([0, 1, 3], np.int32)),
  _constant(np.array([1, 2, 3], np.int32)),
  _constant(1e-6),
)

DOORS = [
  Door(
    "ops.truncated_svd",
    _with_key(_arrays(_normal(14, 12), _constant(1e-3))),
    call=lambda x, tolerance, key: ops.truncated_svd(
      x, 2, key, tolerance=tolerance, block=2, basis=8
    ),
    vmap=(0, None, 0),
    grad="singular vectors have no slope where values are equal",
  ),
  Door(
    "ops.pca_fit",
    _with_key(_arrays(_normal(7, 5), _constant(1e-3))),
    call=lambda x, tolerance, key: ops.pca_fit(x, 2, key, tolerance=tolerance),
    vmap=(0, None, 0),
    grad="singular vectors have no slope where values are equal",
    tolerance=1e-3,
  ),
  Door("ops.pca_transform", _arrays(_pca, _normal(3, 4)), grad=(0, 1)),
  Door("ops.pca_inverse", _arrays(_pca, _normal(3, 2)), grad=(0, 1)),
  Door("ops.ppca_posterior", _arrays(_pca, _normal(3, 4)), grad=(0, 1)),
  Door("ops.ppca_log_likelihood", _arrays(_pca, _normal(3, 4)), grad=(0, 1)),
  Door("ops.to_natural", _arrays(_normal(3), _positive(3)), grad=(0, 1)),
  Door("ops.to_moments", _arrays(_natural(3)), grad=(0,)),
  Door(
    "ops.reparameterize",
    _with_key(_arrays(_normal(3), _normal(3))),
    grad=(0, 1),
  ),
  Door(
    "ops.product_of_experts",
    _arrays(_natural(4, 3), _constant([1.0, -0.5, 0.3, 0.0])),
    grad=(0,),
    mask=_garbage_member,
  ),
  Door(
    "ops.kl",
    _arrays(_normal(3), _positive(3), _normal(3), _positive(3)),
    grad=(0, 1, 2, 3),
  ),
  Door(
    "ops.kl_to_prior",
    _arrays(_normal(3), _normal(3), _positive()),
    grad=(0, 1, 2),
  ),
  Door(
    "ops.log_product_kernel",
    _arrays(_normal(3), _positive(3), _normal(3), _positive(3)),
    grad=(0, 1, 2, 3),
  ),
  Door(
    "ops.log_evidence_ratio",
    _arrays(_natural(3), _natural(3), _constant(2.5)),
    grad=(0, 1, 2),
  ),
  Door("ops.project_nonnegative", _arrays(_normal(4)), grad=(0,)),
  Door(
    "ops.project_box",
    _arrays(_normal(4), _constant(-0.3), _constant(0.4)),
    grad=(0, 1, 2),
  ),
  Door(
    "ops.project_ball",
    _arrays(_normal(4), _constant(0.7), _normal(4)),
    grad=(0, 1, 2),
  ),
  Door(
    "ops.project_halfspace",
    _arrays(_normal(4), _normal(4), _constant(-5.0)),
    grad=(0, 1, 2),
  ),
  Door(
    "ops.project_order",
    _arrays(*_ORDER),
    vmap=(0, None, None, None),
    grad=_ITERATION,
    mask=_padded_pair,
    absolute=1e-5,
  ),
  Door(
    "ops.project_polyhedron",
    _arrays(_normal(3, 2), _positive(3), _rows, _planes, _constant(1e-6)),
    vmap=(0, 0, 0, 0, None),
    grad=_ITERATION,
    mask=_garbage_row,
    absolute=1e-5,
  ),
  Door(
    "ops.project_orthant_ball",
    _arrays(_normal(4), _positive(4), _constant(0.8)),
    grad=(0, 1, 2),
  ),
  Door(
    "ops.project_intersection",
    _arrays(_normal(4), _constant(1e-6)),
    call=lambda x, tolerance: ops.project_intersection(
      x, (ops.project_nonnegative, _unit_ball), tolerance
    ),
    vmap=(0, None),
    grad=_ITERATION,
  ),
  Door(
    "ops.top_k",
    _arrays(_normal(70)),
    call=functools.partial(ops.top_k, k=2, width=8),
    grad=(0,),
  ),
  Door(
    "ops.sharded_top_k",
    _arrays(_normal(2, 6)),
    call=_sharded,
    vmap="takes a batch of queries",
    grad="indices have none",
  ),
  Door(
    "ops.tie_ranks", _arrays(_normal(6), _constant(np.int32(2))), grad=_NO_SLOPE
  ),
  Door(
    "ops.max_product",
    _arrays(
      _normal(3, 2),
      _pairwise,
      _constant(np.array([[True, True], [True, True], [True, False]])),
      _constant(0.4),
    ),
    call=lambda unary, pairwise, mask, damping: ops.max_product(
      unary, pairwise, mask, iterations=3, damping=damping
    ),
    grad=(0, 1, 3),
    mask=_garbage_state,
  ),
  Door(
    "ops.unit_rows",
    _arrays(_normal(4, 3)),
    jitted=lambda: normalize._on_device,
    grad=(0,),
  ),
  Door("ops.matmat", _sparse(5, 2), grad=(1,), mask=_unused_entries),
  Door("ops.rmatmat", _sparse(6, 2), grad=(1,), mask=_unused_entries),
  Door("ops.normal_matmat", _sparse(5, 2), grad=(1,), mask=_unused_entries),
  Door("ops.scale_rows", _sparse(6), grad=(1,)),
  Door("ops.scale_columns", _sparse(5), grad=(1,)),
  Door("ops.row_sums", _sparse(), grad=(0,)),
  Door("ops.column_sums", _sparse(), grad=(0,)),
  Door("ops.observed_rows", _sparse(), grad=_NO_SLOPE),
  Door("ops.from_scipy", host="reads scipy matrices"),
  Door("ops.to_scipy", host="makes a scipy matrix"),
]


def _unit_ball(x):
  return ops.project_ball(x, 1.0)

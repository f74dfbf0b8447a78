"""Doors of `repr_jax.multiview`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from doors.door import Door

from repr_jax import multiview

_N = 24


def _normal(seed, dtype, *shapes):
  rng = np.random.default_rng(seed)
  return tuple(jnp.asarray(rng.normal(size=s).astype(dtype)) for s in shapes)


def _two_views(seed, dtype):
  x, noise = _normal(seed, dtype, (_N, 3), (_N, 4))
  return x, noise.at[:, :2].add(2 * x[:, :2])


def _views(seed, dtype):
  x, y = _two_views(seed, dtype)
  return [x, y, x[:, :2] + 0.5 * y[:, 2:]]


def _ridges(seed, dtype):
  return _views(seed, dtype), jnp.asarray([0.5, 1.0, 2.0], dtype)


@functools.cache
def _fitted(dtype):
  return multiview.gcca_exact(_views(0, dtype), 2)


@functools.cache
def _cca(dtype):
  return multiview.cca_fit(*_two_views(0, dtype), 2)


def _rows(seed, dtype):
  views = [view[:5] for view in _views(seed + 3, dtype)]
  weights = jnp.ones((3, 5), dtype).at[1, 2].set(0)
  return _fitted(dtype), views, weights


def _missing_rows(model, rows, weights):
  return model, [rows[0], rows[1].at[2].set(jnp.nan), rows[2]], weights


def _missing_view(model, rows, weights):
  return model, [rows[0], jnp.full_like(rows[1], jnp.nan), rows[2]], weights


def _counts(seed, dtype):
  rng = np.random.default_rng(seed)
  counts = rng.poisson(1.0, (_N, 6)) + (rng.random((_N, 6)) < 0.4)
  return jnp.asarray(counts.astype(dtype))


def _weighted_view(seed, dtype):
  weights = jnp.ones(_N, dtype).at[3].set(0)
  return _counts(seed, dtype), weights, jax.random.key(seed)


def _unobserved(x, weights, key):
  return x.at[3].set(1e3), weights, key


def _factors(seed, dtype):
  """Three factors whose singular values are apart."""
  rng = np.random.default_rng(seed)
  made = []
  for _ in range(3):
    left = np.linalg.qr(rng.normal(size=(_N, 2)))[0].astype(dtype)
    s = np.array([2.0, 1.0]).astype(dtype)
    right = np.linalg.qr(rng.normal(size=(4, 2)))[0].astype(dtype)
    weights = (rng.random(_N) + 0.5).astype(dtype)
    parts = (left, s, right, np.zeros(4, dtype), weights)
    made.append(multiview.ViewFactor(*map(jnp.asarray, parts)))
  return made


def _loss(seed, dtype):
  ridge = jnp.asarray([0.1, 0.2, 0.4], dtype)
  weights = jnp.asarray([1.0, 2.0, 0.5], dtype)
  rank = jnp.asarray([2, 1, 2])
  return _factors(seed, dtype), jax.random.key(0), ridge, weights, rank


def _left_out(factors, key, ridge, weights, rank):
  """The second factor's second column is past its rank."""
  f = factors[1]
  f = f._replace(left=f.left.at[:, 1].set(7.0), s=f.s.at[1].set(1.5))
  return [factors[0], f, factors[2]], key, ridge, weights, rank


def _combine(factors, key, ridge, weights, rank):
  return multiview.combine(
    factors, 2, key, ridge=ridge, view_weights=weights, rank=rank
  )


def _stream(seed, dtype):
  first, second = _normal(seed, dtype, (_N, 3), (_N, 2))
  state = multiview.stream_init(_N, 4, jnp.dtype(dtype))
  return multiview.stream_update(state, first), second


def _streamed(seed, dtype):
  state, block = _stream(seed, dtype)
  rescale = jnp.linspace(0.5, 1.5, _N, dtype=dtype)
  return multiview.stream_update(state, block), block, rescale


def _spread_block(seed, dtype):
  scale, ridge = jnp.full(_N, 0.5, dtype), jnp.asarray(0.3, dtype)
  return _factors(seed, dtype)[0], scale, ridge


def _gaps(seed, dtype):
  """Factors with rows that a view does not observe."""
  return (
    [
      f._replace(row_weights=f.row_weights.at[j].set(0))
      for j, f in enumerate(_factors(seed, dtype))
    ],
  )


def _unseen_rows(factors, *rest):
  """The third view's unobserved row holds NaN."""
  last = factors[2]._replace(left=factors[2].left.at[2].set(jnp.nan))
  return [*factors[:2], last], *rest


def _labels(seed, dtype):
  rng = np.random.default_rng(seed)
  pairs = jnp.asarray(rng.integers(_N, size=(2, 9, 2))).at[1, 7:].set(-1)
  return *_gaps(seed, dtype), pairs, *_normal(seed, dtype, (2, 9))


def _other_labels(factors, pairs, targets):
  return *_unseen_rows(factors), pairs, targets.at[1, 7:].set(jnp.nan)


def _held_out(seed, dtype):
  rows = jnp.asarray([*range(12), -1])
  return *_gaps(seed, dtype), jnp.asarray([0, 0, 1]), rows


def _lexicon(seed, dtype):
  pairs = jnp.asarray([[0, 1], [1, 0], [2, 3], [0, 4], [5, 6]])
  weights = jnp.asarray([1.0, 1, 2, 0.5, 0], dtype)
  return *_normal(seed, dtype, (_N, 3)), pairs, weights


def _other_padding(vectors, pairs, weights):
  return vectors, pairs.at[4].set(7), weights


def _constraints(seed, dtype):
  synonyms = jnp.asarray([[0, 1], [2, 3], [-1, 5]])
  antonyms = jnp.asarray([[0, 4], [-1, -1]])
  return *_normal(seed, dtype, (_N, 3)), synonyms, antonyms, synonyms[::-1] + 0


def _other_constraint(vectors, synonyms, antonyms, kept):
  return vectors, synonyms.at[2, 1].set(9), antonyms, kept


def _features(seed, dtype):
  x, y = _normal(seed, dtype, (_N, 4), (_N, 3))
  return x, y, jnp.ones(_N, dtype).at[2].set(0)


def _unknown_target(x, y, weights):
  return x, y.at[2].set(jnp.nan), weights


_SIGNS = "the largest entry fixes signs and small values are cut"

DOORS = [
  Door(
    "multiview.cca_fit",
    _two_views,
    call=lambda x, y: multiview.cca_fit(x, y, 2, ridge=0.1),
    grad=(0, 1),
  ),
  Door(
    "multiview.cca_transform",
    lambda seed, dtype: (_cca(dtype), *_two_views(seed, dtype)),
    vmap=(None, 0, 0),
    grad=(0, 1, 2),
  ),
  Door(
    "multiview.gcca_exact",
    _ridges,
    call=lambda views, ridge: multiview.gcca_exact(views, 2, ridge=ridge),
    grad=(0, 1),
  ),
  Door(
    "multiview.gcca_transform",
    _rows,
    vmap=(None, 0, 0),
    grad=(0, 1),
    mask=_missing_rows,
  ),
  Door(
    "multiview.predict_view",
    _rows,
    call=lambda model, rows, weights: multiview.predict_view(
      model, rows, 1, weights
    ),
    vmap=(None, 0, 0),
    grad=(0,),
    mask=_missing_view,
  ),
  Door(
    "multiview.explained_shares",
    _rows,
    vmap=(None, 0, 0),
    grad=(0, 1),
    mask=_missing_rows,
  ),
  Door(
    "multiview.factor_view",
    _weighted_view,
    call=lambda x, weights, key: multiview.factor_view(x, 3, weights, key),
    grad="a truncated SVD by iteration, which has no reverse mode",
    mask=_unobserved,
    tolerance=1e-3,
  ),
  Door("multiview.combine", _loss, call=_combine, grad=(2, 3), mask=_left_out),
  Door(
    "multiview.energy_weights",
    lambda seed, dtype: (_factors(seed, dtype), _loss(seed, dtype)[2]),
    call=lambda factors, ridge: multiview.energy_weights(factors, ridge=ridge),
    grad=(1,),
  ),
  Door(
    "multiview.view_products",
    lambda seed, dtype: (_factors(seed, dtype), _loss(seed, dtype)[3]),
    grad=(1,),
  ),
  Door(
    "multiview.support_scale",
    lambda seed, dtype: (jnp.abs(_normal(seed, dtype, (3, _N))[0]),),
    grad=(0,),
  ),
  Door("multiview.view_block", _spread_block, grad=(1, 2)),
  Door(
    "multiview.stream_init",
    lambda seed, dtype: (),
    call=lambda: multiview.stream_init(_N, 3),
    vmap="takes no array",
    grad="takes no array",
    dtypes="the dtype is an argument",
  ),
  Door("multiview.stream_update", _stream, grad=_SIGNS, tolerance=1e-3),
  Door("multiview.stream_remove", _streamed, grad=_SIGNS, tolerance=1e-2),
  Door(
    "multiview.direction_agreement",
    _gaps,
    grad="cut at 0, and factors of orthonormal columns are not free",
    mask=_unseen_rows,
  ),
  Door(
    "multiview.view_agreement",
    _gaps,
    grad="cut at 0, and factors of orthonormal columns are not free",
    mask=_unseen_rows,
  ),
  Door(
    "multiview.agreement_weights",
    lambda seed, dtype: (
      jnp.abs(_normal(seed, dtype, (4,))[0]) + 0.1,
      jnp.asarray(2.0, dtype),
    ),
    grad=(1,),
  ),
  Door(
    "multiview.label_weights",
    _labels,
    grad="the end of many steps",
    mask=_other_labels,
    tolerance=2e-2,
  ),
  Door(
    "multiview.heldout_weights",
    _held_out,
    grad="the end of many steps",
    mask=_unseen_rows,
    tolerance=2e-2,
  ),
  Door(
    "multiview.permuted_factors",
    lambda seed, dtype: (*_gaps(seed, dtype), jax.random.key(seed)),
    grad="a permutation",
    mask=_unseen_rows,
  ),
  Door(
    "multiview.retrofit",
    _lexicon,
    call=lambda *args: multiview.retrofit(*args, iterations=4),
    vmap=(0, None, None),
    grad="a loop with a traced number of steps has no reverse mode",
    mask=_other_padding,
  ),
  Door(
    "multiview.counterfit",
    _constraints,
    vmap=(0, None, None, None),
    grad="a loop with a traced number of steps has no reverse mode",
    mask=_other_constraint,
    tolerance=1e-3,
  ),
  Door(
    "multiview.predict_from_features",
    _features,
    call=lambda *args: multiview.predict_from_features(*args, iterations=4),
    grad="a loop with a traced number of steps has no reverse mode",
    mask=_unknown_target,
    tolerance=1e-3,
  ),
  Door(
    "multiview.log_counts",
    lambda seed, dtype: (_counts(seed, dtype),),
    grad=(0,),
  ),
  Door(
    "multiview.power_counts",
    lambda seed, dtype: (_counts(seed, dtype), jnp.asarray(0.3, dtype)),
    vmap=(0, None),
    grad=(1,),
  ),
  Door(
    "multiview.ppmi",
    lambda seed, dtype: (_counts(seed, dtype), jnp.asarray(0.75, dtype)),
    vmap=(0, None),
    grad=(1,),
  ),
  Door(
    "multiview.row_weights",
    lambda seed, dtype: (_counts(seed, dtype), jnp.asarray(0.75, dtype)),
    vmap=(0, None),
    grad=(1,),
  ),
  Door(
    "multiview.observed_rows",
    lambda seed, dtype: (_counts(seed, dtype),),
    grad="gives no float",
  ),
  Door("multiview.fit", host="a driver that reads files and scipy matrices"),
]

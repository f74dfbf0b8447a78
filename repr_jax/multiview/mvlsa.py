"""Multiview LSA: from weighted views on the host to word vectors (thesis 3.3).

The engine is scalable MAX-VAR GCCA (`repr_jax.multiview.gcca`): one rank-m SVD
per view, rows that a view lacks left out of it, then the leading left singular
vectors of all the factors, in memory or streamed one view at a time.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array
from jax.sharding import Mesh

from repr_jax.errors import InputError
from repr_jax.multiview import gcca, sharding, weighting
from repr_jax.multiview.gcca import GCCA, ViewFactor
from repr_jax.multiview.sharding import HostMatrix, HostView
from repr_jax.multiview.sharding import load as load
from repr_jax.ops import mesh as meshes
from repr_jax.ops.operators import as_operator, centered, row_scaled
from repr_jax.ops.svd_updates import IncrementalSVD

_LEAST_WEIGHT = 1e-15  # the square of a smaller one is lost in float32


class MVLSA(NamedTuple):
  """A fitted multiview LSA.

  Attributes:
    model: embedding [n, k] (zero rows for words that were dropped),
      projections, means, eigenvalues, objective and shares.
    support: in how many views each word was observed, int32 [n].
    kept: which words were fitted, bool [n].
    normalization: "unit" or "generalized".
    lost: share of the views' energy that streaming dropped; 0 in memory.
    errors: estimated relative error of each view's worst singular value, [J].
  """

  model: GCCA
  support: np.ndarray
  kept: np.ndarray
  normalization: str
  lost: float
  errors: np.ndarray


def fit(
  views: Sequence[HostView],
  k: int,
  *,
  m: int = 300,
  ridge: float = 1e-8,
  min_support: int = 1,
  row_weights: Sequence[np.ndarray] | None = None,
  normalization: str = "unit",
  center: bool = True,
  method: str = "memory",
  tolerance: float = 1e-3,
  max_cycles: int = 12,
  projections: bool = True,
  seed: int = 0,
  report: Callable[[int, float], None] | None = None,
  mesh: Mesh | None = None,
) -> MVLSA:
  """Fits word vectors to many views.

  Args:
    views: weighted matrices [n, d_j], sparse or dense, or functions that load
      one; a row of zeros is a word that the view does not have.
    k: dimension of the vectors.
    m: rank of each view's SVD; min(d_j, m) is used.
    ridge: r_j of every view.
    min_support: v, in how many views a word must be observed to be fitted.
    row_weights: W_j of each view, [n] each; None for weights of one.
    normalization: "unit" returns V with unit columns as the thesis does,
      "generalized" K^(-1/2) V, which minimizes the objective under G'KG = I.
    center: subtract column means over the observed rows.
    method: "memory" holds [n, J m]; "stream" holds [n, k + 2 m] and drops what
      does not fit, which `lost` reports. Between views it keeps k + m
      directions: all of one view's count alike, so with k alone the shared
      ones would be lost before a second view has told them apart.
    tolerance: relative error at which each SVD stops.
    max_cycles: how often an SVD may fill its basis; bounds the work on flat
      spectra, whose last values never get as good as the tolerance.
    projections: also compute U_j (streaming then reads each view again).
    seed: seed of the SVDs' starting blocks.
    report: called with a view's number and its error after each SVD.
    mesh: devices with axes "rows" and "views": rows of a view go over the
      first, and as many views as the second has are decomposed at a time.
      The embedding then comes back on the host.

  Returns:
    The fit. `truncate` cuts it to fewer dimensions without fitting again.
  """
  _check_options(normalization, method, k, m, ridge, tolerance)
  weights, support = _row_weights(views, row_weights, min_support)
  kept = np.asarray(weights.any(axis=0))
  if int(kept.sum()) < k:
    raise InputError(
      f"k = {k}, but only {int(kept.sum())} of {len(kept)} words are observed "
      f"in {min_support} views or more; lower k or min_support"
    )
  place = sharding.make(mesh, weights)
  scale = place.scale
  keys = jax.random.split(jax.random.key(seed), len(views) + 1)
  combiner = _combiner(method, place, k, m, len(views))
  factors, errors = [], []
  for group in place.groups(len(views)):
    found = []
    for j in group:
      rows = place.weights_of(j)
      factor, info = _factor_view(
        place.load(views[j], j), m, rows, keys[j], center=center,
        tolerance=tolerance, max_cycles=max_cycles,
      )  # fmt: skip
      basis = _weighted_basis(factor, rows, place.scale_of(j), ridge)
      found.append((basis, factor._replace(left=jnp.zeros((0, 0))), info))
    for basis in place.spread([basis for basis, _, _ in found]):
      combiner.add(basis)
    for j, (_, factor, info) in zip(group, found):
      factors.append(place.settle(factor))
      errors.append(float(np.max(meshes.to_host(info.estimate))))
      if report is not None:
        report(j, errors[-1])
  v, values, lost = combiner.finish(keys[-1])
  if not bool(jnp.isfinite(v).all()) or float(values[-1]) <= 0:
    rank = int((np.asarray(values) > 0).sum())
    raise InputError(f"the views have rank {rank} in all, less than k = {k}")
  v = _positive(v)
  inside = None
  if projections:
    inside = combiner.inside(v)
    if inside is None:
      inside = _inside_again(views, factors, place, ridge, v)
  model = _assemble(
    factors, inside, v, values, place.weights, scale, ridge, normalization
  )
  embedding: Any = place.gather(model.embedding)
  model = model._replace(embedding=embedding)
  return MVLSA(model, support, kept, normalization, lost, np.asarray(errors))


def truncate(fitted: MVLSA, k: int) -> MVLSA:
  """The k-dimensional fit: the first k columns, embedding [n, k]."""
  model = fitted.model
  if not 1 <= k <= model.values.shape[0]:
    raise InputError(f"cannot cut {model.values.shape[0]} dimensions to {k}")
  count = len(model.means) if fitted.normalization == "unit" else 1
  loss = jnp.maximum(k - model.values[:k].sum(), 0)
  cut = model._replace(
    embedding=model.embedding[:, :k],
    values=model.values[:k],
    projections=tuple(u[:, :k] for u in model.projections),
    objective=count * loss,
  )
  return fitted._replace(model=cut)


def transform(
  fitted: MVLSA,
  rows: Sequence[HostMatrix],
  row_weights: np.ndarray | None = None,
) -> Array:
  """Vectors of unseen words from their rows in each view.

  Args:
    fitted: a fit with projections.
    rows: weighted rows in each view, [n', d_j]; a row of zeros is missing.
    row_weights: W_j of the new rows, [J, n']; None for ones.

  Returns:
    Vectors [n', k] on the scale of the embedding; zero where no view has the
    word.
  """
  if len(fitted.model.projections) != len(rows):
    raise InputError(
      f"{len(rows)} views given, {len(fitted.model.projections)} fitted"
    )
  seen = np.stack([weighting.observed(x) for x in rows]).astype(np.float32)
  weights = seen if row_weights is None else seen * row_weights
  dense = [
    jnp.asarray(x.toarray() if scipy.sparse.issparse(x) else x) for x in rows
  ]
  vectors = gcca.gcca_transform(fitted.model, dense, jnp.asarray(weights))
  if fitted.normalization == "generalized":
    return vectors
  root = jnp.sqrt(jnp.sum(jnp.asarray(weights) ** 2, axis=0) / len(rows))
  return vectors * root[:, None]


_factor_view = jax.jit(
  gcca.factor_view, static_argnames=("m", "center", "tolerance", "max_cycles")
)
_weighted_basis = jax.jit(gcca.weighted_basis)
_combine_update = jax.jit(gcca.combine_update)


def _combiner(method, place, k: int, m: int, views: int):
  if method == "stream":
    return _Stream(place.stream(min(k + m, place.rows)), k)
  return place.memory(k, m, views)


class _Stream:
  """Holds a few left singular vectors of the blocks seen so far."""

  def __init__(self, state: IncrementalSVD, k: int):
    self._k = k
    self._state = state

  def add(self, basis: Array) -> None:
    self._state = _combine_update(self._state, basis)

  def finish(self, key: Array) -> tuple[Array, Array, float]:
    del key
    state, k = self._state, self._k
    return state.u[:, :k], state.s[:k] ** 2, float(state.lost / state.total)

  def inside(self, v: Array) -> list[Array] | None:
    del v
    return None


@jax.jit
def _inside_view(x, factor: ViewFactor, weights, scale, ridge, v) -> Array:
  """M~_j' V = T S^(-1) B' (W X)' W K^(-1/2) V, from the view itself."""
  weighted = centered(row_scaled(as_operator(x), weights), factor.mean, weights)
  image = weighted.rmatmat((weights * scale)[:, None] * v)
  root = gcca.ridge_root(factor.s, ridge)
  return root[:, None] * (factor.right.T @ image)


def _inside_again(views, factors, place, ridge, v) -> list[Array]:
  return [
    _inside_view(
      place.load_whole(view, j), factor, place.weights[j], place.scale, ridge, v
    )
    for j, (view, factor) in enumerate(zip(views, factors))
  ]


def _assemble(
  factors, inside, v, values, weights, scale, ridge, normalization
) -> GCCA:
  """Puts embedding, projections, objective and shares together."""
  count, k = len(factors), values.shape[0]
  unit = normalization == "unit"
  projections, shares = [], []
  lengths = jnp.sum(v**2, axis=1)
  for j, factor in enumerate(factors if inside is not None else []):
    u = gcca.view_projection(factor, inside[j], ridge)
    projections.append(u * np.sqrt(count) if unit else u)
    present = jnp.sum((weights[j] * scale) ** 2 * lengths)
    shares.append(jnp.sum(inside[j] ** 2) / jnp.maximum(present, 1e-30))
  loss = jnp.maximum(k - values.sum(), 0)
  return GCCA(
    embedding=v if unit else scale[:, None] * v,
    values=values,
    projections=tuple(projections),
    means=tuple(factor.mean for factor in factors),
    objective=count * loss if unit else loss,
    shares=jnp.stack(shares) if shares else jnp.zeros(0),
  )


def _row_weights(views, given, min_support):
  """Diagonals of W_j K_j after dropping rows with little support, [J, n]."""
  if not views:
    raise InputError("no view was given")
  if given is not None and len(given) != len(views):
    raise InputError(f"{len(given)} row weights for {len(views)} views")
  seen: list[np.ndarray] = []
  for j, view in enumerate(views):
    matrix = view() if callable(view) else view
    if matrix.ndim != 2 or (j and matrix.shape[0] != len(seen[0])):
      rows = f"{len(seen[0])} rows, as view 0 has" if j else "two axes"
      raise InputError(f"view {j} has shape {matrix.shape}; expected {rows}")
    seen.append(weighting.observed(matrix))
    if not seen[-1].any():
      raise InputError(f"view {j} is empty: no row has a nonzero entry")
  observed = np.stack(seen)
  support = observed.sum(axis=0).astype(np.int32)
  weights = (observed & (support >= min_support)).astype(np.float32)
  for j, own in enumerate(given or ()):
    weights[j] *= _checked_weights(own, j, weights.shape[1])
  return weights, support


def _checked_weights(given, j: int, size: int) -> np.ndarray:
  own = np.asarray(given, np.float32)
  if own.shape != (size,):
    raise InputError(
      f"the row weights of view {j} have shape {own.shape}; expected one for "
      f"each of {size} rows"
    )
  usable = (own >= _LEAST_WEIGHT) & (own <= 1 / _LEAST_WEIGHT)
  if not (usable | (own == 0)).all():
    row = int(np.argmax(~usable & (own != 0)))
    raise InputError(
      f"the row weight {own[row]:g} of view {j}, row {row}: row weights must "
      f"be 0 or from {_LEAST_WEIGHT:g} to {1 / _LEAST_WEIGHT:g}, usually 1 for "
      "the largest"
    )
  return own


@jax.jit
def _positive(v: Array) -> Array:
  """Signs fixed: the entry of largest magnitude in each column is positive."""
  picked = jnp.take_along_axis(v, jnp.argmax(jnp.abs(v), axis=0)[None], axis=0)
  return v * jnp.where(picked < 0, -1, 1).astype(v.dtype)


def _check_options(normalization, method, k, m, ridge, tolerance) -> None:
  if normalization not in ("unit", "generalized"):
    raise InputError(
      f"normalization {normalization!r} is neither 'unit' nor 'generalized'"
    )
  if method not in ("memory", "stream"):
    raise InputError(f"method {method!r} is neither 'memory' nor 'stream'")
  if k < 1 or m < 1 or not 0 <= ridge < np.inf:
    raise InputError(f"need k >= 1, m >= 1, ridge >= 0; got {k}, {m}, {ridge}")
  if not 0 <= tolerance < np.inf:
    raise InputError(f"the tolerance must be finite, 0 or more: {tolerance}")

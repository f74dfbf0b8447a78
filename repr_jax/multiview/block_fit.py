"""Fits that never hold all factors on one device: streamed, or over a mesh.

Views are factored where `sharding` places them. Only a view's block of M~ is
kept: in the state of a streamed combination, or in M~ sharded over all devices.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from repr_jax.multiview import factoring, gcca, sharding, streaming
from repr_jax.multiview.gcca import Combination, ViewFactor
from repr_jax.multiview.host_views import HostView
from repr_jax.ops import mesh as meshes
from repr_jax.ops.operators import as_operator, centered, row_scaled
from repr_jax.ops.precision import exact_products
from repr_jax.ops.spectral import column_signs
from repr_jax.ops.svd_updates import IncrementalSVD


class Loss(NamedTuple):
  """Weights of a fit's objective.

  Attributes:
    ridge: r_j, [] or [J].
    relative: whether `ridge` is in units of the mean squared singular value.
    weights: c_j, [J].
  """

  ridge: np.ndarray
  relative: bool
  weights: np.ndarray


class Done(NamedTuple):
  """A combination and the parts of its projections.

  Attributes:
    combined: V, eigenvalues, coordinates and shares.
    factors: of each view, without `left` where it was not held.
    ridges: r_j of each view, [] each.
    weights: W_j K_j, [J, n].
    scale: K^(-1/2), [n].
    lost: share of the views' energy that was dropped.
    errors: relative error of each view's worst singular value, [J].
    gather: brings rows [n, k] into order on the host; None if in order.
    products: `gcca.view_products` of the factors, where they were held.
  """

  combined: Combination
  factors: Sequence[ViewFactor]
  ridges: Sequence[Array]
  weights: Array
  scale: Array
  lost: float
  errors: np.ndarray
  gather: Callable[[Array], Any] | None
  products: Array | None = None


def fit_blocks(
  hosts: Sequence[HostView],
  k: int,
  m: int,
  weights: np.ndarray,
  loss: Loss,
  keys: Array,
  *,
  mesh: Mesh | None,
  method: str,
  projections: bool,
  report: Callable[[int, float], None] | None,
  center: bool,
  tolerance: float,
  max_cycles: int,
) -> Done:
  """Factors the views one after another and combines their blocks.

  Args:
    k: dimension.
    m: rank of each view.
    weights: W_j K_j, [J, n].
    loss: weights of the objective.
    keys: random keys of the SVDs and of the combination, [2].
    mesh: devices, or None for one.
    method: "memory" (on a mesh) or "stream".
    projections: whether to compute coordinates and shares too.
    report: called with a view's number and error.
    center: as in `gcca.factor_view`.
    tolerance: as in `gcca.factor_view`.
    max_cycles: as in `gcca.factor_view`.
  """
  count = len(hosts)
  place = sharding.make(mesh, weights, loss.weights)
  own_keys = jax.random.split(keys[0], count)
  each = np.broadcast_to(loss.ridge, (count,))
  combiner: Any
  if isinstance(place, sharding.OnMesh) and method == "memory":
    combiner = place.memory(k, m, count)
  else:
    combiner = _Stream(place.stream(min(k + m, place.rows)), k)
  factors: list[ViewFactor] = []
  ridges: list[Array] = []
  errors = np.zeros(count)
  for group in place.groups(count):
    blocks = []
    for j in group:
      matrix = hosts[j].load()
      factor, info = factoring.factor_view(
        place.load(matrix, j), m, place.weights_of(j), own_keys[j],
        center=center, tolerance=tolerance, max_cycles=max_cycles,
      )  # fmt: skip
      (ridge,) = gcca.view_ridges([factor], each[j], loss.relative)
      scale = _times(place.scale_of(j), np.sqrt(loss.weights[j]))
      blocks.append(_view_block(factor, scale, ridge))
      errors[j] = float(np.max(meshes.to_host(info.estimate)))
      small = factor._replace(left=factor.s[:0], row_weights=factor.s[:0])
      small = place.to_host(small)
      factors.append(factoring.unpadded(small, matrix.shape[1]))
      ridges.append(jnp.asarray(place.to_host(ridge)))
    for block in place.spread(blocks):
      combiner.add(block)
    if report is not None:
      for j in group:
        report(j, float(errors[j]))
  v, values, lost = combiner.finish(keys[1])
  v = _positive(v)
  coordinates: list[Array] = []
  if projections and method == "memory":
    coordinates = _divide(combiner.inside(v), np.sqrt(loss.weights))
  elif projections:
    coordinates = _read_again(hosts, factors, ridges, place, v)
  shares = (
    _shares(coordinates, place.weights, place.scale, v)
    if coordinates
    else jnp.zeros(0, values.dtype)
  )
  combined = Combination(v, values, tuple(coordinates), shares)
  return Done(
    combined, factors, ridges, place.weights, place.scale, lost, errors,
    place.gather,
  )  # fmt: skip


class _Stream:
  """Holds a few left singular vectors of the blocks seen so far."""

  def __init__(self, state: IncrementalSVD, k: int):
    self._k = k
    self._state = state

  def add(self, block: Array) -> None:
    self._state = _stream_update(self._state, block)

  def finish(self, key: Array) -> tuple[Array, Array, float]:
    del key
    state, k = self._state, self._k
    return state.u[:, :k], state.s[:k] ** 2, float(state.lost / state.total)


_view_block = jax.jit(gcca.view_block)
_stream_update = jax.jit(streaming.stream_update)
_times = jax.jit(jnp.multiply)


@jax.jit
def _divide(arrays, divisors) -> list[Array]:
  return [x / c for x, c in zip(arrays, divisors)]


# One program for all views: on a CPU, devices that exchange data in many small
# programs at once may deadlock.
@jax.jit
def _shares(coordinates, weights, scale, v) -> Array:
  """Explained share of each view, [J]."""
  lengths = jnp.sum(v**2, axis=1)
  return jnp.stack(
    [
      gcca.share(inside, present * scale, lengths)
      for inside, present in zip(coordinates, weights)
    ]
  )


@jax.jit
def _positive(v: Array) -> Array:
  """Signs fixed: the entry of largest magnitude in each column is positive."""
  return v * column_signs(v)


def _read_again(hosts, factors, ridges, place, v) -> list[Array]:
  coordinates = []
  for j, (host, factor) in enumerate(zip(hosts, factors)):
    x = place.load_whole(host.load(), j)
    more = x.shape[1] - len(factor.mean)
    padded = factor._replace(
      right=np.pad(np.asarray(factor.right), ((0, more), (0, 0))),
      mean=np.pad(np.asarray(factor.mean), (0, more)),
    )
    coordinates.append(
      _inside_view(x, padded, place.weights[j], place.scale, ridges[j], v)
    )
  return coordinates


@jax.jit
@exact_products
def _inside_view(x, factor: ViewFactor, weights, scale, ridge, v) -> Array:
  """T A' W K^(-1/2) V = T S^(-1) B' (W X)' W K^(-1/2) V, from the view."""
  weighted = centered(row_scaled(as_operator(x), weights), factor.mean, weights)
  image = weighted.rmatmat((weights * scale)[:, None] * v)
  root = gcca.ridge_root(factor.s, ridge)
  return root[:, None] * (factor.right.T @ image)

"""One rank-m SVD of each view, on one device."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from repr_jax.multiview import gcca, host_views
from repr_jax.multiview.gcca import ViewFactor
from repr_jax.multiview.host_views import HostView

_MANY = 8  # sparse views beyond which they share padded shapes
_STACKED_BYTES = 1 << 28  # dense views that are factored in one program


def factor_views(
  hosts: Sequence[HostView],
  m: int,
  weights: np.ndarray,
  key: Array,
  *,
  center: bool = True,
  tolerance: float = 1e-3,
  max_cycles: int = 12,
  widest: int | None = None,
) -> Iterator[tuple[ViewFactor, float]]:
  """The factors of each view, in order, on one device.

  Dense views of one shape are factored in one program, vmapped, as many as
  fit in 256 MB. Sparse ones, which seldom have one shape, go one at a
  time.

  Args:
    hosts: from `open_views`.
    m: rank.
    weights: diagonals of W_j K_j, [J, n].
    center: as in `gcca.factor_view`.
    tolerance: as in `gcca.factor_view`.
    max_cycles: as in `gcca.factor_view`.
    widest: as in `host_views.device_view`; by default set for more than
      8 sparse views.

  Yields:
    The factors of a view, and the relative error of its worst value.
  """
  keys = jax.random.split(key, len(hosts))
  dtype = weights.dtype
  settings: dict[str, Any] = {
    "center": center, "tolerance": tolerance, "max_cycles": max_cycles
  }  # fmt: skip
  widths = [host.width for host in hosts if host.is_sparse]
  if widest is None and len(widths) > _MANY:
    widest = max(widths)
  waiting: list[tuple[int, Array]] = []

  def several() -> Iterator[tuple[ViewFactor, float]]:
    if not waiting:
      return
    chosen = np.array([j for j, _ in waiting])
    stacked = jnp.stack([x for _, x in waiting])
    many, info = _factor_stacked(
      stacked, m, jnp.asarray(weights[chosen]), keys[chosen], **settings
    )
    waiting.clear()
    worst = np.asarray(info.estimate).max(axis=1)
    yield from zip(gcca.unstacked(many), worst.tolist())

  for j, host in enumerate(hosts):
    matrix = host.load()
    x = host_views.device_view(matrix, host.name, dtype, widest)
    if isinstance(x, Array):
      same = not waiting or waiting[0][1].shape == x.shape
      held = (len(waiting) + 1) * x.size * dtype.itemsize
      if not same or held > _STACKED_BYTES:
        yield from several()
      waiting.append((j, x))
      continue
    yield from several()
    factor, info = factor_view(
      x, m, jnp.asarray(weights[j]), keys[j], **settings
    )
    yield unpadded(factor, matrix.shape[1]), float(info.estimate.max())
  yield from several()


def unpadded(factor: ViewFactor, columns: int) -> ViewFactor:
  """Without the columns that padded a view to a shared shape."""
  # Slices on the host compile nothing.
  right: Any = np.asarray(factor.right)
  mean: Any = np.asarray(factor.mean)
  return factor._replace(right=right[:columns], mean=mean[:columns])


_STATIC = ("m", "center", "max_cycles")
factor_view = jax.jit(gcca.factor_view, static_argnames=_STATIC)


@functools.partial(jax.jit, static_argnames=_STATIC)
def _factor_stacked(
  x, m: int, weights, keys, *, center: bool, tolerance, max_cycles: int
):
  def one(x, weights, key):
    return gcca.factor_view(
      x, m, weights, key, center=center, tolerance=tolerance,
      max_cycles=max_cycles,
    )  # fmt: skip

  return jax.vmap(one)(x, weights, keys)

"""Exact top-k along long axes, in blocks.

Ties are broken by the lowest index everywhere, so that the same scores give
the same list on every backend and for every block width.
"""

import functools

import chex
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from repr_jax.ops import mesh as meshes

_WIDTH = 32


def _lowest(dtype: jnp.dtype) -> jax.Array:
  if jnp.issubdtype(dtype, jnp.floating):
    return jnp.asarray(-jnp.inf, dtype)
  return jnp.asarray(jnp.iinfo(dtype).min, dtype)


def _check_k(k: int, n: int) -> None:
  if not 1 <= k <= n:
    raise ValueError(f"k must be between 1 and the {n} scores, not {k}")


def _plain_zero(x: jax.Array) -> jax.Array:
  # lax.top_k puts -0.0 below 0.0, which would break the tie rule.
  return jnp.where(x == 0, jnp.zeros_like(x), x)


def _row_maxima(x: jax.Array) -> jax.Array:
  """Maxima [a] of x [a, b], NaN where one is.

  The compiled `jnp.max` of 4,096 numbers or more may drop a NaN; this is as
  fast.
  """

  def larger(a, b):
    return jnp.where((a >= b) | (a != a), a, b)

  return lax.reduce(lax.stop_gradient(x), _lowest(x.dtype), larger, (1,))


def top_k(
  scores: jax.Array, k: int, *, width: int = _WIDTH
) -> tuple[jax.Array, jax.Array]:
  """The k largest scores, through the maxima of blocks.

  An entry that belongs to the answer lies in one of the k blocks with the
  largest maxima (otherwise k others would precede it), so only k * width
  entries are sorted; the rest is one vectorized pass. NaN sorts first, so that
  it is visible.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> ops.top_k(jnp.array([1.0, 3.0, 2.0, 3.0]), 2)
  (Array([3., 3.], dtype=float32), Array([1, 3], dtype=int32))

  Args:
    scores: [n]; vmap over queries.
    k: how many to return, 1 <= k <= n.
    width: entries in a block.

  Returns:
    Values [k] in falling order and their indices int32 [k]; equal values in
    rising order of index.

  Raises:
    ValueError: if k is not between 1 and n.
  """
  chex.assert_rank(scores, 1)
  n = scores.shape[0]
  _check_k(k, n)
  blocks = -(-n // width)
  if blocks <= k:
    values, indices = lax.top_k(_plain_zero(scores), k)
    return values, indices.astype(jnp.int32)
  # Padding comes after every real entry, so it loses all ties.
  padded = jnp.pad(
    scores, (0, blocks * width - n), constant_values=_lowest(scores.dtype)
  ).reshape(blocks, width)
  _, chosen = lax.top_k(_plain_zero(_row_maxima(padded)), k)
  # Rising block order makes position order equal index order.
  chosen = jnp.sort(chosen)
  candidates = _plain_zero(padded[chosen]).reshape(-1)
  values, positions = lax.top_k(candidates, k)
  indices = chosen[positions // width] * width + positions % width
  return values, indices.astype(jnp.int32)


def collected_top_k(
  values: jax.Array, indices: jax.Array, k: int, axes: tuple[str, ...]
) -> tuple[jax.Array, jax.Array]:
  """The k best of all devices' lists; call it inside `shard_map`.

  Args:
    values: floating, this device's best for each of b queries, [b, a].
    indices: their indices among all items, int32 [b, a].
    k: how many to keep, at most a times the number of devices.
    axes: of the mesh that the items go over.

  Returns:
    Values [b, k] and indices [b, k], ordered as in `top_k`, the same on all
    devices. Each device sends [b, a].
  """
  chex.assert_rank([values, indices], 2)
  values = lax.all_gather(_plain_zero(values), axes, axis=1, tiled=True)
  indices = lax.all_gather(indices, axes, axis=1, tiled=True)
  _check_k(k, values.shape[1])
  falling, indices = lax.sort((-values, indices), dimension=1, num_keys=2)
  return -falling[:, :k], indices[:, :k]


def sharded_top_k(
  scores: jax.Array, k: int, *, mesh: Mesh
) -> tuple[jax.Array, jax.Array]:
  """`top_k` of b queries whose scores are sharded over a mesh.

  >>> import jax, jax.numpy as jnp, numpy as np
  >>> from repr_jax import ops
  >>> mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("items",))
  >>> ops.sharded_top_k(jnp.array([[1.0, 3.0, 2.0]]), 2, mesh=mesh)
  (Array([[3., 2.]], dtype=float32), Array([[1, 2]], dtype=int32))

  Args:
    scores: floating, [b, n], with n over all axes of the mesh.
    k: how many to return, 1 <= k <= n.
    mesh: the mesh (static).

  Returns:
    Values [b, k] and indices int32 [b, k], on all devices.
  """
  chex.assert_rank(scores, 2)
  _check_k(k, scores.shape[1])
  axes = mesh.axis_names

  def local(part):
    best = functools.partial(top_k, k=min(k, part.shape[1]))
    values, indices = jax.vmap(best)(part)
    start = lax.axis_index(axes) * part.shape[1]
    return collected_top_k(values, start + indices, k, axes)

  one = PartitionSpec(None, axes)
  both = PartitionSpec(), PartitionSpec()
  return meshes.shard_map(local, mesh, (one,), both)(scores)

"""Exact top-k along long axes, in blocks.

Ties are broken by the lowest index everywhere, so that the same scores give
the same list on every backend and for every block width.
"""

import functools
from collections.abc import Callable

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

  The compiled `jnp.max` of 4,096 numbers or more may pass over a NaN; this
  is as fast.
  """

  def larger(a, b):
    return jnp.where((a >= b) | (a != a), a, b)

  return lax.reduce(lax.stop_gradient(x), _lowest(x.dtype), larger, (1,))


@functools.partial(jax.jit, static_argnames=("k", "width"))
def top_k(
  scores: jax.Array, k: int, *, width: int = _WIDTH
) -> tuple[jax.Array, jax.Array]:
  """The k largest scores, through the maxima of blocks.

  An entry that belongs to the answer lies in one of the k blocks with the
  largest maxima (otherwise k others would precede it), so only k * width
  entries are sorted; the rest is one vectorized pass. A NaN sorts first:
  it shows instead of hiding.

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


def merge_top_k(
  left: tuple[jax.Array, jax.Array],
  right: tuple[jax.Array, jax.Array],
  k: int,
) -> tuple[jax.Array, jax.Array]:
  """The k best of two lists, such as those of two shards.

  Args:
    left: values [a], floating, and their indices [a], in any order.
    right: values [b] and indices [b].
    k: how many to keep, at most a + b.

  Returns:
    Values [k] and indices [k], ordered as in `top_k`.
  """
  chex.assert_rank([*left, *right], 1)
  _check_k(k, left[0].shape[0] + right[0].shape[0])
  values = jnp.concatenate([left[0], right[0]])
  indices = jnp.concatenate([left[1], right[1]])
  falling, indices = lax.sort((-_plain_zero(values), indices), num_keys=2)
  return -falling[:k], indices[:k]


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
    devices. What moves is [b, a] from each device.
  """
  chex.assert_rank([values, indices], 2)
  values = lax.all_gather(_plain_zero(values), axes, axis=1, tiled=True)
  indices = lax.all_gather(indices, axes, axis=1, tiled=True)
  _check_k(k, values.shape[1])
  falling, indices = lax.sort((-values, indices), dimension=1, num_keys=2)
  return -falling[:, :k], indices[:, :k]


@functools.partial(jax.jit, static_argnames=("k", "mesh"))
def sharded_top_k(
  scores: jax.Array, k: int, *, mesh: Mesh
) -> tuple[jax.Array, jax.Array]:
  """`top_k` of scores that go over the devices of a mesh.

  Args:
    scores: of b queries, floating, [b, n], with n over all axes of the mesh.
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


def streamed_top_k(
  score_block: Callable[[jax.Array], jax.Array],
  n: int,
  k: int,
  *,
  block: int,
  dtype: jax.typing.DTypeLike = jnp.float32,
) -> tuple[jax.Array, jax.Array]:
  """Top-k of n scores of which only `block` exist at a time.

  For scores that would not fit, such as those of many queries against half
  a million words: memory is block + k numbers for each query.

  Args:
    score_block: maps item ids int32 [block] to scores [block]; ids past the
      end are clipped to n - 1 and their scores ignored.
    n: number of items.
    k: how many to return, 1 <= k <= n.
    block: items scored at a time.
    dtype: of the scores, floating.

  Returns:
    Values [k] and indices int32 [k], as `top_k` of the whole row.

  Raises:
    ValueError: if k is not between 1 and n.
  """
  _check_k(k, n)
  block = min(block, n)

  def step(best, start):
    ids = start + jnp.arange(block, dtype=jnp.int32)
    scores = score_block(jnp.minimum(ids, n - 1))
    chex.assert_shape(scores, (block,))
    scores = jnp.where(ids < n, scores.astype(dtype), -jnp.inf)
    values, positions = top_k(scores, min(k, block))
    return merge_top_k(best, (values, start + positions), k), None

  # Index n loses the tie against a real -inf.
  nothing = jnp.full(k, -jnp.inf, dtype), jnp.full(k, n, jnp.int32)
  starts = jnp.arange(0, n, block, dtype=jnp.int32)
  best, _ = lax.scan(step, nothing, starts)
  return best

"""Random orders of many items, without a sort.

A sort of 10^5 random keys takes tens of milliseconds on a CPU, more than a
whole pass of training over as many facts. Here place i gets the item that a
keyed Feistel network maps it to. The network permutes the 2^b numbers of b
bits; a number beyond the last item is mapped again until it falls among them
("cycle walking"), which permutes the items. The order serves training; it is
not random enough for cryptography.
"""

import jax
import jax.numpy as jnp
from jax import lax

_ROUNDS = 6
_SORTED = 1024  # up to here a sort is cheap, and all orders are equally likely


def random_order(key: jax.Array, count: int) -> jax.Array:
  """A random order of items 0 to count - 1.

  Args:
    count: how many items, at most 2^31 - 1 (static).

  Returns:
    Each item once, int32 [count].
  """
  if count <= _SORTED:
    return jax.random.permutation(key, count).astype(jnp.int32)
  bits = (count - 1).bit_length()
  keys = jax.random.bits(key, (_ROUNDS,), jnp.uint32)
  limit = jnp.uint32(count)

  def again(place):
    return jnp.where(place >= limit, _network(keys, bits, place), place)

  order = _network(keys, bits, jnp.arange(count, dtype=jnp.uint32))
  order = lax.while_loop(lambda x: jnp.any(x >= limit), again, order)
  return order.astype(jnp.int32)


def _network(keys: jax.Array, bits: int, place: jax.Array) -> jax.Array:
  """A permutation of the numbers of `bits` bits, uint32 [n]."""
  low = bits // 2
  low_mask = jnp.uint32((1 << low) - 1)
  high_mask = jnp.uint32((1 << (bits - low)) - 1)
  left, right = place >> low, place & low_mask
  for i in range(_ROUNDS):
    if i % 2:
      right = right ^ (_mix(left + keys[i]) & low_mask)
    else:
      left = left ^ (_mix(right + keys[i]) & high_mask)
  return (left << low) | right


def _mix(x: jax.Array) -> jax.Array:
  """Murmur3's last step: every bit of x moves about half of the result's."""
  x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
  x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
  return x ^ (x >> 16)

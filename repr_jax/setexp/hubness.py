"""Hubs: entities that are near to many others and answer many queries.

    crowding(x) = mean of the k largest cosines between x and other entities

Subtracting a multiple of an entity's crowding from its cosine ranks entities of
sparse regions higher. This is cross-domain similarity local scaling (Conneau et
al. 2018); its term of the query changes no rank.
"""

import jax
import jax.numpy as jnp
from jax import lax

from repr_jax.ops import topk
from repr_jax.ops.precision import chosen_products

NEIGHBORS = 100
_REFERENCES = 8192  # most entities among which neighbors are searched
_BLOCK = 64  # rows whose cosines are held at once


@chosen_products
def crowding(
  units: jax.Array, entities: jax.Array, places: jax.Array
) -> jax.Array:
  """Mean cosine of rows to their nearest entities.

  Above 8,192 entities, neighbors are searched in a sample of every second,
  third, ... entity, and their number shrinks in proportion.

  >>> import jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> units = jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
  >>> setexp.crowding(units, units, jnp.arange(3)).tolist()
  [0.0, 0.5, 0.5]

  Args:
    units: vectors of length 1, or 0, [s, d].
    entities: such vectors of all entities, [X, d].
    places: index in `entities` of each row of `units`, which is left out of
      its neighbors, int32 [s]; -1 if the row is not an entity.

  Returns:
    Means over the neighbors, [s]; up to 8,192 entities, over min(100, X - 1).
  """
  size = entities.shape[0]
  step = -(-size // _REFERENCES)
  references, own = entities[::step], jnp.arange(0, size, step)
  number = own.shape[0]
  k = max(1, min(number - 1, round(NEIGHBORS * number / size)))

  def one(row):
    unit, place = row
    cosines = jnp.where(own == place, -1, references @ unit)
    return jnp.mean(topk.top_k(cosines, k)[0])

  return lax.map(one, (units, places), batch_size=_BLOCK)

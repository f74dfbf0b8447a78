"""Ranking by the cosine between concepts.

    score(Q, x) = cos(mean_x - c, q),  q = sum over Q of tau u_x,

where mean_x is the mean of q(z | x), c the mean of these over all entities and
u_x is mean_x - c scaled to length 1. Distances of natural parameters grow with
the number of an entity's features; the cosine ignores lengths. With the pooling
"product", q is the mean of the product of experts less c. With "merged" it is
that of one entity that has all members' features.

If the encoder is linear, mean_x is a sum over features, and so is the score:
feature i with input a_i adds a_i (T_i M) . q / |mean_x - c|, T the first layer
and M the head. The rest, (bias - c) . q / |mean_x - c|, is a constant.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from repr_jax.ops.precision import chosen_products
from repr_jax.setexp import autoencoder
from repr_jax.setexp.rows import Rows, Table


class Side(NamedTuple):
  """The entities' side of the score.

  Attributes:
    center: mean over the entities, [d].
    lengths: distance of each entity to the center, [X].
    inputs: the encoder's inputs of the entities, for contributions; None if
      the encoder is not linear.
  """

  center: jax.Array
  lengths: jax.Array
  inputs: Table | None


def prepare(means: jax.Array, inputs: Table | None = None) -> Side:
  """The side of entities with means [d, X]."""
  center = jnp.mean(means, axis=1)
  return Side(center, lengths(means - center[:, None]), inputs)


@chosen_products
def direction(
  center: jax.Array, means: jax.Array, weights: jax.Array
) -> jax.Array:
  """The query of members, each with the same influence whatever its length.

  Args:
    center: [d].
    means: of the members, [q, d]; any where the weight is 0.
    weights: signed, [q].

  Returns:
    A vector of length 1, or 0, [d].
  """
  apart = jnp.where((weights != 0)[:, None], means - center, 0)
  units = apart / lengths(apart.T)[:, None]
  return unit(weights @ units)


def unit(x: jax.Array) -> jax.Array:
  """A vector [d] scaled to length 1; 0 stays."""
  return x / lengths(x)


@chosen_products
def scores(side: Side, means: jax.Array, query: jax.Array) -> jax.Array:
  """Cosines of entities.

  Args:
    side: the center, and the lengths of these entities.
    means: [d, X].
    query: of length 1, [d].

  Returns:
    [X].
  """
  return (query @ means - query @ side.center) / side.lengths


@chosen_products
def feature_parts(
  params: autoencoder.Params, side: Side, query: jax.Array, row: Rows, place
) -> tuple[jax.Array, jax.Array]:
  """Parts of the cosine of one entity, if the encoder is linear.

  Args:
    params: of a model with a linear encoder.
    side: of the entities.
    query: of length 1, [d].
    row: the entity's features and the encoder's inputs, fields [m].
    place: the entity's row in the table.

  Returns:
    What each feature adds, [m], and the constant, [].
  """
  head = params.encoder["mean"]
  back = head["kernel"] @ query
  length = side.lengths[place]
  features = params.table.shape[0]
  inside = (row.indices >= 0) & (row.indices < features)
  at = jnp.where(inside, row.indices, 0)
  parts = jnp.where(inside, row.counts, 0) * (params.table[at] @ back)
  rest = params.encoder["bias"] @ back + (head["bias"] - side.center) @ query
  return parts / length, rest / length


def lengths(x: jax.Array) -> jax.Array:
  """Lengths of columns, [X] of [d, X]; 1 where one is 0."""
  square = jnp.sum(x * x, axis=0)
  return jnp.sqrt(jnp.where(square > 0, square, 1))

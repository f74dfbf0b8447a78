"""Ranking by the cosine between concepts.

    score(Q, x) = cos(mean_x - c, q),  q = sum over Q of tau u_x,

where mean_x is the mean of q(z | x), c the mean of these over all entities and
u_x is mean_x - c scaled to length 1. Distances of natural parameters grow with
the number of an entity's features; the cosine ignores lengths. With the pooling
"product", q is the mean of the product of experts less c. With "merged", q is
the mean of one entity that has all members' features, less c.

`fit` weights dimension j by a power of its reliability v_j / (v_j + s_j). Here
v_j is the variance of posterior means over entities and s_j the mean posterior
variance. It also subtracts `hubness` times an entity's crowding from its score.

If the encoder is linear, mean_x is a sum over features, and so is the score:
feature i with input a_i adds a_i (T_i M) . q / |mean_x - c|, T the first layer
and M the head. The rest, (bias - c) . q / |mean_x - c|, is a constant.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from repr_jax.ops.precision import chosen_products
from repr_jax.setexp import autoencoder, gaussian_scores
from repr_jax.setexp.hubness import crowding
from repr_jax.setexp.rows import Rows, Table


class Side(NamedTuple):
  """The entities' side of the score.

  Attributes:
    center: mean over the entities, [d].
    lengths: distance of each entity to the center, [X].
    inputs: the encoder's inputs of the entities, for contributions; None if
      the encoder is not linear.
    scale: weights of the dimensions, [d].
    hubness: factor of the crowding that is subtracted, [].
    crowding: of the entities, [X]; 0 if `hubness` is 0.
  """

  center: jax.Array
  lengths: jax.Array
  inputs: Table | None
  scale: jax.Array
  hubness: jax.Array
  crowding: jax.Array


def prepare(means: jax.Array, inputs: Table | None = None) -> Side:
  """The side of entities with means [d, X], all dimensions weighted 1."""
  center = jnp.mean(means, axis=1)
  length = lengths(means - center[:, None])
  nothing = jnp.zeros_like(length)
  return Side(
    center, length, inputs, jnp.ones_like(center), nothing[0], nothing
  )


def fit(
  side: Side,
  entities: gaussian_scores.Side,
  reliability: jax.Array | float,
  hubness: jax.Array | float,
) -> Side:
  """The side with weights of dimensions and crowding.

  Args:
    side: from `prepare`.
    entities: Gaussians of the X entities.
    reliability: exponent of the dimensions' reliability, []; 0 weights all
      equally.
    hubness: factor of the crowding that is subtracted, []; 0 for none.

  Returns:
    The side, with `scale` [d] and `crowding` [X].
  """
  signal = jnp.var(entities.mean, axis=1)
  noise = jnp.mean(1 / entities.precision, axis=1)
  scale = (signal / jnp.maximum(signal + noise, 1e-30)) ** reliability
  length = lengths((entities.mean - side.center[:, None]) * scale[:, None])
  fitted = side._replace(
    lengths=length, scale=scale, hubness=jnp.asarray(hubness, scale.dtype)
  )
  units = _units(fitted, entities.mean, length)
  crowded = lax.cond(
    fitted.hubness != 0,
    lambda: crowding(units, units, jnp.arange(units.shape[0])),
    lambda: jnp.zeros_like(length),
  )
  return fitted._replace(crowding=crowded)


def of_rows(
  side: Side, entities: gaussian_scores.Side, means: jax.Array
) -> Side:
  """The side of rows that are not among the entities.

  Args:
    means: of the rows, [d, s].

  Returns:
    Lengths and crowding of the rows, [s].
  """
  length = lengths((means - side.center[:, None]) * side.scale[:, None])
  crowded = lax.cond(
    side.hubness != 0,
    lambda: crowding(
      _units(side, means, length),
      _units(side, entities.mean, side.lengths),
      jnp.full(length.shape, -1),
    ),
    lambda: jnp.zeros_like(length),
  )
  return side._replace(lengths=length, inputs=None, crowding=crowded)


def _units(side: Side, means: jax.Array, length: jax.Array) -> jax.Array:
  """Scaled vectors [X, d] of means [d, X] with known lengths [X]."""
  return ((means - side.center[:, None]) * side.scale[:, None] / length).T


@chosen_products
def direction(side: Side, means: jax.Array, weights: jax.Array) -> jax.Array:
  """The query vector; a member's influence does not depend on its length.

  Args:
    means: of the members, [q, d]; any where the weight is 0.
    weights: signed, [q].

  Returns:
    A vector of length 1, or 0, [d].
  """
  apart = (means - side.center) * side.scale
  apart = jnp.where((weights != 0)[:, None], apart, 0)
  units = apart / lengths(apart.T)[:, None]
  return unit(weights @ units)


def toward(side: Side, mean: jax.Array) -> jax.Array:
  """The query vector of a mean [d], scaled to length 1, [d]."""
  return unit((mean - side.center) * side.scale)


def unit(x: jax.Array) -> jax.Array:
  """A vector [d] scaled to length 1; 0 stays 0."""
  return x / lengths(x)


@chosen_products
def scores(side: Side, means: jax.Array, query: jax.Array) -> jax.Array:
  """Cosines of entities, less `hubness` times their crowding.

  Args:
    means: [d, X].
    query: of length 1, [d].

  Returns:
    [X].
  """
  scaled = query * side.scale
  cosines = (scaled @ means - scaled @ side.center) / side.lengths
  return cosines - side.hubness * side.crowding


@chosen_products
def feature_parts(
  params: autoencoder.Params, side: Side, query: jax.Array, row: Rows, place
) -> tuple[jax.Array, jax.Array]:
  """Parts of the cosine of one entity, if the encoder is linear.

  Args:
    query: of length 1, [d].
    row: the entity's features and the encoder's inputs, fields [m].
    place: the entity's row in the table.

  Returns:
    The part of each feature, [m], and the constant, [].
  """
  head = params.encoder["mean"]
  scaled = query * side.scale
  back = head["kernel"] @ scaled
  length = side.lengths[place]
  features = params.table.shape[0]
  inside = (row.indices >= 0) & (row.indices < features)
  at = jnp.where(inside, row.indices, 0)
  parts = jnp.where(inside, row.counts, 0) * (params.table[at] @ back)
  rest = params.encoder["bias"] @ back + (head["bias"] - side.center) @ scaled
  return parts / length, rest / length - side.hubness * side.crowding[place]


def lengths(x: jax.Array) -> jax.Array:
  """Lengths of the columns of [d, X], [X]; 1 for a zero column."""
  square = jnp.sum(x * x, axis=0)
  return jnp.sqrt(jnp.where(square > 0, square, 1))

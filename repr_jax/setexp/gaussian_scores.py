"""Seven scores of an entity for a query, between their Gaussians (thesis 4.5).

- "xi": -|xi_Q - xi_x|^2, the thesis' choice (eq. 4.10);
- "kl_query": -KL(q_Q || q_x);
- "kl_entity": -KL(q_x || q_Q);
- "kl_symmetric": the sum of both;
- "product_kernel": log int q_Q q_x dz;
- "mean": -|mean_Q - mean_x|^2;
- "bayes": log int q_Q q_x / prior dz, the ratio of Bayesian Sets (below).

A vector of seven traced weights selects scores or mixes them. Five scores are
products of query vectors with matrices of the entities, plus constants. Their
sum takes at most four matrix products; products that no score needs are
skipped. Each score is a sum over the d coordinates; `parts` gives its terms.
Entities are columns: the layout that a single query reads fastest.

Bayesian Sets ranks by log p(x, Q) - log p(x) - log p(Q), where all members
share one concept z. Each log p(.) alone is bounded by an ELBO; in the ratio,
Bayes' rule p(x | z) = p(z | x) p(x) / p(z) removes the evidence terms, and
what remains is log int p(z | x) p(z | Q) / p(z) dz, exactly. With q for the
posteriors (the step that turns an evidence into an ELBO) it has the closed form
of `ops.gaussian.log_evidence_ratio`. q_Q is the product of experts as
everywhere else, which counts the prior once for each member.
"""

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax import lax

from repr_jax.ops import gaussian
from repr_jax.ops.precision import chosen_products

SCORES = (
  "xi",
  "kl_query",
  "kl_entity",
  "kl_symmetric",
  "product_kernel",
  "mean",
  "bayes",
)


# Fields of `Side` that "xi", "mean", "kl_query" and "kl_entity" read. A sum of
# scores that needs only one such group adds no zeros.
_GROUPS = ((0,), (2,), (0, 1), (2, 3))


class Side(NamedTuple):
  """The entities' side of all scores, computed once for all queries.

  Attributes:
    xi: natural parameter, [d, X].
    precision: [d, X].
    mean: [d, X].
    square: variance plus squared mean, [d, X].
    constants: terms of four scores that do not depend on the query, [4, X].
  """

  xi: jax.Array
  precision: jax.Array
  mean: jax.Array
  square: jax.Array
  constants: jax.Array


class _QuerySide(NamedTuple):
  """The query's side: vectors [d] that meet the fields of `Side`."""

  xi: jax.Array
  precision: jax.Array
  mean: jax.Array
  square: jax.Array
  constants: jax.Array  # weights of the constants, [4]
  own: jax.Array  # terms that do not depend on the entity, [d]


def entity_side(entities: gaussian.Natural) -> Side:
  """Prepares entities.

  Args:
    entities: natural parameters, fields [d, X].
  """
  chex.assert_rank([*entities], 2)
  mean, variance = gaussian.to_moments(entities)
  constants = jnp.sum(_constants(entities), axis=1)
  square = variance + mean * mean
  return Side(*entities, mean, square, constants)


@chosen_products
def scores(
  weights: jax.Array, prior_variance: float, query: gaussian.Natural, side: Side
) -> jax.Array:
  """Scores of all entities for one query; vmap over queries.

  Args:
    weights: of the scores in the order of `SCORES`, [7].
    query: natural parameters, fields [d].

  Returns:
    Higher is better, [X]; a score that overflows is the lowest number.
  """
  chex.assert_rank([weights, *query], 1)
  ours = _query_side(weights, query)
  base = ours.constants @ side.constants + jnp.sum(ours.own)
  # Conditions on the weights, which vmap over queries does not batch, stay
  # conditions. Conditions on the query would compute both branches.
  natural, forward, backward, both, _, means, _ = weights != 0
  used = jnp.stack(
    [
      natural | forward | both,
      forward | both,
      means | backward | both,
      backward | both,
    ]
  )
  entries = {x: weights[SCORES.index(x)] for x in _BY_ENTRY}

  def of(group):
    return finite(base + sum(ours[i] @ side[i] for i in group))

  def of_any():
    # Each part that is not needed costs the writing of zeros.
    total, nothing = base, jnp.zeros_like(base)
    for needed, vector, matrix in zip(used, ours[:4], side[:4]):
      total += lax.cond(
        needed, lambda x, y: x @ y, lambda x, y: nothing, vector, matrix
      )
    entities = gaussian.Natural(side.xi, side.precision)
    for name, weight in entries.items():
      terms = functools.partial(
        _BY_ENTRY[name], query, entities, prior_variance
      )
      total += lax.cond(
        weight != 0,
        lambda terms=terms, weight=weight: weight * jnp.sum(terms(), axis=0),
        lambda: nothing,
      )
    return finite(total)

  outside = [used.at[jnp.array(group)].set(False) for group in _GROUPS]
  by_entry = jnp.any(jnp.stack(list(entries.values())) != 0)
  fits = [~jnp.any(x) & ~by_entry for x in outside]
  return lax.switch(
    jnp.argmax(jnp.stack([*fits, True])),
    [*(functools.partial(of, group) for group in _GROUPS), of_any],
  )


@chosen_products
def parts(
  weights: jax.Array,
  prior_variance: float,
  query: gaussian.Natural,
  entity: gaussian.Natural,
) -> jax.Array:
  """Splits the score of one entity over coordinates.

  Args:
    weights: of the scores, [7].
    query: natural parameters, fields [d].
    entity: natural parameters, fields [d].

  Returns:
    Terms that sum to the score, [d].
  """
  column = gaussian.Natural(*(x[:, None] for x in entity))
  side = entity_side(column)
  ours = _query_side(weights, query)
  total = ours.own + ours.constants @ _constants(column)[..., 0]
  for vector, matrix in zip(ours[:4], side[:4]):
    total += vector * matrix[:, 0]
  for name, terms in _BY_ENTRY.items():
    weight = weights[SCORES.index(name)]
    total += _times(weight, terms(query, column, prior_variance)[:, 0])
  return total


def finite(x: jax.Array) -> jax.Array:
  """Scores [X], with the lowest or highest number for one that overflows."""
  lowest = jnp.finfo(x.dtype).min
  return jnp.nan_to_num(x, nan=lowest, posinf=-lowest, neginf=lowest)


def _constants(entities):
  """Terms of each coordinate that do not depend on the query, [4, d, X]."""
  mean, variance = gaussian.to_moments(entities)
  return jnp.stack(
    [
      -entities.xi * entities.xi,
      -mean * mean,
      # Both KL divergences are worked out in the tests.
      -0.5 * (mean * entities.xi + jnp.log(variance)),
      0.5 * jnp.log(variance),
    ]
  )


def _times(weight, x):
  # A weight of 0 gives 0, also for an infinite x.
  return jnp.where(weight != 0, weight * x, 0)


def _query_side(weights, query) -> _QuerySide:
  mean, variance = gaussian.to_moments(query)
  xi, precision = query.xi, 1 / variance
  natural, forward, backward, both, _, means, _ = weights
  forward, backward = forward + both, backward + both
  own = (
    _times(natural, -xi * xi)
    + _times(means, -mean * mean)
    + _times(forward, 0.5 * (jnp.log(variance) + 1))
    + _times(backward, -0.5 * (mean * xi + jnp.log(variance) - 1))
  )
  return _QuerySide(
    _times(natural, 2 * xi) + _times(forward, mean),
    _times(forward, -0.5 * (variance + mean * mean)),
    _times(means, 2 * mean) + _times(backward, xi),
    _times(backward, -0.5 * precision),
    jnp.stack([natural, means, forward, backward]),
    own,
  )


def _kernel_terms(query, entities, prior_variance):
  del prior_variance
  mean, variance = (x[:, None] for x in gaussian.to_moments(query))
  means, variances = gaussian.to_moments(entities)
  kernel = _each_coordinate(gaussian.log_product_kernel)
  return kernel(mean, variance, means, variances)


def _ratio_terms(query, entities, prior_variance):
  def ratio(xi, precision, other, precisions):
    return gaussian.log_evidence_ratio(
      gaussian.Natural(xi, precision),
      gaussian.Natural(other, precisions),
      prior_variance,
    )

  return _each_coordinate(ratio)(*(x[:, None] for x in query), *entities)


def _each_coordinate(function):
  """A function of Gaussians [d] as one of single coordinates, elementwise."""

  def one(*scalars):
    return function(*(x[None] for x in scalars))

  def elementwise(*arrays):
    shape = jnp.broadcast_shapes(*(x.shape for x in arrays))
    flat = [jnp.broadcast_to(x, shape).ravel() for x in arrays]
    return jax.vmap(one)(*flat).reshape(shape)

  return elementwise


_BY_ENTRY = {"product_kernel": _kernel_terms, "bayes": _ratio_terms}

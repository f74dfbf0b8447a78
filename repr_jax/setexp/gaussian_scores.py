"""Seven scores of an entity for a query, between their Gaussians (thesis 4.5).

- "xi": -|xi_Q - xi_x|^2, the thesis' choice (eq. 4.10);
- "kl_query": -KL(q_Q || q_x);
- "kl_entity": -KL(q_x || q_Q);
- "kl_symmetric": the sum of both;
- "product_kernel": log int q_Q q_x dz;
- "mean": -|mean_Q - mean_x|^2;
- "bayes": log int q_Q q_x / prior dz, the ratio of Bayesian Sets (below).

Five of them are a product of a vector of the query with a matrix of the
entities [k, X] plus constants, so that many queries are one matrix product.
Entities are columns: the layout that a single query reads fastest.

Bayesian Sets ranks by log p(x, Q) - log p(x) - log p(Q), where all members
share one concept z. Each log p(.) alone is bounded by an ELBO; in the ratio,
Bayes' rule p(x | z) = p(z | x) p(x) / p(z) removes the evidence terms, and
what remains is log int p(z | x) p(z | Q) / p(z) dz, exactly. With q for the
posteriors (the step that makes an ELBO of an evidence) it has the closed form
of `ops.gaussian.log_evidence_ratio`. q_Q is the product of experts as
everywhere else, which counts the prior once for each member.
"""

import chex
import jax
import jax.numpy as jnp

from repr_jax import errors
from repr_jax.ops import gaussian

RANKINGS = (
  "xi",
  "kl_query",
  "kl_entity",
  "kl_symmetric",
  "product_kernel",
  "mean",
  "bayes",
)


def check(ranking: str) -> str:
  """The name of a score, if there is such a one; `InputError` otherwise."""
  if ranking not in RANKINGS:
    raise errors.InputError(
      f"there is no ranking score {ranking!r}; there are {', '.join(RANKINGS)}"
    )
  return ranking


def entity_side(
  ranking: str, entities: gaussian.Natural
) -> tuple[jax.Array, jax.Array]:
  """What a score needs of the entities, computed once for all queries.

  Args:
    ranking: one of `RANKINGS`.
    entities: natural parameters, fields [d, X].

  Returns:
    Matrix [k, X] and constants [X].
  """
  chex.assert_rank([*entities], 2)
  xi, precision = entities
  mean, variance = gaussian.to_moments(entities)
  if ranking == "xi":
    return xi, -jnp.sum(xi * xi, axis=0)
  if ranking == "mean":
    return mean, -jnp.sum(mean * mean, axis=0)
  # Both KL divergences and the last constant are worked out in the tests.
  from_query = -0.5 * jnp.sum(mean * xi + jnp.log(variance), axis=0)
  from_entity = 0.5 * jnp.sum(jnp.log(variance), axis=0)
  square = variance + mean * mean
  if ranking == "kl_query":
    return jnp.concatenate([precision, xi]), from_query
  if ranking == "kl_entity":
    return jnp.concatenate([square, mean]), from_entity
  if ranking == "kl_symmetric":
    matrix = jnp.concatenate([precision, xi, square, mean])
    return matrix, from_query + from_entity
  if ranking == "product_kernel":
    return jnp.concatenate([mean, variance]), jnp.zeros_like(from_query)
  return jnp.concatenate([xi, precision]), jnp.zeros_like(from_query)


def scores(
  ranking: str,
  prior_variance: float,
  query: gaussian.Natural,
  matrix: jax.Array,
  constants: jax.Array,
) -> jax.Array:
  """Scores of all entities for one query; vmap over queries.

  Args:
    ranking: one of `RANKINGS`.
    prior_variance: of the concepts.
    query: natural parameters, fields [d].
    matrix: from `entity_side`, [k, X].
    constants: from `entity_side`, [X].

  Returns:
    Higher is better, [X]; what overflows counts as the lowest number.
  """
  chex.assert_rank([*query, matrix, constants], [1, 1, 2, 1])
  if ranking in ("product_kernel", "bayes"):
    found = _by_entry(ranking, prior_variance, query, matrix)
  else:
    vector, constant = _query_side(ranking, query)
    found = vector @ matrix + constants + constant
  lowest = jnp.finfo(found.dtype).min
  return jnp.nan_to_num(found, nan=lowest, posinf=-lowest, neginf=lowest)


def _query_side(ranking, query):
  """Vector [k] and constant of a query."""
  mean, variance = gaussian.to_moments(query)
  xi, precision = query.xi, 1 / variance
  if ranking == "xi":
    return 2 * xi, -jnp.sum(xi * xi)
  if ranking == "mean":
    return 2 * mean, -jnp.sum(mean * mean)
  from_query = jnp.concatenate([-0.5 * (variance + mean * mean), mean])
  from_entity = jnp.concatenate([-0.5 * precision, xi])
  query_constant = 0.5 * jnp.sum(jnp.log(variance) + 1)
  entity_constant = -0.5 * jnp.sum(mean * xi + jnp.log(variance) - 1)
  if ranking == "kl_query":
    return from_query, query_constant
  if ranking == "kl_entity":
    return from_entity, entity_constant
  vector = jnp.concatenate([from_query, from_entity])
  return vector, query_constant + entity_constant


def _by_entry(ranking, prior_variance, query, matrix):
  """The two scores that are no matrix product, [X]."""
  left, right = jnp.split(matrix, 2)
  if ranking == "bayes":

    def ratio(xi, precision):
      entity = gaussian.Natural(xi, precision)
      return gaussian.log_evidence_ratio(query, entity, prior_variance)

    return jax.vmap(ratio, in_axes=1)(left, right)
  moments = gaussian.to_moments(query)
  return jax.vmap(
    lambda mean, variance: gaussian.log_product_kernel(
      *moments, mean, variance
    ),
    in_axes=1,
  )(left, right)

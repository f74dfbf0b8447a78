"""Tables of a knowledge base and the scores of its facts.

The functions take a model as an object or by its name; `score_models` has
the built-in ones.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.errors import InputError
from repr_jax.kb.score_model import Query, ScoreModel
from repr_jax.kb.score_models import get_model
from repr_jax.ops.precision import chosen_products


class Params(NamedTuple):
  """Vectors of a knowledge base: entities [E, d] and relations [R, p]."""

  entities: jax.Array
  relations: jax.Array


def init_params(
  model: ScoreModel | str,
  key: jax.Array,
  num_entities: int,
  num_relations: int,
  dim: int,
  scale: jax.Array | float = 0.1,
  dtype: jnp.dtype = jnp.float32,
) -> Params:
  """Random tables: normal of standard deviation `scale`.

  >>> import jax
  >>> from repr_jax import kb
  >>> params = kb.init_params("B", jax.random.key(0), 5, 2, dim=4)
  >>> params.entities.shape, params.relations.shape
  ((5, 4), (2, 8))

  Args:
    model: a score model or its name.
    key: random key.
    num_entities: E.
    num_relations: R.
    dim: d, numbers per entity.
    scale: standard deviation of each number, finite.
    dtype: type of the tables.

  Returns:
    Entities [E, d] and relations [R, p].
  """
  if not isinstance(scale, jax.core.Tracer) and not np.isfinite(scale):
    raise InputError(f"the scale of the start must be finite, not {scale}")
  size = get_model(model).relation_size(dim)
  key_e, key_r = jax.random.split(key)
  return Params(
    scale * jax.random.normal(key_e, (num_entities, dim), dtype),
    scale * jax.random.normal(key_r, (num_relations, size), dtype),
  )


def check_tables(params: Params) -> None:
  """Refuses tables with a value that is not finite, on the host.

  Args:
    params: entities [E, d] and relations [R, p].

  Raises:
    InputError: names the table and the row.
  """
  for name, table in params._asdict().items():
    bad = np.flatnonzero(~np.isfinite(np.asarray(table)).all(axis=1))
    if bad.size:
      raise InputError(
        f"row {bad[0]} of the table of {name} is not finite; start from finite "
        "tables, and train with a lower rate if training made it so"
      )


@chosen_products
def score(
  model: ScoreModel | str, relation: jax.Array, head: jax.Array, tail: jax.Array
) -> jax.Array:
  """Score of one fact (thesis table 5.3).

  Distances are taken directly, not by expanding the square, so that a fact
  that fits exactly scores exactly 0.

  >>> import jax.numpy as jnp
  >>> from repr_jax import kb
  >>> r, e, f = jnp.array([1.0, 0.0]), jnp.array([3.0, 1.0]), jnp.ones(2)
  >>> print(kb.score("T", r, e, f))  # -norm2(r - (e - f))
  -1.0

  Args:
    model: a score model or its name.
    relation: [p].
    head: [d].
    tail: [d].

  Returns:
    The score, a scalar.
  """
  chex.assert_rank([relation, head, tail], [1, 1, 1])
  return get_model(model).score(relation, head, tail)


def score_all_tails(
  model: ScoreModel | str,
  relation: jax.Array,
  head: jax.Array,
  entities: jax.Array,
  squares: jax.Array | None = None,
) -> jax.Array:
  """Scores of every entity as the tail: one matrix product.

  The score of z is <q, z> + c - w norm2(z), with q and c of the query
  (r, (e, ?)) (thesis table 5.3).

  >>> import jax.numpy as jnp
  >>> from repr_jax import kb
  >>> table = jnp.array([[1.0, 0.0], [0.0, 2.0]])
  >>> print(kb.score_all_tails("distmult", table[:1], table[:1], table))
  [[1. 0.]]

  Args:
    model: a score model or its name.
    relation: [B, p].
    head: [B, d].
    entities: the candidates, [E, d].
    squares: their squared norms, [E], which many batches can share; computed if
      None.

  Returns:
    Scores, [B, E].
  """
  chex.assert_rank([relation, head, entities], [2, 2, 2])
  model = get_model(model)
  query = jax.vmap(model.tail_query)(relation, head)
  return score_candidates(model, query, entities, squares)


def score_all_heads(
  model: ScoreModel | str,
  relation: jax.Array,
  tail: jax.Array,
  entities: jax.Array,
  squares: jax.Array | None = None,
) -> jax.Array:
  """Scores of every entity as the head: one matrix product.

  The score of z is <q, z> + c - w norm2(z), with q and c of the query
  (r, (?, f)) (thesis table 5.3).

  >>> import jax.numpy as jnp
  >>> from repr_jax import kb
  >>> table = jnp.array([[1.0, 0.0], [0.0, 2.0]])
  >>> print(kb.score_all_heads("distmult", table[1:], table[1:], table))
  [[0. 8.]]

  Args:
    model: a score model or its name.
    relation: [B, p].
    tail: [B, d].
    entities: the candidates, [E, d].
    squares: their squared norms, [E], which many batches can share; computed if
      None.

  Returns:
    Scores, [B, E].
  """
  chex.assert_rank([relation, tail, entities], [2, 2, 2])
  model = get_model(model)
  query = jax.vmap(model.head_query)(relation, tail)
  return score_candidates(model, query, entities, squares)


@chosen_products
def score_candidates(
  model: ScoreModel | str,
  query: Query,
  entities: jax.Array,
  squares: jax.Array | None = None,
) -> jax.Array:
  """Scores of candidates under a batch of queries: one matrix product.

  Args:
    model: a score model or its name.
    query: vectors [B, d] and constants [B].
    entities: the candidates, [E, d].
    squares: their squared norms, [E]; computed if None.

  Returns:
    Scores, [B, E].
  """
  model = get_model(model)
  if model.distance == "l1":
    apart = jnp.abs(query.vector[:, None, :] - entities).sum(axis=-1)
    return query.constant[:, None] - apart
  # The long side first: on a CPU this product is four times as fast as its
  # transpose.
  product = entities @ query.vector.T
  if model.distance == "l2":
    norms = jnp.sum(entities**2, axis=1) if squares is None else squares
    far = norms[:, None] - 2 * product + jnp.sum(query.vector**2, axis=1)
    # The floor keeps the root's slope finite at 0.
    return (query.constant - jnp.sqrt(jnp.maximum(far, 1e-12))).T
  scores = product + query.constant
  weight = model.norm_weight
  if weight:
    norms = jnp.sum(entities**2, axis=1) if squares is None else squares
    scores = scores - weight * norms[:, None]
  return scores.T

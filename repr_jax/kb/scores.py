"""Score models of a knowledge base (thesis 5.4, table 5.3, and two more).

A fact is (relation r, (head e, tail f)); a score is higher for what is more
likely. With r = (r1; r2) for A, B, C and D, and norm2 the squared norm:

  A         <r1, e> + <r2, f>
  R         e' R f                                (RESCAL)
  B         <r1, e> + <r2, f> + <e, f>
  C         -norm2(r1 - e) - norm2(r2 - f)
  T         -norm2(r - (e - f))                   (TransE, squared)
  D         -norm2(r1 - e) - norm2(r2 - f) - norm2(e - f)
  distmult  sum_i r_i e_i f_i
  complex   Re sum_i r_i e_i conj(f_i)            (d = 2k: k real, k imaginary)

Every one of them is, as a function of one entity z with the rest fixed,
<q, z> + c - w norm2(z). So scoring all entities is one matrix product.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.errors import InputError

SCORES = ("A", "R", "B", "C", "T", "D", "distmult", "complex")

# The w of each model above: how often norm2(z) is taken off the score.
_NORM_WEIGHT = {"C": 1.0, "T": 1.0, "D": 2.0}


class Params(NamedTuple):
  """Vectors of a knowledge base: entities [E, d] and relations [R, p]."""

  entities: jax.Array
  relations: jax.Array


class Query(NamedTuple):
  """One open slot: the score of z is <vector, z> + constant - w norm2(z).

  Attributes:
    vector: [d].
    constant: scalar; the same for all candidates, so ranks ignore it.
  """

  vector: jax.Array
  constant: jax.Array


def relation_size(model: str, dim: int) -> int:
  """Numbers per relation, p, for entities of `dim` numbers."""
  _check(model)
  if model == "complex" and dim % 2:
    raise ValueError(f"complex needs an even dimension, not {dim}")
  sizes = {"A": 2 * dim, "B": 2 * dim, "C": 2 * dim, "D": 2 * dim}
  return {**sizes, "R": dim * dim}.get(model, dim)


def init_params(
  model: str,
  key: jax.Array,
  num_entities: int,
  num_relations: int,
  dim: int,
  scale: float = 0.1,
  dtype: jnp.dtype = jnp.float32,
) -> Params:
  """Random start: normal of standard deviation `scale`.

  Args:
    model: one of `SCORES`.
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
  size = relation_size(model, dim)
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


def tail_query(model: str, relation: jax.Array, head: jax.Array) -> Query:
  """What (r, (head, ?)) asks of an entity (thesis table 5.3).

  Args:
    model: one of `SCORES`.
    relation: [p].
    head: [d].

  Returns:
    The query, vector [d] and constant scalar.
  """
  _check(model)
  chex.assert_rank([relation, head], [1, 1])
  zero = jnp.zeros((), head.dtype)
  if model == "R":
    return Query(head @ relation.reshape(head.size, head.size), zero)
  if model == "T":
    return Query(2 * (head - relation), -_norm2(head - relation))
  if model == "distmult":
    return Query(relation * head, zero)
  if model == "complex":
    return Query(_times(relation, head), zero)
  first, second = jnp.split(relation, 2)
  return _slot(model, near=first, far=second, known=head)


def head_query(model: str, relation: jax.Array, tail: jax.Array) -> Query:
  """What (r, (?, tail)) asks of an entity (thesis table 5.3).

  Args:
    model: one of `SCORES`.
    relation: [p].
    tail: [d].

  Returns:
    The query, vector [d] and constant scalar.
  """
  _check(model)
  chex.assert_rank([relation, tail], [1, 1])
  zero = jnp.zeros((), tail.dtype)
  if model == "R":
    return Query(relation.reshape(tail.size, tail.size) @ tail, zero)
  if model == "T":
    return Query(2 * (tail + relation), -_norm2(tail + relation))
  if model == "distmult":
    return Query(relation * tail, zero)
  if model == "complex":
    return Query(_times(_conjugate(relation), tail), zero)
  first, second = jnp.split(relation, 2)
  return _slot(model, near=second, far=first, known=tail)


def score(
  model: str, relation: jax.Array, head: jax.Array, tail: jax.Array
) -> jax.Array:
  """Score of one fact (thesis table 5.3).

  Distances are taken directly, not by expanding the square, so that a fact
  that fits exactly scores exactly 0.

  Args:
    model: one of `SCORES`.
    relation: [p].
    head: [d].
    tail: [d].

  Returns:
    The score, a scalar.
  """
  _check(model)
  chex.assert_rank([relation, head, tail], [1, 1, 1])
  if model == "T":
    return -_norm2(relation - (head - tail))
  if model in ("C", "D"):
    first, second = jnp.split(relation, 2)
    apart = _norm2(head - tail) if model == "D" else 0.0
    return -_norm2(first - head) - _norm2(second - tail) - apart
  query = tail_query(model, relation, head)
  return query.vector @ tail + query.constant


def score_all_tails(
  model: str,
  relation: jax.Array,
  head: jax.Array,
  entities: jax.Array,
  squares: jax.Array | None = None,
) -> jax.Array:
  """Scores of every entity as the tail: one matrix product.

  Args:
    model: one of `SCORES`.
    relation: [B, p].
    head: [B, d].
    entities: the candidates, [E, d].
    squares: their squared norms, [E], to spare what many batches share;
      computed where None.

  Returns:
    Scores, [B, E].
  """
  chex.assert_rank([relation, head, entities], [2, 2, 2])
  query = jax.vmap(lambda r, e: tail_query(model, r, e))(relation, head)
  return score_candidates(model, query, entities, squares)


def score_all_heads(
  model: str,
  relation: jax.Array,
  tail: jax.Array,
  entities: jax.Array,
  squares: jax.Array | None = None,
) -> jax.Array:
  """Scores of every entity as the head: one matrix product.

  Args:
    model: one of `SCORES`.
    relation: [B, p].
    tail: [B, d].
    entities: the candidates, [E, d].
    squares: their squared norms, [E], to spare what many batches share;
      computed where None.

  Returns:
    Scores, [B, E].
  """
  chex.assert_rank([relation, tail, entities], [2, 2, 2])
  query = jax.vmap(lambda r, f: head_query(model, r, f))(relation, tail)
  return score_candidates(model, query, entities, squares)


def bilinear_queries(
  relations: jax.Array, chosen: jax.Array, heads: jax.Array, tails: jax.Array
) -> tuple[Query, Query]:
  """Queries of model R for both sides, by products with all matrices at once.

  A matrix for each fact of a batch would be B d^2 numbers; this holds B R d,
  in products that run at full speed, and so do their gradients.

  Args:
    relations: all of them, [R, d * d].
    chosen: which relation each fact has, one-hot [B, R].
    heads: [B, d].
    tails: [B, d].

  Returns:
    What the facts ask of heads and of tails, vectors [B, d], constants [B].
  """
  chex.assert_rank([relations, chosen, heads, tails], 2)
  size = heads.shape[1]
  matrices = relations.reshape(-1, size, size)
  zero = jnp.zeros(heads.shape[:1], heads.dtype)

  def ask(each):  # [B, R, d] -> [B, d]
    return Query(jnp.einsum("br,brd->bd", chosen, each), zero)

  return (
    ask(jnp.einsum("bj,rij->bri", tails, matrices)),
    ask(jnp.einsum("bi,rij->brj", heads, matrices)),
  )


def score_candidates(
  model: str,
  query: Query,
  entities: jax.Array,
  squares: jax.Array | None = None,
) -> jax.Array:
  """Scores of candidates under a batch of queries: one matrix product.

  Args:
    model: one of `SCORES`.
    query: vectors [B, d] and constants [B].
    entities: the candidates, [E, d].
    squares: their squared norms, [E]; computed where None.

  Returns:
    Scores, [B, E].
  """
  # The long side first: on a CPU this product is four times as fast as its
  # transpose.
  scores = entities @ query.vector.T + query.constant
  weight = _NORM_WEIGHT.get(model, 0.0)
  if weight:
    norms = jnp.sum(entities**2, axis=1) if squares is None else squares
    scores = scores - weight * norms[:, None]
  return scores.T


def _slot(model, near, far, known):
  """A, B, C, D: `near` meets the known entity, `far` the open slot."""
  if model == "A":
    return Query(far, near @ known)
  if model == "B":
    return Query(far + known, near @ known)
  constant = -_norm2(near - known) - _norm2(far)
  if model == "C":
    return Query(2 * far, constant)
  return Query(2 * (far + known), constant - _norm2(known))


def _norm2(x):
  return jnp.sum(x * x)


def _times(x, y):
  a, b = jnp.split(x, 2)
  c, d = jnp.split(y, 2)
  return jnp.concatenate([a * c - b * d, a * d + b * c])


def _conjugate(x):
  real, imaginary = jnp.split(x, 2)
  return jnp.concatenate([real, -imaginary])


def _check(model):
  if model not in SCORES:
    raise ValueError(f"unknown score model {model!r}; there are {SCORES}")

"""Full softmax with one query for all facts that share it.

Facts (h, r, t1), (h, r, t2) ask the same question (r, (h, ?)), so that their
losses share one sum over all entities:

  sum_i [lse(h, r) - score(h, r, t_i)] = n lse(h, r) - sum_i score(h, r, t_i)

FB15k-237 has 544,230 pairs of a fact and a side, but 149,689 questions. The
loss is that of `candidate_loss` with all entities as candidates, at the cost of
one row of scores per question. Its gradient reads the matrix of exp(score) once
for the entities and once for the queries, and writes no other matrix.

With `predict_relations`, the loss of a fact includes the cross-entropy of its
relation (Chen et al. 2021) over all relations, the inverses of a reciprocal
model included.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax.errors import InputError
from repr_jax.kb import scores
from repr_jax.kb.candidate_loss import (
  RELATION,
  CandidateConfig,
  Noise,
  drop,
  relation_rows,
  row_penalty,
)
from repr_jax.kb.score_model import Query
from repr_jax.ops.normalize import log_sum_products
from repr_jax.ops.precision import chosen_products


class QueryBatch(NamedTuple):
  """Questions and their answers.

  Attributes:
    given: the entity of each question, int32 [Q].
    relations: int32 [Q].
    sides: place of the answers: 0 for heads, 2 for tails, int32 [Q].
    answers: entities, int32 [Q, A]; negative for padding.
  """

  given: Any
  relations: Any
  sides: Any
  answers: Any


def group_queries(
  facts: np.ndarray, max_answers: int = 16, seed: int = 0
) -> QueryBatch:
  """Groups facts by the questions that they answer, on the host.

  Each fact answers two: for its head and for its tail. A question with more
  than `max_answers` answers takes several rows.

  >>> import numpy as np
  >>> from repr_jax import kb
  >>> batch = kb.group_queries(np.array([[0, 0, 1], [0, 0, 2]]), max_answers=2)
  >>> print(batch.given, batch.sides)
  [1 2 0] [0 0 2]

  Args:
    facts: head, relation, tail, int [n, 3].
    max_answers: A, answers of a row.
    seed: of the order of a question's answers.

  Returns:
    All questions; int32 arrays of numpy.
  """
  if max_answers < 1:
    raise InputError(f"max_answers must be 1 or more, not {max_answers}")
  head, relation, tail = np.asarray(facts, np.int32).reshape(-1, 3).T
  given = np.concatenate([tail, head])
  answer = np.concatenate([head, tail])
  link = np.concatenate([relation, relation])
  side = np.repeat(np.array([0, 2], np.int32), len(head))
  mixed = np.random.default_rng(seed).permutation(len(given))
  order = mixed[np.lexsort((given[mixed], link[mixed], side[mixed]))]
  given, answer, link, side = (
    given[order],
    answer[order],
    link[order],
    side[order],
  )
  count = len(given)
  new = np.ones(count, bool)
  new[1:] = (np.diff(given) != 0) | (np.diff(link) != 0) | (np.diff(side) != 0)
  place = np.arange(count)
  place -= np.maximum.accumulate(np.where(new, place, 0))
  starts = place % max_answers == 0
  group = np.cumsum(starts) - 1
  answers = np.full((int(starts.sum()), max_answers), -1, np.int32)
  answers[group, place % max_answers] = answer
  return QueryBatch(given[starts], link[starts], side[starts], answers)


@chosen_products
def query_loss(
  config: CandidateConfig,
  params: scores.Params,
  batch: QueryBatch,
  penalty: jax.Array | float,
  noise: Noise | None = None,
  relation_weight: jax.Array | float = 1.0,
) -> jax.Array:
  """Mean loss of a batch over its answers, with the penalty.

  Args:
    config: static part; its loss is "softmax".
    params: entities [E, d] and relations [R, p].
    batch: questions [Q] and answers [Q, A].
    penalty: weight of the penalty, scalar.
    noise: dropout of the questions; None for none.
    relation_weight: weight of the loss of relations, scalar; read if the
      config has `predict_relations`.

  Returns:
    Scalar.
  """
  table = params.entities
  valid = (batch.answers >= 0).astype(table.dtype)
  ids = jnp.concatenate([batch.given[:, None], batch.answers], axis=1)
  rows = table[jnp.maximum(ids, 0)]
  given, answers = rows[:, 0], rows[:, 1:]
  query, links = _ask(config, params.relations, batch, given, noise)
  query = query._replace(vector=drop(noise, 1, query.vector))
  truth = _values(config.model, query, answers)
  counts = valid.sum(axis=1)
  total = counts @ _log_sum(config.model, query, table) - (truth * valid).sum()
  if config.predict_relations:
    lost = _relation_loss(config.model, params.relations, batch, given, answers)
    total += relation_weight * (lost * valid).sum()
  of_answers = (row_penalty(config, answers).sum(axis=2) * valid).sum()
  if config.regularizer == "dura":
    # A fact's mean is over two questions, its penalty a sum over both.
    cost = 2 * (counts @ links + of_answers)
  else:
    cost = counts @ (row_penalty(config, given).sum(axis=1) + links)
    cost += of_answers
  return (total + penalty * cost) / jnp.maximum(counts.sum(), 1)


@chosen_products
def _relation_loss(model, table, batch, given, answers):
  """Cross-entropy of each fact's relation, over all relations, [Q, A].

  The score is affine in the relation. One product with its gradient gives the
  scores of all relations, up to a constant that cancels.
  """
  side = (batch.sides == 0)[:, None, None]
  given = jnp.broadcast_to(given[:, None], answers.shape)
  if model.base is None:
    ids = batch.relations
    heads = jnp.where(side, answers, given)
    tails = jnp.where(side, given, answers)
  else:
    # A relation's second row asks for heads, as the inverse relation.
    model, table = model.base, table.reshape(2 * table.shape[0], -1)
    ids = 2 * batch.relations + (batch.sides == 0)
    heads, tails = given, answers
  zero = jnp.zeros(table.shape[1], table.dtype)
  slope = jax.grad(functools.partial(scores.score, model))
  slopes = jax.vmap(jax.vmap(functools.partial(slope, zero)))(heads, tails)
  logits = slopes @ table.T
  return jax.nn.logsumexp(logits, axis=2) - jnp.take_along_axis(
    logits, ids[:, None, None], axis=2
  ).squeeze(2)


@chosen_products
def _ask(config, relations, batch, given, noise):
  """Queries [Q], and the penalty of each one's relation row or vector [Q]."""
  model, heads = config.model, batch.sides == 0
  given = drop(noise, 0, given)
  few = relations.shape[0] <= 64
  if model.batch_queries and few:
    chosen = batch.relations[:, None] == jnp.arange(relations.shape[0])
    chosen = chosen.astype(given.dtype)
    both = model.batch_queries(
      drop(noise, RELATION, relations), chosen, given, given
    )
    links = chosen @ row_penalty(config, relations).sum(axis=1)
  else:
    rows = relation_rows(relations, batch.relations)
    asking = drop(noise, RELATION, rows)
    both = (
      jax.vmap(model.head_query)(asking, given),
      jax.vmap(model.tail_query)(asking, given),
    )
    if model.base is not None:
      first, second = jnp.split(rows, 2, axis=1)
      rows = jnp.where(heads[:, None], second, first)
    links = row_penalty(config, rows).sum(axis=1)
  for_heads, for_tails = both
  vector = jnp.where(heads[:, None], for_heads.vector, for_tails.vector)
  constant = jnp.where(heads, for_heads.constant, for_tails.constant)
  if config.regularizer == "dura":
    links = (vector * vector).sum(axis=1)
  return Query(vector, constant), links


def _values(model, query, answers):
  """Scores of the answers [Q, A, d] of each query, [Q, A]."""
  if model.distance == "l1":
    apart = jnp.abs(query.vector[:, None] - answers).sum(axis=2)
    return query.constant[:, None] - apart
  if model.distance == "l2":
    square = ((query.vector[:, None] - answers) ** 2).sum(axis=2)
    return query.constant[:, None] - jnp.sqrt(jnp.maximum(square, 1e-12))
  product = (query.vector[:, None] * answers).sum(axis=2)
  if model.norm_weight:
    product -= model.norm_weight * (answers * answers).sum(axis=2)
  return product + query.constant[:, None]


def _log_sum(model, query, table):
  """log sum_z exp(score of z) of each query, [Q]."""
  if model.distance is not None:
    logits = scores.score_candidates(model, query, table)
    return jax.nn.logsumexp(logits, axis=1)
  bias = None
  if model.norm_weight:
    bias = -model.norm_weight * (table * table).sum(axis=1)
  return log_sum_products(table, query.vector, bias) + query.constant

"""Training against many candidates at once, with any optax optimizer.

The projection follows each optimizer step, so the rules hold in every state.
With a sample of candidates, a step touches the rows of the batch and the
sample alone.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from repr_jax.errors import InputError
from repr_jax.kb import negatives, rule_projection, rule_start, scores
from repr_jax.kb.candidate_loss import (
  CandidateBatch,
  CandidateConfig,
  Noise,
  Rows,
  batch_loss,
  rows_loss,
)
from repr_jax.kb.query_loss import QueryBatch, query_loss
from repr_jax.kb.rule_compiler import Constraints
from repr_jax.ops import mesh as meshes
from repr_jax.ops import shuffle


class CandidateState(NamedTuple):
  """State of training against candidates.

  Attributes:
    params: entities [E, d] and relations [R, p], which meet the rules.
    optimizer: the optimizer's state.
    penalty: weight of the penalty, scalar.
    dropout: share of the numbers of a question's entity and of its query
      vector that a step drops, scalar; read if the config has `dropout`.
    relation_dropout: the same for a question's relation, scalar.
    relation_weight: weight of the loss of relations, scalar; read if the
      config has `predict_relations`.
  """

  params: scores.Params
  optimizer: optax.OptState
  penalty: jax.Array
  dropout: jax.Array
  relation_dropout: jax.Array
  relation_weight: jax.Array


def init(
  config: CandidateConfig,
  optimizer: optax.GradientTransformation,
  constraints: Constraints | None,
  key: jax.Array,
  penalty: jax.Array | float = 0.01,
  scale: jax.Array | float = 0.01,
  dropout: jax.Array | float = 0.0,
  relation_dropout: jax.Array | float = 0.0,
  relation_weight: jax.Array | float = 1.0,
) -> CandidateState:
  """A random start that meets the rules.

  Args:
    config: static part.
    optimizer: any optax optimizer.
    constraints: compiled rules, or None for none.
    key: random key.
    penalty: weight of the penalty, scalar.
    scale: standard deviation of the numbers before projection, scalar.
    dropout: share of numbers that a step drops, scalar.
    relation_dropout: the same for relations, scalar.
    relation_weight: weight of the loss of relations, scalar.

  Returns:
    The state.
  """
  params = rule_start.start_params(config, constraints, key, scale)
  return from_params(
    config,
    optimizer,
    params,
    penalty,
    dropout,
    relation_dropout,
    relation_weight,
  )


def from_params(
  config: CandidateConfig,
  optimizer: optax.GradientTransformation,
  params: scores.Params,
  penalty: jax.Array | float = 0.01,
  dropout: jax.Array | float = 0.0,
  relation_dropout: jax.Array | float = 0.0,
  relation_weight: jax.Array | float = 1.0,
) -> CandidateState:
  """The state before the first step, for tables that meet the rules.

  Args:
    config: static part.
    penalty: weight of the penalty, scalar.
    dropout: share of numbers that a step drops, scalar.
    relation_dropout: the same for relations, scalar.
    relation_weight: weight of the loss of relations, scalar.
  """
  scalars = (
    jnp.asarray(x, config.dtype)
    for x in (penalty, dropout, relation_dropout, relation_weight)
  )
  return CandidateState(params, optimizer.init(params), *scalars)


def candidate_softmax(
  config: CandidateConfig,
  optimizer: optax.GradientTransformation,
  constraints: Constraints | None = None,
  known: negatives.Known | None = None,
) -> tuple[Callable[..., CandidateState], Callable[..., Any]]:
  """Softmax (or BPR) against many candidates, with any optax optimizer.

  The loss of a fact is log sum_z exp(score(z)) - score(fact) over entities z
  in place of its head and of its tail, plus the penalty (Lacroix et al.
  2018). The projection follows each optimizer step, so the rules hold in
  every state that leaves `update`. Dropout applies to a question's entity,
  relation and query vector, not to answers and candidates. Models with
  `batch_queries`, such as R, drop the same numbers of a relation for all facts
  of a step if there are at most 64 relations.

  >>> import jax, numpy as np, optax
  >>> from repr_jax import kb
  >>> config = kb.CandidateConfig(3, 2, "complex", dim=4)
  >>> rules = kb.compile_rules("complex", ["RevImp(0, 1)"], 2, 3)
  >>> init, update = kb.candidate_softmax(config, optax.adagrad(0.1), rules)
  >>> state = init(jax.random.key(0))
  >>> batch = kb.CandidateBatch(np.array([[0, 0, 1], [2, 1, 0]]))
  >>> state, loss = update(state, batch)
  >>> print(kb.violation(rules, state.params) < 1e-5)
  True

  Args:
    config: static part.
    optimizer: any optax optimizer; `optax.inject_hyperparams` makes its rates
      part of the state, so that vmapped runs can differ in them.
    constraints: compiled rules, or None for none.
    known: known facts, which BPR leaves out as candidates.

  Returns:
    `init(key, penalty=0.01, scale=0.01, dropout=0.0, relation_dropout=0.0,
    relation_weight=1.0) -> CandidateState` and `update(state, batch, key=None)
    -> (state, mean loss)`, both jitted; the key is for dropout.
  """
  rule_start.check_model(config.model, constraints)
  if config.loss == "bpr" and known is None:
    raise InputError("loss bpr needs known, a table of kb.known_facts")
  return (
    jax.jit(functools.partial(init, config, optimizer, constraints)),
    jax.jit(functools.partial(update, config, optimizer, constraints, known)),
  )


def update(
  config: CandidateConfig,
  optimizer: optax.GradientTransformation,
  constraints: Constraints | None,
  known: negatives.Known | None,
  state: CandidateState,
  batch: CandidateBatch | QueryBatch,
  key: jax.Array | None = None,
) -> tuple[CandidateState, jax.Array]:
  """One step of the optimizer, and the projection.

  Args:
    config: static part.
    constraints: compiled rules, or None for none.
    known: table of known facts; read by loss "bpr".
    state: the state, whose tables meet the rules.
    batch: facts and candidates, or questions with their answers, for which all
      entities are candidates.
    key: random key of dropout; needed if the config has `dropout`.

  Returns:
    The state, whose tables meet the rules, and the batch's mean loss, scalar.
  """
  noise = None
  if config.dropout:
    if key is None:
      raise InputError("a step with dropout needs a random key: pass key")
    noise = Noise(key, state.dropout, state.relation_dropout)
  if isinstance(batch, QueryBatch):
    if config.loss != "softmax":
      raise InputError(f"questions take loss softmax, not {config.loss}")
    loss, slope = jax.value_and_grad(
      lambda p: query_loss(
        config, p, batch, state.penalty, noise, state.relation_weight
      )
    )(state.params)
  elif config.predict_relations:
    raise InputError(
      "predict_relations takes questions: group the facts by group_queries"
    )
  elif batch.candidates is not None:
    return _step_rows(
      config, optimizer, constraints, known, state, batch, noise
    )
  else:
    loss, slope = jax.value_and_grad(
      lambda p: batch_loss(config, known, p, batch, state.penalty, noise)
    )(state.params)
  change, memory = optimizer.update(slope, state.optimizer, state.params)
  params = optax.apply_updates(state.params, change)
  if constraints is not None:
    entities = rule_projection.project_rows(constraints, params.entities)
    params = rule_projection.project_step(
      constraints, params._replace(entities=entities), state.params
    )
  return state._replace(params=params, optimizer=memory), loss


def train_pass(
  config: CandidateConfig,
  optimizer: optax.GradientTransformation,
  constraints: Constraints | None,
  known: negatives.Known | None,
  facts: jax.Array | QueryBatch,
  state: CandidateState,
  key: jax.Array,
) -> tuple[CandidateState, jax.Array]:
  """One pass over the facts, or over questions, in random order.

  The last incomplete batch is dropped.

  Args:
    config: static part.
    optimizer: any optax optimizer (static).
    constraints: compiled rules, or None for none.
    facts: head, relation, tail, int32 [n, 3]; or all questions [n] of
      `group_queries`, for which all entities are candidates.
    state: the state, whose tables meet the rules; donated when jitted.

  Returns:
    The state, whose tables meet the rules, and the mean loss.
  """
  size = config.batch_size
  grouped = isinstance(facts, QueryBatch)
  count = jax.tree.leaves(facts)[0].shape[0]
  steps = count // size
  if not steps:
    kind = "questions" if grouped else "facts"
    raise InputError(
      f"a batch of {size} {kind} is larger than the {count} {kind} there are"
    )
  order_key, draw_key = jax.random.split(key)
  order = shuffle.random_order(order_key, count)[: steps * size]
  batches = jax.tree.map(
    lambda x: x[order].reshape(steps, size, *x.shape[1:]), facts
  )
  if config.mesh is not None:
    batches = meshes.constrain(
      batches, config.mesh, None, config.mesh.axis_names
    )

  def step(state, item):
    facts, key = item
    noise = jax.random.fold_in(key, 1) if config.dropout else None
    if grouped:
      return update(config, optimizer, constraints, known, state, facts, noise)
    drawn = None
    if config.num_candidates:
      count = (config.num_candidates,)
      drawn = jax.random.randint(key, count, 0, config.num_entities)
    batch = CandidateBatch(facts, drawn)
    return update(config, optimizer, constraints, known, state, batch, noise)

  keys = jax.random.split(draw_key, steps)
  state, losses = jax.lax.scan(step, state, (batches, keys))
  return state, losses.mean()


train = jax.jit(train_pass, static_argnums=(0, 1), donate_argnums=5)


def _step_rows(config, optimizer, constraints, known, state, batch, noise):
  """A step on the rows that facts and drawn candidates touch, and no others.

  The optimizer sees a table of those rows, with their part of its state;
  rows that are not touched keep both (as in lazy Adagrad or Adam).
  """
  size, count = state.params.entities.shape[0], config.num_entities
  facts, drawn = batch
  everywhere = meshes.constrain(facts, config.mesh)
  ids = jnp.concatenate([everywhere[:, 0], everywhere[:, 2], drawn])
  rows, place = jnp.unique(
    ids, return_inverse=True, size=ids.size, fill_value=size
  )

  def objective(params):
    size = facts.shape[0]
    heads, tails, table = jnp.split(params.entities[place], [size, 2 * size])
    touched = Rows(heads, tails, params.relations, table)
    return rows_loss(
      config, known, touched, facts, drawn, count, True, state.penalty, noise
    )

  def take(tree):
    return tree._replace(entities=tree.entities.at[rows].get(mode="clip"))

  def put(tree, part):
    entities = tree.entities.at[rows].set(part.entities, mode="drop")
    return part._replace(entities=entities)

  part = take(state.params)
  memory = _map_tables(take, state.optimizer)
  loss, slope = jax.value_and_grad(objective)(part)
  change, memory = optimizer.update(slope, memory, part)
  part = optax.apply_updates(part, change)
  if constraints is not None:
    part = part._replace(
      entities=rule_projection.project_rows(constraints, part.entities)
    )
  params = put(state.params, part)
  if constraints is not None:
    params = rule_projection.project_step(constraints, params, state.params)
  memory = _map_tables(put, state.optimizer, memory)
  return state._replace(params=params, optimizer=memory), loss


def _map_tables(function, tree, *rest):
  """Maps over the tables in an optimizer's state; scalars come from last."""

  def one(*leaves):
    if isinstance(leaves[0], scores.Params):
      return function(*leaves)
    return leaves[-1]

  return jax.tree.map(
    one, tree, *rest, is_leaf=lambda x: isinstance(x, scores.Params)
  )

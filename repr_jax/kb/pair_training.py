"""Projected stochastic gradient descent on BPR (thesis algorithm 2).

Each fact meets unknown facts one at a time; -log sigmoid(score(fact) -
score(unknown fact)) + alpha norm2 goes down first in the relations with the
entities fixed, then in the entities with the relations fixed, and each step
ends with the projection onto what the rules allow. Only rows that a batch
touches are read or written.

With batch 1 and `repeats` this is the algorithm of the thesis to the letter:
all unknown facts of a fact, then the next fact. In a larger batch an entity
moves by the sum of its gradients, which is what steps of one fact each would
do to the first order, and a relation, which most facts of a batch may share,
by their mean.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from repr_jax.errors import InputError
from repr_jax.kb import negatives, rule_projection, scores
from repr_jax.kb.rule_compiler import Constraints
from repr_jax.ops import mesh as meshes
from repr_jax.ops import shuffle

# Relations beyond which their gradients are added row by row.
_ONE_HOT_LIMIT = 512


@dataclasses.dataclass(frozen=True)
class Options:
  """What is fixed in a compiled training step.

  Attributes:
    model: one of `kb.scores.SCORES`.
    batch: facts in a step.
    unknown: "any" draws from all unknown facts, as the thesis does;
      "corrupt" replaces the head or the tail of the fact.
    mesh: devices that share each batch, all axes together; tables are on
      every one of them.
    repeats: steps on a batch before the next, each with other unknown facts:
      S of algorithm 2. With 1 and S passes, facts take turns instead.
  """

  model: str
  batch: int
  unknown: str = "any"
  mesh: Mesh | None = None
  repeats: int = 1

  def __post_init__(self):
    check_batch(self.batch, self.mesh)
    if self.repeats < 1:
      raise ValueError(f"repeats must be at least 1: {self.repeats}")
    if self.unknown not in ("any", "corrupt"):
      raise ValueError(f'unknown must be "any" or "corrupt": {self.unknown}')


def check_batch(batch: int, mesh: Mesh | None) -> None:
  """Raises `InputError` where a mesh cannot share a batch evenly."""
  if mesh is not None and batch % mesh.size:
    raise InputError(
      f"a batch of {batch} facts cannot be shared by {mesh.size} devices; "
      f"choose a multiple of {mesh.size}"
    )


class Rates(NamedTuple):
  """Step size eta and weight alpha of the squared norms, each a scalar."""

  eta: jax.Array | float
  alpha: jax.Array | float


class Pairs(NamedTuple):
  """Facts with one unknown fact each, as rows of the two tables.

  Attributes:
    relations: of the fact and, in the "any" setting, of the other, [k, B].
    entities: head, tail and what the unknown fact puts in, [s, B].
    is_tail: whether that is the tail ("corrupt"), bool [B].
    fine: False leaves the pair out, bool [B].
  """

  relations: jax.Array
  entities: jax.Array
  is_tail: jax.Array
  fine: jax.Array


def draw_pairs(
  options: Options, known: negatives.Known, facts: jax.Array, key: jax.Array
) -> Pairs:
  """Draws an unknown fact for each fact.

  Args:
    options: the setting.
    known: table of known facts.
    facts: head, relation, tail, int32 [n, 3].
    key: random key.

  Returns:
    Pairs, [., n].
  """
  head, relation, tail = facts.T
  if options.unknown == "corrupt":
    drawn, put_in, is_tail = negatives.corrupt(known, key, facts)
    return Pairs(
      relation[None], jnp.stack([head, tail, put_in]), is_tail, drawn.fine
    )
  drawn = negatives.draw_any(known, key, facts.shape[0])
  other_head, other_relation, other_tail = drawn.triples.T
  return Pairs(
    jnp.stack([relation, other_relation]),
    jnp.stack([head, tail, other_head, other_tail]),
    jnp.ones_like(drawn.fine),
    drawn.fine,
  )


def update(
  options: Options,
  constraints: Constraints | None,
  params: scores.Params,
  pairs: Pairs,
  rates: Rates,
) -> tuple[scores.Params, jax.Array]:
  """One step of algorithm 2 on a batch.

  Args:
    options: the setting.
    constraints: compiled rules, or None for none.
    params: tables, which meet the rules.
    pairs: the batch.
    rates: step size and penalty.

  Returns:
    Tables, which meet the rules, and the mean loss of the batch, scalar.
  """
  # Barriers keep the gather, and the gradient, from being computed again
  # inside each of their users.
  rows = jax.lax.optimization_barrier(params.entities[pairs.entities])
  objective = functools.partial(_loss, options, pairs)
  loss, slope = jax.value_and_grad(objective)(
    params.relations[pairs.relations], rows
  )
  before = params
  relations = _step_relations(params.relations, pairs.relations, slope, rates)
  params = params._replace(relations=relations)
  if constraints is not None:
    relations = rule_projection.project_relations(
      options.model, constraints, params, before.relations
    )
    params = params._replace(relations=relations)
  slope = jax.grad(objective, argnums=1)(
    params.relations[pairs.relations], rows
  )
  keep = pairs.fine[None, :, None]
  change = -rates.eta * (slope + 2 * rates.alpha * rows * keep)
  # Every device makes all changes: rows of a batch move, not whole tables.
  change = meshes.constrain(jax.lax.optimization_barrier(change), options.mesh)
  ids = meshes.constrain(pairs.entities, options.mesh).reshape(-1)
  entities = params.entities.at[ids].add(change.reshape(ids.size, -1))
  if constraints is not None and constraints.region is not None:
    touched = rule_projection.project_rows(constraints, entities[ids])
    entities = entities.at[ids].set(touched)
  params = params._replace(entities=entities)
  if constraints is not None:
    entities = rule_projection.project_named(
      options.model, constraints, params, before.entities
    )
    params = params._replace(entities=entities)
  return params, loss / jnp.maximum(pairs.fine.sum(), 1)


def train_pass(
  options: Options,
  constraints: Constraints | None,
  known: negatives.Known,
  facts: jax.Array,
  params: scores.Params,
  key: jax.Array,
  rates: Rates,
) -> tuple[scores.Params, jax.Array]:
  """One pass over the facts in random order.

  Each batch has `options.repeats` steps, one after the other, in which its
  facts meet one unknown fact each.

  Args:
    options: the setting (static).
    constraints: compiled rules, or None for none.
    known: table of known facts.
    facts: head, relation, tail, int32 [n, 3].
    params: tables, which meet the rules.
    key: random key.
    rates: step size and penalty.

  Returns:
    Tables, which meet the rules, and the mean loss of the pass.
  """
  count = facts.shape[0]
  if not count:
    raise InputError("there are no facts to train on")
  steps = -(-count // options.batch)
  order_key, draw_key = jax.random.split(key)
  order = shuffle.random_order(order_key, count)
  order = jnp.resize(order, (steps * options.batch,))
  first_time = jnp.arange(order.size) < count

  def run(params, facts, counted, key):  # any number of batches
    pairs = draw_pairs(options, known, facts, key)
    pairs = pairs._replace(fine=pairs.fine & counted)

    def split(x):  # [..., steps * B] -> [steps, ..., B]
      x = jnp.moveaxis(x.reshape(*x.shape[:-1], -1, options.batch), -2, 0)
      return meshes.constrain_last(x, options.mesh)

    def step(params, batch):
      return update(options, constraints, params, batch, rates)

    return jax.lax.scan(step, params, jax.tree.map(split, pairs))

  if options.repeats == 1:
    params, losses = run(params, facts[order], first_time, draw_key)
    return params, losses.mean()

  def stay(params, item):
    ids, counted, key = item
    again = jnp.tile(facts[ids], (options.repeats, 1))
    return run(params, again, jnp.tile(counted, options.repeats), key)

  batches = order.reshape(steps, -1), first_time.reshape(steps, -1)
  keys = jax.random.split(draw_key, steps)
  params, losses = jax.lax.scan(stay, params, (*batches, keys))
  return params, losses.mean()


def train_passes(
  options: Options,
  constraints: Constraints | None,
  known: negatives.Known,
  facts: jax.Array,
  params: scores.Params,
  keys: jax.Array,
  rates: Rates,
) -> tuple[scores.Params, jax.Array]:
  """`train_pass` once for each key; S passes give each fact S unknown ones.

  Args:
    options: the setting (static).
    constraints: compiled rules, or None for none.
    known: table of known facts.
    facts: head, relation, tail, int32 [n, 3].
    params: tables, which meet the rules; donated when jitted.
    keys: random keys, [S].
    rates: step size and penalty.

  Returns:
    Tables, which meet the rules, and the mean loss of each pass, [S].
  """

  def one(params, key):
    return train_pass(options, constraints, known, facts, params, key, rates)

  return jax.lax.scan(one, params, keys)


train = jax.jit(train_passes, static_argnums=0, donate_argnums=4)


def _loss(options, pairs, relations, entities):
  """Sum over the batch for relations [k, B, p] and entities [s, B, d]."""
  head, tail, *others = entities
  if options.unknown == "corrupt":
    is_tail = pairs.is_tail[:, None]
    other_head = jnp.where(is_tail, head, others[0])
    other_tail = jnp.where(is_tail, others[0], tail)
  else:
    other_head, other_tail = others
  score = jax.vmap(functools.partial(scores.score, options.model))
  margin = score(relations[0], head, tail)
  margin -= score(relations[-1], other_head, other_tail)
  return jnp.sum(jnp.where(pairs.fine, jax.nn.softplus(-margin), 0))


def _step_relations(table, ids, slope, rates):
  """Moves each relation by the mean of its gradients in the batch."""
  ids, slope = ids.reshape(-1), slope.reshape(-1, table.shape[1])
  size = table.shape[0]
  if size <= _ONE_HOT_LIMIT:
    one_hot = (ids == jnp.arange(size)[:, None]).astype(table.dtype)
    total, count = one_hot @ slope, one_hot.sum(axis=1)
  else:
    total = jax.ops.segment_sum(slope, ids, size)
    count = jax.ops.segment_sum(jnp.ones_like(slope[:, 0]), ids, size)
  touched = (count > 0)[:, None]
  mean = total / jnp.maximum(count, 1)[:, None]
  penalty = 2 * rates.alpha * table * touched
  return table - rates.eta * (mean + penalty)

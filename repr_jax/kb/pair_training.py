"""Projected stochastic gradient descent on BPR (thesis algorithm 2).

Each fact is compared with one unknown fact at a time. A step descends
-log sigmoid(score(fact) - score(unknown fact)) + penalty norm2 first in the
relations with the entities fixed, then in the entities with the relations
fixed, and then projects onto the rules. The entities' gradient is taken at the
new relations, or with `SGDConfig.gradients` "once" at the old ones. Only rows
that a batch touches are read or written.

With batches of 1 and `steps_per_batch` this is the thesis' algorithm exactly:
all unknown facts of a fact, then the next fact. In a larger batch an entity
moves by the sum of its gradients, which equals single steps to first order. A
relation moves by their mean, since most facts of a batch may share it.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from repr_jax.errors import InputError
from repr_jax.kb import negatives, rule_projection, rule_start, scores
from repr_jax.kb.rule_compiler import Constraints
from repr_jax.kb.score_models import get_model
from repr_jax.ops import mesh as meshes
from repr_jax.ops import shuffle
from repr_jax.ops.precision import chosen_products

# Above this number of relations, gradients are added by segment sums.
_ONE_HOT_LIMIT = 512


@dataclasses.dataclass(frozen=True)
class SGDConfig:
  """Static part of projected SGD: what a program is compiled for.

  Attributes:
    num_entities: E.
    num_relations: R.
    model: a score model or its name.
    dim: d, numbers per entity.
    negative_sampling: "any" draws from all unknown facts, as the thesis does;
      "corrupt" replaces the head or the tail of the fact.
    batch_size: facts in a step of a pass.
    steps_per_batch: steps on a batch before the next batch, each with other
      unknown facts: S of algorithm 2. With 1 step and S passes, facts take
      turns instead.
    gradients: "twice" computes the entities' gradient again after the relations
      have moved; "once" takes both at the start of the step, as algorithm 2 is
      printed.
    dtype: of the tables.
    mesh: devices that share each batch, all axes together.
      `sharding.place_state` shards the tables by entity.
  """

  num_entities: int
  num_relations: int
  model: Any = "B"
  dim: int = 100
  negative_sampling: str = "any"
  batch_size: int = 10
  steps_per_batch: int = 1
  gradients: str = "twice"
  dtype: Any = jnp.float32
  mesh: Mesh | None = None

  def __post_init__(self):
    object.__setattr__(self, "model", get_model(self.model))
    check_sizes(self.dim, self.batch_size, self.mesh)
    if self.steps_per_batch < 1:
      raise InputError(
        f"steps_per_batch must be at least 1, not {self.steps_per_batch}"
      )
    _check_sampling(self.negative_sampling)
    if self.gradients not in ("once", "twice"):
      raise InputError(
        f'gradients are taken "once" or "twice", not {self.gradients!r}'
      )


def check_sizes(dim: int, batch_size: int, mesh: Mesh | None) -> None:
  """Raises `InputError` for invalid sizes."""
  if dim < 1:
    raise InputError(f"dim must be at least 1, not {dim}")
  if batch_size < 1:
    raise InputError(f"batch_size must be at least 1, not {batch_size}")
  if mesh is not None and batch_size % mesh.size:
    raise InputError(
      f"a batch of {batch_size} facts cannot be shared by {mesh.size} devices; "
      f"choose a multiple of {mesh.size}"
    )


class SGDState(NamedTuple):
  """State of projected SGD; its rates are arrays, so runs can differ in them.

  Attributes:
    params: entities [E, d] and relations [R, p], which meet the rules.
    learning_rate: step size, scalar.
    penalty: weight of the squared norms, scalar.
  """

  params: scores.Params
  learning_rate: jax.Array
  penalty: jax.Array


class Pairs(NamedTuple):
  """Facts with one unknown fact each, as rows of the two tables.

  Attributes:
    relations: of the fact and, in the "any" setting, of the other, [k, B].
    entities: head and tail of the fact, then the entities that only the
      unknown fact has, [s, B].
    is_tail: whether the unknown fact has another tail ("corrupt"), bool [B].
    valid: False leaves the pair out, bool [B].
  """

  relations: jax.Array
  entities: jax.Array
  is_tail: jax.Array
  valid: jax.Array


def draw_pairs(
  known: negatives.Known, facts: jax.Array, key: jax.Array, kind: str = "any"
) -> Pairs:
  """Draws an unknown fact for each fact (thesis algorithm 2).

  >>> import jax, numpy as np
  >>> from repr_jax import kb
  >>> facts = np.array([[0, 0, 1], [2, 1, 0]])
  >>> known = kb.known_facts(facts, num_entities=3, num_relations=2)
  >>> kb.draw_pairs(known, facts, jax.random.key(0)).entities.shape
  (4, 2)

  Args:
    known: table of known facts.
    facts: head, relation, tail, int32 [B, 3].
    key: random key.
    kind: "any" or "corrupt", as in `SGDConfig.negative_sampling`.

  Returns:
    Pairs, fields [., B]; `valid` is False where no unknown fact was drawn.
  """
  _check_sampling(kind)
  head, relation, tail = facts.T
  if kind == "corrupt":
    drawn, put_in, is_tail = negatives.corrupt(known, key, facts)
    return Pairs(
      relation[None], jnp.stack([head, tail, put_in]), is_tail, drawn.valid
    )
  drawn = negatives.draw_any(known, key, facts.shape[0])
  other_head, other_relation, other_tail = drawn.triples.T
  return Pairs(
    jnp.stack([relation, other_relation]),
    jnp.stack([head, tail, other_head, other_tail]),
    jnp.ones_like(drawn.valid),
    drawn.valid,
  )


def init(
  config: SGDConfig,
  constraints: Constraints | None,
  key: jax.Array,
  learning_rate: jax.Array | float = 0.1,
  penalty: jax.Array | float = 0.001,
  scale: jax.Array | float = 0.1,
) -> SGDState:
  """A random start that meets the rules.

  Args:
    config: static part.
    constraints: compiled rules, or None for none.
    key: random key.
    learning_rate: step size, scalar.
    penalty: weight of the squared norms, scalar.
    scale: standard deviation of the numbers before projection, scalar.

  Returns:
    The state. If rules may contradict each other, check it by `violation`;
    `checked_start` refuses such rules.
  """
  params = rule_start.start_params(config, constraints, key, scale)
  return SGDState(
    params,
    jnp.asarray(learning_rate, config.dtype),
    jnp.asarray(penalty, config.dtype),
  )


def update(
  config: SGDConfig,
  constraints: Constraints | None,
  state: SGDState,
  pairs: Pairs,
) -> tuple[SGDState, jax.Array]:
  """One step of algorithm 2 on a batch.

  Args:
    config: static part.
    constraints: compiled rules, or None for none.
    state: tables, which meet the rules, and rates.

  Returns:
    The state, whose tables meet the rules, and the batch's mean loss, scalar.
  """
  # Barriers keep the gather, and the gradient, from being computed again
  # inside each of their users.
  before = params = state.params
  # Every device has all ids and gathers its own rows.
  every = meshes.constrain(pairs.entities, config.mesh)
  rows = tuple(jax.lax.optimization_barrier(params.entities[every]))
  objective = functools.partial(_loss, config, pairs)
  once = config.gradients == "once"
  loss, slopes = jax.value_and_grad(
    objective, argnums=(0, 1) if once else (0,)
  )(params.relations[pairs.relations], rows)
  relations = _step_relations(state, pairs, slopes[0])
  params = params._replace(relations=relations)
  if constraints is not None:
    relations = rule_projection.project_relations(
      constraints, params, before.relations
    )
    params = params._replace(relations=relations)
  if once:
    slope = slopes[1]
  else:
    slope = jax.grad(objective, argnums=1)(
      params.relations[pairs.relations], rows
    )
  keep = 2 * state.penalty * pairs.valid[:, None]
  changes = jax.lax.optimization_barrier(
    [-state.learning_rate * (x + keep * y) for x, y in zip(slope, rows)]
  )
  # Every device makes all changes: rows of a batch move, not whole tables.
  changes = meshes.constrain(changes, config.mesh)
  entities, ids = params.entities, every.reshape(-1)
  for places, change in zip(every, changes, strict=True):  # fits in caches
    entities = entities.at[places].add(change)
  if constraints is not None and constraints.region is not None:
    touched = rule_projection.project_rows(constraints, entities[ids])
    entities = entities.at[ids].set(touched)
  params = params._replace(entities=entities)
  if constraints is not None:
    entities = rule_projection.project_named(
      constraints, params, before.entities
    )
    params = params._replace(entities=entities)
  loss = loss / jnp.maximum(pairs.valid.sum(), 1)
  return state._replace(params=params), loss


def projected_sgd(
  config: SGDConfig, constraints: Constraints | None = None
) -> tuple[Callable[..., SGDState], Callable[..., Any]]:
  """Projected stochastic gradient descent on BPR (thesis algorithm 2).

  Minimizes -log sigmoid(score(fact) - score(unknown fact)) + penalty norm2.
  The rules hold in every state that leaves `update`.

  >>> import jax, numpy as np
  >>> from repr_jax import kb
  >>> facts = np.array([[0, 0, 1], [2, 1, 0]])
  >>> known = kb.known_facts(facts, num_entities=3, num_relations=2)
  >>> rules = kb.compile_rules("B", ["RevImp(0, 1)"], 2, 3)
  >>> init, update = kb.projected_sgd(kb.SGDConfig(3, 2, "B", dim=4), rules)
  >>> keys = jax.random.split(jax.random.key(0), 8)
  >>> states = jax.vmap(init)(keys, np.geomspace(0.01, 1, 8))  # 8 rates
  >>> batches = jax.vmap(kb.draw_pairs, (None, None, 0))(known, facts, keys)
  >>> states, loss = jax.jit(jax.vmap(update))(states, batches)
  >>> loss.shape
  (8,)

  Args:
    config: static part.
    constraints: compiled rules, or None for none.

  Returns:
    `init(key, learning_rate=0.1, penalty=0.001, scale=0.1) -> SGDState` and
    `update(state, pairs) -> (state, mean loss)`, both jitted.
  """
  rule_start.check_model(config.model, constraints)
  return (
    jax.jit(functools.partial(init, config, constraints)),
    jax.jit(functools.partial(update, config, constraints)),
  )


def train_pass(
  config: SGDConfig,
  constraints: Constraints | None,
  known: negatives.Known,
  facts: jax.Array,
  state: SGDState,
  key: jax.Array,
) -> tuple[SGDState, jax.Array]:
  """One pass over the facts in random order.

  Each batch has `config.steps_per_batch` steps in a row. In each step a fact is
  compared with a newly drawn unknown fact.

  Args:
    config: static part.
    constraints: compiled rules, or None for none.
    facts: head, relation, tail, int32 [n, 3].
    state: tables, which meet the rules, and rates.

  Returns:
    The state, whose tables meet the rules, and the mean loss of the pass.
  """
  count, size, repeats = (
    facts.shape[0],
    config.batch_size,
    config.steps_per_batch,
  )
  if not count:
    raise InputError("there are no facts to train on")
  steps = -(-count // size)
  order_key, draw_key = jax.random.split(key)
  order = shuffle.random_order(order_key, count)
  order = jnp.resize(order, (steps * size,))
  first_time = jnp.arange(order.size) < count

  def run(state, facts, counted, key):  # any number of batches
    pairs = draw_pairs(known, facts, key, config.negative_sampling)
    pairs = pairs._replace(valid=pairs.valid & counted)

    def split(x):  # [..., steps * B] -> [steps, ..., B]
      x = jnp.moveaxis(x.reshape(*x.shape[:-1], -1, size), -2, 0)
      return meshes.constrain_last(x, config.mesh)

    def step(state, batch):
      return update(config, constraints, state, batch)

    return jax.lax.scan(step, state, jax.tree.map(split, pairs))

  if repeats == 1:
    state, losses = run(state, facts[order], first_time, draw_key)
    return state, losses.mean()

  def stay(state, item):
    ids, counted, key = item
    again = jnp.tile(facts[ids], (repeats, 1))
    return run(state, again, jnp.tile(counted, repeats), key)

  batches = order.reshape(steps, -1), first_time.reshape(steps, -1)
  keys = jax.random.split(draw_key, steps)
  state, losses = jax.lax.scan(stay, state, (*batches, keys))
  return state, losses.mean()


def train_passes(
  config: SGDConfig,
  constraints: Constraints | None,
  known: negatives.Known,
  facts: jax.Array,
  state: SGDState,
  keys: jax.Array,
) -> tuple[SGDState, jax.Array]:
  """`train_pass` once for each key; S passes give each fact S unknown ones.

  Args:
    config: static part.
    constraints: compiled rules, or None for none.
    facts: head, relation, tail, int32 [n, 3].
    state: tables, which meet the rules, and rates; donated when jitted.
    keys: random keys, [S].

  Returns:
    The state, whose tables meet the rules, and the mean loss of each pass,
    [S].
  """

  def one(state, key):
    return train_pass(config, constraints, known, facts, state, key)

  return jax.lax.scan(one, state, keys)


train = jax.jit(train_passes, static_argnums=0, donate_argnums=4)


def _check_sampling(kind):
  if kind not in ("any", "corrupt"):
    raise InputError(f'negative sampling is "any" or "corrupt", not {kind!r}')


def _loss(config, pairs, relations, entities):
  """Sum over the batch for relations [k, B, p] and entities [s, B, d]."""
  head, tail, *others = entities
  if len(others) == 1:
    is_tail = pairs.is_tail[:, None]
    other_head = jnp.where(is_tail, head, others[0])
    other_tail = jnp.where(is_tail, others[0], tail)
  else:
    other_head, other_tail = others
  score = jax.vmap(functools.partial(scores.score, config.model))
  margin = score(relations[0], head, tail)
  margin -= score(relations[-1], other_head, other_tail)
  return jnp.sum(jnp.where(pairs.valid, jax.nn.softplus(-margin), 0))


@chosen_products
def _step_relations(state, pairs, slope):
  """Moves each relation by the mean of its gradients in the batch."""
  table = state.params.relations
  ids, slope = pairs.relations.reshape(-1), slope.reshape(-1, table.shape[1])
  valid = jnp.tile(pairs.valid, pairs.relations.shape[0]).astype(table.dtype)
  size = table.shape[0]
  if size <= _ONE_HOT_LIMIT:
    one_hot = (ids == jnp.arange(size)[:, None]).astype(table.dtype)
    total, count = one_hot @ slope, one_hot @ valid
  else:
    total = jax.ops.segment_sum(slope, ids, size)
    count = jax.ops.segment_sum(valid, ids, size)
  touched = (count > 0)[:, None]
  mean = total / jnp.maximum(count, 1)[:, None]
  penalty = 2 * state.penalty * table * touched
  return table - state.learning_rate * (mean + penalty)

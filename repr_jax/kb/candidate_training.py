"""Training against many candidates at once, with any optax optimizer.

Each fact is compared with every entity, or with a sample that the batch
shares, in place of its tail and in place of its head: one matrix product per
side. With a sample, a step touches the rows of the batch and the sample
alone. The loss is softmax cross-entropy (Lacroix et al. 2018) or the mean BPR
loss over the candidates; the penalty is N3 (sum of cubed moduli) or L2. The
projection follows each optimizer step, so the rules hold in every state.

To a sample, softmax adds for each fact the entity that stands in its other
place: in most models nothing is nearer to (r, (e, ?)) than e itself, and a
sample hardly ever draws it.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from repr_jax.errors import InputError
from repr_jax.kb import negatives, pair_training, rule_projection, scores
from repr_jax.kb.rule_compiler import Constraints
from repr_jax.ops import mesh as meshes
from repr_jax.ops import shuffle

# Relations up to which products with all matrices of model R are cheaper than
# a matrix for each fact.
_TOGETHER = 64


@dataclasses.dataclass(frozen=True)
class Options:
  """What is fixed in a compiled training step.

  Attributes:
    model: one of `kb.scores.SCORES`.
    batch: facts in a step.
    candidates: entities drawn for each batch; 0 for all of them.
    loss: "softmax" or "bpr".
    penalty: "n3" or "l2".
    mesh: devices that share each batch, all axes together; tables are on
      every one of them.
  """

  model: str
  batch: int
  candidates: int = 0
  loss: str = "softmax"
  penalty: str = "n3"
  mesh: Mesh | None = None

  def __post_init__(self):
    pair_training.check_batch(self.batch, self.mesh)
    if self.loss not in ("softmax", "bpr"):
      raise ValueError(f'loss must be "softmax" or "bpr": {self.loss}')
    if self.penalty not in ("n3", "l2"):
      raise ValueError(f'penalty must be "n3" or "l2": {self.penalty}')


class State(NamedTuple):
  """Tables and the optimizer's state."""

  params: scores.Params
  optimizer: optax.OptState


def init(
  optimizer: optax.GradientTransformation, params: scores.Params
) -> State:
  """The state before the first step.

  Args:
    optimizer: any optax optimizer.
    params: tables, which meet the rules.

  Returns:
    The state.
  """
  return State(params, optimizer.init(params))


def batch_loss(
  options: Options,
  known: negatives.Known,
  params: scores.Params,
  facts: jax.Array,
  candidates: jax.Array | None,
  weight: jax.Array | float,
) -> jax.Array:
  """Mean loss of a batch over both sides, with the penalty.

  Args:
    options: the setting.
    known: table of known facts, which BPR leaves out as candidates.
    params: the tables.
    facts: head, relation, tail, int32 [B, 3].
    candidates: entity ids, [S]; all entities where None.
    weight: of the penalty.

  Returns:
    Scalar.
  """
  head, _, tail = facts.T
  ids, table = jnp.arange(params.entities.shape[0]), params.entities
  if candidates is not None:
    ids, table = candidates, params.entities[candidates]
  rows = _Rows(
    params.entities[head], params.entities[tail], params.relations, table
  )
  sampled = candidates is not None
  return _loss(options, known, rows, facts, ids, sampled, weight)


class _Rows(NamedTuple):
  """Heads, tails [B, d] of facts; relations [R, p]; candidates [S, d]."""

  heads: jax.Array
  tails: jax.Array
  relations: jax.Array
  candidates: jax.Array


class _Asked(NamedTuple):
  """What a batch of facts asks.

  Attributes:
    queries: of heads and of tails, each [B, d] and [B].
    truth: scores of the facts, [B].
    own: scores of the facts with the entity of the other place put in, for
      heads and for tails, each [B].
    links: sum over the batch of the relations' penalty, scalar.
  """

  queries: tuple[scores.Query, scores.Query]
  truth: jax.Array
  own: tuple[jax.Array, jax.Array]
  links: jax.Array


def _loss(options, known, rows, facts, ids, sampled, weight):
  """`batch_loss` of gathered rows; ids [S] are those of the candidates."""
  heads, tails, relations, table = rows
  if options.mesh is not None:
    heads, tails = meshes.constrain(
      (heads, tails), options.mesh, options.mesh.axis_names
    )
  few = relations.shape[0] <= _TOGETHER
  ask = _ask_bilinear if options.model == "R" and few else _ask
  asked = ask(options, relations, facts[:, 1], heads, tails)
  total = jnp.zeros((), asked.truth.dtype)
  for side, query, own in zip((0, 2), asked.queries, asked.own, strict=True):
    logits = scores.score_candidates(options.model, query, table)
    if options.loss == "softmax":
      total += _softmax(
        logits, asked.truth, own if sampled else None, ids, facts[:, side],
        facts[:, 2 - side], known.num_entities,
      )  # fmt: skip
    else:
      total += _bpr(logits, asked.truth, ids, facts, side, known)
  penalty = asked.links
  penalty += sum(_penalty(options, x).sum() for x in (heads, tails))
  return total / 2 + weight * penalty / facts.shape[0]


def _ask(options, relations, ids, heads, tails):
  """Each fact with its own relation row."""
  links = _relation_rows(relations, ids)
  if options.mesh is not None:
    links = meshes.constrain(links, options.mesh, options.mesh.axis_names)
  model = options.model
  score = jax.vmap(functools.partial(scores.score, model))
  return _Asked(
    (
      jax.vmap(functools.partial(scores.head_query, model))(links, tails),
      jax.vmap(functools.partial(scores.tail_query, model))(links, heads),
    ),
    score(links, heads, tails),
    (score(links, tails, tails), score(links, heads, heads)),
    _penalty(options, links).sum(),
  )


def _ask_bilinear(options, relations, ids, heads, tails):
  """All relations' matrices at once, of which each fact takes its own."""
  chosen = (ids[:, None] == jnp.arange(relations.shape[0])).astype(heads.dtype)
  for_heads, for_tails = scores.bilinear_queries(
    relations, chosen, heads, tails
  )
  return _Asked(
    (for_heads, for_tails),
    jnp.sum(for_tails.vector * tails, axis=1),
    (
      jnp.sum(for_heads.vector * tails, axis=1),
      jnp.sum(for_tails.vector * heads, axis=1),
    ),
    chosen.sum(axis=0) @ _penalty(options, relations).sum(axis=1),
  )


def train_pass(
  options: Options,
  optimizer: optax.GradientTransformation,
  constraints: Constraints | None,
  known: negatives.Known,
  facts: jax.Array,
  state: State,
  key: jax.Array,
  weight: jax.Array | float,
) -> tuple[State, jax.Array]:
  """One pass over the facts in random order; those over a batch wait.

  Args:
    options: the setting (static).
    optimizer: any optax optimizer (static).
    constraints: compiled rules, or None for none.
    known: table of known facts.
    facts: head, relation, tail, int32 [n, 3].
    state: tables, which meet the rules; donated when jitted.
    key: random key.
    weight: of the penalty.

  Returns:
    The state, whose tables meet the rules, and the mean loss.
  """
  steps = facts.shape[0] // options.batch
  if not steps:
    raise InputError(
      f"a batch of {options.batch} facts is larger than the "
      f"{facts.shape[0]} facts there are"
    )
  order_key, draw_key = jax.random.split(key)
  order = shuffle.random_order(order_key, facts.shape[0])
  batches = facts[order[: steps * options.batch]]
  batches = batches.reshape(steps, options.batch, 3)
  if options.mesh is not None:
    batches = meshes.constrain(
      batches, options.mesh, None, options.mesh.axis_names
    )

  def step(state, item):
    if options.candidates:
      batch, key = item
      return _step_rows(
        options, optimizer, constraints, known, state, batch, key, weight
      )
    loss, slope = jax.value_and_grad(
      lambda p: batch_loss(options, known, p, item[0], None, weight)
    )(state.params)
    change, memory = optimizer.update(slope, state.optimizer, state.params)
    params = optax.apply_updates(state.params, change)
    if constraints is not None:
      entities = rule_projection.project_rows(constraints, params.entities)
      params = rule_projection.project_step(
        options.model,
        constraints,
        params._replace(entities=entities),
        state.params,
      )
    return State(params, memory), loss

  keys = jax.random.split(draw_key, steps)
  state, losses = jax.lax.scan(step, state, (batches, keys))
  return state, losses.mean()


train = jax.jit(train_pass, static_argnums=(0, 1), donate_argnums=5)


def _step_rows(
  options, optimizer, constraints, known, state, facts, key, weight
):
  """A step on the rows that facts and drawn candidates touch, and no others.

  The optimizer sees a table of those rows, with their part of its state;
  rows that are not touched keep both (as in lazy Adagrad or Adam).
  """
  count = state.params.entities.shape[0]
  drawn = jax.random.randint(key, (options.candidates,), 0, count)
  everywhere = meshes.constrain(facts, options.mesh)
  ids = jnp.concatenate([everywhere[:, 0], everywhere[:, 2], drawn])
  rows, place = jnp.unique(
    ids, return_inverse=True, size=ids.size, fill_value=count
  )

  def objective(params):
    size = facts.shape[0]
    heads, tails, table = jnp.split(params.entities[place], [size, 2 * size])
    touched = _Rows(heads, tails, params.relations, table)
    return _loss(options, known, touched, facts, drawn, True, weight)

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
    params = rule_projection.project_step(
      options.model, constraints, params, state.params
    )
  memory = _map_tables(put, state.optimizer, memory)
  return State(params, memory), loss


def _map_tables(function, tree, *rest):
  """Maps over the tables in an optimizer's state; scalars come from last."""

  def one(*leaves):
    if isinstance(leaves[0], scores.Params):
      return function(*leaves)
    return leaves[-1]

  return jax.tree.map(
    one, tree, *rest, is_leaf=lambda x: isinstance(x, scores.Params)
  )


def _relation_rows(table, ids):
  """Rows by a one-hot product, whose gradient is a product too."""
  if table.shape[0] > 512 or table.shape[1] > 1024:
    return table[ids]
  one_hot = (ids[:, None] == jnp.arange(table.shape[0])).astype(table.dtype)
  return one_hot @ table


def _softmax(logits, truth, own, ids, answer, given, count):
  """Cross-entropy; each of a sample of S stands for E / S of E entities.

  The score `own` [B] of the entity in the other place, `given`, is counted
  once; it is None where the candidates are all entities.
  """
  logits = logits + jnp.log(count / ids.size).astype(logits.dtype)
  counted = ids == answer[:, None]
  if own is not None:
    counted |= ids == given[:, None]
  rest = jax.nn.logsumexp(jnp.where(counted, -jnp.inf, logits), axis=1)
  if own is not None:
    rest = jnp.logaddexp(rest, jnp.where(given == answer, -jnp.inf, own))
  return jnp.mean(jnp.logaddexp(rest, truth) - truth)


def _bpr(logits, truth, ids, facts, side, known):
  """Mean of -log sigmoid(truth - candidate) over unknown candidates."""
  shape = (facts.shape[0], ids.size)
  others = [jnp.broadcast_to(x[:, None], shape) for x in facts.T]
  others[side] = jnp.broadcast_to(ids, shape)
  fine = ~negatives.is_known(known, jnp.stack(others, axis=-1))
  losses = jax.nn.softplus(logits - truth[:, None])
  fine = fine.astype(losses.dtype)
  return jnp.sum(losses * fine) / jnp.maximum(jnp.sum(fine), 1)


def _penalty(options, rows):
  """What each number, or pair of a complex one, adds: [B, p] or [B, p / 2]."""
  square = rows * rows
  if options.penalty == "l2":
    return square
  if options.model == "complex":
    real, imaginary = jnp.split(square, 2, axis=-1)
    square = real + imaginary
  # The floor keeps the root's slope finite at 0.
  return square * jnp.sqrt(jnp.maximum(square, 1e-20))

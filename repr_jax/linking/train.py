"""Training of the disambiguation model on the margin loss (thesis 6.3).

    init, update = disambiguator(config, optax.adam(1e-4))
    state = init(key, tables)
    for batch in batches:
      state, info = update(state, tables, batch)

`optax.inject_hyperparams(optax.adam)(1e-4)` has a learning rate that can be
changed in the state without compiling again.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from repr_jax.data.documents.packing import Packed
from repr_jax.linking import disambiguation
from repr_jax.linking.disambiguation import Config, Params, Tables

# Share of the newest weights in the running mean after many steps. The weights
# of single steps vary: accuracy swings by points within an epoch.
_SHARE = 0.01


class State(NamedTuple):
  """Weights and the optimizer's state.

  Attributes:
    params: the weights that are stepped.
    average: their running mean, which predictions should use.
    optimizer: state of the optimizer.
    steps: number of steps, int32 scalar.
  """

  params: Params
  average: Params
  optimizer: optax.OptState
  steps: jax.Array


class Info(NamedTuple):
  """Figures of one step.

  Attributes:
    loss: mean over mentions with a gold candidate, scalar.
    right: share of these mentions that were right before the step, scalar.
  """

  loss: jax.Array
  right: jax.Array


def disambiguator(
  config: Config, optimizer: optax.GradientTransformation
) -> tuple[Callable[..., State], Callable[..., tuple[State, Info]]]:
  """Trains the weights of `disambiguate` with any optimizer of optax.

  Minimizes over A, B, C and f the sum over mentions and candidates of [gamma -
  s(gold) + s(e)]_+, through the rounds of belief propagation.

  >>> import jax, jax.numpy as jnp, optax
  >>> from repr_jax import linking
  >>> tables = linking.Tables(entities=jnp.eye(2), words=jnp.eye(2))
  >>> batch = linking.Packed(  # one document with one mention
  ...   candidates=jnp.array([[[0, 1]]]), log_prior=jnp.zeros((1, 1, 2)),
  ...   words=jnp.array([[[0, -1]]]), gold=jnp.array([[1]]),
  ... )
  >>> init, update = linking.disambiguator(linking.Config(), optax.sgd(0.1))
  >>> state = init(jax.random.key(0), tables)
  >>> state, first = update(state, tables, batch, margin=0.5)
  >>> state, second = update(state, tables, batch, margin=0.5)
  >>> bool(second.loss < first.loss)
  True

  Args:
    config: the model.
    optimizer: the optimizer; its learning rate belongs to it.

  Returns:
    `init(key, tables)` gives the state; only the tables' dimension is read.
    `update(state, tables, batch, margin=0.01)` takes arrays of several
    documents, ids [n, m, c], and gives the next state and the figures of the
    step. Both are jitted; the margin is traced.
  """

  def init(key, tables):
    dim = jnp.shape(tables.entities)[1]
    params = disambiguation.init_params(config, dim, key)
    average = jax.tree.map(jnp.copy, params)
    steps = jnp.zeros((), jnp.int32)
    return State(params, average, optimizer.init(params), steps)

  def update(state, tables, batch, margin=0.01):
    (loss, right), slope = jax.value_and_grad(
      lambda params: batch_loss(config, params, tables, batch, margin),
      has_aux=True,
    )(state.params)
    change, memory = optimizer.update(slope, state.optimizer, state.params)
    params: Any = optax.apply_updates(state.params, change)
    share = jnp.maximum(_SHARE, 1 / (state.steps + 1))
    average = jax.tree.map(
      lambda a, p: a + share.astype(p.dtype) * (p - a), state.average, params
    )
    return State(params, average, memory, state.steps + 1), Info(loss, right)

  return jax.jit(init), jax.jit(update)


def batch_loss(
  config: Config,
  params: Params,
  tables: Tables,
  batch: Packed,
  margin: jax.Array | float = 0.01,
) -> tuple[jax.Array, jax.Array]:
  """Mean margin loss of a batch over the mentions that have a gold candidate.

  Args:
    tables: vectors of entities and words.
    batch: arrays of several documents.
    margin: gamma.

  Returns:
    The loss, and the share of mentions that are right; scalars.
  """
  one = functools.partial(
    disambiguation.document_scores, config, params, tables
  )
  scores = jax.vmap(one)(batch)
  mask, gold = jnp.asarray(batch.candidates) >= 0, jnp.asarray(batch.gold)
  losses, counts = jax.vmap(disambiguation.margin_loss, (0, 0, 0, None))(
    scores, mask, gold, margin
  )
  total = jnp.maximum(counts.sum(), 1)
  right = (jnp.argmax(scores, axis=-1) == gold).sum()
  dtype = scores.dtype
  return losses.sum() / total.astype(dtype), (right / total).astype(dtype)

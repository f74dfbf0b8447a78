"""Training of the disambiguation model: Adam on the margin loss (thesis 6.3).

    state = init(config, size, key)
    for batch in batches:
      state, info = update(config, tables, state, batch, rate)

The rate is an argument, so that it can fall without compiling again; the
thesis lowers it from 1e-4 to 1e-5 once validation passes a threshold, which
`Schedule` decides, together with when to stop.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from repr_jax.data.documents.packing import Packed
from repr_jax.linking import disambiguation
from repr_jax.linking.disambiguation import Config, Params, Tables

_ADAM = optax.scale_by_adam()
# Share of a step in the average of weights once there are many: documents
# differ so much that the last weights of an epoch swing by points.
_SHARE = 0.01


class State(NamedTuple):
  """Weights and the optimizer's state.

  Attributes:
    params: the weights that are stepped.
    average: their running mean, which is what predictions should use.
    optimizer: moments of Adam.
    steps: how many there were, int32 scalar.
  """

  params: Params
  average: Params
  optimizer: optax.OptState
  steps: jax.Array


class Info(NamedTuple):
  """Figures of one step.

  Attributes:
    loss: mean over mentions with a gold candidate, scalar.
    right: share of them that were right before the step, scalar.
  """

  loss: jax.Array
  right: jax.Array


class Schedule(NamedTuple):
  """When the rate falls and when training ends.

  Attributes:
    rate: step size now.
    best: highest validation score so far.
    best_epoch: when that was.
    waited: epochs since then.
    lowered: whether the rate has fallen.
  """

  rate: float
  best: float = -1.0
  best_epoch: int = -1
  waited: int = 0
  lowered: bool = False


def init(config: Config, size: int, key: jax.Array) -> State:
  """The state before the first step.

  Args:
    config: the configuration.
    size: d, dimension of the vectors.
    key: random key.

  Returns:
    The state; diagonals of the model are [d].
  """
  params = disambiguation.init_params(config, size, key)
  average = jax.tree.map(jnp.copy, params)
  return State(params, average, _ADAM.init(params), jnp.zeros((), jnp.int32))


def batch_loss(
  config: Config, params: Params, tables: Tables, batch: Packed
) -> tuple[jax.Array, jax.Array]:
  """Mean margin loss of a batch over the mentions that have a gold candidate.

  Args:
    config: the configuration.
    params: the weights.
    tables: vectors of entities and words.
    batch: arrays of several documents.

  Returns:
    The loss, and the share of mentions that are right; scalars.
  """
  one = functools.partial(
    disambiguation.document_scores, config, params, tables
  )
  scores = jax.vmap(one)(batch)
  losses, counts = jax.vmap(
    functools.partial(disambiguation.margin_loss, config)
  )(scores, jnp.asarray(batch.candidates) >= 0, jnp.asarray(batch.gold))
  total = jnp.maximum(counts.sum(), 1)
  right = (jnp.argmax(scores, axis=-1) == batch.gold).sum()
  return losses.sum() / total, right / total


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def update(
  config: Config,
  tables: Tables,
  state: State,
  batch: Packed,
  rate: jax.Array | float,
) -> tuple[State, Info]:
  """One step of Adam.

  Args:
    config: the configuration (static).
    tables: vectors, which are not trained.
    state: the state; donated.
    batch: arrays of several documents, see `packing.batches`.
    rate: step size, scalar.

  Returns:
    The state after the step and its figures.
  """
  (loss, right), slope = jax.value_and_grad(
    lambda params: batch_loss(config, params, tables, batch), has_aux=True
  )(state.params)
  change, memory = _ADAM.update(slope, state.optimizer, state.params)
  params = jax.tree.map(
    lambda p, c: p - jnp.asarray(rate, p.dtype) * c, state.params, change
  )
  share = jnp.maximum(_SHARE, 1 / (state.steps + 1))
  average = jax.tree.map(
    lambda a, p: a + share.astype(p.dtype) * (p - a), state.average, params
  )
  return State(params, average, memory, state.steps + 1), Info(loss, right)


def advance(
  schedule: Schedule,
  epoch: int,
  score: float,
  *,
  threshold: float,
  lower_rate: float,
) -> Schedule:
  """Takes the validation score of an epoch into account.

  Args:
    schedule: where training stands.
    epoch: the epoch that has ended.
    score: its validation score.
    threshold: score at which the rate falls, once.
    lower_rate: the rate after that.

  Returns:
    Where training stands now; `waited` tells when to stop.
  """
  if score > schedule.best:
    schedule = schedule._replace(best=score, best_epoch=epoch, waited=0)
  else:
    schedule = schedule._replace(waited=schedule.waited + 1)
  if not schedule.lowered and score >= threshold:
    schedule = schedule._replace(rate=lower_rate, lowered=True, waited=0)
  return schedule

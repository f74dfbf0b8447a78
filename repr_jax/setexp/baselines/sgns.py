"""Skip-gram with negative sampling over pairs of entity and context.

    loss(x, c) = -log s(v_x . u_c) - K E_n log s(-v_x . u_n),  s the sigmoid,

n drawn from the contexts' frequencies to the power 3/4. A step takes a batch
of pairs and draws negatives that the whole batch shares, each with weight K /
(number drawn). The expectation equals that of K negatives per pair, but the
products are dense. Only rows that a step touches are read and written.
"""

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from repr_jax.ops import mesh as meshes
from repr_jax.ops.precision import chosen_products


class Config(NamedTuple):
  """How to train; static under jit.

  Attributes:
    dim: numbers in a vector.
    num_negatives: negatives K for each pair.
    shared: negatives drawn for a batch.
    batch_size: pairs in a step.
    learning_rate: at the first step; falls linearly to 1e-4 of that.
    power: exponent of the contexts' frequencies for negatives.
  """

  dim: int = 100
  num_negatives: int = 5
  shared: int = 64
  batch_size: int = 256
  learning_rate: float = 0.1
  power: float = 0.75


class State(NamedTuple):
  """Tables and the source of randomness.

  Attributes:
    entities: vectors v of entities, [X, d].
    contexts: vectors u of contexts, [F, d].
    key: for the next batch's negatives.
  """

  entities: jax.Array
  contexts: jax.Array
  key: jax.Array


class Batch(NamedTuple):
  """Pairs of one step.

  Attributes:
    entities: int32 [b].
    contexts: int32 [b].
    weights: 1, or 0 for padding, [b].
    rate: learning rate, [].
  """

  entities: jax.Array
  contexts: jax.Array
  weights: jax.Array
  rate: jax.Array


class Noise(NamedTuple):
  """The negatives' distribution as an alias table: one draw, no search.

  Attributes:
    keep: chance that a column stays as drawn, float32 [F].
    other: the column that replaces it otherwise, int32 [F].
  """

  keep: jax.Array
  other: jax.Array


def init(key: jax.Array, shape: tuple[int, int], dim: int) -> State:
  """Starts as word2vec does: small entities, contexts at zero.

  Args:
    key: source of randomness.
    shape: numbers of entities X and contexts F.
    dim: d.

  Returns:
    The state, tables [X, d] and [F, d].
  """
  key, draw = jax.random.split(key)
  entities = jax.random.uniform(draw, (shape[0], dim)) - 0.5
  return State(entities / dim, jnp.zeros((shape[1], dim)), key)


@chosen_products
def loss(
  entities: jax.Array,
  contexts: jax.Array,
  negatives: jax.Array,
  weights: jax.Array,
  ratio: float,
) -> jax.Array:
  """Loss of a batch of pairs that share negatives, summed over pairs.

  Args:
    entities: v of each pair, [b, d].
    contexts: u of each pair, [b, d].
    negatives: u of the shared negatives, [s, d].
    weights: of each pair, [b].
    ratio: weight of a negative, K / s.

  Returns:
    The sum, [].
  """
  chex.assert_rank([entities, contexts, negatives, weights], [2, 2, 2, 1])
  positive = jax.nn.softplus(-(entities * contexts).sum(1))
  negative = jax.nn.softplus(entities @ negatives.T).sum(1)
  return weights @ (positive + ratio * negative)


def update(
  config: Config, noise: Noise, state: State, batch: Batch
) -> tuple[State, jax.Array]:
  """One step of gradient descent on the rows that the batch touches.

  Args:
    config: static.
    noise: the negatives' distribution.
    state: tables [X, d] and [F, d].
    batch: pairs [b].

  Returns:
    The new state and the batch's mean loss, [].
  """
  key, draw = jax.random.split(state.key)
  negatives = draw_negatives(draw, noise, config.shared)
  # One gather and one scatter for each table: more would copy it whole.
  touched = jnp.concatenate([batch.contexts, negatives])
  size, ratio = batch.contexts.shape[0], config.num_negatives / config.shared

  def objective(entities, contexts):
    near, far = contexts[:size], contexts[size:]
    return loss(entities, near, far, batch.weights, ratio)

  value, (first, second) = jax.value_and_grad(objective, argnums=(0, 1))(
    state.entities[batch.entities], state.contexts[touched]
  )
  entities = state.entities.at[batch.entities].add(-batch.rate * first)
  contexts = state.contexts.at[touched].add(-batch.rate * second)
  mean = value / jnp.maximum(batch.weights.sum(), 1)
  return State(entities, contexts, key), mean


def draw_negatives(key: jax.Array, noise: Noise, count: int) -> jax.Array:
  """Draws contexts from the noise distribution, int32 [count]."""
  column, stay = jax.random.split(key)
  size = noise.keep.shape[0]
  drawn = jax.random.randint(column, (count,), 0, size, jnp.int32)
  kept = jax.random.uniform(stay, (count,), jnp.float32) < noise.keep[drawn]
  return jnp.where(kept, drawn, noise.other[drawn])


@partial(jax.jit, static_argnums=0, donate_argnums=2)
def train(
  config: Config, noise: Noise, state: State, batches: Batch
) -> tuple[State, jax.Array]:
  """Runs many steps in one program; the state is donated.

  Args:
    config: static.
    noise: the negatives' distribution.
    state: tables [X, d] and [F, d].
    batches: pairs of each step, fields [n, b], rate [n].

  Returns:
    The new state and the loss of each step, [n].
  """
  return lax.scan(partial(update, config, noise), state, batches)


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=3)
def train_runs(
  config: Config, mesh: Mesh | None, noise: Noise, states: State, batches: Batch
) -> tuple[State, jax.Array]:
  """`train` of several runs in one program; the states are donated.

  Args:
    config: static; the same for all runs.
    mesh: devices that share the runs; None for one (static).
    noise: the negatives' distributions, fields [r, F].
    states: tables [r, X, d] and [r, F, d], keys [r].
    batches: pairs of each step, fields [r, n, b], rate [r, n].

  Returns:
    The new states and the losses, [r, n].
  """

  def one(run):
    own, state, pairs = run
    return lax.scan(partial(update, config, own), state, pairs)

  def many(*runs):
    # On a CPU the products of one run fill a core; other devices need vmap.
    in_turn = jax.default_backend() == "cpu"
    return lax.map(one, runs) if in_turn else jax.vmap(one)(runs)

  if mesh is not None:
    cut = PartitionSpec(mesh.axis_names)
    many = meshes.shard_map(many, mesh, (cut,) * 3, (cut, cut))
  return many(noise, states, batches)


def make_noise(frequency: np.ndarray) -> Noise:
  """Alias table of a distribution (Walker 1977).

  Args:
    frequency: probabilities, [F].
  """
  share = np.asarray(frequency, np.float64)
  share = share / share.sum() * len(share)
  keep, other = np.ones(len(share)), np.arange(len(share))
  poor = np.flatnonzero(share < 1).tolist()
  rich = np.flatnonzero(share >= 1).tolist()
  while poor and rich:
    low, high = poor.pop(), rich[-1]
    keep[low], other[low] = share[low], high
    share[high] -= 1 - share[low]
    if share[high] < 1:
      poor.append(rich.pop())
  return Noise(jnp.asarray(keep, jnp.float32), jnp.asarray(other, jnp.int32))


def pairs(
  counts: sp.csr_array, rng: np.random.Generator, config: Config
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """All pairs of one epoch, shuffled and padded to whole batches.

  Args:
    counts: feature counts, [X, F]; fractions are rounded up.
    rng: source of the order.

  Returns:
    Entities int32 [n, b], contexts int32 [n, b] and weights [n, b].
  """
  times = np.ceil(counts.data).astype(np.int64)
  owner = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
  order = rng.permutation(np.repeat(np.arange(len(times)), times))
  steps = -(-len(order) // config.batch_size)
  padding = steps * config.batch_size - len(order)
  order = np.append(order, np.zeros(padding, order.dtype))
  weights = np.ones(len(order), np.float32)
  weights[len(order) - padding :] = 0
  shape = (steps, config.batch_size)
  return (
    owner[order].astype(np.int32).reshape(shape),
    counts.indices[order].astype(np.int32).reshape(shape),
    weights.reshape(shape),
  )

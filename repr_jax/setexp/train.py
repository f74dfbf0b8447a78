"""The bound on log p(x), and steps that read and write touched rows alone.

The first layer's table [F, h] is by far the largest array, and a batch has a
few thousand of its rows. They are gathered together with their optimizer
state, stepped, and put back: the optimizer is lazy on them, like
`torch.optim.SparseAdam`. Rows outside the batch keep weights and state;
counters count all steps. A sampled softmax updates the decoder's rows in the
same way.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import chex
import jax
import jax.numpy as jnp
import optax
from jax import lax

from repr_jax.ops import gaussian
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp import autoencoder, batch_rows, softmax
from repr_jax.setexp.batches import Batch
from repr_jax.setexp.rows import Rows

Optimizer: TypeAlias = optax.GradientTransformation | Callable[[Any], Any]


class Hyper(NamedTuple):
  """Hyperparameters of training, traced: runs that differ in them vmap.

  Attributes:
    learning_rate: step size; read if the optimizer is a function of it.
    beta: weight of the KL term.
    smoothing: share of the targets that is spread evenly; None skips it. A
      sampled softmax does not support it.
    likelihood: weight of the log-likelihood; None for 1.
    dropout: share of the encoder's inputs that a step leaves out, the others
      scaled up; None skips it.
    prior_variance: of the concepts; None for the configuration's.
  """

  learning_rate: Any = 1e-3
  beta: Any = 1.0
  smoothing: Any = None
  likelihood: Any = None
  dropout: Any = None
  prior_variance: Any = None


class State(NamedTuple):
  """Parameters and optimizer state.

  Attributes:
    rows: the first layer with its optimizer state beside it, [F, n h].
    encoder: flax parameters of the rest of the encoder.
    decoder: [F, d + 1].
    optimizer: the other leaves of the optimizer's state.
    inputs: statistics for the weighting.
  """

  rows: jax.Array
  encoder: Any
  decoder: jax.Array
  optimizer: tuple[jax.Array, ...]
  inputs: autoencoder.Inputs


class Info(NamedTuple):
  """Means over the entities of a batch, in nats.

  Attributes:
    loss: beta KL less the weighted log-likelihood, which is minimized, [].
    reconstruction: the (smoothed) log-likelihood, [].
    kl: KL(q(z | x) || prior), [].
  """

  loss: jax.Array
  reconstruction: jax.Array
  kl: jax.Array


class VAE(NamedTuple):
  """The functions of `vae`, both jitted.

  Attributes:
    init: from a key and `Statistics` to a `State`.
    update: from `State`, `Batch`, key and `Hyper` to the next state and
      `Info`.
  """

  init: Callable[..., State]
  update: Callable[..., tuple[State, Info]]


class _Parts(NamedTuple):
  """Parameters that a batch touches, which a step differentiates."""

  rows: jax.Array  # of the first layer, [u, h]
  encoder: Any
  decoder: jax.Array | None  # [F, d + 1]; None under a sampled softmax
  targets: jax.Array  # decoder rows of the batch's features, [u, d + 1]
  samples: jax.Array  # decoder rows that were drawn, [s, d + 1]


def vae(
  config: autoencoder.Config,
  optimizer: Optimizer = optax.adam,
  *,
  samples: int = 1,
) -> VAE:
  """Training of the autoencoder as a pair of pure functions.

  A step minimizes beta KL(q(z | x) || prior) - E_q log p(x | z), averaged over
  a batch, with z = mean + deviation * noise (thesis eq. 4.11). Under vmap, runs
  have their own keys and hyperparameters.

  >>> import jax, jax.numpy as jnp, optax
  >>> from repr_jax import setexp
  >>> counts = jnp.array([[3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(8,))
  >>> init, update = setexp.vae(config, optax.adam)
  >>> state = init(jax.random.key(0), setexp.statistics(config, counts))
  >>> batch, hyper = setexp.dense_batch(counts), setexp.Hyper(0.01, beta=0.1)
  >>> losses = []
  >>> for key in jax.random.split(jax.random.key(1), 100):
  ...   state, info = update(state, batch, key, hyper)
  ...   losses.append(float(info.loss))
  >>> losses[-1] < losses[0]
  True

  Args:
    config: the configuration.
    optimizer: an optax optimizer, or a function of the learning rate that
      gives one, such as `optax.adam`: then `Hyper.learning_rate` is used.
    samples: of z for each entity.

  Returns:
    The pair (init, update).
  """

  def init(key, statistics, word_vectors=None):
    params = autoencoder.init(config, key, statistics, word_vectors)
    return init_state(config, optimizer, params, statistics.inputs)

  def update(state, batch, key, hyper=_HYPER):
    shape = (samples, batch.weights.shape[0], config.dim)
    noise = jax.random.normal(key, shape, state.decoder.dtype)
    other = None if hyper.dropout is None else jax.random.fold_in(key, 1)
    return step(config, optimizer, state, batch, noise, hyper, other)

  return VAE(jax.jit(init), jax.jit(update))


_HYPER = Hyper()


def init_state(
  config: autoencoder.Config,
  optimizer: Optimizer,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
) -> State:
  """The state before the first step.

  Args:
    optimizer: as in `vae`.
    params: the parameters; the state does not share their memory.
    inputs: statistics for the weighting.
  """
  params, inputs = jax.tree.map(jnp.array, (params, inputs))
  leaves = jax.tree.leaves(_transform(optimizer, 0.0).init(params))
  kinds = _kinds(config, optimizer, params)
  size = params.table.shape[0]
  beside = [
    x.reshape(size, -1) for x, kind in zip(leaves, kinds) if kind == "row"
  ]
  others = tuple(x for x, kind in zip(leaves, kinds) if kind != "row")
  rows = jnp.concatenate([params.table, *beside], axis=1)
  return State(rows, params.encoder, params.decoder, others, inputs)


def parameters(config: autoencoder.Config, state: State) -> autoencoder.Params:
  """The parameters of a state; the first layer is copied out of its rows.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> init, _ = setexp.vae(config)
  >>> state = init(jax.random.key(0), setexp.statistics(config, jnp.eye(3)))
  >>> setexp.parameters(config, state).table.shape
  (3, 4)

  Args:
    config: the configuration (static).
    state: of `vae`.

  Returns:
    The parameters.
  """
  table = state.rows[:, : config.hidden[0]]
  return autoencoder.Params(table, state.encoder, state.decoder)


def elbo(
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  row: Rows,
  noise: jax.Array,
) -> autoencoder.Elbo:
  """The evidence lower bound of one entity (thesis eq. 4.11).

  E_q log p(x | z) - KL(q(z | x) || prior), the expectation by samples
  z = mean + deviation * noise.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> counts = jnp.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
  >>> statistics = setexp.statistics(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> noise = jax.random.normal(jax.random.key(1), (5, 2))
  >>> row = setexp.rows_from_dense(counts[0])
  >>> terms = setexp.elbo(config, params, statistics.inputs, row, noise)
  >>> bool(terms.value < 0 < terms.kl)
  True

  Args:
    config: the configuration (static).
    params: the parameters.
    inputs: statistics for the weighting.
    row: the entity's features, distinct, fields [m].
    noise: standard normal, [s, d].

  Returns:
    The terms, scalars; the first is a mean over the s samples.
  """
  chex.assert_rank([*row, noise], [1, 1, 2])
  size, features = row.indices.shape[0], params.decoder.shape[0]
  place = jnp.arange(size, dtype=jnp.int32)
  valid = (row.indices >= 0) & (row.indices < features)
  dtype = params.decoder.dtype
  batch = Batch(
    jnp.where(valid, row.indices, features + place),
    jnp.where(valid, place, size + place),
    row.counts,
    jnp.ones(1, dtype),
    jnp.zeros(0, jnp.int32),
    jnp.zeros(0, dtype),
  )
  terms = batch_terms(config, inputs, params, batch, noise[:, None])
  return autoencoder.Elbo(*(x[0] for x in terms))


def batch_terms(
  config: autoencoder.Config,
  inputs: autoencoder.Inputs,
  params: autoencoder.Params,
  batch: Batch,
  noise: jax.Array,
  prior_variance: Any = None,
) -> autoencoder.Elbo:
  """Terms of the bound for each entity of a batch, by the exact softmax.

  Args:
    inputs: statistics for the weighting.
    noise: standard normal, [samples, b, d].
    prior_variance: of the concepts, traced; None for the configuration's.

  Returns:
    The terms, fields [b].
  """
  parts = _Parts(
    batch_rows.take(params.table, batch.features),
    params.encoder,
    params.decoder,
    batch_rows.take(params.decoder, batch.features),
    jnp.zeros((0, params.decoder.shape[1]), params.decoder.dtype),
  )
  hyper = Hyper(prior_variance=prior_variance)
  return _terms(config, inputs, parts, batch, noise, hyper)


def step(
  config: autoencoder.Config,
  optimizer: Optimizer,
  state: State,
  batch: Batch,
  noise: jax.Array,
  hyper: Hyper,
  key: jax.Array | None = None,
) -> tuple[State, Info]:
  """One step; see `vae`.

  Args:
    config: the configuration (static).
    optimizer: as in `vae` (static).
    noise: standard normal, [samples, b, d].
    key: random key of the dropout; None without.

  Returns:
    The next state and the means over the batch.
  """
  exact = config.sampled == 0
  width = config.hidden[0]
  gathered = batch_rows.take(state.rows, batch.features)
  rows = gathered[:, :width]
  drawn = jnp.concatenate([batch.features, batch.samples], axis=-1)
  touched = batch_rows.take(state.decoder, drawn)
  targets, samples = batch_rows.split(touched, batch.features.shape)
  decoder = state.decoder if exact else None
  parts = _Parts(rows, state.encoder, decoder, targets, samples)
  slopes, info = jax.grad(
    lambda parts: _loss(config, state.inputs, parts, batch, noise, hyper, key),
    has_aux=True,
  )(parts)
  if exact:
    slope = batch_rows.add(slopes.decoder, batch.features, slopes.targets)
    stepped = state.decoder
  else:
    slope = batch_rows.join(
      slopes.targets, slopes.samples, batch.features.shape
    )
    stepped = touched
  params = autoencoder.Params(rows, state.encoder, stepped)
  gradient = autoencoder.Params(slopes.rows, slopes.encoder, slope)
  kinds = _kinds(config, optimizer, params)
  lazy = [kind == "drawn" and not exact for kind in kinds]
  transform = _transform(optimizer, hyper.learning_rate)
  form = jax.eval_shape(transform.init, params)
  others, leaves, start = iter(state.optimizer), [], width
  for like, kind, late in zip(jax.tree.leaves(form), kinds, lazy):
    if kind == "row":
      end = start + math.prod(like.shape[1:])
      leaves.append(gathered[:, start:end].reshape(like.shape))
      start = end
    else:
      whole = next(others)
      leaves.append(batch_rows.take(whole, drawn) if late else whole)
  change, memory = transform.update(
    gradient, jax.tree.unflatten(jax.tree.structure(form), leaves), params
  )
  params = optax.apply_updates(params, change)
  leaves = jax.tree.leaves(memory)
  flat = [
    x.reshape(rows.shape[0], -1) for x, k in zip(leaves, kinds) if k == "row"
  ]
  all_rows = batch_rows.put(
    state.rows, batch.features, jnp.concatenate([params.table, *flat], axis=1)
  )
  kept = [(x, y) for x, y, k in zip(leaves, lazy, kinds) if k != "row"]
  memory = tuple(
    batch_rows.put(old, drawn, new) if late else new
    for old, (new, late) in zip(state.optimizer, kept)
  )
  decoder = (
    params.decoder
    if exact
    else batch_rows.put(state.decoder, drawn, params.decoder)
  )
  new = State(all_rows, params.encoder, decoder, memory, state.inputs)
  # Under x64 an optimizer's scalars are float64 and would widen its state.
  return jax.tree.map(_like, new, state), info


def run_steps(
  config: autoencoder.Config,
  optimizer: Optimizer,
  state: State,
  batches: Batch,
  noise: jax.Array,
  hyper: Hyper,
  keys: jax.Array | None = None,
) -> tuple[State, Info]:
  """Several steps in one program; see `step`.

  Args:
    config: the configuration (static when jitted).
    optimizer: as in `vae` (static when jitted).
    state: the state; donated when jitted.
    batches: with a leading axis of steps.
    noise: standard normal, [steps, samples, b, d].
    keys: random keys of the dropout, [steps]; None without.

  Returns:
    The last state and the means of each step, fields [steps].
  """

  def one(state, item):
    batch, noise, key = item
    return step(config, optimizer, state, batch, noise, hyper, key)

  return lax.scan(one, state, (batches, noise, keys))


run = jax.jit(run_steps, static_argnums=(0, 1), donate_argnums=2)


def _transform(optimizer: Optimizer, rate) -> optax.GradientTransformation:
  if isinstance(optimizer, optax.GradientTransformation):
    return optimizer
  return optimizer(rate)


def _kinds(config, optimizer, params) -> list[str]:
  """Which leaves of the optimizer's state grow with the first layer's rows
  ("row"), with the decoder's ("drawn"), or with neither ("whole")."""

  def shapes(more=0, other=0):
    longer = params._replace(
      table=jax.ShapeDtypeStruct(
        (params.table.shape[0] + more, config.hidden[0]), params.table.dtype
      ),
      decoder=jax.ShapeDtypeStruct(
        (params.decoder.shape[0] + other, config.dim + 1),
        params.decoder.dtype,
      ),
    )
    form = jax.eval_shape(_transform(optimizer, 0.0).init, longer)
    return [x.shape for x in jax.tree.leaves(form)]

  return [
    "row" if a != b else "drawn" if a != c else "whole"
    for a, b, c in zip(shapes(), shapes(1), shapes(0, 1))
  ]


@chosen_products
def _terms(config, inputs, parts, batch, noise, hyper, key=None):
  """Terms [b] of the bound; noise [samples, b, d]."""
  smoothing, prior_variance = hyper.smoothing, hyper.prior_variance
  if smoothing is not None:
    smoothing = jnp.asarray(smoothing, parts.targets.dtype)
  if prior_variance is None:
    prior_variance = config.prior_variance
  counts = batch_rows.counts(batch, parts.targets.dtype)
  b = counts.shape[0]
  length = counts.sum(axis=1, keepdims=True)
  features = batch.features.reshape(-1)
  idf = batch_rows.take(inputs.idf, features).astype(counts.dtype)
  mean_length = jnp.asarray(inputs.mean_length, counts.dtype)
  weighted = autoencoder.weigh(config, counts, idf, length, mean_length)
  weighted = weighted.astype(counts.dtype)
  if config.unit_inputs:
    weighted = autoencoder.unit_length(weighted)
  if config.targets == "inputs":
    counts = autoencoder.unit_sum(weighted)
  if hyper.dropout is not None:
    weighted = autoencoder.drop_inputs(key, weighted, hyper.dropout)
  posterior = jax.vmap(
    functools.partial(autoencoder.encode_sums, config, parts.encoder)
  )(weighted @ parts.rows)
  z = posterior.mean + jnp.exp(posterior.log_variance / 2) * noise
  kl = jax.vmap(
    functools.partial(gaussian.kl_to_prior, prior_variance=prior_variance)
  )(*posterior)
  z = autoencoder.with_one(z).reshape(noise.shape[0] * b, -1)
  own = features < inputs.idf.shape[0]
  value = softmax.log_likelihood(
    config, parts, own, batch.log_weights, counts, z, smoothing
  )
  return autoencoder.Elbo(value.reshape(-1, b).mean(axis=0), kl)


@chosen_products
def _loss(config, inputs, parts, batch, noise, hyper, key):
  terms = _terms(config, inputs, parts, batch, noise, hyper, key)
  share = batch.weights / jnp.maximum(batch.weights.sum(), 1)
  reconstruction, kl = (jnp.sum(share * x) for x in terms)
  given = hyper.beta, 1 if hyper.likelihood is None else hyper.likelihood
  beta, gain = (jnp.asarray(x, kl.dtype) for x in given)
  loss = beta * kl - gain * reconstruction
  return loss, Info(loss, reconstruction, kl)


def _like(new, old):
  return new.astype(jnp.result_type(old))

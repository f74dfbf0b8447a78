"""Steps of training that read and write touched rows of the encoder alone.

The first layer's table [F, h] is by far the largest array, and a batch has a
few thousand of its rows. They are gathered together with their two moments,
stepped, and put back. This is lazy Adam, as `torch.optim.SparseAdam`: rows
outside the batch keep weights and moments, neither decays in between, and the
bias correction counts all steps. What is small, and the decoder under an
exact softmax, follows plain Adam; a sampled softmax steps the decoder's rows
lazily too. The formula is optax' (epsilon beside the corrected root).
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from repr_jax.ops import gaussian
from repr_jax.setexp import autoencoder, softmax
from repr_jax.setexp.batches import Batch

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8


class Moments(NamedTuple):
  """Adam's running means of the gradient and its square, as the parameters."""

  first: Any
  second: Any


class State(NamedTuple):
  """Parameters and moments.

  Attributes:
    step: steps taken, int32 scalar.
    rows: the first layer with its moments beside it, [F, 3 h].
    encoder: flax parameters of the rest of the encoder.
    encoder_moments: their moments.
    decoder: [F, d + 1].
    decoder_moments: its moments.
  """

  step: jax.Array
  rows: jax.Array
  encoder: Any
  encoder_moments: Moments
  decoder: jax.Array
  decoder_moments: Moments


class Info(NamedTuple):
  """Means over the entities of a batch, in nats.

  Attributes:
    loss: what is minimized: beta KL less the (smoothed) log-likelihood, [].
    reconstruction: the (smoothed) log-likelihood, [].
    kl: KL(q(z | x) || prior), [].
  """

  loss: jax.Array
  reconstruction: jax.Array
  kl: jax.Array


class _Parts(NamedTuple):
  """Parameters that a batch touches: what a step differentiates."""

  rows: jax.Array  # of the first layer, [u, h]
  encoder: Any
  decoder: jax.Array | None  # [F, d + 1]; None under a sampled softmax
  targets: jax.Array  # decoder rows of the batch's features, [u, d + 1]
  samples: jax.Array  # decoder rows that were drawn, [s, d + 1]


def init(params: autoencoder.Params) -> State:
  """The state before the first step.

  Args:
    params: the parameters; the state does not share their memory.

  Returns:
    The state, with moments of 0.
  """
  zeros = functools.partial(jax.tree.map, jnp.zeros_like)
  width = params.table.shape[1]
  rows = jnp.pad(params.table, ((0, 0), (0, 2 * width)))
  encoder, decoder = jax.tree.map(jnp.array, (params.encoder, params.decoder))
  return State(
    jnp.zeros((), jnp.int32),
    rows,
    encoder,
    Moments(zeros(encoder), zeros(encoder)),
    decoder,
    Moments(zeros(decoder), zeros(decoder)),
  )


def parameters(state: State) -> autoencoder.Params:
  """The parameters of a state; the first layer is copied out of its rows."""
  width = state.rows.shape[1] // 3
  return autoencoder.Params(state.rows[:, :width], state.encoder, state.decoder)


def batch_terms(
  config: autoencoder.Config,
  inputs: autoencoder.Inputs,
  params: autoencoder.Params,
  batch: Batch,
  noise: jax.Array,
) -> autoencoder.Elbo:
  """Terms of the bound for each entity of a batch, by the exact softmax.

  Args:
    config: the configuration; its smoothing counts.
    inputs: statistics for the weighting.
    params: the parameters.
    batch: the batch.
    noise: standard normal, [samples, b, d].

  Returns:
    The terms, fields [b].
  """
  parts = _Parts(
    _take(params.table, batch.features),
    params.encoder,
    params.decoder,
    _take(params.decoder, batch.features),
    jnp.zeros((0, params.decoder.shape[1]), params.decoder.dtype),
  )
  return _terms(config, inputs, parts, batch, noise)


def update(
  config: autoencoder.Config,
  inputs: autoencoder.Inputs,
  state: State,
  batch: Batch,
  noise: jax.Array,
  rate: jax.Array | float,
) -> tuple[State, Info]:
  """One step of Adam on -(reconstruction - beta KL), averaged over a batch.

  Args:
    config: the configuration (static).
    inputs: statistics for the weighting.
    state: the state.
    batch: the batch.
    noise: standard normal, [samples, b, d].
    rate: step size, scalar.

  Returns:
    The next state and the means over the batch.
  """
  step = state.step + 1
  width = state.rows.shape[1] // 3
  adam = functools.partial(_adam, step, rate)
  rows, row_first, row_second = jnp.split(
    _take(state.rows, batch.features), [width, 2 * width], axis=1
  )
  drawn = jnp.concatenate([batch.features, batch.samples])
  exact = config.sampled == 0
  touched = _take(state.decoder, drawn)
  targets, samples = jnp.split(touched, [batch.features.shape[0]])
  parts = _Parts(
    rows, state.encoder, state.decoder if exact else None, targets, samples
  )
  slopes, info = jax.grad(
    lambda parts: _loss(config, inputs, parts, batch, noise), has_aux=True
  )(parts)
  stepped = adam(rows, row_first, row_second, slopes.rows)
  all_rows = _put(state.rows, batch.features, jnp.concatenate(stepped, axis=1))
  encoder, moments = _adam_tree(
    adam, state.encoder, state.encoder_moments, slopes.encoder
  )
  first, second = state.decoder_moments
  if exact:
    slope = slopes.decoder.at[batch.features].add(
      slopes.targets, mode="drop", unique_indices=True, indices_are_sorted=True
    )
    decoder, first, second = adam(state.decoder, first, second, slope)
  else:
    slope = jnp.concatenate([slopes.targets, slopes.samples])
    stepped = adam(touched, _take(first, drawn), _take(second, drawn), slope)
    decoder, first, second = (
      _put(whole, drawn, part)
      for whole, part in zip((state.decoder, first, second), stepped)
    )
  decoder_moments = Moments(first, second)
  return State(step, all_rows, encoder, moments, decoder, decoder_moments), info


def run_steps(
  config: autoencoder.Config,
  inputs: autoencoder.Inputs,
  state: State,
  batches: Batch,
  noise: jax.Array,
  rate: jax.Array | float,
) -> tuple[State, Info]:
  """Several steps in one program; see `update`.

  Args:
    config: the configuration (static when jitted).
    inputs: statistics for the weighting.
    state: the state; donated when jitted.
    batches: with a leading axis of steps.
    noise: standard normal, [steps, samples, b, d].
    rate: step size, scalar.

  Returns:
    The last state and the means of each step, fields [steps].
  """

  def step(state, item):
    batch, draw = item
    return update(config, inputs, state, batch, draw, rate)

  return lax.scan(step, state, (batches, noise))


run = jax.jit(run_steps, static_argnums=0, donate_argnums=2)


def _terms(config, inputs, parts, batch, noise):
  """Terms [b] of the bound; noise [samples, b, d]."""
  b, u = batch.weights.shape[0], batch.features.shape[0]
  counts = jnp.zeros(b * u, parts.targets.dtype)
  counts = counts.at[batch.cells].set(
    batch.counts.astype(counts.dtype), mode="drop", unique_indices=True
  )
  counts = counts.reshape(b, u)
  length = counts.sum(axis=1, keepdims=True)
  idf = _take(inputs.idf, batch.features).astype(counts.dtype)
  weighted = autoencoder.weigh(config, counts, idf, length, inputs.mean_length)
  posterior = jax.vmap(
    functools.partial(autoencoder.encode, config, parts.encoder)
  )(weighted.astype(counts.dtype) @ parts.rows)
  z = posterior.mean + jnp.exp(posterior.log_variance / 2) * noise
  kl = jax.vmap(
    functools.partial(
      gaussian.kl_to_prior, prior_variance=config.prior_variance
    )
  )(*posterior)
  z = autoencoder.with_one(z).reshape(noise.shape[0] * b, -1)
  own = batch.features < inputs.idf.shape[0]
  value = _log_likelihood(config, parts, own, batch.log_weights, counts, z)
  return autoencoder.Elbo(value.reshape(-1, b).mean(axis=0), kl)


def _log_likelihood(config, parts, own, log_weights, counts, z):
  """Log p(x | z), smoothed, [samples * b], of z [samples * b, d + 1]."""
  multilabel = config.decoder == "multilabel"
  target = (counts > 0).astype(counts.dtype) if multilabel else counts
  copies = z.shape[0] // counts.shape[0]
  # sum_i c_i (w_i . z) as (sum_i c_i w_i) . z, so that no [b, u] is made.
  chosen = jnp.tile(target @ parts.targets, (copies, 1))
  value = jnp.sum(chosen * z, axis=1)
  total = jnp.tile(target.sum(axis=1), copies)
  if parts.decoder is None:
    partition = softmax.sampled_log_partition(
      z, parts.targets, own, parts.samples, log_weights.astype(z.dtype)
    )
    return value - total * partition
  if config.smoothing:
    every = z @ parts.decoder.sum(axis=0)
    share = 0.5 if multilabel else total / parts.decoder.shape[0]
    value = (1 - config.smoothing) * value + config.smoothing * share * every
  if multilabel:
    return value - softmax.log_partition_bernoulli(z, parts.decoder)
  return value - total * softmax.log_partition(z, parts.decoder)


def _loss(config, inputs, parts, batch, noise):
  terms = _terms(config, inputs, parts, batch, noise)
  share = batch.weights / jnp.maximum(batch.weights.sum(), 1)
  reconstruction, kl = (jnp.sum(share * x) for x in terms)
  loss = config.beta * kl - reconstruction
  return loss, Info(loss, reconstruction, kl)


def _take(table, ids):
  # The barrier keeps the gather from being repeated inside its users.
  rows = jnp.asarray(table).at[ids].get(mode="clip", unique_indices=True)
  return lax.optimization_barrier(rows)


def _put(table, ids, rows):
  return table.at[ids].set(rows, mode="drop", unique_indices=True)


def _adam(step, rate, weight, first, second, slope):
  first = _FIRST * first + (1 - _FIRST) * slope
  second = _SECOND * second + (1 - _SECOND) * slope * slope
  # m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) with the corrections in
  # scalars: one division for each weight.
  count = step.astype(slope.dtype)
  root = jnp.sqrt(1 - _SECOND**count)
  size = jnp.asarray(rate, slope.dtype) * root / (1 - _FIRST**count)
  change = size * first / (jnp.sqrt(second) + _EPSILON * root)
  return weight - change, first, second


def _adam_tree(adam, weights, moments, slopes):
  found = jax.tree.map(adam, weights, *moments, slopes)
  weights, first, second = (
    jax.tree.map(lambda _, x, i=i: x[i], weights, found) for i in range(3)
  )
  return weights, Moments(first, second)

"""Training of the autoencoder by epochs, with early stopping on a bound.

`epoch` takes a state through the entities once; `bound` measures the sampled
ELBO. `fit` chains them, and an experiment that logs and checkpoints calls them
itself.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse as sp
from jax import lax
from jax.sharding import Mesh

from repr_jax import errors
from repr_jax.ops import early_stopping, sparse
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import (
  autoencoder,
  batches,
  from_scipy,
  sharding,
  softmax,
  svd_start,
  train,
)

_HYPER = train.Hyper()
_CHUNK = 50  # steps in one program


class Problem(NamedTuple):
  """Training data with its statistics.

  Attributes:
    config: the model's configuration.
    counts: float32 CSR [X, F], as `batches.check_counts` returns it.
    statistics: of the counts.
    proposal: where a sampled softmax draws from; None if it is exact.
  """

  config: autoencoder.Config
  counts: sp.csr_array
  statistics: autoencoder.Statistics
  proposal: softmax.Proposal | None


class Bound(NamedTuple):
  """The sampled evidence lower bound over entities.

  Attributes:
    elbo: mean over entities, in nats.
    reconstruction: its first term.
    kl: its second.
    perplexity: exp(-total ELBO / total count), an upper bound on the perplexity
      of a feature ("multilabel": of a present feature).
  """

  elbo: float
  reconstruction: float
  kl: float
  perplexity: float


class Fitted(NamedTuple):
  """A trained model.

  Attributes:
    params: the best parameters, or the last without validation entities.
    inputs: statistics for the weighting, which belong to the parameters.
    history: for each epoch its mean training loss and, with validation
      entities, their bound.
  """

  params: autoencoder.Params
  inputs: autoencoder.Inputs
  history: list[tuple[float, Bound | None]]


def prepare(config: autoencoder.Config, counts: sp.csr_array) -> Problem:
  """Checks counts and computes the statistics for training.

  Args:
    counts: [X, F].
  """
  counts = batches.check_counts(counts)
  proposal = None
  if config.sampled:
    totals = np.asarray(counts.sum(axis=0))
    proposal = softmax.make_proposal(config.proposal, totals)
  statistics = autoencoder.statistics_from_scipy(config, counts)
  return Problem(config, counts, statistics, proposal)


def epoch(
  problem: Problem,
  state: train.State,
  key: jax.Array,
  *,
  hyper: train.Hyper,
  optimizer: train.Optimizer = optax.adam,
  batch_size: int = 64,
  samples: int = 1,
  mesh: Mesh | None = None,
) -> tuple[train.State, train.Info]:
  """One pass over the entities in random order.

  The last batches are filled up with entities from the beginning of the
  order, so that all batches of an epoch have one shape.

  Args:
    state: the state; its memory is reused.
    key: random key: the same key gives the same epoch.
    hyper: learning rate, beta and smoothing.
    optimizer: as in `train.vae`.
    samples: of z for each entity.
    mesh: the mesh given to `sharding.place_state`; None for one device.

  Returns:
    The state and means over the epoch, fields [].
  """
  means = []
  drops = hyper.dropout is not None
  for packed, noise, keys in chunks(
    problem, key, batch_size, samples, dropout=drops
  ):
    if mesh is not None:
      packed, noise = sharding.place_batches(
        mesh, packed, noise, problem.counts.shape[1]
      )
    state, info = train.run(
      problem.config, optimizer, state, packed, noise, hyper, keys
    )
    means.append(info)
  means = meshes.to_host(means)
  stacked = jax.tree.map(lambda *x: np.concatenate(x).mean(), *means)
  return state, stacked


def start(
  problem: Problem,
  key: jax.Array,
  word_vectors: np.ndarray | None = None,
  *,
  svd: bool = False,
) -> autoencoder.Params:
  """Parameters before training.

  Args:
    word_vectors: start of the first layer, [F, h]; None to draw it.
    svd: start at the SVD of the encoder's inputs; see `svd_start`.
  """
  config, statistics = problem.config, problem.statistics
  if not svd:
    return autoencoder.init(config, key, statistics, word_vectors)
  if word_vectors is not None:
    raise errors.InputError("a model starts at word vectors or at the SVD")
  rows = from_scipy.encoder_rows(config, statistics.inputs, problem.counts)
  return svd_start.svd_start(config, key, statistics, sparse.from_scipy(rows))


def hyper_at(
  hyper: train.Hyper,
  epoch: int,
  epochs: int,
  *,
  warmup: int = 0,
  decay: bool = False,
  anneal: bool = False,
) -> train.Hyper:
  """Hyperparameters of one epoch.

  Args:
    epoch: counted from 0.
    warmup: epochs in which beta rises linearly to its value.
    decay: let the learning rate fall along half a cosine.
    anneal: let beta fall linearly, to 0 in the last of several epochs.

  Returns:
    `hyper` with the learning rate and beta of the epoch.
  """
  rate, beta = hyper.learning_rate, hyper.beta
  if decay:
    rate = rate * 0.5 * (1 + np.cos(np.pi * epoch / max(epochs, 1)))
  if warmup:
    beta = beta * min(1.0, (epoch + 1) / warmup)
  if anneal:
    beta = beta * (1 - epoch / max(epochs - 1, 1))
  return hyper._replace(learning_rate=rate, beta=beta)


def bound(
  config: autoencoder.Config,
  inputs: autoencoder.Inputs,
  params: autoencoder.Params,
  counts: sp.csr_array,
  key: jax.Array,
  *,
  samples: int = 1,
  batch_size: int = 64,
) -> Bound:
  """The evidence lower bound of entities, by the exact softmax.

  Args:
    inputs: statistics of the training counts.
    counts: of the entities to measure, [X, F].
    key: random key of the noise.
    samples: of z for each entity.
    batch_size: entities at a time.
  """
  counts = batches.check_counts(counts)
  # One program for all prior variances.
  prior = config.prior_variance
  config = dataclasses.replace(config, prior_variance=1.0)
  total = np.zeros(2)
  steps = -(-counts.shape[0] // batch_size)
  order = np.full(steps * batch_size, -1)
  # By length, so that few shapes and little padding are needed.
  order[: counts.shape[0]] = np.argsort(np.diff(counts.indptr), kind="stable")
  for i, rows in enumerate(order.reshape(steps, batch_size)):
    packed = jax.tree.map(lambda x: x[0], batches.pack(counts, rows[None]))
    noise_key = jax.random.fold_in(key, i)
    total += np.asarray(
      _bound_sums(config, samples, inputs, params, packed, noise_key, prior)
    )
  reconstruction, kl = total / counts.shape[0]
  tokens = counts.nnz if config.decoder == "multilabel" else counts.sum()
  # The exponent is bounded, so that the perplexity is always finite.
  nats = min(float((total[1] - total[0]) / tokens), 700.0)
  elbo = float(reconstruction - kl)
  return Bound(elbo, float(reconstruction), float(kl), float(np.exp(nats)))


def fit(
  counts: sp.csr_array,
  config: autoencoder.Config,
  key: jax.Array,
  *,
  epochs: int = 20,
  hyper: train.Hyper = _HYPER,
  optimizer: train.Optimizer = optax.adam,
  batch_size: int = 64,
  samples: int = 1,
  validation: sp.csr_array | None = None,
  patience: int = 3,
  word_vectors: np.ndarray | None = None,
  svd: bool = False,
  warmup: int = 0,
  decay: bool = False,
  anneal: bool = False,
  mesh: Mesh | None = None,
) -> Fitted:
  """Trains a model from counts.

  Args:
    counts: [X, F].
    config: the configuration.
    key: random key.
    epochs: passes over the entities, at most; 0 gives a random encoder.
    hyper: learning rate, beta and smoothing.
    optimizer: as in `train.vae`.
    batch_size: entities in a step.
    samples: of z for each entity in training.
    validation: entities whose bound decides when to stop, [V, F].
    patience: epochs in a row without a better bound before stopping.
    word_vectors: start of the first layer, [F, h].
    svd: start at the SVD of the inputs; see `svd_start`.
    warmup: epochs in which beta rises; see `hyper_at`.
    decay: whether the learning rate falls; see `hyper_at`.
    anneal: whether beta falls; see `hyper_at`.
    mesh: devices with the axes of `sharding.AXES`; None for one device.

  Returns:
    The model's parameters, finite.

  Raises:
    InputError: for counts or hyperparameters that cannot be used, or a loss
      or parameters that are not finite.
  """
  check_hyper(config, hyper)
  problem = prepare(config, counts)
  start_key, train_key, look_key = jax.random.split(key, 3)
  inputs = problem.statistics.inputs
  params = start(problem, start_key, word_vectors, svd=svd)
  state = train.init_state(config, optimizer, params, inputs)
  if mesh is not None:
    state = sharding.place_state(mesh, state, hyper.smoothing)
  best, history = None, []
  stopping = early_stopping.EarlyStopping(patience)
  look = functools.partial(bound, config, inputs, key=look_key, samples=samples)
  for i in range(epochs):
    epoch_key = jax.random.fold_in(train_key, i)
    state, info = epoch(
      problem, state, epoch_key, optimizer=optimizer,
      hyper=hyper_at(
        hyper, i, epochs, warmup=warmup, decay=decay, anneal=anneal
      ),
      batch_size=batch_size, samples=samples, mesh=mesh,
    )  # fmt: skip
    if not np.isfinite(info.loss):
      raise errors.InputError(
        f"the loss is not finite after epoch {i + 1}: lower the learning rate "
        f"{hyper.learning_rate:g}"
      )
    params = train.parameters(config, state)
    measured = None if validation is None else look(params, validation)
    history.append((float(info.loss), measured))
    if measured is not None:
      if stopping.update(i, measured.elbo):
        best = jax.tree.map(np.array, meshes.to_host(params))
      if stopping.should_stop:
        break
  chosen = params if best is None else best
  if mesh is not None:
    chosen = sharding.on_host(chosen, counts.shape[1])
  autoencoder.check_finite(chosen)  # the loss is that before the last step
  return Fitted(chosen, inputs, history)


def check_hyper(config: autoencoder.Config, hyper: train.Hyper) -> None:
  """Refuses hyperparameters that training cannot use, on the host."""
  rate, beta, smoothing, likelihood, dropout, prior = hyper
  if not 0 <= rate < np.inf:
    raise errors.InputError(
      f"the learning rate must be finite, 0 or more, not {rate}"
    )
  if not 0 <= beta < np.inf:
    raise errors.InputError(f"beta must be finite, 0 or more, not {beta}")
  if likelihood is not None and not 0 <= likelihood < np.inf:
    raise errors.InputError(
      f"the likelihood's weight must be finite, 0 or more, not {likelihood}"
    )
  if prior is not None and not 0 < prior < np.inf:
    raise errors.InputError(f"the prior variance must be positive, not {prior}")
  if dropout is not None and not 0 <= dropout < 1:
    raise errors.InputError(f"dropout must be in [0, 1), not {dropout}")
  if smoothing is not None and not 0 <= smoothing < 1:
    raise errors.InputError(f"smoothing must be in [0, 1), not {smoothing}")
  if smoothing and config.sampled:
    raise errors.InputError("a sampled softmax has no smoothing: leave it out")


def chunks(
  problem: Problem,
  key: jax.Array,
  batch_size: int = 64,
  samples: int = 1,
  *,
  dropout: bool = False,
) -> Iterator[tuple[batches.Batch, jax.Array, jax.Array | None]]:
  """The batches of an epoch, as `train.run_steps` takes them.

  Args:
    samples: of z for each entity.
    dropout: whether steps drop inputs.

  Yields:
    Packed batches with a leading axis of steps, noise [steps, samples, b, d]
    and keys of the dropout [steps], None without.
  """
  config, counts = problem.config, problem.counts
  seed = np.asarray(jax.random.key_data(key)).ravel()
  rng = np.random.default_rng(seed)
  dropout_key = jax.random.fold_in(key, 1 << 20)
  batch = min(batch_size, counts.shape[0])
  lengths = batches.typical_lengths(counts, batch)
  steps = -(-counts.shape[0] // batch)
  parts = -(-steps // _CHUNK)
  length = -(-steps // parts)
  order = rng.permutation(counts.shape[0])
  order = np.resize(order, parts * length * batch)
  for i, rows in enumerate(order.reshape(parts, length, batch)):
    packed = batches.pack(
      counts, rows, problem.proposal, config.sampled, rng, lengths
    )
    shape = (length, samples, batch, config.dim)
    keys = None
    if dropout:
      dropout_key, own = jax.random.split(dropout_key)
      keys = jax.random.split(own, length)
    yield packed, jax.random.normal(jax.random.fold_in(key, i), shape), keys


@functools.partial(jax.jit, static_argnums=(0, 1))
def _bound_sums(config, samples, inputs, params, packed, key, prior):
  """Sums [2] of both terms over a batch, one sample of z at a time."""
  shape = (samples, 1, packed.weights.shape[0], config.dim)
  noise = jax.random.normal(key, shape, params.decoder.dtype)
  terms = lax.map(
    lambda x: train.batch_terms(config, inputs, params, packed, x, prior), noise
  )
  return jnp.stack([jnp.sum(packed.weights * x.mean(axis=0)) for x in terms])

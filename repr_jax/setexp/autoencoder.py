"""The variational autoencoder of entities (thesis 4.5).

A concept z ~ N(0, s2 I) gives the features of an entity: multinomial with
softmax(decoder(z)), or independent Bernoulli. An encoder with tanh layers
gives a diagonal Gaussian q(z | x). Two tables are as long as there are
features, the encoder's first layer [F, h] and the decoder [F, d + 1] with its
bias as the last column; everything else is small. Functions take one entity.
"""

import dataclasses
from typing import Any, NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax import errors
from repr_jax.ops import gaussian

_CHOICES = {
  "decoder": ("multinomial", "multilabel"),
  "weighting": ("raw", "log1p", "l1", "bm25"),
  "proposal": ("log_uniform", "unigram"),
}
# Of BM25, as in the baseline of the same name.
_K1, _B = 1.5, 0.75


@dataclasses.dataclass(frozen=True)
class Config:
  """What a model is; the defaults are the thesis' (4.7.2).

  Attributes:
    latent: numbers in a concept, d.
    hidden: widths of the encoder's tanh layers.
    decoder: "multinomial" or "multilabel" (independent Bernoulli).
    beta: weight of the KL term in training.
    lower_bounded_variance: the log-variance goes through a sigmoid, so that
      every variance lies in [1, e] (`lbv` in chapter 6).
    smoothing: share of the targets that is spread evenly in training.
    weighting: of the encoder's inputs: "raw" counts, "log1p", "l1" (counts
      that sum to 1) or "bm25".
    prior_variance: s2.
    sampled: features drawn for a sampled softmax; 0 for the exact one.
    proposal: they are drawn by "unigram" counts, or by "log_uniform" ranks.
    frequency_bias: the decoder's bias starts at the log frequencies.
  """

  latent: int = 50
  hidden: tuple[int, ...] = (500,)
  decoder: str = "multinomial"
  beta: float = 1.0
  lower_bounded_variance: bool = False
  smoothing: float = 0.0
  weighting: str = "raw"
  prior_variance: float = 1.0
  sampled: int = 0
  proposal: str = "unigram"
  frequency_bias: bool = True

  def __post_init__(self):
    object.__setattr__(self, "hidden", tuple(self.hidden))
    for name, choices in _CHOICES.items():
      if getattr(self, name) not in choices:
        raise errors.InputError(
          f"{name} must be one of {', '.join(choices)}, "
          f"not {getattr(self, name)!r}"
        )
    if not self.hidden or min(self.hidden) < 1 or self.latent < 1:
      raise errors.InputError("latent and all hidden widths must be positive")
    if not (0 <= self.smoothing < 1 and 0 <= self.beta < np.inf):
      raise errors.InputError("smoothing must be in [0, 1), beta at least 0")
    if not 0 < self.prior_variance < np.inf:
      raise errors.InputError("prior_variance must be positive")
    if self.sampled and (self.decoder != "multinomial" or self.smoothing):
      raise errors.InputError(
        "a sampled softmax needs a multinomial decoder without smoothing"
      )


class Inputs(NamedTuple):
  """What the weighting of inputs takes from the training counts.

  Attributes:
    idf: inverse document frequencies, [F]; used by "bm25".
    mean_length: mean total count of an entity, scalar.
  """

  idf: Any
  mean_length: Any


class Params(NamedTuple):
  """What is trained.

  Attributes:
    table: the encoder's first layer, [F, h].
    encoder: flax parameters of `Encoder`.
    decoder: weights and, in the last column, biases, [F, d + 1].
  """

  table: jax.Array
  encoder: Any
  decoder: jax.Array


def check_finite(parts: Params | Inputs) -> None:
  """Refuses parameters or statistics that are not finite, on the host.

  Args:
    parts: their arrays, of any shape.

  Raises:
    InputError: names the first that is not.
  """
  for name, part in parts._asdict().items():
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(part)):
      raise errors.InputError(
        f"{name} of the model has a value that is not finite; if training made "
        "it so, lower the rate"
      )


class Posterior(NamedTuple):
  """q(z | x).

  Attributes:
    mean: [..., d].
    log_variance: [..., d].
  """

  mean: jax.Array
  log_variance: jax.Array


class Elbo(NamedTuple):
  """The two terms of the bound on log p(x), in nats; any shape.

  Attributes:
    reconstruction: E_q log p(x | z), without the multinomial coefficient:
      the probability of the features in a given order.
    kl: KL(q(z | x) || prior).
  """

  reconstruction: jax.Array
  kl: jax.Array

  @property
  def value(self) -> jax.Array:
    """The bound, of the same shape as the terms."""
    return self.reconstruction - self.kl


class Encoder(nn.Module):
  """From the first layer's sums [h] to q(z | x); the table is outside.

  Attributes:
    config: the model's configuration.
  """

  config: Config

  @nn.compact
  def __call__(self, sums: jax.Array) -> Posterior:
    """Posterior, fields [d], of an entity's sums, [h]."""
    chex.assert_rank(sums, 1)
    bias = self.param("bias", nn.initializers.zeros_init(), sums.shape)
    x = jnp.tanh(sums + bias)
    for i, width in enumerate(self.config.hidden[1:]):
      x = jnp.tanh(nn.Dense(width, name=f"hidden_{i + 1}")(x))
    mean = nn.Dense(self.config.latent, name="mean")(x)
    log_variance = nn.Dense(self.config.latent, name="log_variance")(x)
    if self.config.lower_bounded_variance:
      log_variance = nn.sigmoid(log_variance)
    return Posterior(mean, log_variance)


class Decoder(nn.Module):
  """From a concept [d] to the logits of all features [F].

  Attributes:
    features: F.
  """

  features: int

  @nn.compact
  def __call__(self, z: jax.Array) -> jax.Array:
    """Logits [F] of a concept [d]."""
    chex.assert_rank(z, 1)
    shape = (self.features, z.shape[0] + 1)
    table = self.param("table", nn.initializers.glorot_uniform(), shape)
    return table @ with_one(z)


def exact_version(config: Config) -> Config:
  """The configuration whose bound is measured: no smoothing, no sampling."""
  return dataclasses.replace(config, smoothing=0.0, sampled=0)


def with_one(z: jax.Array) -> jax.Array:
  """Appends the 1 that meets the decoder's bias column, [..., d + 1]."""
  return jnp.concatenate([z, jnp.ones_like(z[..., :1])], axis=-1)


def statistics(counts: sp.csr_array) -> Inputs:
  """Document frequencies and mean length of training counts.

  Args:
    counts: [X, F].

  Returns:
    The statistics; idf = log(1 + (X - df + .5) / (df + .5)), not negative.
  """
  size, features = counts.shape
  df = np.bincount(counts.indices[counts.data > 0], minlength=features)
  idf = np.log1p((size - df + 0.5) / (df + 0.5))
  mean = max(float(counts.sum()) / max(size, 1), 1e-6)
  return Inputs(idf.astype(np.float32), np.float32(mean))


def weigh(
  config: Config, counts: Any, idf: Any, length: Any, mean_length: Any
) -> Any:
  """The encoder's inputs from counts, entry by entry.

  Args:
    config: names the weighting.
    counts: numpy or JAX, [u]; a count of 0 gives 0.
    idf: of the same features, [u].
    length: the entity's total count, scalar or [u].
    mean_length: scalar.

  Returns:
    The inputs, [u].
  """
  if config.weighting == "log1p":
    xp = np if isinstance(counts, np.ndarray) else jnp
    return xp.log1p(counts)
  if config.weighting == "l1":
    # Written so that a length of 0 gives 0 rather than a division by it.
    return counts / (length + (length == 0))
  if config.weighting == "bm25":
    norm = _K1 * (1 - _B + _B * length / mean_length)
    return idf * counts * (_K1 + 1) / (counts + norm)
  return counts


def init_params(
  config: Config,
  key: jax.Array,
  counts: sp.csr_array,
  word_vectors: np.ndarray | None = None,
) -> Params:
  """Draws parameters.

  Args:
    config: the configuration.
    key: random key.
    counts: training counts [X, F], for F and the frequencies.
    word_vectors: the encoder's first layer, [F, h]; drawn if None.

  Returns:
    Parameters, float32.
  """
  features, width = counts.shape[1], config.hidden[0]
  keys = jax.random.split(key, 3)
  if word_vectors is None:
    # Scaled by how many features meet in a sum, not by how many there are.
    nonzeros = max(counts.nnz / max(counts.shape[0], 1), 1.0)
    table = jax.random.normal(keys[0], (features, width)) / np.sqrt(nonzeros)
  else:
    if word_vectors.shape != (features, width):
      raise errors.InputError(
        f"word vectors of shape {word_vectors.shape} cannot start a first "
        f"layer of {features} features by {width}: set hidden to their width"
      )
    table = jnp.asarray(word_vectors, jnp.float32)
  encoder = Encoder(config).init(keys[1], jnp.zeros(width))["params"]
  decoder = Decoder(features).init(keys[2], jnp.zeros(config.latent))
  decoder = decoder["params"]["table"].at[:, -1].set(0)
  if config.frequency_bias:
    bias = jnp.asarray(_log_frequencies(config, counts))
    decoder = decoder.at[:, -1].set(bias)
  return Params(table, encoder, decoder)


def _log_frequencies(config: Config, counts: sp.csr_array) -> np.ndarray:
  if config.decoder == "multilabel":
    df = np.bincount(counts.indices, minlength=counts.shape[1])
    rate = (df + 0.5) / (counts.shape[0] + 1)
    return np.log(rate / (1 - rate)).astype(np.float32)
  total = np.asarray(counts.sum(axis=0), np.float64) + 0.5
  return np.log(total / total.sum()).astype(np.float32)


def encode(config: Config, encoder: Any, sums: jax.Array) -> Posterior:
  """q(z | x) from the first layer's sums (thesis eq. 4.4).

  Args:
    config: the configuration.
    encoder: flax parameters of `Encoder`.
    sums: inputs @ table, [h].

  Returns:
    The posterior, fields [d].
  """
  found: Any = Encoder(config).apply({"params": encoder}, sums)
  return found


def log_likelihood(
  config: Config, logits: jax.Array, counts: jax.Array
) -> jax.Array:
  """Log p(x | z) of all features, without smoothing.

  Args:
    config: names the decoder.
    logits: decoder(z), [F].
    counts: [F]; "multilabel" asks only which are positive.

  Returns:
    Scalar.
  """
  chex.assert_rank([logits, counts], 1)
  if config.decoder == "multilabel":
    present = (counts > 0).astype(logits.dtype)
    return jnp.sum(present * logits - jax.nn.softplus(logits))
  return jnp.sum(counts * jax.nn.log_softmax(logits))


def elbo(
  config: Config,
  params: Params,
  inputs: Inputs,
  counts: jax.Array,
  noise: jax.Array,
) -> Elbo:
  """The evidence lower bound of one entity, as it is written (eq. 4.11).

  Dense in the features: the meaning of what `training` computes sparsely.

  Args:
    config: the configuration; beta and smoothing do not count here.
    params: the parameters.
    inputs: statistics for the weighting.
    counts: [F].
    noise: standard normal, [s, d]: z = mean + deviation * noise.

  Returns:
    The terms, scalars; the first is a mean over the s samples.
  """
  chex.assert_rank([counts, noise], [1, 2])
  weighted = weigh(config, counts, inputs.idf, counts.sum(), inputs.mean_length)
  posterior = encode(config, params.encoder, weighted @ params.table)
  deviation = jnp.exp(posterior.log_variance / 2)

  def reconstruction(noise):
    z = posterior.mean + deviation * noise
    logits: Any = Decoder(counts.shape[0]).apply(
      {"params": {"table": params.decoder}}, z
    )
    return log_likelihood(config, logits, counts)

  kl = gaussian.kl_to_prior(*posterior, config.prior_variance)
  return Elbo(jax.vmap(reconstruction)(noise).mean(), kl)

"""The variational autoencoder of entities (thesis 4.5).

A concept z ~ N(0, s2 I) gives the features of an entity: multinomial with
softmax(decoder(z)), or independent Bernoulli. An encoder with tanh layers
gives a diagonal Gaussian q(z | x). Two tables have a row for each feature: the
encoder's first layer [F, h] and the decoder [F, d + 1], whose last column is
its bias. Everything else is small. Functions take one entity.
The bound itself is in `train`, which computes it for a batch.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax import errors
from repr_jax.ops import gaussian
from repr_jax.ops.inputs import check_types, check_whole
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp.rows import Rows, check_values

_CHOICES = {
  "decoder": ("multinomial", "multilabel"),
  "weighting": ("raw", "log1p", "l1", "bm25"),
  "proposal": ("log_uniform", "unigram"),
  "activation": ("tanh", "relu", "linear"),
  "targets": ("counts", "inputs"),
}
_BENDS = {"tanh": jnp.tanh, "relu": jax.nn.relu, "linear": lambda x: x}
# BM25's k1 and b, the defaults of the baseline.
_K1, _B = 1.5, 0.75
# Log-variances are clipped to +-30, so that squares of xi stay finite.
_LOG_VARIANCE = 30.0


@dataclasses.dataclass(frozen=True)
class Config:
  """Form of a model; the defaults are the thesis' (4.7.2).

  Attributes:
    dim: numbers in a concept, d.
    hidden: widths of the encoder's layers.
    decoder: "multinomial" or "multilabel" (independent Bernoulli).
    lower_bounded_variance: the log-variance goes through a sigmoid, so that
      every variance lies in [1, e] (`lbv` in chapter 6).
    weighting: of the encoder's inputs: "raw" counts, "log1p", "l1" (counts
      that sum to 1) or "bm25".
    prior_variance: s2.
    sampled: features drawn for a sampled softmax; 0 for the exact softmax.
    proposal: of sampled features: "unigram" counts or "log_uniform" ranks.
    frequency_bias: start the decoder's bias at log frequencies or log odds.
    activation: of the encoder's layers, "tanh", "relu" or "linear"; the means
      of a linear encoder are sums over features, and so is the cosine score.
    unit_inputs: scale the encoder's inputs of an entity to length 1.
    targets: of a multinomial decoder: "counts", or "inputs", the encoder's
      inputs scaled to sum 1; `Hyper.likelihood` then takes the place of an
      entity's total count.
  """

  dim: int = 50
  hidden: tuple[int, ...] = (500,)
  decoder: str = "multinomial"
  lower_bounded_variance: bool = False
  weighting: str = "raw"
  prior_variance: float = 1.0
  sampled: int = 0
  proposal: str = "unigram"
  frequency_bias: bool = True
  activation: str = "tanh"
  unit_inputs: bool = False
  targets: str = "counts"

  def __post_init__(self):
    check_types(hidden=(self.hidden, Sequence))
    object.__setattr__(self, "hidden", tuple(self.hidden))
    check_whole(1, dim=self.dim, hidden=min(self.hidden, default=0))
    for name, choices in _CHOICES.items():
      if getattr(self, name) not in choices:
        raise errors.InputError(
          f"{name} must be one of {', '.join(choices)}, "
          f"not {getattr(self, name)!r}"
        )
    if not 0 < self.prior_variance < np.inf:
      raise errors.InputError("prior_variance must be positive")
    if self.sampled and self.decoder != "multinomial":
      raise errors.InputError("a sampled softmax needs a multinomial decoder")
    if self.targets != "counts" and self.decoder != "multinomial":
      raise errors.InputError("targets='inputs' needs a multinomial decoder")

  @property
  def linear(self) -> bool:
    """Whether posterior means are linear in the encoder's inputs."""
    return self.activation == "linear" and len(self.hidden) == 1


class Inputs(NamedTuple):
  """Statistics of the training counts that weigh the encoder's inputs.

  Attributes:
    idf: inverse document frequencies, [F]; used by "bm25".
    mean_length: mean total count of an entity, scalar.
  """

  idf: Any
  mean_length: Any


class Statistics(NamedTuple):
  """Statistics of the training counts that a model starts from.

  Attributes:
    inputs: statistics that weigh the encoder's inputs.
    bias: start of the decoder's bias, [F]; see `Config.frequency_bias`.
    row_size: mean number of features of an entity, [].
  """

  inputs: Inputs
  bias: Any
  row_size: Any


class Params(NamedTuple):
  """Trained parameters.

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
    InputError: names the first part that is not finite.
  """
  for name, part in parts._asdict().items():
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(part)):
      raise errors.InputError(
        f"{name} of the model has a value that is not finite; if training made "
        "it so, lower the learning rate"
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
    bend = _BENDS[self.config.activation]
    x = bend(sums + bias)
    for i, width in enumerate(self.config.hidden[1:]):
      x = bend(nn.Dense(width, name=f"hidden_{i + 1}")(x))
    mean = nn.Dense(self.config.dim, name="mean")(x)
    log_variance = nn.Dense(self.config.dim, name="log_variance")(x)
    if self.config.lower_bounded_variance:
      log_variance = nn.sigmoid(log_variance)
    return Posterior(mean, log_variance)


def with_one(z: jax.Array) -> jax.Array:
  """Appends the 1 that multiplies the decoder's bias, [..., d + 1]."""
  return jnp.concatenate([z, jnp.ones_like(z[..., :1])], axis=-1)


def statistics(config: Config, counts: jax.Array) -> Statistics:
  """Statistics of dense training counts.

  idf = log(1 + (X - df + .5) / (df + .5)), not negative, with df the number
  of entities that have a feature.

  >>> import jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> setexp.statistics(config, jnp.eye(3)).row_size
  Array(1., dtype=float32)

  Args:
    config: names the decoder.
    counts: [X, F].

  Returns:
    The statistics, of the counts' type.
  """
  chex.assert_rank(counts, 2)
  present = counts > 0
  df = jnp.sum(present, axis=0).astype(counts.dtype)
  return _statistics(config, counts.shape[0], df, jnp.sum(counts, axis=0), jnp)


def statistics_from_scipy(config: Config, counts: sp.csr_array) -> Statistics:
  """`statistics` of sparse counts [X, F], on the host.

  >>> import scipy.sparse
  >>> from repr_jax import setexp
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> setexp.statistics_from_scipy(config, scipy.sparse.eye_array(3)).row_size
  np.float32(1.0)
  """
  counts = sp.csr_array(counts)
  check_values(counts.data)
  used = counts.indices[counts.data > 0]
  df = np.bincount(used, minlength=counts.shape[1])
  totals = np.asarray(counts.sum(axis=0), np.float64)
  made = _statistics(config, counts.shape[0], df, totals, np)
  return jax.tree.map(np.float32, made)


def _statistics(config, size, df, totals, xp) -> Statistics:
  idf = xp.log1p((size - df + 0.5) / (df + 0.5))
  mean_length = xp.maximum(totals.sum() / max(size, 1), 1e-6)
  bias = xp.zeros_like(idf)
  if config.frequency_bias and config.decoder == "multilabel":
    rate = (df + 0.5) / (size + 1)
    bias = xp.log(rate / (1 - rate))
  elif config.frequency_bias:
    bias = xp.log((totals + 0.5) / (totals + 0.5).sum())
  row_size = xp.maximum(df.sum() / max(size, 1), 1.0)
  return Statistics(Inputs(idf, mean_length), bias, row_size)


def weigh(
  config: Config, counts: Any, idf: Any, length: Any, mean_length: Any
) -> Any:
  """The encoder's inputs from counts, entry by entry.

  Args:
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
    # Avoids 0 / 0: an entity without features has inputs 0.
    return counts / (length + (length == 0))
  if config.weighting == "bm25":
    return bm25_weights(counts, idf, length, mean_length)
  return counts


def bm25_weights(
  counts: Any,
  idf: Any,
  length: Any,
  mean_length: Any,
  k1: Any = _K1,
  b: Any = _B,
) -> Any:
  """BM25's weights of counts, of their shape; arguments as in `weigh`."""
  norm = k1 * (1 - b + b * length / mean_length)
  # 1e-30 avoids 0 / 0 and changes no other quotient.
  return idf * (k1 + 1) * (counts / (counts + norm + 1e-30))


def init(
  config: Config,
  key: jax.Array,
  statistics: Statistics,
  word_vectors: jax.Array | np.ndarray | None = None,
) -> Params:
  """Draws parameters.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, jnp.eye(3))
  >>> setexp.init(config, jax.random.key(0), statistics).decoder.shape
  (3, 3)

  Args:
    config: the configuration (static).
    key: random key.
    statistics: of the training counts, over F features.
    word_vectors: the encoder's first layer, [F, h]; drawn if None.

  Returns:
    Parameters, of the statistics' type.
  """
  bias = jnp.asarray(statistics.bias)
  features, width, dtype = bias.shape[0], config.hidden[0], bias.dtype
  keys = jax.random.split(key, 3)
  if word_vectors is None:
    # Scaled by the mean number of features of an entity, not by F.
    table = jax.random.normal(keys[0], (features, width), dtype)
    table = table / jnp.sqrt(jnp.asarray(statistics.row_size, dtype))
  else:
    if word_vectors.shape != (features, width):
      raise errors.InputError(
        f"word vectors of shape {word_vectors.shape} cannot start a first "
        f"layer of {features} features by {width}: set hidden to their width"
      )
    table = jnp.asarray(word_vectors, dtype)
  encoder = Encoder(config).init(keys[1], jnp.zeros(width, dtype))["params"]
  encoder = jax.tree.map(lambda x: x.astype(dtype), encoder)
  draw = nn.initializers.glorot_uniform()
  decoder = draw(keys[2], (features, config.dim + 1), dtype)
  return Params(table, encoder, decoder.at[:, -1].set(bias))


@chosen_products
def encode(
  config: Config, params: Params, inputs: Inputs, row: Rows
) -> Posterior:
  """q(z | x) of one entity (thesis eq. 4.4); vmap over entities.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, jnp.eye(3))
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> row = setexp.rows_from_dense(jnp.array([1.0, 0.0, 2.0]))
  >>> setexp.encode(config, params, statistics.inputs, row).mean.shape
  (2,)

  Args:
    config: the configuration (static).
    params: the parameters.
    inputs: statistics for the weighting.
    row: the entity's features, fields [m].

  Returns:
    The posterior, fields [d].
  """
  weighted = encoder_inputs(config, inputs, row)
  place = jnp.minimum(weighted.indices, params.table.shape[0] - 1)
  values = weighted.counts.astype(params.table.dtype)
  return encode_sums(config, params.encoder, values @ params.table[place])


def encoder_inputs(config: Config, inputs: Inputs, row: Rows) -> Rows:
  """The encoder's inputs of one entity.

  Args:
    inputs: statistics for the weighting, over F features.
    row: the entity's features, fields [m].

  Returns:
    Features and inputs, fields [m]; padding has the index F and the input 0.
  """
  chex.assert_rank([*row], 1)
  idf = jnp.asarray(inputs.idf)
  features = idf.shape[0]
  valid = (row.indices >= 0) & (row.indices < features)
  counts = jnp.where(valid, row.counts, 0).astype(idf.dtype)
  place = jnp.where(valid, row.indices, 0)
  mean_length = jnp.asarray(inputs.mean_length, idf.dtype)
  weighted = weigh(config, counts, idf[place], counts.sum(), mean_length)
  if config.unit_inputs:
    weighted = unit_length(weighted)
  return Rows(jnp.where(valid, row.indices, features), weighted)


def unit_sum(x: jax.Array) -> jax.Array:
  """Rows scaled to sum 1; zero rows stay 0, [b, u]."""
  total = x.sum(axis=1, keepdims=True)
  return x / jnp.where(total > 0, total, 1)


def drop_inputs(key: jax.Array, x: jax.Array, dropout: Any) -> jax.Array:
  """Dropout of inputs of any shape; the others are scaled up."""
  share = jnp.asarray(1 - dropout, x.dtype)
  kept = jax.random.uniform(key, x.shape, x.dtype) < share
  return jnp.where(kept, x / share, 0)


def unit_length(x: jax.Array) -> jax.Array:
  """Scales vectors along the last axis to length 1; 0 stays 0, [..., u]."""
  square = jnp.sum(x * x, axis=-1, keepdims=True)
  return x / jnp.sqrt(jnp.where(square > 0, square, 1))


@chosen_products
def encode_sums(config: Config, encoder: Any, sums: jax.Array) -> Posterior:
  """q(z | x) from the first layer's sums.

  Args:
    encoder: flax parameters of `Encoder`.
    sums: inputs @ table, [h].

  Returns:
    The posterior, fields [d].
  """
  posterior: Any = Encoder(config).apply({"params": encoder}, sums)
  return posterior


def natural_parameters(posterior: Posterior) -> gaussian.Natural:
  """Natural parameters of a posterior (thesis eq. 4.5), fields [..., d]."""
  spread = jnp.clip(posterior.log_variance, -_LOG_VARIANCE, _LOG_VARIANCE)
  return gaussian.to_natural(posterior.mean, jnp.exp(spread))

"""Softmax over all features with few targets, exact and sampled.

The cross-entropy of counts c under logits l is n logsumexp(l) - sum c l. Only
its first term reads all F features. The gradient of that term reuses the
exponentials of the value: one [F, b] matrix, where automatic differentiation
makes three.
"""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from repr_jax import errors
from repr_jax.ops.normalize import log_sum_products
from repr_jax.ops.precision import chosen_products


@jax.custom_vjp
def log_partition_bernoulli(z: jax.Array, table: jax.Array) -> jax.Array:
  """Sum of softplus over all features, for a batch of Bernoulli decoders.

  Args:
    z: concepts with a 1 appended, [b, d + 1].
    table: the decoder, [F, d + 1].

  Returns:
    sum_i log(1 + exp(table_i . z)), [b].
  """
  return _bernoulli_forward(z, table)[0]


@chosen_products
def _bernoulli_forward(z, table):
  chex.assert_rank([z, table], 2)
  logits = table @ z.T
  rates = lax.optimization_barrier(jax.nn.sigmoid(logits))
  return jnp.sum(jax.nn.softplus(logits), axis=0), (z, table, rates)


@chosen_products
def _bernoulli_backward(kept, slope):
  z, table, rates = kept
  scale = slope[:, None]
  return (rates.T @ table) * scale, rates @ (z * scale)


log_partition_bernoulli.defvjp(_bernoulli_forward, _bernoulli_backward)


@chosen_products
def sampled_log_partition(
  z: jax.Array,
  target_rows: jax.Array,
  target_mask: jax.Array,
  sample_rows: jax.Array,
  log_weights: jax.Array,
) -> jax.Array:
  """Estimate of `log_sum_products` from a batch's own features and a sample.

  The batch's features are summed exactly; each drawn feature i outside them has
  the weight m_i / (S q_i) if it came up m_i times in S draws, each with
  probability q_i. The sum is unbiased; its logarithm is too small on average,
  by about half the relative variance of the sum.

  Args:
    z: concepts with a 1 appended, [b, d + 1].
    target_rows: decoder rows of the batch's features, [u, d + 1].
    target_mask: which of these are not padding, bool [u].
    sample_rows: decoder rows of the drawn features, [s, d + 1].
    log_weights: logarithm of their weights; -inf for padding, [s].

  Returns:
    The estimate, [b].
  """
  chex.assert_rank([z, target_rows, sample_rows], 2)
  chex.assert_rank([target_mask, log_weights], 1)
  own = jnp.where(target_mask[:, None], target_rows @ z.T, -jnp.inf)
  drawn = sample_rows @ z.T + log_weights[:, None]
  return jax.nn.logsumexp(jnp.concatenate([own, drawn]), axis=0)


class Proposal(NamedTuple):
  """A distribution over features, on the host.

  Attributes:
    probability: [F], positive, sums to 1.
    cumulative: [F], ends in 1.
  """

  probability: np.ndarray
  cumulative: np.ndarray


def make_proposal(kind: str, totals: np.ndarray) -> Proposal:
  """The distribution that features are drawn from.

  Args:
    kind: "unigram", by total count plus 1/2; or "log_uniform", by rank r of
      the total count from 0 on, log((r + 2) / (r + 1)) / log(F + 1).
    totals: total count of each feature, [F].
  """
  if kind == "unigram":
    weight = np.asarray(totals, np.float64) + 0.5
  elif kind == "log_uniform":
    rank = np.empty(len(totals), np.int64)
    rank[np.argsort(-np.asarray(totals), kind="stable")] = np.arange(len(rank))
    weight = np.log((rank + 2.0) / (rank + 1.0))
  else:
    raise errors.InputError(
      f'proposal must be "unigram" or "log_uniform", not {kind!r}'
    )
  cumulative = np.cumsum(weight)
  return Proposal(weight / cumulative[-1], cumulative / cumulative[-1])


def draw(
  proposal: Proposal, rng: np.random.Generator, size: int, own: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Draws features outside a batch's own, with their weights.

  Args:
    size: S, the number of draws; repeated ones are merged.
    own: the batch's features, which are left out, [u], ascending.

  Returns:
    Distinct features, ascending, int32 [size], padded with F; and the
    logarithms of their weights, float32 [size], padded with -inf.
  """
  count = len(proposal.probability)
  uniform = np.sort(rng.random(size))
  drawn = np.searchsorted(proposal.cumulative, uniform, side="right")
  drawn, times = np.unique(np.minimum(drawn, count - 1), return_counts=True)
  if len(own):
    place = np.minimum(np.searchsorted(own, drawn), len(own) - 1)
    fresh = own[place] != drawn
    drawn, times = drawn[fresh], times[fresh]
  features = np.full(size, count, np.int32)
  weights = np.full(size, -np.inf, np.float32)
  features[: len(drawn)] = drawn
  rate = size * proposal.probability[drawn]
  weights[: len(drawn)] = np.log(times / rate)
  return features, weights


@chosen_products
def log_likelihood(
  config: Any,
  parts: Any,
  own: jax.Array,
  log_weights: jax.Array,
  counts: jax.Array,
  z: jax.Array,
  smoothing: Any,
) -> jax.Array:
  """Log p(x | z) of a batch, smoothed.

  Args:
    parts: rows of the decoder: `decoder` [F, d + 1] or None, `targets`
      [u, d + 1] and `samples` [s, d + 1].
    own: which of the u features are not padding, [u].
    log_weights: of the samples, [s].
    counts: targets, [b, u].
    z: concepts with a 1, [samples * b, d + 1].
    smoothing: share of the targets that is spread evenly, or None.

  Returns:
    [samples * b].
  """
  multilabel = config.decoder == "multilabel"
  target = (counts > 0).astype(counts.dtype) if multilabel else counts
  copies = z.shape[0] // counts.shape[0]
  # sum_i c_i (w_i . z) as (sum_i c_i w_i) . z, so that no [b, u] is made.
  chosen = jnp.tile(target @ parts.targets, (copies, 1))
  value = jnp.sum(chosen * z, axis=1)
  total = jnp.tile(target.sum(axis=1), copies)
  if parts.decoder is None:
    partition = sampled_log_partition(
      z, parts.targets, own, parts.samples, log_weights.astype(z.dtype)
    )
    return value - total * partition
  if smoothing is not None:
    every = z @ parts.decoder.sum(axis=0)
    share = 0.5 if multilabel else total / parts.decoder.shape[0]
    value = (1 - smoothing) * value + smoothing * share * every
  if multilabel:
    return value - log_partition_bernoulli(z, parts.decoder)
  return value - total * log_sum_products(parts.decoder, z, None)

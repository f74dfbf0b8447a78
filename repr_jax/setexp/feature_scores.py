"""Ranking by the features that the query's concept decodes to.

The scores of `gaussian_scores` compare Gaussians of a few dozen numbers, which
lose much about an entity. Here the query's concept is first decoded to
features, and entities are ranked by their features:

    score(Q, x) = sum_i w_i^power IDF[i] tf(x, i),
    w = (1 - member_share) p(z_Q) + member_share f_Q / |f_Q|,

with p the decoder's probabilities, and f_Q the members' own counts, each times
the share of the members that have the feature. IDF (the positive form) and tf
are those of BM25: BM25 reads the query's features as if they were a text. A
feature that no member has counts too if the model expects it in the set; a
feature of one member alone counts little. A concept cannot hold all of the
members' counts, so `member_share` mixes these in, smoothed by p as in
language models: 0 is the decoder alone, 1 no decoder. A power below 1 keeps the
likeliest features from dominating. With a power of 1 the score is the expected
BM25 score of a query drawn from w.

z_Q is the mean of the members' product ("product"), the weighted mean of their
means, whatever their variances ("mean"), or the mean of one entity that has all
their features ("merged").
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from repr_jax.ops import gaussian
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp import autoencoder
from repr_jax.setexp.rows import Rows

POOLINGS = ("mean", "product", "merged")


class Entries(NamedTuple):
  """Feature counts of a query's members, one entry for each count.

  Attributes:
    member: place in the query, int32 [n].
    feature: int32 [n]; an index outside 0..F-1 is padding.
    count: [n].
  """

  member: Any
  feature: Any
  count: Any


def feature_weights(
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  members: gaussian.Natural,
  weights: jax.Array,
  entries: Entries,
  power: jax.Array,
  member_share: jax.Array,
  pooling: jax.Array,
) -> jax.Array:
  """w^power: weight of each feature in the score of a query.

  Args:
    members: natural parameters, fields [q, d].
    weights: signed influence of each member, [q]; 0 for padding.
    entries: the members' counts, fields [n].
    power: exponent, [].
    member_share: share of the members' own counts, [].
    pooling: index into `POOLINGS`, int32 [].

  Returns:
    The weights, [F].
  """
  features = params.decoder.shape[0]
  entries = clean_entries(entries, weights, features)
  concept = lax.switch(
    pooling,
    [
      lambda: _mean_of_means(members, weights),
      lambda: gaussian.to_moments(
        gaussian.product_of_experts(members, weights)
      )[0],
      lambda: merged_mean(config, params, inputs, entries, weights),
    ],
  )
  p = probabilities(config, params.decoder, concept)
  own = _own_counts(entries, weights, features)
  mixed = (1 - member_share) * p / jnp.sum(p) + member_share * own
  w = jnp.where(member_share > 0, mixed, p)
  return jnp.where(w > 0, jnp.exp(power * jnp.log(jnp.where(w > 0, w, 1))), 0)


def clean_entries(
  entries: Entries, weights: jax.Array, features: int
) -> Entries:
  """Entries [n] in which padding and members of weight 0 have no count."""
  valid = (entries.feature >= 0) & (entries.feature < features)
  member = jnp.where(valid, entries.member, 0)
  valid &= weights[member] != 0
  return Entries(
    member,
    jnp.where(valid, entries.feature, features),
    jnp.where(valid, entries.count, 0).astype(weights.dtype),
  )


def distinct_features(entries: Entries, features: int) -> jax.Array:
  """Features of `clean_entries`, each once, [n]; F for repeats and padding."""
  place = jnp.arange(entries.feature.shape[0])
  first = jnp.full(features, place.shape[0])
  first = first.at[entries.feature].min(place, mode="drop")
  inside = jnp.minimum(entries.feature, features - 1)
  chosen = (first[inside] == place) & (entries.feature < features)
  return jnp.where(chosen, inside, features)


@chosen_products
def probabilities(
  config: autoencoder.Config, decoder: jax.Array, concept: jax.Array
) -> jax.Array:
  """The decoder's probabilities of all features at a concept [d], [F]."""
  # In this order, a batch of concepts needs no transposed logits.
  logits = autoencoder.with_one(concept) @ decoder.T
  if config.decoder == "multilabel":
    return jax.nn.sigmoid(logits)
  return jax.nn.softmax(logits)


@chosen_products
def _mean_of_means(members, weights):
  mean, _ = gaussian.to_moments(members)
  # Padding may hold any value, NaN included.
  mean = jnp.where((weights != 0)[:, None], mean, 0)
  return _shares(weights) @ mean


def _shares(weights):
  """Weights over the sum of their absolute values, without overflow."""
  scaled = weights / _positive(jnp.max(jnp.abs(weights)))
  return scaled / _positive(jnp.sum(jnp.abs(scaled)))


def _positive(x):
  return jnp.where(x > 0, x, 1)


def merged_mean(
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  entries: Entries,
  weights: jax.Array,
) -> jax.Array:
  """The mean of the entity that has the members' features.

  Args:
    inputs: statistics for the weighting.
    entries: from `clean_entries`, fields [n].
    weights: of the members, [q].

  Returns:
    [d].
  """
  features = params.decoder.shape[0]
  signed = weights[entries.member] * entries.count
  total = jnp.zeros(features, weights.dtype)
  total = total.at[entries.feature].add(signed, mode="drop")
  # Negative weights cannot make a count negative.
  total = jnp.clip(total, 0, 1e30)
  distinct = distinct_features(entries, features)
  row = Rows(distinct, total[jnp.minimum(distinct, features - 1)])
  posterior = autoencoder.encode(config, params, inputs, row)
  return posterior.mean


def _own_counts(entries, weights, features):
  """Counts weighted by the members that share them, sum 1, [F]."""
  # Only ratios matter: numbers of at most 1 cannot overflow.
  tau = _shares(weights)[entries.member]
  tau = tau / _positive(jnp.max(jnp.abs(tau)))
  count = entries.count / _positive(jnp.max(entries.count))
  nothing = jnp.zeros(features, weights.dtype)
  total = nothing.at[entries.feature].add(tau * count, mode="drop")
  present = jnp.maximum(tau, 0) * (count > 0)
  having = nothing.at[entries.feature].add(present, mode="drop")
  own = jnp.maximum(total, 0) * having
  return own / _positive(jnp.sum(own))

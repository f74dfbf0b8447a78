"""Which candidate a mention means: context, prior and coherence (thesis 6.3).

The model of Ganea and Hofmann (2017). Locally, words of the context vote by
attention; globally, all mentions of a document are joined in a fully connected
random field that is solved by loopy belief propagation. A small network joins
either score with log p(e|m). A function takes one document; callers vmap.
"""

import dataclasses
import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from repr_jax.data.documents.packing import Packed
from repr_jax.ops import belief_propagation

_LOW = -1e9


@dataclasses.dataclass(frozen=True)
class Config:
  """What is fixed in a compiled model.

  Attributes:
    coherence: whether mentions of a document decide together.
    field_prior: whether log p(e|m) is part of the random field's own scores,
      as a mention that is certain then pulls the others; the thesis' field
      knows the contexts alone.
    join_context: whether the network that decides after the random field
      also sees the context's score, so that the global model can do all that
      the local one does; the thesis' network sees the field's alone.
    keep: R, context words that are kept.
    hidden: width of the network that joins score and prior.
    iterations: T, rounds of belief propagation.
    damping: share of an old message that stays.
    margin: gamma of the loss.
  """

  coherence: bool = True
  field_prior: bool = False
  join_context: bool = False
  keep: int = 25
  hidden: int = 100
  iterations: int = 10
  damping: float = 0.5
  margin: float = 0.01


class Params(NamedTuple):
  """Weights.

  Attributes:
    attention: diagonal of A, [d].
    context: diagonal of B, [d].
    pair: diagonal of C, [d].
    inner: first layer of the network on (score, log prior, 1, context's
      score), [4, h]; the last row counts with `Config.join_context` alone.
    outer: second layer, [h].
    prior: weight of log p(e|m) in the field, scalar.
  """

  attention: jax.Array
  context: jax.Array
  pair: jax.Array
  inner: jax.Array
  outer: jax.Array
  prior: jax.Array


class Tables(NamedTuple):
  """Vectors, which stay as they are.

  Attributes:
    entities: [e, d].
    words: [v, d].
  """

  entities: jax.Array
  words: jax.Array


def init_params(config: Config, size: int, key: jax.Array) -> Params:
  """Weights to start from: A, B and C are identities.

  Args:
    config: the configuration.
    size: d.
    key: random key of the network.

  Returns:
    The weights, fields [d], [4, h], [h] and a scalar.
  """
  first, second = jax.random.split(key)
  # Two kinds of units, for positive and negative input; with both, the
  # network rises in the score and in the prior from the start.
  sign = jnp.where(jnp.arange(config.hidden) % 2 == 0, 1.0, -1.0)
  inner = jax.random.normal(first, (3, config.hidden))
  last = jax.random.normal(jax.random.fold_in(first, 1), (1, config.hidden))
  inner = sign * jnp.abs(jnp.concatenate([inner, last]))
  outer = sign * jnp.abs(jax.random.normal(second, (config.hidden,)))
  # Three arrays, not one thrice: a donated buffer may stand once.
  first, second, third = (jnp.ones(size) for _ in range(3))
  return Params(
    attention=first,
    context=second,
    pair=third,
    inner=inner.at[2].set(0.0),
    outer=outer / config.hidden,
    prior=jnp.ones(()),
  )


def context_scores(
  config: Config,
  params: Params,
  entities: jax.Array,
  mask: jax.Array,
  words: jax.Array,
  known: jax.Array,
) -> jax.Array:
  """Psi: how well the context of one mention speaks for each candidate.

  A word's weight is the softmax, over the R words of highest score, of
  max over candidates of x_e' A x_w; Psi(e) is the weighted sum of x_e' B x_w.

  Args:
    config: the configuration.
    params: the weights.
    entities: vectors of the candidates, [c, d].
    mask: which candidates there are, bool [c].
    words: vectors of the context, [k, d].
    known: which words there are, bool [k].

  Returns:
    Scores [c], 0 in masked places.
  """
  chex.assert_rank([entities, mask, words, known], [2, 1, 2, 1])
  entities = jnp.where(mask[:, None], entities, 0)
  words = jnp.where(known[:, None], words, 0)
  votes = jnp.where(mask, (words * params.attention) @ entities.T, _LOW)
  usable = known & mask.any()
  votes = jnp.where(usable, votes.max(axis=1), _LOW)
  best, places = jax.lax.top_k(votes, min(config.keep, votes.shape[0]))
  kept = usable[places]
  weights = jnp.where(kept, jax.nn.softmax(jnp.where(kept, best, _LOW)), 0)
  return jnp.where(
    mask, entities @ (params.context * (weights @ words[places])), 0
  )


def pair_scores(
  params: Params, entities: jax.Array, mask: jax.Array
) -> jax.Array:
  """Phi: how well the candidates of two mentions go together.

  Args:
    params: the weights.
    entities: vectors of the candidates, [m, c, d].
    mask: which candidates there are, bool [m, c].

  Returns:
    2 / (n - 1) x_e' C x_e' for n mentions with candidates, [m, m, c, c]; not
    masked.
  """
  chex.assert_rank([entities, mask], [3, 2])
  entities = jnp.where(mask[..., None], entities, 0)
  count = mask.any(axis=1).sum().astype(entities.dtype)
  scale = 2 / jnp.maximum(count - 1, 1)
  return scale * jnp.einsum("iad,jbd->ijab", entities * params.pair, entities)


def join(
  params: Params,
  scores: jax.Array,
  log_prior: jax.Array,
  context: jax.Array | None = None,
) -> jax.Array:
  """The network f(score, log prior) that ranks candidates.

  Args:
    params: the weights.
    scores: of any shape.
    log_prior: of that shape.
    context: a second score of that shape, where the network has one.

  Returns:
    Final scores of that shape.
  """
  inputs = [scores, log_prior, jnp.ones_like(scores)]
  if context is not None:
    inputs.append(context)
  inner = params.inner[: len(inputs)].astype(scores.dtype)
  hidden = jax.nn.relu(jnp.stack(inputs, axis=-1) @ inner)
  return hidden @ params.outer.astype(scores.dtype)


def document_scores(
  config: Config, params: Params, tables: Tables, document: Packed
) -> jax.Array:
  """Final scores of one document's candidates.

  Args:
    config: the configuration.
    params: the weights.
    tables: vectors of entities and words.
    document: arrays of one document: ids [m, c] and [m, k], prior [m, c].

  Returns:
    Scores [m, c]; masked places are far below all others.
  """
  chex.assert_rank([document.candidates, document.words], [2, 2])
  ids, around = jnp.asarray(document.candidates), jnp.asarray(document.words)
  mask, known = ids >= 0, around >= 0
  entities = jnp.asarray(tables.entities)[jnp.maximum(ids, 0)]
  words = jnp.asarray(tables.words)[jnp.maximum(around, 0)]
  local = functools.partial(context_scores, config, params)
  scores = jax.vmap(local)(entities, mask, words, known)
  log_prior = jnp.where(mask, document.log_prior, 0).astype(scores.dtype)
  context = None
  if config.coherence:
    context = scores if config.join_context else None
    if config.field_prior:
      scores = scores + params.prior * log_prior
    beliefs = belief_propagation.max_product(
      scores,
      pair_scores(params, entities, mask),
      mask,
      iterations=config.iterations,
      damping=config.damping,
    )
    scores = jnp.where(mask, jnp.exp(beliefs), 0)
  return jnp.where(mask, join(params, scores, log_prior, context), _LOW)


def margin_loss(
  config: Config, scores: jax.Array, mask: jax.Array, gold: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Sum over mentions and candidates of [gamma - s(gold) + s(e)]_+.

  Args:
    config: the configuration.
    scores: of the candidates, [m, c].
    mask: which there are, bool [m, c].
    gold: which is meant, int [m]; -1 leaves the mention out.

  Returns:
    The loss, scalar, and the number of mentions that count.
  """
  chex.assert_rank([scores, mask, gold], [2, 2, 1])
  right = jnp.take_along_axis(scores, jnp.maximum(gold, 0)[:, None], axis=1)
  counted = mask & (gold >= 0)[:, None]
  counted &= jnp.arange(scores.shape[1]) != gold[:, None]
  excess = jax.nn.relu(config.margin - right + scores)
  return jnp.sum(jnp.where(counted, excess, 0)), jnp.sum(gold >= 0)


@functools.partial(jax.jit, static_argnums=0)
def predict(
  config: Config, params: Params, tables: Tables, documents: Packed
) -> jax.Array:
  """The best candidate of each mention; the first one of equals.

  Args:
    config: the configuration.
    params: the weights.
    tables: vectors of entities and words, which must be finite: the largest
      of scores that are no numbers means nothing.
    documents: arrays of several documents.

  Returns:
    Places among the candidates, int32 [n, m]; -1 where there are none.
  """
  one = functools.partial(document_scores, config, params, tables)
  scores = jax.vmap(one)(documents)
  best = jnp.argmax(scores, axis=-1).astype(jnp.int32)
  return jnp.where((documents.candidates >= 0).any(axis=-1), best, -1)

"""Disambiguation of mentions by prior, context and coherence (thesis 6.3).

The model of Ganea and Hofmann (2017). Locally, words of the context vote by
attention; globally, all mentions of a document are joined in a fully connected
random field that is solved by loopy belief propagation. A small network joins
either score with log p(e|m). `local_scores` takes one mention, all others one
document; vmap them over padded documents.
"""

import dataclasses
import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from repr_jax.data.documents.packing import Packed
from repr_jax.errors import InputError
from repr_jax.ops import belief_propagation
from repr_jax.ops.inputs import check_whole
from repr_jax.ops.precision import chosen_products

_LOW = -1e9


@dataclasses.dataclass(frozen=True)
class Config:
  """Structure of the model; each value compiles a program of its own.

  Attributes:
    coherence: whether mentions of a document are decided jointly.
    field_prior: whether the random field's own scores include log p(e|m), so
      that a certain mention influences the others. The thesis' field has the
      context scores alone.
    join_context: whether the final network also receives the context score,
      so that the global model contains the local one. The thesis' network
      receives the field's score alone.
    keep: R, context words that are kept.
    hidden: width of the network that joins score and prior.
    iterations: T, rounds of belief propagation.
    damping: share of an old message that stays.
  """

  coherence: bool = True
  field_prior: bool = False
  join_context: bool = False
  keep: int = 25
  hidden: int = 100
  iterations: int = 10
  damping: float = 0.5

  def __post_init__(self):
    check_whole(0, keep=self.keep, iterations=self.iterations)
    check_whole(1, hidden=self.hidden)
    if not 0 <= self.damping < 1:
      raise InputError(f"damping must lie in [0, 1), not {self.damping}")


class Params(NamedTuple):
  """Weights.

  Attributes:
    attention: diagonal of A, [d].
    context: diagonal of B, [d].
    pair: diagonal of C, [d].
    inner: first layer of the network on (score, log prior, 1, context
      score), [4, h]; the last row is read with `Config.join_context` only.
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
  """Vectors, which are not trained.

  Attributes:
    entities: [e, d].
    words: [v, d].
  """

  entities: jax.Array
  words: jax.Array


class Answer(NamedTuple):
  """The candidates of one document, scored.

  Attributes:
    best: place of the best candidate of each mention, the first among equals,
      int32 [m]; -1 without candidates.
    scores: final scores, [m, c]; -inf in masked places.
  """

  best: jax.Array
  scores: jax.Array


class Contributions(NamedTuple):
  """Parts of the final scores of one document; they add up to the scores.

  Attributes:
    prior: score from log p(e|m) alone, [m, c].
    context: change by the words around each mention, [m, c].
    coherence: change by the other mentions' candidates, [m, c].
  """

  prior: jax.Array
  context: jax.Array
  coherence: jax.Array


def init_params(config: Config, dim: int, key: jax.Array) -> Params:
  """Draws weights to start from: A, B and C are identities.

  >>> import jax
  >>> from repr_jax import linking
  >>> linking.init_params(linking.Config(), 3, jax.random.key(0)).attention
  Array([1., 1., 1.], dtype=float32)

  Args:
    config: the configuration.
    dim: d.
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
  # Three arrays: a donated buffer may occur only once.
  first, second, third = (jnp.ones(dim) for _ in range(3))
  return Params(
    attention=first,
    context=second,
    pair=third,
    inner=inner.at[2].set(0.0),
    outer=outer / config.hidden,
    prior=jnp.ones(()),
  )


def local_scores(
  config: Config,
  params: Params,
  entities: jax.Array,
  mask: jax.Array,
  words: jax.Array,
  known: jax.Array,
) -> jax.Array:
  """Psi: scores of one mention's candidates by the words around it.

  Psi(e) = sum_w a_w x_e' B x_w, where a is the softmax of u_w = max over
  candidates of x_e' A x_w, over the R words with the highest u.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import linking
  >>> config = linking.Config(keep=2)
  >>> params = linking.init_params(config, 2, jax.random.key(0))
  >>> entities, words = jnp.eye(2), jnp.array([[1., 0], [1, 0], [9, 9]])
  >>> known = jnp.array([True, True, False])
  >>> linking.local_scores(
  ...   config, params, entities, jnp.array([True, True]), words, known
  ... )
  Array([1., 0.], dtype=float32)

  Args:
    config: the configuration.
    params: the weights.
    entities: vectors of the candidates, [c, d].
    mask: False for padding, bool [c].
    words: vectors of the context, [k, d].
    known: False for padding, bool [k].

  Returns:
    Scores [c], 0 in masked places.
  """
  chex.assert_rank([entities, mask, words, known], [2, 1, 2, 1])
  entities = jnp.where(mask[:, None], entities, 0)
  words = jnp.where(known[:, None], words, 0)
  return _local_scores(config, params, entities, mask, words, known)


@chosen_products
def _local_scores(config, params, entities, mask, words, known):
  """`local_scores` for vectors that are finite in masked places too."""
  votes = jnp.where(mask, words @ (params.attention * entities).T, _LOW)
  usable = known & mask.any()
  votes = jnp.where(usable, votes.max(axis=1), _LOW)
  best, places = jax.lax.top_k(votes, min(config.keep, votes.shape[0]))
  kept = usable[places]
  weights = jnp.where(kept, jax.nn.softmax(jnp.where(kept, best, _LOW)), 0)
  voters = jnp.where(kept[:, None], words[places], 0)
  return jnp.where(mask, entities @ (params.context * (weights @ voters)), 0)


@chosen_products
def pair_scores(
  params: Params, entities: jax.Array, mask: jax.Array
) -> jax.Array:
  """Phi: scores of pairs of candidates of two mentions.

  Args:
    entities: vectors of the candidates, [m, c, d].
    mask: False for padding, bool [m, c].

  Returns:
    2 / (n - 1) x_e' C x_f for candidates e and f and n mentions with
    candidates, [m, m, c, c]; not masked.
  """
  chex.assert_rank([entities, mask], [3, 2])
  entities = jnp.where(mask[..., None], entities, 0)
  count = mask.any(axis=1).sum().astype(entities.dtype)
  scale = 2 / jnp.maximum(count - 1, 1)
  # In the order of states and mentions in which beliefs are propagated.
  entities = entities.swapaxes(0, 1)
  made = jnp.einsum("aid,bjd->abij", scale * params.pair * entities, entities)
  return made.transpose(2, 3, 0, 1)


@chosen_products
def join(
  params: Params,
  scores: jax.Array,
  log_prior: jax.Array,
  context: jax.Array | None = None,
) -> jax.Array:
  """The network f(score, log prior) that ranks candidates.

  Args:
    scores: of any shape.
    context: context scores of that shape; None without `Config.join_context`.

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
  config: Config,
  params: Params,
  tables: Tables,
  document: Packed,
  context_weight: jax.Array | float = 1.0,
  pair_weight: jax.Array | float = 1.0,
) -> jax.Array:
  """Final scores of one document's candidates.

  Args:
    tables: vectors of entities and words.
    document: arrays of one document: ids [m, c] and [m, k], prior [m, c].
    context_weight: factor of the context scores.
    pair_weight: factor of the scores of pairs.

  Returns:
    Scores [m, c]; -1e9 in masked places.
  """
  chex.assert_rank([document.candidates, document.words], [2, 2])
  ids, around = jnp.asarray(document.candidates), jnp.asarray(document.words)
  mask, known = ids >= 0, around >= 0
  entities = jnp.asarray(tables.entities)[jnp.maximum(ids, 0)]
  words = jnp.asarray(tables.words)[jnp.maximum(around, 0)]
  local = functools.partial(_local_scores, config, params)
  scores = context_weight * jax.vmap(local)(entities, mask, words, known)
  log_prior = jnp.where(mask, document.log_prior, 0).astype(scores.dtype)
  context = None
  if config.coherence:
    context = scores if config.join_context else None
    if config.field_prior:
      scores = scores + params.prior.astype(scores.dtype) * log_prior
    beliefs = belief_propagation.max_product(
      scores,
      pair_weight * pair_scores(params, entities, mask),
      mask,
      iterations=config.iterations,
      damping=config.damping,
    )
    scores = jnp.where(mask, jnp.exp(beliefs), 0)
  return jnp.where(mask, join(params, scores, log_prior, context), _LOW)


def disambiguate(
  config: Config, params: Params, tables: Tables, document: Packed
) -> Answer:
  """Scores the candidates of one document and names the best.

  s(m, e) = f(Psi(e), log p(e|m)) locally; with coherence Psi is replaced by
  the max-marginals of a random field with unary scores Psi and pairwise
  scores Phi, by T rounds of loopy belief propagation.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import linking
  >>> config = linking.Config(coherence=False)
  >>> params = linking.init_params(config, 2, jax.random.key(0))
  >>> tables = linking.Tables(entities=jnp.eye(2), words=jnp.eye(2))
  >>> document = linking.Packed(
  ...   candidates=jnp.array([[0, 1, -1]]), log_prior=jnp.zeros((1, 3)),
  ...   words=jnp.array([[1, 1, -1]]), gold=jnp.array([-1]),
  ... )
  >>> linking.disambiguate(config, params, tables, document).best
  Array([1], dtype=int32)

  Args:
    config: the configuration, static.
    params: the weights.
    tables: vectors of entities and words, finite.
    document: arrays of one document: candidates and log_prior [m, c], words
      [m, k]; -1 marks absence. Its gold is not read.

  Returns:
    The answer for m mentions.
  """
  scores = document_scores(config, params, tables, document)
  best = jnp.argmax(scores, axis=-1).astype(jnp.int32)
  mask = jnp.asarray(document.candidates) >= 0
  best = jnp.where(mask.any(axis=-1), best, -1)
  return Answer(best, jnp.where(mask, scores, -jnp.inf))


def contributions(
  config: Config, params: Params, tables: Tables, document: Packed
) -> Contributions:
  """Decomposes the scores of `disambiguate` into prior, context, coherence.

  The parts are differences of scores: without context and pairs, with
  context, with both. Their sum is the score that ranked.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import linking
  >>> config = linking.Config()
  >>> params = linking.init_params(config, 2, jax.random.key(0))
  >>> tables = linking.Tables(entities=jnp.eye(2), words=jnp.eye(2))
  >>> document = linking.Packed(
  ...   candidates=jnp.array([[0, 1]]), log_prior=jnp.zeros((1, 2)),
  ...   words=jnp.array([[1, -1]]), gold=jnp.array([-1]),
  ... )
  >>> parts = linking.contributions(config, params, tables, document)
  >>> scores = linking.disambiguate(config, params, tables, document).scores
  >>> bool(jnp.allclose(sum(parts), scores))
  True

  Args:
    config: the configuration, static.
    params: the weights.
    tables: vectors of entities and words, finite.
    document: arrays of one document.

  Returns:
    The parts, fields [m, c]; 0 in masked places.
  """
  one = functools.partial(document_scores, config, params, tables, document)
  prior, local, full = one(0.0, 0.0), one(1.0, 0.0), one(1.0, 1.0)
  mask = jnp.asarray(document.candidates) >= 0
  parts = (prior, local - prior, full - local)
  return Contributions(*(jnp.where(mask, part, 0) for part in parts))


def margin_loss(
  scores: jax.Array, mask: jax.Array, gold: jax.Array, margin: jax.Array | float
) -> tuple[jax.Array, jax.Array]:
  """Sum over mentions and candidates of [gamma - s(gold) + s(e)]_+.

  Args:
    scores: scores of the candidates, [m, c].
    mask: False for padding, bool [m, c].
    gold: place of the right one, int [m]; -1 leaves the mention out.

  Returns:
    The loss, scalar, and the number of mentions that count.
  """
  chex.assert_rank([scores, mask, gold], [2, 2, 1])
  right = jnp.take_along_axis(scores, jnp.maximum(gold, 0)[:, None], axis=1)
  counted = mask & (gold >= 0)[:, None]
  counted &= jnp.arange(scores.shape[1]) != gold[:, None]
  excess = jax.nn.relu(margin - right + scores)
  return jnp.sum(jnp.where(counted, excess, 0)), jnp.sum(gold >= 0)

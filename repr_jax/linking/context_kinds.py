"""Candidates by the kind of their titles and the context of the mention.

s(e) = sum over features f of the context and t of the title of a_f'b_t, plus
the title's own b_t: a bilinear model of few numbers, trained by maximum
likelihood together with a weight of log in-links. It has no weights of single
entities, so it also ranks entities without training links. Features are
numbered by `repr_jax.data.documents.title_kinds`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from repr_jax.data.documents.title_kinds import KindArrays
from repr_jax.ops.precision import chosen_products

NAMES = (
  "score of the kind in the context",
  "the same against the best",
  "log probability with in-links",
)
_LOW = -1e9
_LEAST = -12.0  # of a log probability


@dataclasses.dataclass(frozen=True)
class KindConfig:
  """Sizes of the model.

  Attributes:
    num_contexts: F, features of contexts.
    num_kinds: T, features of titles.
    dim: d, numbers per feature.
  """

  num_contexts: int
  num_kinds: int
  dim: int = 32


class KindParams(NamedTuple):
  """Weights.

  Attributes:
    contexts: a, [F, d].
    kinds: b, [T, d].
    bias: score of each feature of titles in any context, [T].
    links: weight of log in-links, scalar.
  """

  contexts: jax.Array
  kinds: jax.Array
  bias: jax.Array
  links: jax.Array


class KindState(NamedTuple):
  """Weights and the optimizer's state."""

  params: KindParams
  optimizer: optax.OptState


def kind_scores(
  params: KindParams, contexts: jax.Array, kinds: jax.Array
) -> jax.Array:
  """Scores of one mention's candidates by their kinds.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> params = linking.KindParams(
  ...   jnp.array([[1.0], [2]]), jnp.array([[1.0], [-1]]),
  ...   jnp.array([0.0, 0.5]), jnp.array(1.0),
  ... )
  >>> contexts, kinds = jnp.array([1, -1]), jnp.array([[0, -1], [1, -1]])
  >>> linking.kind_scores(params, contexts, kinds)
  Array([ 2. , -1.5], dtype=float32)

  Args:
    params: the weights.
    contexts: features of the context, int [k]; -1 for padding.
    kinds: features of each candidate's title, int [c, t]; -1 for padding.

  Returns:
    Scores [c].
  """
  return kind_parts(params, contexts, kinds).sum(axis=0)


@chosen_products
def kind_parts(
  params: KindParams, contexts: jax.Array, kinds: jax.Array
) -> jax.Array:
  """Parts of `kind_scores` by features of the context; they add up to it.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> params = linking.KindParams(
  ...   jnp.array([[1.0], [2]]), jnp.array([[1.0], [-1]]),
  ...   jnp.array([0.0, 0.5]), jnp.array(1.0),
  ... )
  >>> contexts, kinds = jnp.array([1, 0]), jnp.array([[0, -1], [1, -1]])
  >>> linking.kind_parts(params, contexts, kinds)
  Array([[ 2. , -2. ],
         [ 1. , -1. ],
         [ 0. ,  0.5]], dtype=float32)

  Args:
    params: the weights.
    contexts: features of the context, int [k]; -1 for padding.
    kinds: features of each candidate's title, int [c, t]; -1 for padding.

  Returns:
    Part of each feature, and of the title alone in the last row, [k + 1, c].
  """
  chex.assert_rank([contexts, kinds], [1, 2])
  around = _rows(params.contexts, contexts)
  titles = _rows(params.kinds, kinds).sum(axis=1)
  own = _rows(params.bias[:, None], kinds).sum(axis=(1, 2))
  return jnp.concatenate([around @ titles.T, own[None]])


@chosen_products
def kind_features(
  params: KindParams,
  contexts: jax.Array,
  kinds: jax.Array,
  log_links: jax.Array,
  mask: jax.Array,
) -> jax.Array:
  """Features of one mention's candidates for a ranker.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> params = linking.KindParams(
  ...   jnp.array([[1.0]]), jnp.array([[1.0], [-1]]), jnp.zeros(2),
  ...   jnp.array(1.0),
  ... )
  >>> linking.kind_features(
  ...   params, jnp.array([0]), jnp.array([[0], [1]]), jnp.array([0.0, 2]),
  ...   jnp.array([True, True]),
  ... ).round(1)
  Array([[ 1. ,  0. , -0.7],
         [-1. , -2. , -0.7]], dtype=float32)

  Args:
    params: the weights.
    contexts: features of the context, int [k]; -1 for padding.
    kinds: features of each candidate's title, int [c, t]; -1 for padding.
    log_links: log(1 + in-links), [c].
    mask: False for padding, bool [c].

  Returns:
    Features [c, 3] in the order of `NAMES`; 0 in masked places.
  """
  scores = kind_scores(params, contexts, kinds)
  low = jnp.where(mask, scores, _LOW)
  joint = jnp.where(
    mask, scores + params.links * jnp.where(mask, log_links, 0), _LOW
  )
  table = [
    scores,
    low - low.max(),
    jnp.maximum(jax.nn.log_softmax(joint), _LEAST),
  ]
  return jnp.where(mask[:, None], jnp.stack(table, axis=-1), 0)


def kind_ranker(
  config: KindConfig, optimizer: optax.GradientTransformation
) -> tuple[
  Callable[..., KindState], Callable[..., tuple[KindState, jax.Array]]
]:
  """Trains the weights of `kind_scores` by maximum likelihood.

  Minimizes the mean of -log p(gold) over mentions, where p(e) is the softmax of
  s(e) + w log(1 + in-links).

  >>> import jax, jax.numpy as jnp, optax
  >>> from repr_jax import linking
  >>> config = linking.KindConfig(num_contexts=1, num_kinds=2, dim=2)
  >>> init, update = linking.kind_ranker(config, optax.sgd(1.0))
  >>> batch = linking.KindArrays(  # one mention, its second candidate is meant
  ...   contexts=jnp.array([[0]]), kinds=jnp.array([[[0], [1]]]),
  ...   log_links=jnp.zeros((1, 2)), mask=jnp.ones((1, 2), bool),
  ...   gold=jnp.array([1]),
  ... )
  >>> state, first = update(init(jax.random.key(0)), batch)
  >>> state, second = update(state, batch)
  >>> bool(second < first)
  True

  Args:
    config: the sizes.
    optimizer: any optimizer of optax.

  Returns:
    `init(key)` gives the state. `update(state, batch)` takes arrays of a batch
    of mentions (gold -1 leaves one out) and gives the next state and the loss.
    Both are jitted.
  """

  def init(key):
    first, second = jax.random.split(key)
    params = KindParams(
      0.1 * jax.random.normal(first, (config.num_contexts, config.dim)),
      0.1 * jax.random.normal(second, (config.num_kinds, config.dim)),
      jnp.zeros(config.num_kinds),
      jnp.zeros(()),
    )
    return KindState(params, optimizer.init(params))

  def update(state, batch):
    loss, slope = jax.value_and_grad(kind_loss)(state.params, batch)
    change, memory = optimizer.update(slope, state.optimizer, state.params)
    params: Any = optax.apply_updates(state.params, change)
    return KindState(params, memory), loss

  return jax.jit(init), jax.jit(update)


def kind_loss(params: KindParams, batch: KindArrays) -> jax.Array:
  """Mean of -log p(gold) over mentions whose gold is a candidate.

  Returns:
    The loss, scalar.
  """
  scores = jax.vmap(_summed, (None, 0, 0))(params, batch.contexts, batch.kinds)
  mask = jnp.asarray(batch.mask)
  scores = scores + params.links * jnp.where(mask, batch.log_links, 0)
  logs = jax.nn.log_softmax(jnp.where(mask, scores, _LOW))
  gold = jnp.asarray(batch.gold)
  picked = jnp.take_along_axis(logs, jnp.maximum(gold, 0)[:, None], axis=1)
  counts = gold >= 0
  total = jnp.where(counts, -picked[:, 0], 0).sum()
  return total / jnp.maximum(counts.sum(), 1).astype(logs.dtype)


@chosen_products
def _summed(params, contexts, kinds):
  """`kind_scores` with the context's features added up first, for training."""
  around = _rows(params.contexts, contexts).sum(axis=0)
  titles = _rows(params.kinds, kinds).sum(axis=1)
  return titles @ around + _rows(params.bias[:, None], kinds).sum(axis=(1, 2))


def _rows(table, ids):
  ids = jnp.asarray(ids)
  return jnp.where((ids >= 0)[..., None], table[jnp.maximum(ids, 0)], 0)

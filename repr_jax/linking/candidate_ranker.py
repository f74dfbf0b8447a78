"""A ranker of candidates by their features, in two passes.

The first pass scores candidates by their own features. Its probabilities give
the graph features of `candidate_graph`, and a second ranker of the same form
scores own and graph features together. This is one round of mean-field updates
in a random field of the document, with weights learned by maximum likelihood.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from repr_jax.data.documents.evidence import Evidence
from repr_jax.linking import candidate_graph
from repr_jax.ops.precision import chosen_products

_LOW = -1e9


@dataclasses.dataclass(frozen=True)
class RankerConfig:
  """Structure of a ranker.

  Attributes:
    hidden: width of its hidden layer; 0 for a linear ranker.
  """

  hidden: int = 48


class RankerParams(NamedTuple):
  """Weights; the first two are set by `init` and not trained.

  Attributes:
    mean: mean of each feature, [f].
    scale: standard deviation of each feature, [f].
    linear: weights of the features, [f].
    inner: first layer, [f, h].
    bias: of the first layer, [h].
    outer: second layer, [h].
  """

  mean: jax.Array
  scale: jax.Array
  linear: jax.Array
  inner: jax.Array
  bias: jax.Array
  outer: jax.Array


class RankerState(NamedTuple):
  """Weights and the optimizer's state.

  Attributes:
    params: the weights.
    optimizer: state of the optimizer.
  """

  params: RankerParams
  optimizer: optax.OptState


class Decision(NamedTuple):
  """The candidates of one document, scored in two passes.

  Attributes:
    best: place of the best candidate, int32 [m]; -1 without candidates.
    probabilities: of the candidates, [m, c]; 0 in masked places.
    scores: logits of the probabilities, [m, c]; -inf in masked places.
    first: probabilities of the first pass, [m, c].
    features: features of the second pass, [m, c, f + 16].
  """

  best: jax.Array
  probabilities: jax.Array
  scores: jax.Array
  first: jax.Array
  features: jax.Array


@chosen_products
def candidate_scores(
  params: RankerParams, features: jax.Array, mask: jax.Array
) -> jax.Array:
  """Scores of candidates by their features.

  s(e) = w' x + v' relu(U' x + b), x = (features - mean) / scale.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> one, none = jnp.ones(1), jnp.zeros((1, 0))
  >>> params = linking.RankerParams(0 * one, one, 2 * one, none, *none, *none)
  >>> features = jnp.array([[1.0], [3.0]])
  >>> linking.candidate_scores(params, features, jnp.array([True, True]))
  Array([2., 6.], dtype=float32)

  Args:
    params: the weights.
    features: [..., f].
    mask: False for padding, bool [...].

  Returns:
    Scores [...]; -1e9 in masked places.
  """
  chex.assert_equal_shape_prefix([features, mask], mask.ndim)
  inputs = (features - params.mean) / params.scale
  inputs = jnp.where(mask[..., None], inputs, 0)
  hidden = jax.nn.relu(inputs @ params.inner + params.bias)
  scores = inputs @ params.linear + hidden @ params.outer
  return jnp.where(mask, scores, _LOW)


def rank_document(
  first: RankerParams, second: RankerParams, evidence: Evidence
) -> Decision:
  """Ranks the candidates of one document in two passes.

  p1 = softmax s1(x), p2 = softmax s2([x, graph_features(p1)]).

  >>> import jax, jax.numpy as jnp, optax
  >>> from repr_jax import linking
  >>> evidence = linking.Evidence(
  ...   features=jnp.array([[[0.0], [1]], [[1], [0]]]),
  ...   nodes=jnp.array([[0, 1], [2, -1]]),
  ...   edges=jnp.array([[1, 2]]), groups=jnp.array([0, 1]),
  ...   shapes=jnp.array([[0, 0], [0, -1]]), degrees=jnp.ones(3),
  ...   gold=jnp.array([1, 0]),
  ... )
  >>> init, _ = linking.ranker(linking.RankerConfig(0), optax.sgd(0.1))
  >>> key, mask = jax.random.key(0), evidence.nodes >= 0
  >>> one = init(key, evidence.features, mask).params
  >>> two = init(key, jnp.ones((2, 2, 17)), mask).params
  >>> linking.rank_document(one, two, evidence).best
  Array([0, 0], dtype=int32)

  Args:
    first: weights of the first pass, for f features.
    second: weights of the second pass, for f + 16 features.
    evidence: arrays of one document; its gold is not read.

  Returns:
    The decision for m mentions.
  """
  mask = jnp.asarray(evidence.nodes) >= 0
  features = jnp.where(mask[..., None], evidence.features, 0)
  early = probabilities(candidate_scores(first, features, mask), mask)
  graph = candidate_graph.graph_features(evidence, early)
  features = jnp.concatenate([features, graph.astype(features.dtype)], axis=-1)
  scores = candidate_scores(second, features, mask)
  best = jnp.argmax(scores, axis=-1).astype(jnp.int32)
  return Decision(
    jnp.where(mask.any(axis=-1), best, -1),
    probabilities(scores, mask),
    jnp.where(mask, scores, -jnp.inf),
    early,
    features,
  )


def probabilities(scores: jax.Array, mask: jax.Array) -> jax.Array:
  """Softmax over the candidates of each mention.

  Args:
    scores: [..., c].
    mask: False for padding, bool [..., c].

  Returns:
    Probabilities [..., c]; 0 in masked places.
  """
  return jnp.where(mask, jax.nn.softmax(jnp.where(mask, scores, _LOW)), 0)


def score_parts(
  params: RankerParams,
  features: jax.Array,
  groups: jax.Array,
  mask: jax.Array,
  num_groups: int,
) -> jax.Array:
  """Parts of scores by groups of features; they add up to the scores.

  Part g is the score with the features of groups 0 to g less the score with
  those of groups below g; other features have their mean. The first part also
  holds the score of a candidate with mean features.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> two, none = jnp.ones(2), jnp.zeros((2, 0))
  >>> params = linking.RankerParams(
  ...   0 * two, two, two, none, jnp.zeros(0), jnp.zeros(0)
  ... )
  >>> linking.score_parts(
  ...   params, jnp.array([[1.0, 3.0]]), jnp.array([0, 1]),
  ...   jnp.array([True]), num_groups=2,
  ... )
  Array([[1., 3.]], dtype=float32)

  Args:
    params: the weights.
    features: [..., f].
    groups: the group of each feature, int [f].
    mask: False for padding, bool [...].
    num_groups: number of groups, static.

  Returns:
    Parts [..., num_groups]; 0 in masked places.
  """
  features = jnp.where(mask[..., None], features, params.mean)

  def upto(group):
    kept = jnp.where(groups <= group, features, params.mean)
    return candidate_scores(params, kept, jnp.ones_like(mask))

  sums = jax.vmap(upto, out_axes=-1)(jnp.arange(num_groups))
  parts = jnp.diff(sums, axis=-1, prepend=jnp.zeros_like(sums[..., :1]))
  return jnp.where(mask[..., None], parts, 0)


def ranker(
  config: RankerConfig, optimizer: optax.GradientTransformation
) -> tuple[
  Callable[..., RankerState],
  Callable[..., tuple[RankerState, jax.Array]],
]:
  """Trains the weights of `candidate_scores` by maximum likelihood.

  Minimizes the mean of -log p(gold) over mentions, p = softmax s.

  >>> import jax, jax.numpy as jnp, optax
  >>> from repr_jax import linking
  >>> init, update = linking.ranker(linking.RankerConfig(2), optax.sgd(0.1))
  >>> features = jnp.array([[[0.0], [1.0]]])  # one mention, two candidates
  >>> mask, gold = jnp.array([[True, True]]), jnp.array([1])
  >>> state = init(jax.random.key(0), features, mask)
  >>> state, first = update(state, features, mask, gold)
  >>> state, second = update(state, features, mask, gold)
  >>> bool(second < first)
  True

  Args:
    config: the ranker.
    optimizer: any optimizer of optax.

  Returns:
    `init(key, features, mask)` gives the state; features [n, c, f] give mean
    and scale. `update(state, features, mask, gold)` takes a batch of mentions
    (gold -1 leaves one out) and gives the next state and the loss. Both are
    jitted.
  """

  def init(key, features, mask):
    features = jnp.asarray(features)
    weight = mask[..., None].astype(features.dtype)
    total = jnp.maximum(weight.sum(), 1)
    axes = tuple(range(features.ndim - 1))
    kept = jnp.where(weight > 0, features, 0)
    mean = kept.sum(axes) / total
    spread = jnp.where(weight > 0, (features - mean) ** 2, 0).sum(axes) / total
    scale = jnp.where(spread > 1e-12, jnp.sqrt(spread), 1)
    size, hidden = features.shape[-1], config.hidden
    first, second = jax.random.split(key)
    dtype = features.dtype
    inner = jax.random.normal(first, (size, hidden), dtype) / size**0.5
    outer = jax.random.normal(second, (hidden,), dtype)
    params = RankerParams(
      mean=mean,
      scale=scale,
      linear=jnp.zeros(size, dtype),
      inner=inner,
      bias=jnp.zeros(hidden, dtype),
      outer=0.3 * outer / max(hidden, 1) ** 0.5,
    )
    return RankerState(params, optimizer.init(params))

  def update(state, features, mask, gold):
    loss, slope = jax.value_and_grad(likelihood_loss)(
      state.params, features, mask, gold
    )
    slope = slope._replace(
      mean=jnp.zeros_like(slope.mean), scale=jnp.zeros_like(slope.scale)
    )
    change, memory = optimizer.update(slope, state.optimizer, state.params)
    params: Any = optax.apply_updates(state.params, change)
    params = params._replace(mean=state.params.mean, scale=state.params.scale)
    return RankerState(params, memory), loss

  return jax.jit(init), jax.jit(update)


def likelihood_loss(
  params: RankerParams, features: jax.Array, mask: jax.Array, gold: jax.Array
) -> jax.Array:
  """Mean of -log p(gold) over mentions whose gold is a candidate.

  Args:
    features: [n, c, f].
    mask: False for padding, bool [n, c].
    gold: place of the right one, int [n]; -1 leaves the mention out.

  Returns:
    The loss, scalar.
  """
  logs = jax.nn.log_softmax(candidate_scores(params, features, mask))
  counts = (gold >= 0) & mask.any(axis=-1)
  picked = jnp.take_along_axis(logs, jnp.maximum(gold, 0)[:, None], axis=1)
  total = jnp.where(counts, -picked[:, 0], 0).sum()
  return total / jnp.maximum(counts.sum(), 1).astype(logs.dtype)

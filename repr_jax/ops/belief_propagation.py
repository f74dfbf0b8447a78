"""Max-product belief propagation on pairwise models, loops allowed.

The model scores an assignment x of m variables with up to c states each by
sum_i unary_i(x_i) + sum_{i<j} pairwise_ij(x_i, x_j). Messages are passed along
all edges at once for a fixed number of rounds, so that gradients flow through
them (thesis 6.3; Ganea and Hofmann 2017, section 5).
"""

import functools

import chex
import jax
import jax.numpy as jnp


def max_product(
  unary: jax.Array,
  pairwise: jax.Array,
  mask: jax.Array,
  edges: jax.Array | None = None,
  *,
  iterations: int = 10,
  damping: float | jax.Array = 0.5,
) -> jax.Array:
  """Approximate max-marginals; exact on trees once messages have arrived.

  A message from i to j is max over x_i of unary, pairwise and the messages
  that i had from others; it is normalized to probabilities and averaged with
  the one before it: new = log(damping old + (1 - damping) softmax(message)).

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> unary = jnp.array([[0.0, 2.0], [1.0, 0.0]])
  >>> agree = jnp.broadcast_to(5.0 * jnp.eye(2), (2, 2, 2, 2))
  >>> mask = jnp.ones((2, 2), bool)
  >>> ops.max_product(unary, agree, mask).argmax(1)  # the pair agrees
  Array([1, 1], dtype=int32)

  Args:
    unary: scores of states, [m, c].
    pairwise: scores of pairs, [m, m, c, c], with pairwise[i, j, a, b] equal
      to pairwise[j, i, b, a].
    mask: which states exist, bool [m, c]; a variable without any is ignored.
      Masked places are never read.
    edges: which pairs interact, bool [m, m] and symmetric; all where None.
    iterations: rounds of messages.
    damping: share of the old message that stays, 0 for none, scalar.

  Returns:
    Beliefs [m, c], each variable's log-probabilities; 0 in masked places. A
    NaN among the scores of pairs that interact makes all others NaN.
  """
  chex.assert_rank([unary, pairwise, mask], [2, 4, 2])
  chex.assert_equal_shape([unary, mask])
  count = unary.shape[0]
  there = mask.any(axis=1)
  linked = there[:, None] & there & ~jnp.eye(count, dtype=bool)
  if edges is not None:
    linked &= edges
  # Inside, states come first and variables last, [c, .., m]: the longest axis
  # is contiguous in memory, which makes the maxima several times faster.
  mask = mask.T
  unary = jnp.where(mask, unary.T, 0)
  pair = linked & mask[:, None, :, None] & mask[None, :, None]
  pairwise = jnp.where(pair, pairwise.transpose(2, 3, 0, 1), -jnp.inf)
  # The compiled maximum of many numbers may pass over a NaN.
  broken = jnp.isnan(pairwise).any()
  # received[b, i, j]: whether state x_j = b gets a message from i.
  received = linked & mask[:, None]
  states = jnp.maximum(mask.sum(axis=0), 1).astype(unary.dtype)
  old = jnp.where(received, -jnp.log(states), 0)
  # Rounds are computed again in the backward pass: [c, c, m, m] is then held
  # once, not once for each round.
  step = jax.checkpoint(
    functools.partial(_round, unary, pairwise, received, damping)
  )
  messages, _ = jax.lax.scan(
    lambda messages, _: (step(messages), None), old, None, length=iterations
  )
  beliefs = _normalize(unary + messages.sum(axis=1), mask)
  return jnp.where(mask & broken, jnp.nan, beliefs).T


def _round(unary, pairwise, received, damping, messages):
  """All messages [c, m, m] from those of the round before."""
  belief = unary + messages.sum(axis=1)
  # heard[a, i, j]: what i believes of x_i = a without what j told it.
  heard = belief[:, :, None] - messages.swapaxes(1, 2)
  new = jnp.max(heard[:, None] + pairwise, axis=0)
  new = _normalize(new, received)
  damping = jnp.asarray(damping, new.dtype)
  new = jnp.logaddexp(messages + jnp.log(damping), new + jnp.log1p(-damping))
  return jnp.where(received, new, 0)


def _normalize(scores, mask):
  """Log-probabilities over the first axis, 0 in masked places."""
  # A finite floor: the maximum of a variable without states must not be -inf.
  scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
  return jnp.where(mask, jax.nn.log_softmax(scores, axis=0), 0)

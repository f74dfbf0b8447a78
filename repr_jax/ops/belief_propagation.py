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
    damping: share of the old message that stays, 0 for none, scalar. Its own
      derivative is NaN at 0 and 1.

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
  dtype = jnp.result_type(unary, pairwise)
  unary = jnp.where(mask, unary.T, 0).astype(dtype)
  pair = linked & mask[:, None, :, None] & mask[None, :, None]
  pairwise = jnp.where(pair, pairwise.transpose(2, 3, 0, 1), -jnp.inf)
  pairwise = pairwise.astype(dtype)
  # Comparisons ignore NaN.
  broken = jnp.isnan(pairwise).any() | jnp.isnan(unary).any()
  # received[b, i, j]: whether state x_j = b gets a message from i.
  received = linked & mask[:, None]
  damping = jnp.asarray(damping, unary.dtype)
  messages = _messages(iterations, unary, pairwise, damping, received)
  beliefs = _normalize(unary + messages.sum(axis=1), mask)
  return jnp.where(mask & broken, jnp.nan, beliefs).T


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _messages(iterations, unary, pairwise, damping, received):
  """Messages [c, m, m] after all rounds.

  Gradients flow through the state that attains each maximum. Of equal states,
  this is the first. Only these states are stored, not the sums [c, c, m, m].
  """
  inputs = unary, pairwise, damping, received
  return _messages_forward(iterations, *inputs)[0]


def _messages_forward(iterations, unary, pairwise, damping, received):
  sizes = jnp.maximum(received.sum(axis=0), 1).astype(unary.dtype)
  first = jnp.where(received, -jnp.log(sizes), 0)

  def step(messages, _):
    new, winners = _best(_heard(unary, messages), pairwise)
    mixed, share, chances = _mix(received, new, messages, damping)
    return mixed, (share, chances, winners)

  last, saved = jax.lax.scan(step, first, None, length=iterations)
  return last, (unary, damping, received, saved)


def _messages_backward(iterations, kept, slope):
  unary, damping, received, saved = kept

  def step(slopes, saved):
    slope, to_unary, to_damping = slopes
    share, chances, winners = saved
    slope = jnp.where(received, slope, 0)
    to_log = share * slope
    to_old = slope - to_log
    to_new = to_log - chances * to_log.sum(axis=0)
    more = to_old.sum() / damping - to_log.sum() / (1 - damping)
    to_heard = _per_state(winners, to_new)
    _, pull = jax.vjp(_heard, unary, jnp.zeros_like(slope))
    own, earlier = pull(to_heard)
    return (to_old + earlier, to_unary + own, to_damping + more), to_new

  start = slope, jnp.zeros_like(unary), jnp.zeros_like(damping)
  (_, to_unary, to_damping), to_new = jax.lax.scan(
    step, start, saved, reverse=True
  )

  def to_pair(state):
    total = jnp.zeros_like(slope)
    for winners, own in zip(saved[2], to_new):
      total += jnp.where(winners == state, own, 0)
    return total

  # [c, c, m, m] is written once for all rounds.
  states = jnp.arange(len(unary), dtype=saved[2].dtype)
  return to_unary, jax.lax.map(to_pair, states), to_damping, None


_messages.defvjp(_messages_forward, _messages_backward)


def _heard(unary, messages):
  """[a, i, j]: belief of i in x_i = a without the message from j."""
  belief = unary + messages.sum(axis=1)
  return belief[:, :, None] - messages.swapaxes(1, 2)


def _best(heard, pairwise):
  """Maxima over a of heard[a] + pairwise[a], [c, m, m], and the first such a.

  The loop is several times faster on a CPU than a reduction over the first
  axis; unrolled, XLA would compute it again for each use of its results.
  """
  dtype = jnp.int8 if len(heard) <= 128 else jnp.int32
  states = jnp.arange(1, len(heard), dtype=dtype)

  def step(best, inputs):
    state, own, pairs = inputs
    value = own + pairs
    better = value > best[0]
    return (
      jnp.where(better, value, best[0]), jnp.where(better, state, best[1])
    ), None  # fmt: skip

  value = heard[0] + pairwise[0]
  start = value, jnp.zeros(value.shape, dtype)
  inputs = states, heard[1:], pairwise[1:]
  return jax.lax.scan(step, start, inputs)[0]


def _per_state(winners, slope):
  """Slopes of heard [a, i, j] from those of the maxima [b, i, j]."""
  states = jnp.arange(len(slope), dtype=winners.dtype)[:, None, None]

  def step(total, inputs):
    return total + jnp.where(inputs[0] == states, inputs[1], 0), None

  inputs = winners, slope
  return jax.lax.scan(step, jnp.zeros_like(slope), inputs)[0]


def _mix(received, new, old, damping):
  """Normalized messages, averaged with those of the round before.

  Returns:
    The mixed messages, the share of the new messages in them, and the
    probabilities of the new messages, each [c, m, m]. With these the backward
    pass computes no logarithm or exponential.
  """
  new = jnp.where(received, new, jnp.finfo(new.dtype).min)
  new = new - new.max(axis=0)
  shares = jnp.where(received, jnp.exp(new), 0)
  total = shares.sum(axis=0)
  total = jnp.where(total > 0, total, 1)
  new = new - jnp.log(total) + jnp.log1p(-damping)
  old = old + jnp.log(damping)
  # logaddexp, which is twice as slow.
  gap = new - old
  small = jnp.exp(-jnp.abs(gap))
  mixed = jnp.maximum(old, new) + jnp.log(1 + small)
  share = jnp.where(gap > 0, 1, small) / (1 + small)
  return jnp.where(received, mixed, 0), share, shares / total


def _normalize(scores, mask):
  """Log-probabilities over the first axis, 0 in masked places."""
  # A finite floor: the maximum of a variable without states must not be -inf.
  scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
  return jnp.where(mask, jax.nn.log_softmax(scores, axis=0), 0)

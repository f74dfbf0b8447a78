"""Chances of results, and how many members a set has.

A score ranks entities but does not tell whether an entity is in the set. The
chance of entity x for a query is

    p_x = sigmoid(w . phi_x),  phi_x = (1, z_x, m, z_x m, log place_x),

where z_x is the score, standardized over the entities outside the query, m is
the weighted mean of z over the members of positive weight (high for a tight
set), and place_x is the rank. The five weights w are fitted by logistic
regression on queries with known answers. They are valid for the system whose
scores they were fitted on.

The set is cut after the n results that maximize the expected F1,

    2 (p_1 + ... + p_n) / (n + sum of all p),

in which the sum of all chances estimates the size of the set.
"""

import jax
import jax.numpy as jnp
from jax import lax

from repr_jax.ops.precision import chosen_products

NUM_EVIDENCE = 5
_STEPS = 25
_RIDGE = 1e-2


def evidence(scores: jax.Array, members: jax.Array) -> jax.Array:
  """Evidence from which chances are computed.

  Args:
    scores: of all entities for one query, [X].
    members: weight of each entity in the query, 0 for those outside, [X].

  Returns:
    phi, [X, 5].
  """
  outside = members == 0
  size = jnp.maximum(jnp.sum(outside), 1)
  mean = jnp.sum(jnp.where(outside, scores, 0)) / size
  apart = scores - mean
  square = jnp.sum(jnp.where(outside, apart * apart, 0)) / size
  z = apart / jnp.sqrt(jnp.where(square > 0, square, 1))
  wanted = jnp.maximum(members, 0)
  total = jnp.sum(wanted)
  tight = jnp.sum(wanted * z) / jnp.where(total > 0, total, 1)
  order = jnp.argsort(jnp.where(outside, -scores, jnp.inf), stable=True)
  place = jnp.zeros_like(order).at[order].set(jnp.arange(len(scores)))
  held = jnp.broadcast_to(tight, z.shape)
  far = jnp.log1p(place.astype(z.dtype))
  return jnp.stack([jnp.ones_like(z), z, held, z * held, far], axis=-1)


@chosen_products
def chances(
  weights: jax.Array, scores: jax.Array, members: jax.Array
) -> jax.Array:
  """Probability that each entity belongs to the set of a query.

  >>> import jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> weights = jnp.array([0.0, 1.0, 0.0, 0.0, 0.0])
  >>> scores = jnp.array([3.0, 1.0, -1.0])
  >>> members = jnp.array([1.0, 0.0, 0.0])
  >>> (100 * setexp.chances(weights, scores, members)).astype(int).tolist()
  [0, 73, 26]

  Args:
    weights: from `fit_chances`, [5].
    scores: of all entities, [X].
    members: weight of each entity in the query, 0 for those outside, [X].

  Returns:
    Probabilities, [X]; 0 for members.
  """
  logits = evidence(scores, members) @ weights
  return jnp.where(members == 0, jax.nn.sigmoid(logits), 0)


@chosen_products
def fit_chances(
  scores: jax.Array, members: jax.Array, relevant: jax.Array
) -> jax.Array:
  """Fits the weights of the evidence by Newton's method.

  The loss is the mean over queries of the summed log-loss of entities outside
  the query, plus .005 |w|^2. Queries are read one at a time.

  >>> import jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> scores = jnp.array([[3.0, 2.0, 0.0, 1.0]])
  >>> members = jnp.array([[1.0, 0.0, 0.0, 0.0]])
  >>> relevant = jnp.array([[False, True, False, False]])
  >>> weights = setexp.fit_chances(scores, members, relevant)
  >>> chances = setexp.chances(weights, scores[0], members[0])
  >>> bool(chances[1] > chances[3] > chances[2])
  True

  Args:
    scores: of all entities for n queries, [n, X].
    members: weights of the entities in each query, [n, X].
    relevant: which entities belong to the set, bool [n, X].

  Returns:
    The weights, [5].
  """
  size = scores.shape[0]
  ridge = _RIDGE * jnp.eye(NUM_EVIDENCE, dtype=scores.dtype)

  def newton(weights, _):
    def add(sums, query):
      own_scores, own_members, answers = query
      phi = evidence(own_scores, own_members)
      counted = own_members == 0
      p = jax.nn.sigmoid(phi @ weights)
      error = jnp.where(counted, p - answers, 0)
      slope = jnp.where(counted, p * (1 - p), 0)
      gradient, curvature = sums
      gradient = gradient + error @ phi / size
      curvature = curvature + (phi.T * slope) @ phi / size
      return (gradient, curvature), None

    start = (_RIDGE * weights, ridge)
    (gradient, curvature), _ = lax.scan(
      add, start, (scores, members, relevant.astype(scores.dtype))
    )
    step = jnp.linalg.solve(curvature, gradient)
    # Far from the optimum a full step may overshoot: its length is at most 1.
    length = jnp.sqrt(jnp.sum(step * step))
    return weights - step / jnp.maximum(length, 1), None

  start = jnp.zeros(NUM_EVIDENCE, scores.dtype)
  return lax.scan(newton, start, None, length=_STEPS)[0]


def expected_cut(chances: jax.Array) -> jax.Array:
  """Number of results with the greatest expected F1.

  >>> import jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> setexp.expected_cut(jnp.array([0.1, 0.9, 0.8, 0.0])).item()
  2

  Args:
    chances: of all entities, in any order, [X].

  Returns:
    How many of the most probable ones, int [], at least 1.
  """
  falling = -jnp.sort(-chances)
  n = jnp.arange(1, len(falling) + 1)
  return 1 + jnp.argmax(2 * jnp.cumsum(falling) / (n + jnp.sum(falling)))

"""Moves finished word vectors toward a lexicon.

Retrofitting (Faruqui et al. 2015) and counter-fitting (Mrksic et al. 2016)
change finished vectors; multiview LSA takes the lexicon as a view instead.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax


def retrofit(
  vectors: Array,
  pairs: Array,
  weights: Array,
  *,
  alpha: float | Array = 1.0,
  iterations: int | Array = 10,
) -> Array:
  """Vectors near their own start and near those of related words.

    minimize sum_i alpha |q_i - x_i|^2 + sum_(i,j) w_ij / d_i |q_i - q_j|^2

  with d_i the sum of i's weights, by steps of all words at once:
  q_i = (alpha x_i + sum_j w_ij q_j / d_i) / (alpha + 1). Words without a pair
  stay where they are.

  Args:
    vectors: X, [n, d].
    pairs: rows of related words, int [p, 2]; a pair counts for its first word.
    weights: w of each pair, 0 marks padding, [p].
    alpha: weight of a word's own vector.
    iterations: steps.

  Returns:
    Q, [n, d].

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> x = jnp.eye(3)
    >>> pairs = jnp.array([[0, 1], [1, 0]])
    >>> q = multiview.retrofit(x, pairs, jnp.ones(2))
    >>> bool(q[0] @ q[1] > 0.4), q[2].tolist()
    (True, [0.0, 0.0, 1.0])
  """
  n = vectors.shape[0]
  w = jnp.asarray(weights, vectors.dtype)
  first, second = pairs[:, 0], pairs[:, 1]
  total = jax.ops.segment_sum(w, first, n)
  related = total > 0
  share = w / jnp.where(related, total, 1)[first]

  def step(_, q):
    near = jax.ops.segment_sum(share[:, None] * q[second], first, n)
    moved = (alpha * vectors + near) / (alpha + 1)
    return jnp.where(related[:, None], moved, vectors)

  return lax.fori_loop(0, iterations, step, vectors)


def counterfit(
  vectors: Array,
  synonyms: Array,
  antonyms: Array,
  kept: Array,
  *,
  margin: float | Array = 1.0,
  weight: float | Array = 0.1,
  learning_rate: float | Array = 0.1,
  iterations: int | Array = 20,
) -> Array:
  """Unit vectors with synonyms pulled together and antonyms pushed apart.

    sum_syn (1 - cos)_+ + sum_ant (margin - (1 - cos))_+
      + weight sum_kept (cos_before - cos)_+

  by gradient steps of all pairs at once; each word's gradient is divided by
  the number of its pairs.

  Args:
    vectors: [n, d].
    synonyms: pairs of rows, int [a, 2]; -1 marks padding, here and below.
    antonyms: pairs of rows, int [b, 2].
    kept: pairs of near words whose distance should not grow, int [c, 2].
    margin: least cosine distance of antonyms.
    weight: of the pairs to keep.
    learning_rate: step size.
    iterations: steps.

  Returns:
    Unit vectors, [n, d].

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> x = jnp.array([[1.0, 0.2], [1.0, 0.1], [0.1, 1.0]])
    >>> none = jnp.zeros((0, 2), int)
    >>> y = multiview.counterfit(x, none, jnp.array([[0, 1]]), none)
    >>> bool(y[0] @ y[1] < 0.7)
    True
  """
  n = vectors.shape[0]
  groups = [(jnp.where(p < 0, 0, p), p[:, 0] >= 0)
            for p in (synonyms, antonyms, kept)]  # fmt: skip
  counts = jnp.zeros(n, vectors.dtype)
  for pairs, real in groups:
    for side in (0, 1):
      counts = counts.at[pairs[:, side]].add(real.astype(vectors.dtype))
  start = _unit(vectors)

  def cosine(x: Array, pairs: Array) -> Array:
    return jnp.sum(x[pairs[:, 0]] * x[pairs[:, 1]], axis=1)

  before = cosine(start, groups[2][0])

  def loss(raw: Array) -> Array:
    x = _unit(raw)
    near, apart, same = (cosine(x, pairs) for pairs, _ in groups)
    parts = (
      jnp.maximum(1 - near, 0),
      jnp.maximum(margin - 1 + apart, 0),
      weight * jnp.maximum(before - same, 0),
    )
    return sum(
      (jnp.sum(jnp.where(real, part, 0)) for part, (_, real)
       in zip(parts, groups)), start=jnp.zeros((), vectors.dtype)
    )  # fmt: skip

  def step(_, x):
    slope = jax.grad(loss)(x) / jnp.maximum(counts, 1)[:, None]
    return _unit(x - learning_rate * slope)

  return lax.fori_loop(0, iterations, step, start)


def _unit(x: Array) -> Array:
  """Scales rows to length 1; zero rows stay zero."""
  square = jnp.sum(x**2, axis=1, keepdims=True)
  present = square > 0
  return jnp.where(present, x / jnp.sqrt(jnp.where(present, square, 1)), 0)

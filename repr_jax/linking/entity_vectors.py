"""Vectors of entities from the words around them (thesis 6.2).

Three objectives share one input, the bag of words of each entity: its page
(U1), the contexts of its mentions (U2), or both.

- Max-margin (Ganea and Hofmann 2017): the unit vector z that minimizes
  E max(0, gamma - z'(w+ - w-)), where w+ is a word of the entity's bag and w-
  is drawn from the unigram counts to the power alpha. Words stay fixed, so
  entities are independent: a block of them is stepped side by side.
- The posterior mean of a variational autoencoder of the bags.
- Null: the same with an encoder that was not trained.
"""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from repr_jax.errors import InputError
from repr_jax.ops import precision
from repr_jax.setexp import autoencoder, fitting, from_scipy, train
from repr_jax.setexp.baselines import sgns

# What the thesis' runs used (notes to 6.2.3); words are up to the caller.
_HYPER = train.Hyper()
THESIS_CONFIG = autoencoder.Config(
  dim=300, hidden=(150,), weighting="bm25", lower_bounded_variance=True
)
_LARGEST_START = 10.0
_EPSILON = 1e-10


class State(NamedTuple):
  """One entity under Adagrad.

  Attributes:
    vector: z, of length 1, [d].
    squares: sums of squared slopes, [d].
  """

  vector: jax.Array
  squares: jax.Array


def margin_loss(
  z: jax.Array,
  positives: jax.Array,
  negatives: jax.Array,
  gamma: jax.Array | float,
) -> jax.Array:
  """Mean hinge loss over all pairs of a positive and a negative (eq. 6.1).

  Args:
    z: the entity, [d].
    positives: vectors of words of its bag, [p, d].
    negatives: vectors of other words, [m, d].
    gamma: the margin.

  Returns:
    Scalar.
  """
  chex.assert_rank([z, positives, negatives], [1, 2, 2])
  # One product of all words costs less than two, here and in the slope.
  own, other = jnp.split(
    jnp.concatenate([positives, negatives]) @ z, [positives.shape[0]]
  )
  gap = own[:, None] - other[None, :]
  return jnp.mean(jnp.maximum(0, gamma - gap))


def init(start: jax.Array) -> State:
  """The state before the first step.

  Args:
    start: where the entity starts, of any length, [d].

  Returns:
    The state; a start of zero stays zero until the first step.
  """
  return State(_unit(_near_one(start)), jnp.zeros_like(start))


def update(
  state: State,
  positives: jax.Array,
  negatives: jax.Array,
  gamma: jax.Array | float,
  rate: jax.Array | float,
) -> tuple[State, jax.Array]:
  """One step of Adagrad along the unit sphere, then back onto it.

  The slope is taken of the loss at z / |z|, so that it vanishes on average
  where z is best. Steps of the plain slope would settle elsewhere: its part
  along z, which the projection takes away, is turned aside by Adagrad.

  Args:
    state: the entity.
    positives: vectors of words of its bag, [p, d].
    negatives: vectors of other words, [m, d].
    gamma: the margin.
    rate: step size.

  Returns:
    The next state and the loss before the step, [].
  """
  loss, slope = jax.value_and_grad(margin_loss)(
    state.vector, positives, negatives, gamma
  )
  slope = slope - (slope @ state.vector) * state.vector
  squares = state.squares + slope * slope
  moved = state.vector - rate * slope / (jnp.sqrt(squares) + _EPSILON)
  return State(_unit(moved), squares), loss


def fit_max_margin(
  word_vectors: np.ndarray | jax.Array,
  offsets: np.ndarray,
  words: np.ndarray,
  unigram: np.ndarray,
  *,
  key: jax.Array,
  steps: int = 400,
  gamma: float = 0.1,
  alpha: float = 0.6,
  positives: int = 20,
  negatives: int = 5,
  learning_rate: float = 0.3,
  start: np.ndarray | jax.Array | None = None,
  block: int = 64,
) -> jax.Array:
  """Max-margin vectors of all entities in one program (thesis 6.2.2).

  In each step every entity draws its own positives and negatives, and each
  positive is compared with each negative. Word vectors are scaled to length
  1, for which the margin is meant.

  Args:
    word_vectors: [V, d].
    offsets: where the bag of each entity begins, and the end, int [n + 1].
    words: ids of the words of all bags, repeats included, int32 [nnz].
    unigram: counts of the words in the whole text, [V].
    key: random key: the same key gives the same vectors.
    steps: of Adagrad, for each entity.
    gamma: the margin.
    alpha: power of the counts from which negatives are drawn.
    positives: words of the bag drawn in a step.
    negatives: other words drawn in a step.
    learning_rate: of Adagrad.
    start: where the entities start, [n, d], such as the vectors of U1 for a
      second run on U2; random by default.
    block: entities side by side; what they gather should stay in cache.

  Returns:
    Vectors of length 1, [n, d]. An entity without words (see `has_words`)
    keeps its start, or is zero.
  """
  table = jnp.asarray(word_vectors)
  table = table.astype(jnp.result_type(table, jnp.float32))
  _check_bags(offsets, words, table.shape[0])
  _check_words(table, unigram)
  if min(positives, negatives, block) < 1 or steps < 0:
    raise InputError(
      "positives, negatives and block must be positive and steps not negative"
    )
  numbers = {"gamma": gamma, "alpha": alpha, "learning_rate": learning_rate}
  for name, value in numbers.items():
    if not np.isfinite(value):
      raise InputError(f"{name} must be finite, not {value}")
  n = len(offsets) - 1
  begin_key, key = jax.random.split(key)
  if start is None:
    begin = jax.random.normal(begin_key, (n, table.shape[1]), table.dtype)
    begin = jnp.clip(begin, -_LARGEST_START, _LARGEST_START)
    begin = jnp.where(has_words(offsets)[:, None], begin, 0)
  else:
    begin = jnp.asarray(start, table.dtype)
    if begin.shape != (n, table.shape[1]) or not jnp.isfinite(begin).all():
      raise InputError(
        f"start must be finite and of shape {(n, table.shape[1])}, for "
        f"{n} entities and the words' dimension; it has {begin.shape}"
      )
  if n == 0 or steps == 0 or len(words) == 0:
    return unit_rows(begin)
  share = np.asarray(unigram, np.float64)
  noise = sgns.make_noise((share / share.max()) ** alpha * (share > 0))
  bags = _Bags(
    jnp.asarray(np.asarray(offsets)[:-1], jnp.int32),
    jnp.asarray(np.diff(offsets), jnp.int32),
    jnp.asarray(words, jnp.int32),
  )
  sizes = (steps, positives, negatives, block)
  rates = jnp.asarray([gamma, learning_rate], table.dtype)
  return _fit(sizes, unit_rows(table), bags, noise, begin, rates, key)


def has_words(offsets: np.ndarray) -> np.ndarray:
  """Which entities have a bag that is not empty.

  Args:
    offsets: as for `fit_max_margin`, [n + 1].

  Returns:
    bool [n].
  """
  return np.diff(np.asarray(offsets)) > 0


def bag_counts(
  offsets: np.ndarray, words: np.ndarray, size: int
) -> sp.csr_array:
  """Bags of words as counts, the input of `posterior_means`.

  Args:
    offsets: where the bag of each entity begins, and the end, int [n + 1].
    words: ids of the words, repeats included, int32 [nnz].
    size: the number of words V.

  Returns:
    float32 CSR [n, V], sorted columns.
  """
  _check_bags(offsets, words, size)
  ones = np.ones(len(words), np.float32)
  place = np.asarray(words, np.int32).copy(), np.asarray(offsets).copy()
  counts = sp.csr_array((ones, *place), shape=(len(offsets) - 1, size))
  counts.sum_duplicates()
  return counts


def posterior_means(
  counts: sp.csr_array,
  *,
  key: jax.Array,
  config: autoencoder.Config = THESIS_CONFIG,
  epochs: int = 10,
  hyper: train.Hyper = _HYPER,
  batch_size: int = 256,
  word_vectors: np.ndarray | None = None,
) -> np.ndarray:
  """Posterior means of an autoencoder of the bags (thesis eq. 6.3).

  Args:
    counts: words of each entity, [n, V].
    key: random key.
    config: the autoencoder.
    epochs: passes over the entities; 0 for the null objective, a random
      encoder.
    hyper: learning rate of Adam, beta and smoothing.
    batch_size: entities in a step.
    word_vectors: start of the encoder's first layer, [V, h]; random by
      default.

  Returns:
    Means, not scaled, float32 [n, d]; an entity without words is zero.
  """
  counts = sp.csr_array(counts)
  full = np.flatnonzero(np.diff(counts.indptr))
  found = fitting.fit(
    sp.csr_array(counts[full]),
    config,
    key,
    epochs=epochs,
    hyper=hyper,
    batch_size=batch_size,
    word_vectors=word_vectors,
  )
  natural = from_scipy.encode_rows(
    config, found.params, found.inputs, sp.csr_array(counts[full])
  )
  means = np.zeros((counts.shape[0], config.dim), np.float32)
  means[full] = np.asarray(natural.xi) / np.asarray(natural.precision)
  return means


def unit_rows(x: Any) -> jax.Array:
  """Rows scaled to length 1, so that products are cosines; zero stays zero.

  Args:
    x: [n, d].

  Returns:
    [n, d].
  """
  return jax.vmap(lambda z: _unit(_near_one(z)))(jnp.asarray(x))


class _Bags(NamedTuple):
  """Bags of words on the device."""

  begins: jax.Array  # [n]
  sizes: jax.Array  # [n]
  words: jax.Array  # [nnz]


def _near_one(z: jax.Array) -> jax.Array:
  """z, with the inverse of its largest entry in the range of floats."""
  return z * precision.near_one(jnp.max(jnp.abs(z), initial=0))


def _unit(z: jax.Array) -> jax.Array:
  tiny = jnp.finfo(z.dtype).tiny
  # Scaled first, so that squares of long vectors stay finite.
  z = z / jnp.maximum(jnp.max(jnp.abs(z), initial=0), tiny)
  # Its square is now 1 or more, or 0. A floor of 1 keeps both divisors from
  # being merged into one that is 0.
  return z / jnp.sqrt(jnp.maximum(jnp.sum(z * z), 1))


@functools.partial(jax.jit, static_argnums=0)
def _fit(sizes, table, bags, noise, start, rates, key):
  """Blocks of entities one after the other; start [n, d]."""
  steps, positives, negatives, block = sizes
  n, d = start.shape
  blocks = -(-n // block)
  fill = blocks * block - n

  def draw(key, begins, lengths):
    """Ids of the words of one step, [block, positives + negatives]."""
    first, second = jax.random.split(key)
    # 24 bits are what a float32 holds, and more than a bag has words.
    # Without a type they would be 64 bits where those are allowed.
    bits = jax.random.bits(first, (block, positives), jnp.uint32) >> 8
    place = (bits.astype(jnp.float32) / 2**24 * lengths[:, None]).astype(
      jnp.int32
    )
    last = jnp.maximum(lengths - 1, 0)[:, None]
    own = begins[:, None] + jnp.minimum(place, last)
    other = sgns.draw_negatives(second, noise, block * negatives)
    return jnp.concatenate(
      [bags.words.at[own].get(mode="clip"), other.reshape(block, negatives)], 1
    )

  def run(item):
    z, begins, lengths, key = item

    def step(state, ids):
      words = jnp.split(table[ids], [positives], axis=1)
      state, _ = jax.vmap(update, (0, 0, 0, None, None))(state, *words, *rates)
      return state, None

    # Ids are small beside vectors, and drawn at once they cost little.
    keys = jax.random.split(key, steps)
    ids = jax.vmap(draw, (0, None, None))(keys, begins, lengths)
    state, _ = lax.scan(step, jax.vmap(init)(z), ids)
    return jnp.where(lengths[:, None] > 0, state.vector, unit_rows(z))

  items = (
    jnp.pad(start, ((0, fill), (0, 0))).reshape(blocks, block, d),
    jnp.pad(bags.begins, (0, fill)).reshape(blocks, block),
    jnp.pad(bags.sizes, (0, fill)).reshape(blocks, block),
    jax.random.split(key, blocks),
  )
  return lax.map(run, items).reshape(blocks * block, d)[:n]


def _check_bags(offsets: Any, words: Any, size: int) -> None:
  """Names the first entity whose bag cannot be used."""
  offsets, words = np.asarray(offsets), np.asarray(words)
  fine = offsets.ndim == words.ndim == 1 and offsets.size > 0
  kinds = offsets.dtype.kind + (words.dtype.kind if words.size else "i")
  if not fine or not set(kinds) <= set("iu"):
    raise InputError("offsets and words must be rows of whole numbers")
  if offsets[0] != 0 or offsets[-1] != len(words):
    raise InputError(
      f"offsets must go from 0 to the number of words, {len(words)}, not from "
      f"{offsets[0]} to {offsets[-1]}"
    )
  if len(words) >= 2**31:
    raise InputError(f"{len(words)} words are too many for one fit; split it")
  falling = np.flatnonzero(np.diff(offsets) < 0)
  if falling.size:
    raise InputError(f"offsets fall after entity {falling[0]}")
  outside = np.flatnonzero((words < 0) | (words >= size))
  if outside.size:
    entity = int(np.searchsorted(offsets, outside[0], "right")) - 1
    raise InputError(
      f"entity {entity} has the word {words[outside[0]]}, outside the "
      f"{size} words with vectors"
    )


def _check_words(table: jax.Array, unigram: Any) -> None:
  counts = np.asarray(unigram, np.float64)
  if table.ndim != 2 or counts.shape != (table.shape[0],):
    raise InputError(
      f"word vectors of shape {table.shape} and counts of shape "
      f"{counts.shape} do not belong together"
    )
  bad = np.flatnonzero(~np.isfinite(np.asarray(table)).all(axis=1))
  if bad.size:
    raise InputError(f"the vector of word {bad[0]} is not finite")
  if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.any()):
    raise InputError("counts of words must be finite, not negative, not all 0")

"""Vectors of entities from the words around them (thesis 6.2).

Three objectives share one input, the bag of words of each entity: its page
(U1), the contexts of its mentions (U2), or both. This module has the first,
max-margin (Ganea and Hofmann 2017): the unit vector z that minimizes E max(0,
gamma - z'(w+ - w-)), where w+ is a word of the entity's bag and w- is drawn
from the unigram counts to the power alpha. Words stay fixed, so entities are
independent: `max_margin` steps one entity and is vmapped. The others are in
`posterior_means`.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from repr_jax.errors import InputError
from repr_jax.ops import mesh as meshes
from repr_jax.ops import normalize
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp.baselines import sgns

_LARGEST_START = 10.0
_EPSILON = 1e-10
# Entities of a block. By the TPU compiler's estimate a step of 50,000 takes 35
# ms in blocks of 64, 18 ms in blocks of 1,024 and 22 ms in blocks of 8,192.
_BLOCKS = {"cpu": 64}
_WIDE = 1024


@dataclasses.dataclass(frozen=True)
class MarginConfig:
  """Sizes of a step of `max_margin`.

  Attributes:
    num_positives: words of the bag drawn in a step.
    num_negatives: other words drawn in a step.
  """

  num_positives: int = 20
  num_negatives: int = 5

  def __post_init__(self):
    if min(self.num_positives, self.num_negatives) < 1:
      raise InputError("num_positives and num_negatives must be 1 or more")


class MarginState(NamedTuple):
  """One entity under Adagrad.

  Attributes:
    vector: z, of length 1, [d].
    squares: sums of squared gradients, [d].
  """

  vector: jax.Array
  squares: jax.Array


class Bag(NamedTuple):
  """The words of one entity, a slice of the words of all entities.

  Attributes:
    begin: place of its first word, int32 scalar.
    size: number of its words, int32 scalar.
    words: ids of the words of all entities, int32 [nnz].
  """

  begin: jax.Array
  size: jax.Array
  words: jax.Array


Noise = sgns.Noise


@chosen_products
def margin_loss(
  z: jax.Array,
  positives: jax.Array,
  negatives: jax.Array,
  margin: jax.Array | float,
) -> jax.Array:
  """Mean hinge loss over all pairs of a positive and a negative (eq. 6.1).

  Args:
    z: the entity, [d].
    positives: vectors of words of its bag, [p, d].
    negatives: vectors of other words, [m, d].
    margin: gamma.

  Returns:
    Scalar.
  """
  chex.assert_rank([z, positives, negatives], [1, 2, 2])
  # One product of all words costs less than two, here and in the gradient.
  own, other = jnp.split(
    jnp.concatenate([positives, negatives]) @ z, [positives.shape[0]]
  )
  gap = own[:, None] - other[None, :]
  return jnp.mean(jnp.maximum(0, margin - gap))


def max_margin(
  config: MarginConfig = MarginConfig(),
) -> tuple[Callable[..., MarginState], Callable[..., Any]]:
  """Max-margin training of one entity's vector (thesis 6.2.2).

  min over unit z of E max(0, gamma - z'(w+ - w-)), by Adagrad along the unit
  sphere. Entities are independent: vmap both functions over keys, states and
  bags (`Bag(0, 0, None)`).

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import linking, ops
  >>> table = ops.unit_rows(jnp.array([[1., 0], [0, 1], [-1, 0]]))
  >>> noise = linking.unigram_noise([1, 1, 1])
  >>> bag = linking.Bag(0, 2, jnp.array([0, 0]))  # word 0, twice
  >>> init, update = linking.max_margin(linking.MarginConfig(4, 2))
  >>> state = init(jax.random.key(0), table)
  >>> for key in jax.random.split(jax.random.key(1), 50):
  ...   state, loss = update(state, key, table, bag, noise)
  >>> float(state.vector @ table[0]) > 0.1
  True

  Args:
    config: the configuration.

  Returns:
    `init(key, table, start=None)` gives the state of one entity: from
    `start` [d], else drawn from N(0, I) clipped at 10. `table` [V, d] has
    word vectors of length 1. `update(state, key, table, bag, noise,
    margin=0.1, learning_rate=0.3)` gives the next state and the loss before
    the step, []; an entity without words stays as it is. Both are jitted;
    margin and learning rate are traced.
  """

  return _init, jax.jit(functools.partial(_update, config))


@chosen_products
def margin_step(
  state: MarginState,
  positives: jax.Array,
  negatives: jax.Array,
  margin: jax.Array | float,
  learning_rate: jax.Array | float,
) -> tuple[MarginState, jax.Array]:
  """One step of Adagrad along the unit sphere, then back onto it.

  The gradient is that of the loss at z / |z|, so its mean is zero at the
  optimum. Plain gradients would stop elsewhere: Adagrad also scales their part
  along z, which the projection then removes.

  Args:
    positives: vectors of words of its bag, [p, d].
    negatives: vectors of other words, [m, d].
    margin: gamma.
    learning_rate: step size.

  Returns:
    The next state and the loss before the step, [].
  """
  loss, slope = jax.value_and_grad(margin_loss)(
    state.vector, positives, negatives, margin
  )
  slope = slope - (slope @ state.vector) * state.vector
  squares = state.squares + slope * slope
  moved = state.vector - learning_rate * slope / (jnp.sqrt(squares) + _EPSILON)
  return MarginState(normalize.unit_rows(moved), squares), loss


def unigram_noise(counts: Any, alpha: float = 0.6) -> Noise:
  """Alias table of the unigram counts to the power alpha, on the host.

  >>> from repr_jax import linking
  >>> linking.unigram_noise([3, 1], alpha=1.0).keep
  Array([1. , 0.5], dtype=float32)

  Args:
    counts: counts of the words in the whole text, [V]; a word that does not
      occur is never drawn.
    alpha: the power.

  Returns:
    The table, fields [V].
  """
  share = np.asarray(counts, np.float64)
  if share.ndim != 1 or not share.size:
    raise InputError("counts of words must be a row of numbers")
  if not (np.isfinite(share).all() and (share >= 0).all() and share.any()):
    raise InputError("counts of words must be finite, not negative, not all 0")
  if not np.isfinite(alpha):
    raise InputError(f"alpha must be finite, not {alpha}")
  return sgns.make_noise((share / share.max()) ** alpha * (share > 0))


def fit_max_margin(
  word_vectors: np.ndarray | jax.Array,
  offsets: np.ndarray,
  words: np.ndarray,
  unigram: np.ndarray,
  *,
  key: jax.Array,
  steps: int = 400,
  margin: float | np.ndarray = 0.1,
  alpha: float = 0.6,
  config: MarginConfig = MarginConfig(),
  learning_rate: float | np.ndarray = 0.3,
  start: np.ndarray | jax.Array | None = None,
  block: int | None = None,
  mesh: Mesh | None = None,
) -> jax.Array:
  """Max-margin vectors of all entities in one program (thesis 6.2.2).

  In each step every entity draws its own positives and negatives, and each
  positive is compared with each negative. Word vectors are scaled to length 1,
  as the margin assumes.

  Args:
    word_vectors: [V, d].
    offsets: where the bag of each entity begins, and the end, int [n + 1].
    words: ids of the words of all bags, repeats included, int32 [nnz].
    unigram: counts of the words in the whole text, [V].
    key: random key: the same key gives the same vectors. Keys [r] of r runs
      train them side by side in the same program.
    steps: of Adagrad, for each entity.
    margin: gamma; one number, or one per run, [r].
    alpha: power of the counts from which negatives are drawn.
    config: words drawn in a step.
    learning_rate: step size of Adagrad; one number, or one per run, [r].
    start: where the entities start, [n, d] or [r, n, d], such as the vectors
      of U1 for a second run on U2; random by default.
    block: entities that are vmapped. By default 64 on a CPU, so that gathered
      rows stay in cache, and 1,024 on other devices, where a step of few
      entities takes as long as one of many.
    mesh: devices that share the entities; None for one. The vectors do not
      depend on it.

  Returns:
    Vectors of length 1, [n, d], or [r, n, d] of r runs. An entity without
    words (see `has_words`) keeps its start, or is zero.
  """
  table = jnp.asarray(word_vectors)
  table = table.astype(jnp.result_type(table, jnp.float32))
  check_bags(offsets, words, table.shape[0])
  _check_words(table, unigram)
  if block is None:
    block = _BLOCKS.get(jax.default_backend(), _WIDE)
  if block < 1 or steps < 0:
    raise InputError("block must be positive and steps not negative")
  for name, value in {"margin": margin, "learning_rate": learning_rate}.items():
    if not np.isfinite(value).all():
      raise InputError(f"{name} must be finite, not {value}")
    if np.shape(value) not in ((), key.shape):
      raise InputError(
        f"{name} has shape {np.shape(value)}; give one number, or one for "
        "each of several keys"
      )
  n, several = len(offsets) - 1, key.ndim == 1
  shape = (n, table.shape[1])
  if start is not None:
    start = jnp.asarray(start, table.dtype)
    fits = start.shape == shape or start.shape == (*key.shape, *shape)
    if not fits or not jnp.isfinite(start).all():
      raise InputError(
        f"start must be finite and of shape {shape}, for "
        f"{n} entities and the words' dimension; it has {start.shape}"
      )
    start = jnp.broadcast_to(start, (*key.shape, *shape)).reshape(-1, shape[1])
  # Runs are stacked as further entities; all are independent.
  runs = key.size if several else 1
  keys = jax.vmap(lambda own: jax.random.split(own, n))(key.reshape(runs))
  keys = keys.reshape(-1)
  axes = (0, None, None if start is None else 0)
  begin = jax.vmap(_init, axes)(keys, table, start).vector
  if start is None:
    begin = jnp.where(np.tile(has_words(offsets), runs)[:, None], begin, 0)
  whole = (*key.shape, *shape)
  if begin.size == 0 or steps == 0 or len(words) == 0:
    return begin.reshape(whole)
  bags = Bag(
    jnp.tile(jnp.asarray(np.asarray(offsets)[:-1], jnp.int32), runs),
    jnp.tile(jnp.asarray(np.diff(offsets), jnp.int32), runs),
    jnp.asarray(words, jnp.int32),
  )
  noise = unigram_noise(unigram, alpha)
  of_runs = [np.broadcast_to(x, runs) for x in (margin, learning_rate)]
  rates = jnp.asarray(np.repeat(np.stack(of_runs, 1), n, axis=0), table.dtype)
  return fit_bags(
    config, steps, block, normalize.unit_rows(table), bags, noise, begin,
    rates, keys, mesh,
  ).reshape(whole)  # fmt: skip


def has_words(offsets: np.ndarray) -> np.ndarray:
  """Which entities have a bag that is not empty.

  Args:
    offsets: as for `fit_max_margin`, [n + 1].

  Returns:
    bool [n].
  """
  return np.diff(np.asarray(offsets)) > 0


@jax.jit
def _init(key, table, start=None):
  if start is None:
    start = jax.random.normal(key, table.shape[1:], table.dtype)
    start = jnp.clip(start, -_LARGEST_START, _LARGEST_START)
  start = jnp.asarray(start, table.dtype)
  return MarginState(normalize.unit_rows(start), jnp.zeros_like(start))


def _update(
  config, state, key, table, bag, noise, margin=0.1, learning_rate=0.3
):
  ids = _draw(config, bag, noise, key)
  return _step(config, state, table, bag, ids, margin, learning_rate)


def _step(config, state, table, bag, ids, margin, learning_rate):
  own, other = jnp.split(table[ids], [config.num_positives])
  after, loss = margin_step(state, own, other, margin, learning_rate)
  there = bag.size > 0
  after = jax.tree.map(lambda x, y: jnp.where(there, x, y), after, state)
  return after, jnp.where(there, loss, 0)


def _draw(config, bag, noise, key):
  """Ids of the words of one step, int32 [num_positives + num_negatives]."""
  first, second = jax.random.split(key)
  # A float32 holds 24 bits, enough for the words of a bag. The type is given,
  # since bits are 64 wide by default if x64 is enabled.
  bits = jax.random.bits(first, (config.num_positives,), jnp.uint32) >> 8
  place = (bits.astype(jnp.float32) / 2**24 * bag.size).astype(jnp.int32)
  own = bag.begin + jnp.clip(place, 0, jnp.maximum(bag.size - 1, 0))
  other = sgns.draw_negatives(second, noise, config.num_negatives)
  return jnp.concatenate([bag.words.at[own].get(mode="clip"), other])


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 9))
def fit_bags(
  config: MarginConfig,
  steps: int,
  block: int,
  table: jax.Array,
  bags: Bag,
  noise: Noise,
  start: jax.Array,
  rates: jax.Array,
  keys: jax.Array,
  mesh: Mesh | None = None,
) -> jax.Array:
  """All steps of all entities, one block of entities after another.

  Args:
    config: words drawn in a step (static).
    steps: for each entity (static).
    block: entities that are vmapped (static).
    table: unit vectors of words, [V, d].
    bags: of all entities, fields [n], [n] and [nnz].
    noise: where negatives come from.
    start: where entities start, [n, d].
    rates: margin and learning rate of each entity, [n, 2].
    keys: random keys, [n].
    mesh: devices that share the entities (static); None for one.

  Returns:
    Vectors of length 1, [n, d].
  """
  if mesh is None:
    return _fit_blocks(
      config,
      steps,
      block,
      start,
      bags.begin,
      bags.size,
      rates,
      keys,
      bags.words,
      table,
      noise,
    )
  n = len(start)
  own, whole = PartitionSpec(mesh.axis_names), PartitionSpec()
  # Entities are independent, so devices exchange nothing.
  fit = meshes.shard_map(
    functools.partial(_fit_blocks, config, steps, block),
    mesh,
    (own,) * 5 + (whole,) * 3,
    own,
  )
  size = meshes.padded_size(n, mesh.size)
  items = (start, bags.begin, bags.size, rates, keys)
  items = jax.tree.map(lambda x: _lengthened(x, size), items)
  return fit(*items, bags.words, table, noise)[:n]


def _lengthened(x: jax.Array, size: int) -> jax.Array:
  """Rows [n, ...], padded with copies of the first row to `size` rows."""
  more = jnp.broadcast_to(x[:1], (size - len(x), *x.shape[1:]))
  return jnp.concatenate([x, more])


def _fit_blocks(
  config, steps, block, start, begins, sizes, rates, keys, words, table, noise
):
  """`fit_bags` on one device."""
  n, d = start.shape
  block = min(block, n)
  blocks = -(-n // block)
  one: Any = (0, 0, None)
  one = Bag(*one)
  draw = jax.vmap(functools.partial(_draw, config), (one, None, 0))
  update = jax.vmap(functools.partial(_step, config), (0, None, one, 0, 0, 0))

  def run(item):
    state, begins, sizes, keys, rates = item
    bag = Bag(begins, sizes, words)

    def step(state, ids):
      return update(state, table, bag, ids, *rates.T)[0], None

    # Ids are small beside vectors, so the ids of all steps are drawn at once.
    fold = jax.vmap(jax.random.fold_in, (0, None))
    ids = jax.vmap(lambda i: draw(bag, noise, fold(keys, i)))(jnp.arange(steps))
    return lax.scan(step, state, ids)[0].vector

  def parts(x):
    return _lengthened(x, blocks * block).reshape(blocks, block, *x.shape[1:])

  state = MarginState(start, jnp.zeros_like(start))
  items = jax.tree.map(parts, (state, begins, sizes, keys, rates))
  return lax.map(run, items).reshape(blocks * block, d)[:n]


def check_bags(offsets: Any, words: Any, size: int) -> None:
  """Refuses invalid bags; the error names the first entity at fault.

  Args:
    offsets: where the bag of each entity begins, and the end, int [n + 1].
    words: ids of the words, int [nnz].
    size: the number of words V.

  Raises:
    InputError: offsets do not rise, or a word is outside the V words.
  """
  offsets, words = np.asarray(offsets), np.asarray(words)
  rows = offsets.ndim == words.ndim == 1 and offsets.size > 0
  kinds = offsets.dtype.kind + (words.dtype.kind if words.size else "i")
  if not rows or not set(kinds) <= set("iu"):
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
  if table.ndim != 2 or np.shape(unigram) != (table.shape[0],):
    raise InputError(
      f"word vectors of shape {table.shape} and counts of shape "
      f"{np.shape(unigram)} do not belong together"
    )
  bad = np.flatnonzero(~np.isfinite(np.asarray(table)).all(axis=1))
  if bad.size:
    raise InputError(f"the vector of word {bad[0]} is not finite")

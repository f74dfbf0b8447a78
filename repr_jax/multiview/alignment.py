"""Word alignment of a bitext: IBM Model 1 with a prior for the diagonal.

Each target word chooses one source word, or none, by a prior that prefers the
same relative place (Dyer et al. 2013), and is then drawn from the source
word's translation table:

  p(f, a | e) = prod_i p(a_i | i, m, n) t(f_i | e_(a_i)),
  p(a_i = 0) = null,
  p(a_i = j) = (1 - null) exp(-tension |i/m - j/n|) / Z_i   for 1 <= j <= n,

with m target and n source words. The table t holds only pairs of words that
occur in some sentence, and EM runs over batches of sentences padded to equal
length. Both maximizations are exact, so the likelihood never falls.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from repr_jax.errors import InputError

_LENGTHS = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_MOST_TENSION = 60.0


class Batch(NamedTuple):
  """Sentences of similar length, padded; L is the bucket's length.

  Attributes:
    pairs: row of (source word, target word) in the table of pairs, int32
      [s, L, L + 1]: target place, then source place with 0 for no word.
    lengths: words of target and source, int32 [s, 2]; 0 for padding.
    shape: row of these lengths in `Corpus.shapes`, int32 [s].
    sentence: number of the sentence in the corpus, int32 [s]; -1 for padding.
  """

  pairs: np.ndarray
  lengths: np.ndarray
  shape: np.ndarray
  sentence: np.ndarray


class Corpus(NamedTuple):
  """A bitext made ready for EM.

  Attributes:
    batches: its sentences; those with an empty or too long side left out.
    source: source word of each pair that occurs, 0 for no word and 1 + id
      for a word, ascending, int32 [p]. Padding follows: pairs of a word that
      no sentence has, so that bitexts share compiled programs.
    target: target word of each pair, int32 [p].
    shapes: distinct (target, source) lengths, int32 [l, 2]; then zeros.
    skipped: sentences left out.
  """

  batches: Sequence[Batch]
  source: np.ndarray
  target: np.ndarray
  shapes: np.ndarray
  skipped: int


class State(NamedTuple):
  """Parameters: translation probabilities [p] and the prior's tension []."""

  translation: Array
  tension: Array


class Info(NamedTuple):
  """Log-likelihood [] of the bitext under the parameters before the update."""

  log_likelihood: Array


def prepare(
  source: Sequence[np.ndarray],
  target: Sequence[np.ndarray],
  *,
  longest: int = 128,
  cells: int = 1 << 20,
) -> Corpus:
  """Numbers the pairs that occur and batches the sentences by length.

  Args:
    source: word ids of each source sentence, [words], nonnegative.
    target: word ids of each target sentence, [words].
    longest: sentences with more words on either side are left out.
    cells: approximate number of (target place, source place) in a batch.
  """
  if len(source) != len(target):
    raise InputError(f"{len(source)} sentences but {len(target)} translations")
  if not 1 <= longest <= _LENGTHS[-1]:
    raise InputError(f"longest must be 1 to {_LENGTHS[-1]}, not {longest}")
  sizes = np.array([(len(f), len(e)) for e, f in zip(source, target)], np.int32)
  sizes = sizes.reshape(-1, 2)
  kept = (sizes.min(1, initial=longest + 1) > 0) & (sizes.max(1) <= longest)
  if not kept.any():
    raise InputError("the bitext has no pair of sentences to align")
  width = 1 + max(int(max(f)) for f, keep in zip(target, kept) if keep)
  shapes, shape = np.unique(sizes[kept], axis=0, return_inverse=True)
  shape_of = np.full(len(sizes), -1, np.int32)
  shape_of[kept] = shape.reshape(-1)
  groups = _groups(sizes, kept, cells)
  table = np.zeros(0, np.int64)
  for group in groups:  # keys are recomputed below: too large to keep
    table = np.union1d(table, _keys(source, target, width, *group))
  table = table[table >= 0]
  batches = []
  for members, length in groups:
    key = _keys(source, target, width, members, length)
    pairs = np.searchsorted(table, np.maximum(key, table[0])).astype(np.int32)
    known = np.where(members >= 0, members, 0)
    lengths = np.where((members >= 0)[:, None], sizes[known], 0)
    batches.append(Batch(pairs, lengths, shape_of[known], members))
  beyond = np.full(_padding(len(table)), (table[-1] // width + 1) * width)
  table = np.concatenate([table, beyond])
  words = (table // width).astype(np.int32), (table % width).astype(np.int32)
  shapes = np.pad(shapes, ((0, _padding(len(shapes))), (0, 0)))
  return Corpus(batches, *words, shapes, int((~kept).sum()))


def init(corpus: Corpus, tension: float = 4.0, dtype=jnp.float32) -> State:
  """Uniform translation over the words that occur with each source word.

  Args:
    corpus: from `prepare`.
    tension: initial tension of the prior; 0 is plain Model 1.
    dtype: type of the parameters.

  Returns:
    The parameters, [p] and [].
  """
  if not 0 <= tension <= _MOST_TENSION:
    raise InputError(f"tension must be 0 to {_MOST_TENSION:g}, not {tension}")
  ones = jnp.ones(len(corpus.source), dtype)
  return State(_normalized(ones, corpus.source), jnp.asarray(tension, dtype))


def update(
  state: State, corpus: Corpus, *, null: float = 0.08, fit_tension: bool = True
) -> tuple[State, Info]:
  """One step of EM over the whole bitext.

  Args:
    corpus: from `prepare`.
    null: prior probability that a target word has no source word, above 0
      and below 1.
    fit_tension: whether the tension is re-estimated too.

  Returns:
    The new parameters and the log-likelihood under the old ones.
  """
  dtype = state.translation.dtype
  longest = max(batch.pairs.shape[1] for batch in corpus.batches)
  sums = _Sums(
    jnp.zeros(len(corpus.source), dtype),
    jnp.zeros((len(corpus.shapes), longest), dtype),
    jnp.zeros((), dtype),
  )
  total = jnp.zeros((), dtype)
  for batch in corpus.batches:
    sums, likelihood = _accumulate(sums, state, batch[:3], null)
    total = total + likelihood
  translation = _normalized(sums.counts, corpus.source)
  tension = state.tension
  if fit_tension:
    tension = _best_tension(sums, corpus.shapes, state.tension)
  return State(translation, tension), Info(total)


def best_links(state: State, corpus: Corpus, null: float = 0.08) -> np.ndarray:
  """The most probable source place of each target word.

  Args:
    corpus: from `prepare`.
    null: as in `update`.

  Returns:
    (sentence, source place, target place), int32 [k, 3], in this order;
    target words with no source word are left out.
  """
  parts = []
  for batch in corpus.batches:
    best = np.asarray(_viterbi(state, batch[:3], null))
    row, place = np.nonzero(best > 0)
    triple = (batch.sentence[row], best[row, place] - 1, place)
    parts.append(np.stack(triple, axis=1).astype(np.int32))
  links = np.concatenate(parts)
  return links[np.lexsort(links.T[::-1])]


def align(
  source: Sequence[np.ndarray],
  target: Sequence[np.ndarray],
  iterations: int = 5,
  symmetry: str = "intersection",
) -> tuple[np.ndarray, int]:
  """Aligns a bitext in both directions.

  Args:
    source: word ids of each sentence, [words].
    target: word ids of each translation, [words].
    iterations: steps of EM.
    symmetry: how the two directions are joined, see `symmetrize`.

  Returns:
    Links (sentence, source place, target place), int32 [k, 3], and how many
    sentences were too long or empty.
  """
  both = []
  for one, other in ((source, target), (target, source)):
    corpus = prepare(one, other)
    state = init(corpus)
    for _ in range(iterations):
      state, _ = update(state, corpus)
    both.append(best_links(state, corpus))
  return symmetrize(both[0], both[1], symmetry), corpus.skipped


def symmetrize(
  forward: np.ndarray, backward: np.ndarray, how: str = "intersection"
) -> np.ndarray:
  """Joins the links of the two directions.

  Args:
    forward: (sentence, source, target) int32 [k, 3].
    backward: the same for the exchanged bitext: (sentence, target, source).
    how: "intersection", "union" or "forward".

  Returns:
    (sentence, source, target), int32 [k', 3], sorted.
  """
  if how == "forward":
    return forward
  both = np.concatenate([forward, backward[:, [0, 2, 1]]])
  links, times = np.unique(both, axis=0, return_counts=True)
  if how == "intersection":
    return links[times == 2]
  if how == "union":
    return links
  raise InputError(f"{how!r} is not intersection, union or forward")


def prior(
  lengths: Array, tension: Array, null: Array | float, longest: int
) -> Array:
  """Prior of the source place of each target place of one sentence.

  Args:
    lengths: words of target and source, [2].
    tension: preference for the diagonal, [].
    null: probability of no source word.
    longest: L, the padded length.

  Returns:
    Probabilities [L, L + 1], source place 0 for no word; zero at padding.
  """
  chex.assert_rank([lengths, tension], [1, 0])
  distance, valid = _distance(lengths, longest, tension.dtype)
  near = _share(distance, valid, tension)
  none = jnp.where(valid.any(1, keepdims=True), null, 0.0)
  joined = jnp.concatenate([none, near * (1 - null)], axis=1)
  return joined.astype(tension.dtype)


class _Sums(NamedTuple):
  """Expected counts [p], words aligned by shape and place [l, L], distance."""

  counts: Array
  aligned: Array
  distance: Array


def _distance(lengths, longest: int, dtype) -> tuple[Array, Array]:
  """|i/m - j/n| and where both places are words, [L, L]."""
  size = jnp.maximum(lengths, 1).astype(dtype)
  place = jnp.arange(1, longest + 1)
  distance = jnp.abs(place[:, None] / size[0] - place[None] / size[1])
  valid = (place[:, None] <= lengths[0]) & (place[None] <= lengths[1])
  return distance.astype(dtype), valid


def _share(distance: Array, valid: Array, tension: Array) -> Array:
  """Weights exp(-tension distance) of each row, normalized, [L, L]."""
  # The distance is at most 1 and the tension 60: no weight underflows.
  weight = jnp.where(valid, jnp.exp(-tension * distance), 0)
  return weight / jnp.where(valid, weight.sum(-1, keepdims=True), 1)


def _joint(state: State, batch, null) -> Array:
  """p(a_i = j, f_i) for a batch, [s, L, L + 1]."""
  pairs, lengths, _ = batch
  longest = pairs.shape[1]
  priors = jax.vmap(lambda size: prior(size, state.tension, null, longest))
  return priors(lengths) * state.translation[pairs]


@functools.partial(jax.jit, donate_argnums=0)
def _accumulate(sums: _Sums, state: State, batch, null) -> tuple[_Sums, Array]:
  """The E step of one batch, added to the sums."""
  pairs, lengths, shape = batch
  longest = pairs.shape[1]
  joint = _joint(state, batch, null)
  evidence = joint.sum(-1)
  word = jnp.arange(longest)[None] < lengths[:, :1]
  evidence = jnp.where(word, evidence, 1)
  tiny = jnp.finfo(joint.dtype).tiny
  posterior = joint / jnp.maximum(evidence, tiny)[..., None]
  distance = jax.vmap(lambda size: _distance(size, longest, joint.dtype)[0])
  counts = sums.counts.at[pairs].add(posterior)
  aligned = posterior[..., 1:].sum(-1)
  places = sums.aligned.at[shape, :longest].add(aligned)
  moved = (posterior[..., 1:] * distance(lengths)).sum()
  likelihood = jnp.log(jnp.maximum(evidence, tiny)).sum()
  return _Sums(counts, places, sums.distance + moved), likelihood


@jax.jit
def _viterbi(state: State, batch, null) -> Array:
  """Best source place of each target place, 0 for none or padding, [s, L]."""
  return jnp.argmax(_joint(state, batch, null), axis=-1)


@jax.jit
def _normalized(counts: Array, source: Array) -> Array:
  """Divides the counts of each source word by their sum, [p]."""
  # The last pair has the largest source word, but sizes must be static: the
  # number of pairs bounds the number of source words that occur.
  group = jnp.cumsum(jnp.diff(source, prepend=source[:1]) != 0)
  totals = jax.ops.segment_sum(
    counts, group, num_segments=counts.shape[0], indices_are_sorted=True
  )
  tiny = jnp.finfo(counts.dtype).tiny
  return counts / jnp.maximum(totals, tiny)[group]


@jax.jit
def _best_tension(sums: _Sums, shapes: Array, start: Array) -> Array:
  """The M step of the tension: Newton's method kept inside a bracket.

  The expected log-prior is concave in the tension; its slope is the expected
  distance under the prior less the distance under the posterior.
  """
  longest = sums.aligned.shape[1]

  def moments(inputs):
    lengths, weight, tension = inputs
    distance, valid = _distance(lengths, longest, tension.dtype)
    share = _share(distance, valid, tension)
    mean = (share * distance).sum(-1)
    variance = (share * distance**2).sum(-1) - mean**2
    return (weight * mean).sum(), (weight * variance).sum()

  def step(_, carry):
    low, high, tension = carry
    every = jnp.broadcast_to(tension, (len(shapes),))
    means, variances = lax.map(
      moments, (shapes, sums.aligned, every), batch_size=64
    )
    slope = means.sum() - sums.distance
    low = jnp.where(slope > 0, tension, low)
    high = jnp.where(slope > 0, high, tension)
    tiny = jnp.finfo(tension.dtype).tiny
    newton = tension + slope / jnp.maximum(variances.sum(), tiny)
    inside = (newton >= low) & (newton <= high)
    return low, high, jnp.where(inside, newton, (low + high) / 2)

  edges = jnp.zeros_like(start), jnp.full_like(start, _MOST_TENSION)
  return lax.fori_loop(0, 20, step, (*edges, start))[2]


def _padding(size: int) -> int:
  """How far a size is from the next power of four (at least 256)."""
  whole = 256
  while whole < size:
    whole *= 4
  return whole - size


def _groups(
  sizes: np.ndarray, kept: np.ndarray, cells: int
) -> list[tuple[np.ndarray, int]]:
  """Sentences of each batch (-1 for padding) and the batch's length."""
  lengths = np.array(_LENGTHS)
  bucket = np.searchsorted(lengths, sizes.max(1))
  groups: list[tuple[np.ndarray, int]] = []
  for b, length in enumerate(_LENGTHS):
    members = np.flatnonzero(kept & (bucket == b)).astype(np.int32)
    if not members.size:
      continue
    count = max(1, cells // (length * (length + 1)))
    # A small bucket is padded to a power of two, not to a full batch.
    count = min(count, 1 << int(members.size - 1).bit_length())
    padding = np.full(-members.size % count, -1, np.int32)
    padded = np.concatenate([members, padding])
    for start in range(0, padded.size, count):
      groups.append((padded[start : start + count], length))
  return groups


def _keys(source, target, width: int, members, length: int) -> np.ndarray:
  """Keys of the pairs of a batch, int64 [s, L, L + 1]; -1 at padding."""
  left = np.full((len(members), length + 1), -1, np.int64)
  right = np.full((len(members), length), -1, np.int64)
  for row, s in enumerate(members):
    if s >= 0:
      left[row, 0] = 0
      left[row, 1 : 1 + len(source[s])] = np.asarray(source[s]) + 1
      right[row, : len(target[s])] = target[s]
  keys = left[:, None, :] * width + right[:, :, None]
  valid = (left[:, None, :] >= 0) & (right[:, :, None] >= 0)
  return np.where(valid, keys, -1)

"""Analogies by 3CosAdd and 3CosMul against a large vocabulary, in blocks.

"a is to b as c is to which d?" has the answer argmax_d of cos(d, b) +
cos(d, c) - cos(d, a), or of the product form with similarities moved to
[0, 1]. Question sets use few distinct words (905 in the 19,544 questions of the
Google set), so each block of the vocabulary is compared with those words once,
and a question only adds three rows of that small table.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from repr_jax import errors
from repr_jax.data import testsets
from repr_jax.evaluation import similarity
from repr_jax.ops import mesh as meshes
from repr_jax.ops import normalize
from repr_jax.ops.precision import chosen_products

_EPSILON = 1e-6
# Words and questions at a time. By the TPU compiler's estimate the Google set's
# 19,544 questions over 500,000 words take .36 s in wide blocks: .25 s to read
# three rows of similarities for each, the rest to find the largest of 1,024.
_BLOCKS = {"cpu": (1024, 64)}
_WIDE = (8192, 512)
_TILE = (8, 128)  # numbers that a TPU compares at once


@dataclasses.dataclass(frozen=True)
class AnalogyResult(similarity.Result):
  """A result with the answers.

  Attributes:
    answers: row of the word answered to each question, int32 [total], -1
      where the question was left out.
    sections: accuracy times 100 of each section with a scored question.
  """

  answers: np.ndarray
  sections: dict[str, float]


def block_sizes(platform: str) -> tuple[int, int]:
  """Words and questions that `solve_analogies` scores at a time.

  Args:
    platform: cpu, gpu or tpu.
  """
  return _BLOCKS.get(platform, _WIDE)


@functools.partial(
  jax.jit, static_argnames=("method", "block_words", "block_questions", "mesh")
)
@chosen_products
def solve_analogies(
  array: jax.Array,
  terms: jax.Array,
  questions: jax.Array,
  *,
  method: str = "add",
  block_words: int | None = None,
  block_questions: int | None = None,
  mesh: Mesh | None = None,
) -> jax.Array:
  """Answers analogy questions over the whole vocabulary.

  Holds [t, block_words] similarities and [block_questions, block_words]
  scores at a time, beside the vectors.

  Args:
    array: vectors, [n, d]; need not be normalized, zero rows have cosine 0. If
      an entry is not finite, all answers are -1.
    terms: rows of the distinct words that questions use, int32 [t].
    questions: positions in `terms` of a, b, c, int32 [q, 3].
    method: "add" (3CosAdd) or "mul" (3CosMul).
    block_words: vocabulary rows compared at a time; None for 1,024 on a CPU
      and 8,192 elsewhere.
    block_questions: questions scored at a time; None for 64 on a CPU and 512
      elsewhere.
    mesh: devices over which rows of the vocabulary are sharded; None for one.

  Returns:
    Row of the answer to each question, int32 [q]: never one of its own three
    words; the lowest row among equals.
  """
  chex.assert_rank([array, terms, questions], [2, 1, 2])
  if method not in ("add", "mul"):
    raise ValueError(f'method must be "add" or "mul", not {method!r}')
  array = jnp.asarray(array, jnp.result_type(array, jnp.float32))
  n, (q, _) = array.shape[0], questions.shape
  default = block_sizes(jax.default_backend())
  block_questions = block_questions or default[1]
  unit = normalize.unit_rows(array[terms])
  asked = jnp.pad(questions, ((0, -q % block_questions), (0, 0)))
  asked = asked.reshape(-1, block_questions, 3)
  find = functools.partial(_best_words, method, block_words or default[0], n)
  if mesh is None:
    _, answers = find(array, jnp.int32(0), terms, unit, asked)
  else:
    answers = _over_devices(mesh, find, array, terms, unit, asked)
  # The compiled maximum of many numbers may ignore a NaN.
  answers = jnp.where(jnp.isfinite(array).all(), answers, -1)
  return answers.reshape(-1)[:q].astype(jnp.int32)


def _over_devices(mesh, find, array, terms, unit, asked):
  """Answers [blocks, b]; each device runs `find` on its own words."""
  axes = mesh.axis_names
  words = jnp.pad(array, ((0, -len(array) % mesh.size), (0, 0)))

  def local(words, *others):
    offset = lax.axis_index(axes).astype(jnp.int32) * len(words)
    top, at = lax.all_gather(find(words, offset, *others), axes)
    first = jnp.argmax(top, axis=0)[None]
    return jnp.take_along_axis(at, first, axis=0)[0]

  parts, whole = PartitionSpec(axes), PartitionSpec()
  return meshes.shard_map(local, mesh, (parts, whole, whole, whole), whole)(
    words, terms, unit, asked
  )


@chosen_products
def _best_words(method, block_words, n, array, offset, terms, unit, asked):
  """Largest scores over some of n words and their rows, [blocks, b].

  Args:
    method: "add" or "mul".
    block_words: words compared at a time.
    n: rows from here on are padding.
    array: vectors of these words, [w, d].
    offset: row of the first of these words, int32 scalar.
    terms: rows of the words that questions use, int32 [t].
    unit: their unit vectors, [t, d].
    asked: positions in `terms` of a, b, c, int32 [blocks, b, 3].
  """
  size = array.shape[0]
  block_words = min(block_words, size)
  # A wide block is compared tile by tile before the numbers of a tile are.
  tiles: tuple[int, ...] = (1, block_words)
  if block_words >= _WIDE[0] and block_words % math.prod(_TILE) == 0:
    tiles = (-1, *_TILE)

  def score_words(best, start):
    # The last block overlaps the one before rather than run past the end.
    first = jnp.minimum(start, size - block_words)
    rows = offset + first + jnp.arange(block_words, dtype=jnp.int32)
    block = normalize.unit_rows(
      lax.dynamic_slice_in_dim(array, first, block_words)
    )
    plus, minus = _tables(unit @ block.T, method)
    # A question's own words never answer it, nor does padding.
    never = (terms[:, None] == rows) | (rows >= n)
    plus = jnp.where(never, -jnp.inf, plus).reshape(len(terms), *tiles)
    minus = jnp.where(never, jnp.inf, minus).reshape(len(terms), *tiles)
    rows = rows.reshape(tiles)

    def score_questions(_, ids):
      a, b, c = ids.T
      top, at = _first_maximum(plus[b] + plus[c] - minus[a], rows)
      most = top.max(axis=range(1, top.ndim), keepdims=True)
      # The first index of the maximum; cheaper than argmax here.
      at = jnp.where(top == most, at, n).min(axis=range(1, top.ndim))
      return _, (most.reshape(-1), at)

    _, (top, at) = lax.scan(score_questions, None, asked)
    better = top > best[0]
    kept = jnp.where(better, top, best[0]), jnp.where(better, at, best[1])
    return kept, None

  shape = asked.shape[:2]
  nothing = (
    jnp.full(shape, -jnp.inf, array.dtype),
    jnp.full(shape, -1, jnp.int32),
  )
  starts = jnp.arange(0, size, block_words, dtype=jnp.int32)
  return lax.scan(score_words, nothing, starts)[0]


def evaluate_analogies(
  array: similarity.Array,
  index: Mapping[str, int],
  test_set: testsets.AnalogySet,
  *,
  method: str = "add",
  missing: str = "skip",
  empty: str = "error",
  block_words: int | None = None,
  block_questions: int | None = None,
  mesh: Mesh | None = None,
) -> AnalogyResult:
  """Accuracy on analogy questions.

  Args:
    array: vectors, [n, d].
    index: row of each word.
    test_set: the questions.
    method: "add" (3CosAdd) or "mul" (3CosMul).
    missing: "skip" leaves out a question with an unknown word, "wrong"
      counts it as wrong.
    empty: "error" or "warn", for a set with no question left.
    block_words: vocabulary rows compared at a time; None for 1,024 on a CPU
      and 8,192 elsewhere.
    block_questions: questions scored at a time; None for 64 on a CPU and 512
      elsewhere.
    mesh: devices over which rows of the vocabulary are sharded; None for one.

  Returns:
    The result, with answers and the accuracy of each section.

  Raises:
    InputError: if `empty` refuses the set, or for vectors that are not finite.
  """
  rows = np.array(
    [[index.get(word, -1) for word in four] for four in test_set.questions],
    np.int32,
  ).reshape(-1, 4)
  similarity.check_rows(rows, len(array))
  known = (rows >= 0).all(axis=1)
  scores = np.full(len(rows), np.nan)
  answers = np.full(len(rows), -1, np.int32)
  zero = 0
  if known.any():
    array = jnp.asarray(array)
    if not bool(jnp.isfinite(array).all()):
      raise errors.InputError("the vectors hold values that are not finite")
    terms, questions = np.unique(rows[known, :3], return_inverse=True)
    answers[known] = solve_analogies(
      array,
      terms.astype(np.int32),
      questions.reshape(-1, 3).astype(np.int32),
      method=method,
      block_words=block_words,
      block_questions=block_questions,
      mesh=mesh,
    )
    scores[known] = answers[known] == rows[known, 3]
    blank = ~np.asarray(array[terms]).any(axis=1)
    zero = int(np.isin(rows[known, :3], terms[blank]).any(axis=1).sum())
  result = similarity.accuracy_result(
    test_set.name, scores, zero=zero, missing=missing, empty=empty
  )
  return AnalogyResult(
    **vars(result),
    answers=answers,
    sections=_by_section(result.scores, test_set.sections),
  )


def _first_maximum(
  scores: jax.Array, rows: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Maxima of [b, tiles, ...] over the tiles, and the least row of each."""
  if scores.shape[1] == 1:
    return scores[:, 0], jnp.broadcast_to(rows[0], scores[:, 0].shape)

  def larger(x, y):
    keep = (x[0] > y[0]) | ((x[0] == y[0]) & (x[1] < y[1]))
    return jnp.where(keep, x[0], y[0]), jnp.where(keep, x[1], y[1])

  nothing = (
    jnp.asarray(-jnp.inf, scores.dtype),
    jnp.asarray(jnp.iinfo(rows.dtype).max, rows.dtype),
  )
  pair = (scores, jnp.broadcast_to(rows, scores.shape))
  top, at = lax.reduce(pair, nothing, larger, (1,))
  return top, at


def _tables(cosine: jax.Array, method: str) -> tuple[jax.Array, jax.Array]:
  """Scores that b and c add, and scores that a subtracts."""
  if method == "add":
    return cosine, cosine
  # The logarithm of the product form has the same order as the form itself.
  moved = jnp.clip((1 + cosine) / 2, 0, 1)
  return jnp.log(moved), jnp.log(moved + _EPSILON)


def _by_section(scores: np.ndarray, sections: list[str]) -> dict[str, float]:
  names, place = np.unique(sections, return_inverse=True)
  scored = ~np.isnan(scores)
  counts = np.bincount(place[scored], minlength=len(names))
  right = np.bincount(place[scored], scores[scored], minlength=len(names))
  return {
    str(name): float(100 * right[i] / counts[i])
    for i, name in enumerate(names)
    if counts[i]
  }

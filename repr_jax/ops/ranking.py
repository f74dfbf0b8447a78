"""Tie-aware ranks: how many candidates beat a target, and how many equal it.

A rank is a pair of bounds. The optimistic rank puts the target first among
the candidates with the same score, the pessimistic one puts it last, and the
realistic rank is their mean: what a random order of ties gives on average.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from repr_jax.ops.csr_product import row_of_entries

# Two counts fit into one uint32 as long as neither reaches 2^16.
_PACKED_BITS = 16


class Counts(NamedTuple):
  """Candidates above a target and level with it.

  Attributes:
    above: candidates whose score is higher, or is not a number, int32 [...].
    level: candidates whose score is equal, int32 [...].
  """

  above: jax.Array
  level: jax.Array


class RankBounds(NamedTuple):
  """Ranks counted from 1, with ties resolved both ways.

  Attributes:
    optimistic: the rank if the target comes first among equals, [...].
    pessimistic: the rank if it comes last among equals, [...].
  """

  optimistic: jax.Array
  pessimistic: jax.Array

  @property
  def realistic(self):
    """Mean of both ends, [...]; a multiple of one half."""
    return (self.optimistic + self.pessimistic) / 2


def count_candidates(scores: jax.Array, target_score: jax.Array) -> Counts:
  """Counts the candidates above and level with a target.

  A score that is not a number counts as above, so that a broken model never
  looks good; a target that is not a number has every candidate above it.

  Args:
    scores: of all candidates, the target among them, [n] or [n, b]. Columns
      are read a row at a time, several times faster than under `vmap`.
    target_score: the target's own score, taken from `scores`, [] or [b].

  Returns:
    The counts, fields [] or [b]; `level` includes the target itself.
  """
  chex.assert_rank(scores, {1, 2})
  chex.assert_equal(scores.shape[1:], target_score.shape)
  level = scores == target_score
  if scores.shape[0] >> _PACKED_BITS:
    above = ~(scores <= target_score)
    return Counts(
      above.sum(axis=0, dtype=jnp.int32), level.sum(axis=0, dtype=jnp.int32)
    )
  # One pass over the scores instead of two: the counts share an integer.
  packed = jnp.where(
    scores <= target_score,
    level.astype(jnp.uint32),
    jnp.uint32(1 << _PACKED_BITS),
  )
  total = packed.sum(axis=0, dtype=jnp.uint32)
  mask = (1 << _PACKED_BITS) - 1
  return Counts(
    (total >> _PACKED_BITS).astype(jnp.int32), (total & mask).astype(jnp.int32)
  )


def count_listed(
  scores: jax.Array, targets: jax.Array, columns: jax.Array, offsets: jax.Array
) -> Counts:
  """Counts listed candidates of a batch, without touching the others.

  The list is compressed by rows: row i owns `columns[offsets[i]:offsets[i+1]]`.
  A column equal to the row's target is skipped, and so is whatever stands
  before the first offset or behind the last one, so padding may have any value.
  Columns must be distinct within a row.

  Args:
    scores: of all candidates for each row, [b, n].
    targets: the target's column in each row, int32 [b].
    columns: listed candidates of all rows, int32 [p].
    offsets: where each row's part of the list begins and ends, int32 [b + 1].

  Returns:
    Counts over the listed candidates other than the target, fields [b].
  """
  chex.assert_rank([scores, targets, columns, offsets], [2, 1, 1, 1])
  chex.assert_equal(offsets.shape[0], scores.shape[0] + 1)
  rows = row_of_entries(offsets, columns.shape[0])
  columns = jnp.clip(columns, 0, scores.shape[1] - 1)
  # Read by candidate, as scores that come from a product are laid out.
  table = scores.T
  listed = table[columns, rows]
  target = table[targets, jnp.arange(targets.size)][rows]
  other = columns != targets[rows]

  def per_row(hit):
    total = jnp.cumsum((hit & other).astype(jnp.int32))
    total = jnp.concatenate([jnp.zeros(1, jnp.int32), total])
    return total[offsets[1:]] - total[offsets[:-1]]

  return Counts(per_row(~(listed <= target)), per_row(listed == target))


def tie_ranks(scores: jax.Array, target: jax.Array) -> RankBounds:
  """Rank of one candidate among all, counted from 1, with ties both ways.

  optimistic = 1 + #(s_i > s_t), pessimistic = #(s_i >= s_t).

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> ranks = ops.tie_ranks(jnp.array([3.0, 1.0, 2.0, 2.0]), 2)
  >>> ranks.optimistic, ranks.realistic
  (Array(2, dtype=int32), Array(2.5, dtype=float32))

  Args:
    scores: of all candidates, [n]; a NaN counts as above the target.
    target: index of the ranked candidate, scalar.

  Returns:
    The rank's bounds, fields [].
  """
  chex.assert_rank(scores, 1)
  return rank_bounds(count_candidates(scores, scores[target]))


def rank_bounds(counts: Counts) -> RankBounds:
  """Turns counts, the target counted as level with itself, into ranks.

  Args:
    counts: candidates above and level, fields [...].

  Returns:
    The ranks' bounds, fields [...].
  """
  return RankBounds(counts.above + 1, counts.above + counts.level)

"""Sparse tables by row, for sums over a few rows.

The postings of a feature are the entities that have it. A query reads only the
postings of its own features, a few numbers out of millions, and adds them to
the entities' scores. Rows differ in length. `walk` cuts the chosen rows into
blocks of equal size, so one program serves all queries.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from repr_jax.errors import InputError
from repr_jax.setexp.rows import Rows

_BLOCK = (256, 32)  # chunks, and neighboring entries of a row in each


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Postings:
  """A sparse table of n rows.

  Attributes:
    starts: where each row starts, int32 [n + 1].
    items: columns, ascending in a row, int32 [nnz].
    values: their numbers, [nnz].
    width: number of columns, static.
    longest: entries of the longest row, static.
  """

  starts: Any
  items: Any
  values: Any
  width: int = dataclasses.field(metadata={"static": True})
  longest: int = dataclasses.field(metadata={"static": True})


def from_scipy(table: sp.csr_array) -> Postings:
  """The postings of a sparse table [n, width], entries sorted."""
  table = sp.csr_array(table)
  table.sort_indices()
  if table.nnz >= 1 << 31:
    raise InputError(f"{table.nnz:,} counts are too many: 2^31 at most")
  longest = int(np.diff(table.indptr).max(initial=1))
  return Postings(
    jnp.asarray(table.indptr.astype(np.int32)),
    jnp.asarray(table.indices.astype(np.int32)),
    jnp.asarray(table.data),
    table.shape[1],
    max(longest, 1),
  )


def walk(
  starts: jax.Array,
  rows: jax.Array,
  body: Callable[[Any, jax.Array, jax.Array, jax.Array], Any],
  carry: Any,
  block: tuple[int, int] = _BLOCK,
) -> Any:
  """Goes over all entries of some rows, block by block.

  Args:
    starts: where each row starts, int32 [n + 1].
    rows: the rows, int32 [m]; rows outside 0..n-1 have no entries.
    body: gives the next carry from the carry, the position in `rows` of each
      entry's row, the entry's place, both int32 [B], and whether the entry is
      valid, bool [B].
    carry: the first.
    block: chunks of a block, B / l, and neighboring entries l in a chunk,
      which should be about the length of a row (static).

  Returns:
    The last carry.
  """
  known = (rows >= 0) & (rows < starts.shape[0] - 1)
  own = jnp.where(known, rows, 0)
  first = starts[own]
  last = jnp.where(known, starts[own + 1], first)
  chunks, width = block
  ends = jnp.cumsum(-(-(last - first) // width), dtype=jnp.int32)
  lanes = jnp.arange(width, dtype=jnp.int32)

  def step(state):
    done, carry = state
    chunk = done + jnp.arange(chunks, dtype=jnp.int32)
    row = jnp.searchsorted(ends, chunk, side="right").astype(jnp.int32)
    row = jnp.minimum(row, ends.shape[0] - 1)
    before = jnp.where(row > 0, ends[row - 1], 0)
    place = (first[row] + width * (chunk - before))[:, None] + lanes
    used = (place < last[row][:, None]) & (chunk < ends[-1])[:, None]
    row = jnp.broadcast_to(row[:, None], place.shape)
    place = jnp.where(used, place, 0)
    return done + chunks, body(carry, *(x.ravel() for x in (row, place, used)))

  start = jnp.zeros((), jnp.int32)
  return lax.while_loop(lambda x: x[0] < ends[-1], step, (start, carry))[1]


def add_rows(
  postings: Postings, rows: jax.Array, weights: jax.Array
) -> jax.Array:
  """The weighted sum of some rows.

  Args:
    postings: of n rows.
    rows: int32 [m]; rows outside 0..n-1 are ignored.
    weights: of each, [m].

  Returns:
    sum_i weights_i row_i, [width].
  """

  def body(total, row, place, used):
    item = jnp.where(used, postings.items[place], postings.width)
    return total.at[item].add(
      postings.values[place] * weights[row], mode="drop"
    )

  zeros = jnp.zeros(postings.width, postings.values.dtype)
  return walk(postings.starts, rows, body, zeros)


def take_row(postings: Postings, row: jax.Array) -> Rows:
  """One row, int32 []; fields [longest], padded with column `width`."""
  place = postings.starts[row] + jnp.arange(postings.longest)
  used = place < postings.starts[row + 1]
  place = jnp.where(used, place, 0)
  return Rows(
    jnp.where(used, postings.items[place], postings.width),
    jnp.where(used, postings.values[place], 0),
  )


def look_up(postings: Postings, rows: jax.Array, item: jax.Array) -> jax.Array:
  """Values of one column in some rows, by bisection.

  Args:
    postings: of n rows.
    rows: int32 [m]; rows outside 0..n-1 have no values.
    item: the column, int32 [].

  Returns:
    The values, [m]; 0 where a row does not have the column.
  """
  known = (rows >= 0) & (rows < postings.starts.shape[0] - 1)
  own = jnp.where(known, rows, 0)
  low, high = postings.starts[own], postings.starts[own + 1]
  last = postings.items.shape[0] - 1

  def halve(_, bounds):
    low, high = bounds
    middle = (low + high) // 2
    left = postings.items[jnp.clip(middle, 0, last)] < item
    going = low < high
    return (
      jnp.where(going & left, middle + 1, low),
      jnp.where(going & ~left, middle, high),
    )

  steps = int(postings.longest).bit_length()
  place, _ = lax.fori_loop(0, steps, halve, (low, high))
  inside = known & (place < postings.starts[own + 1])
  place = jnp.clip(place, 0, last)
  inside &= postings.items[place] == item
  return jnp.where(inside, postings.values[place], 0)

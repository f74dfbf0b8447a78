"""One round of SetExpan: features, subsets, ranks (see `setexpan`)."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from repr_jax.ops import topk
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp.baselines import postings as posting_lib
from repr_jax.setexp.feature_scores import Entries

DEPTH = 256  # lower ranks add less than 1/256 to a mean reciprocal rank
_GROUP = 16  # members whose similarities are computed together


def slots(kept: jax.Array, features: int) -> jax.Array:
  """Index of each of F features in the kept ones [k], [F]; k for others."""
  place = jnp.full(features, len(kept), jnp.int32)
  return place.at[kept].set(jnp.arange(len(kept), dtype=jnp.int32), mode="drop")


def select(
  model: Any, entries: Entries, signed: jax.Array, new: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """The strongest features of the set.

  Args:
    model: a `setexpan.Model`.
    entries: counts of the query's members, fields [n].
    signed: their weighted features, times the members' weights, [n].
    new: entities that joined, int32 [c]; -1 for none.

  Returns:
    Features, int32 [k], F for none; and their strengths, [k].
  """
  strengths = posting_lib.add_rows(
    model.rows, new, jnp.ones(new.shape[0], model.idf.dtype)
  )
  strengths = strengths.at[entries.feature].add(signed, mode="drop")
  positive = jnp.any(strengths > 0)
  order = jnp.where(positive, strengths, jnp.abs(strengths))
  values, kept = topk.top_k(order, model.subset.shape[0] - 1)
  own = jnp.where(values > 0, strengths[kept], 0)
  return jnp.where(values > 0, kept, model.idf.shape[0]).astype(jnp.int32), own


@chosen_products
def rank(
  model: Any,
  kept: jax.Array,
  members: jax.Array,
  trust: jax.Array,
  outside: jax.Array,
  key: jax.Array,
  watched: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Ranks candidates in random subsets of the kept features.

  Args:
    model: a `setexpan.Model`.
    kept: features, int32 [k]; F for none.
    members: weighted kept features of the set, [m, k].
    trust: weights of the set, [m]; 0 for padding.
    outside: which entities are not in the set, bool [X].
    key: random key of the subsets.
    watched: entity whose score is split, int32 []; -1 for none.

  Returns:
    Mean reciprocal ranks [X], similarities on all kept features [X], and the
    parts of the watched entity's score [k].
  """
  config, dtype = model.config, model.idf.dtype
  valid = kept < model.idf.shape[0]
  similar = _overall(model, kept, members, trust)
  eligible = jnp.where(outside & (similar > 0), similar, -jnp.inf)
  best, rows = topk.top_k(eligible, min(config.candidates, len(similar)))
  chosen = jnp.where(best > -jnp.inf, rows, len(similar))
  place = jnp.full(len(similar), len(rows), jnp.int32)
  place = place.at[chosen].set(
    jnp.arange(len(rows), dtype=jnp.int32), mode="drop"
  )

  def fill(table, slot, entry, used):
    row = jnp.where(used, place[model.postings.items[entry]], len(rows))
    return table.at[row, slot].set(model.postings.values[entry], mode="drop")

  table = jnp.zeros((len(rows), len(kept)), dtype)
  table = posting_lib.walk(model.postings.starts, kept, fill, table)
  masks = _subsets(model, valid, key)
  columns = similarity(table, members, trust, masks).T
  depth = min(DEPTH, len(rows))
  columns = jnp.where(columns > 0, columns, -jnp.inf)
  top, where = jax.vmap(lambda x: topk.top_k(x, depth))(columns)
  reciprocal = jnp.where(
    top > -jnp.inf, 1 / (1 + jnp.arange(depth, dtype=dtype)), 0
  )
  means = jnp.zeros(len(rows), dtype).at[where].add(reciprocal) / config.samples
  ranks = jnp.zeros_like(similar).at[chosen].set(means, mode="drop")
  # The watched entity: its row, and its reciprocal rank in each subset.
  row = posting_lib.take_row(model.rows, jnp.maximum(watched, 0))
  place_of = slots(kept, model.idf.shape[0])
  slot = place_of[jnp.minimum(row.indices, model.idf.shape[0] - 1)]
  slot = jnp.where(row.indices < model.idf.shape[0], slot, len(kept))
  own = jnp.zeros(len(kept), dtype).at[slot].add(row.counts, mode="drop")
  every = valid.astype(dtype)[:, None]
  plain = _similarity_parts(own, members, trust, every)[:, 0]
  here = jnp.sum(
    jnp.where(where == place[watched], reciprocal, 0), axis=1
  ) / config.samples  # fmt: skip
  parts = _similarity_parts(own, members, trust, masks)
  totals = parts.sum(axis=0)
  shares = parts @ jnp.where(
    totals > 0, here / jnp.where(totals > 0, totals, 1), 0
  )
  return ranks, similar, jnp.where(ranks[watched] > 0, shares, plain)


def _subsets(model, valid, key):
  """Random subsets of the kept features as columns of 0 and 1, [k, t]."""
  shape = (model.config.samples, valid.shape[0])
  draws = jax.random.uniform(key, shape, model.idf.dtype)
  order = jnp.argsort(jnp.where(valid, draws, 2), axis=1)
  ranks = jnp.argsort(order, axis=1)
  chosen = (ranks < model.subset[jnp.sum(valid)]) & valid
  return chosen.T.astype(model.idf.dtype)


def _overall(model, kept, members, trust):
  """Similarity of all entities on all kept features, by postings, [X]."""
  size, dtype = model.postings.width, model.idf.dtype
  groups = -(-len(members) // _GROUP)
  more = groups * _GROUP - len(members)
  members = jnp.pad(members, ((0, more), (0, 0)))
  weights = jnp.pad(trust, (0, more))

  def add(carry, slot, entry, used):
    sums, low, own = carry
    entity = jnp.where(used, model.postings.items[entry], size)
    value = model.postings.values[entry]
    shared = jnp.minimum(value[:, None], own[slot])
    return (
      sums.at[entity].add(value, mode="drop"),
      low.at[entity].add(shared, mode="drop"),
      own,
    )

  def group(total, part):
    own, weight = part

    def some():
      none = jnp.zeros(size, dtype), jnp.zeros((size, _GROUP), dtype), own.T
      sums, low, _ = posting_lib.walk(model.postings.starts, kept, add, none)
      high = sums[:, None] + own.sum(axis=1) - low
      ratio = low / jnp.maximum(high, 1e-30)
      return total + jnp.sum(ratio * weight, axis=1)

    # Most of the places for newcomers are empty.
    return lax.cond(jnp.any(weight != 0), some, lambda: total), None

  parts = members.reshape(groups, _GROUP, -1), weights.reshape(groups, _GROUP)
  total, _ = lax.scan(group, jnp.zeros(size, dtype), parts)
  return total / _size(trust)


@chosen_products
def similarity(
  table: jax.Array, members: jax.Array, trust: jax.Array, masks: jax.Array
) -> jax.Array:
  """Weighted mean of min over max, on each subset of features.

  Args:
    table: candidates, [n, k].
    members: the set, [m, k].
    trust: signed weights of the set, [m]; 0 for padding.
    masks: one column of zeros and ones for each subset, [k, t].

  Returns:
    Similarities, [n, t].
  """
  sums = table @ masks

  def add(total, part):
    member, weight = part

    def some():
      low = jnp.minimum(table, member) @ masks
      high = sums + member @ masks - low
      return total + weight * low / jnp.maximum(high, 1e-30)

    return lax.cond(weight != 0, some, lambda: total), None

  total, _ = lax.scan(add, jnp.zeros_like(sums), (members, trust))
  return total / _size(trust)


@chosen_products
def _similarity_parts(row, members, trust, masks):
  """Parts of one candidate's `similarity` by feature, [k, t]."""
  low = jnp.minimum(row, members)
  high = row @ masks + members @ masks - low @ masks
  share = trust[:, None] / jnp.maximum(high, 1e-30) / _size(trust)
  return low.T @ share * masks


def _size(trust):
  return jnp.maximum(jnp.sum(jnp.abs(trust)), 1e-30)

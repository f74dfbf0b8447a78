"""Tie-aware ranks against sorting, and against what ties must satisfy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repr_jax import ops
from repr_jax.ops import ranking


def _bounds(scores, target):
  scores = jnp.asarray(scores, jnp.float32)
  counts = ranking.count_candidates(scores, scores[target])
  return ranking.rank_bounds(counts)


def test_realistic_rank_is_the_mean_over_all_orders_of_ties():
  scores = [0.5, 2.0, 0.5, 0.5, -1.0]
  ranks = []
  for order in itertools.permutations(range(5)):
    by_score = sorted(order, key=lambda i: -scores[i])
    ranks.append(by_score.index(2) + 1)
  bounds = _bounds(scores, 2)
  assert bounds.realistic == pytest.approx(np.mean(ranks))
  assert (bounds.optimistic, bounds.pessimistic) == (min(ranks), max(ranks))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20), st.data())
def test_bounds_against_sorting(scores, data):
  target = data.draw(st.integers(0, len(scores) - 1))
  ordered = sorted(scores, reverse=True)
  bounds = _bounds(scores, target)
  assert bounds.optimistic == ordered.index(scores[target]) + 1
  last = len(scores) - ordered[::-1].index(scores[target])
  assert bounds.pessimistic == last


@pytest.mark.parametrize("size", [65535, 65536, 70000])
def test_counts_do_not_overflow(size):
  level = ranking.count_candidates(jnp.zeros(size), jnp.zeros(()))
  assert (int(level.above), int(level.level)) == (0, size)
  above = ranking.count_candidates(jnp.ones(size), jnp.zeros(()))
  assert (int(above.above), int(above.level)) == (size, 0)


def test_a_score_that_is_not_a_number_never_helps():
  assert _bounds([1.0, jnp.nan, 0.0], 0).optimistic == 2
  assert _bounds([1.0, jnp.nan, 0.0], 1).optimistic == 4


def _listed(scores, targets, lists, width):
  columns = np.full(width, 99, np.int32)
  flat = np.concatenate([np.asarray(one, np.int32) for one in lists])
  columns[: len(flat)] = flat
  offsets = np.cumsum([0] + [len(one) for one in lists]).astype(np.int32)
  return ranking.count_listed(
    jnp.asarray(scores), jnp.asarray(targets), columns, offsets
  )


def test_listed_counts_against_a_loop():
  rng = np.random.default_rng(0)
  scores = rng.integers(0, 4, (6, 30)).astype(np.float32)
  targets = rng.integers(0, 30, 6).astype(np.int32)
  lists = [rng.permutation(30)[: rng.integers(0, 12)] for _ in range(6)]
  lists[2], lists[5] = np.array([], int), np.append(lists[5], targets[5])
  lists[5] = np.unique(lists[5])
  counts = _listed(scores, targets, lists, 128)
  for row, listed in enumerate(lists):
    others = [c for c in listed if c != targets[row]]
    value = scores[row, targets[row]]
    assert counts.above[row] == sum(scores[row, c] > value for c in others)
    assert counts.level[row] == sum(scores[row, c] == value for c in others)


def test_listing_all_others_leaves_rank_one():
  scores = jax.random.normal(jax.random.key(0), (3, 8))
  targets = np.array([0, 4, 7], np.int32)
  every = jax.jit(jax.vmap(ranking.count_candidates))(
    scores, scores[jnp.arange(3), targets]
  )
  listed = _listed(scores, targets, [np.arange(8)] * 3, 32)
  rest = ranking.Counts(every.above - listed.above, every.level - listed.level)
  bounds = ranking.rank_bounds(rest)
  np.testing.assert_array_equal(bounds.optimistic, 1)
  np.testing.assert_array_equal(bounds.pessimistic, 1)


def test_tie_ranks_of_one_candidate():
  scores = jnp.array([5.0, 2.0, jnp.nan, 2.0, 1.0])
  bounds = ops.tie_ranks(scores, jnp.asarray(3))
  assert (bounds.optimistic, bounds.pessimistic) == (3, 4)
  assert ops.tie_ranks(scores, jnp.asarray(0)).realistic == 2

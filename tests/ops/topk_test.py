"""Blocked top-k against a stable numpy sort."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repr_jax.ops import precision, topk


def _reference(scores, k):
  order = np.argsort(-scores, kind="stable")[:k]
  return scores[order], order


@settings(max_examples=40, deadline=None)
@given(
  n=st.sampled_from([1, 7, 130, 1000]),
  levels=st.sampled_from([1, 3, 50, 10**6]),
  fraction=st.sampled_from([0.0, 0.3, 1.0]),
  infinite=st.sampled_from([0.0, 0.5, 1.0]),
  seed=st.integers(0, 2**16),
)
def test_top_k_equals_stable_sort(n, levels, fraction, infinite, seed):
  rng = np.random.default_rng(seed)
  scores = rng.integers(0, levels, n).astype(np.float32) - levels // 2
  scores[rng.random(n) < infinite] = -np.inf
  scores[rng.random(n) < 0.1] = -0.0
  k = max(1, int(fraction * n))
  values, indices = topk.top_k(jnp.asarray(scores), k, width=16)
  expected_values, expected = _reference(scores, k)
  np.testing.assert_array_equal(indices, expected)
  np.testing.assert_array_equal(values, expected_values)
  assert indices.dtype == jnp.int32


def test_vmap_over_queries_and_integers():
  scores = np.random.default_rng(0).integers(-9, 9, (5, 700))
  values, indices = jax.vmap(lambda s: topk.top_k(s, 4, width=32))(scores)
  for row, value, index in zip(scores, values, indices):
    np.testing.assert_array_equal(index, _reference(row, 4)[1])
    np.testing.assert_array_equal(value, row[np.asarray(index)])


@pytest.mark.parametrize("k", [0, 6])
def test_k_out_of_range_is_refused(k):
  with pytest.raises(ValueError, match="between 1 and the 5"):
    topk.top_k(jnp.zeros(5), k)
  with pytest.raises(ValueError, match="between 1 and the 5"):
    topk.streamed_top_k(lambda ids: ids * 1.0, 5, k, block=2)


def test_nan_is_shown_first():
  scores = jnp.zeros(300).at[201].set(jnp.nan)
  assert int(topk.top_k(scores, 1, width=8)[1][0]) == 201


def test_second_call_does_not_compile():
  topk.top_k(jnp.arange(333.0), 3)
  size = topk.top_k._cache_size()
  topk.top_k(jnp.arange(333.0) * 2, 3)
  assert topk.top_k._cache_size() == size


@pytest.mark.parametrize("block", [1, 3, 10, 64, 500])
@pytest.mark.parametrize("k", [1, 5, 30])
@pytest.mark.parametrize("kind", ["ties", "infinite"])
def test_streamed_equals_whole(block, k, kind):
  rng = np.random.default_rng(k * block)
  scores = rng.integers(0, 6, (3, 101)).astype(np.float32)
  if kind == "infinite":
    scores[scores < 5] = -np.inf

  def one(row):
    return topk.streamed_top_k(lambda ids: row[ids], 101, k, block=block)

  values, indices = jax.jit(jax.vmap(one))(jnp.asarray(scores))
  for row, value, index in zip(scores, values, indices):
    expected_values, expected = _reference(row, k)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(value, expected_values)


def test_streamed_never_holds_all_scores():
  n, d = 1 << 16, 8

  def call(items, query):
    return topk.streamed_top_k(lambda ids: items[ids] @ query, n, 10, block=256)

  compiled = (
    jax.jit(jax.vmap(call, (None, 0)))
    .lower(jnp.zeros((n, d)), jnp.zeros((64, d)))
    .compile()
  )
  # All scores would be 64 * 65536 * 4 bytes = 16 MB.
  assert compiled.memory_analysis().temp_size_in_bytes < 4e6


def test_double_precision_is_kept():
  scores = 1 + 1e-12 * np.random.default_rng(0).permutation(500)
  with precision.enable_x64(True):
    values, indices = topk.top_k(jnp.asarray(scores), 5, width=8)
    streamed = topk.streamed_top_k(
      lambda ids: jnp.asarray(scores)[ids], 500, 5, block=64, dtype=jnp.float64
    )
  expected_values, expected = _reference(scores, 5)
  for got_values, got in ((values, indices), streamed):
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(got_values, expected_values)
    assert got.dtype == jnp.int32

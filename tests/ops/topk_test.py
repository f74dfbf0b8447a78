"""Blocked top-k against a stable numpy sort."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repr_jax import ops
from repr_jax.ops import precision


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
  values, indices = ops.top_k(jnp.asarray(scores), k, width=16)
  expected_values, expected = _reference(scores, k)
  np.testing.assert_array_equal(indices, expected)
  np.testing.assert_array_equal(values, expected_values)
  assert indices.dtype == jnp.int32


def test_vmap_over_queries_and_integers():
  scores = np.random.default_rng(0).integers(-9, 9, (5, 700))
  values, indices = jax.jit(jax.vmap(lambda s: ops.top_k(s, 4, width=32)))(
    scores
  )
  for row, value, index in zip(scores, values, indices):
    np.testing.assert_array_equal(index, _reference(row, 4)[1])
    np.testing.assert_array_equal(value, row[np.asarray(index)])


@pytest.mark.parametrize("k", [0, 6])
def test_k_out_of_range_is_refused(k):
  with pytest.raises(ValueError, match="between 1 and the 5"):
    ops.top_k(jnp.zeros(5), k)


def test_nan_is_shown_first():
  scores = jnp.zeros(300).at[201].set(jnp.nan)
  assert int(ops.top_k(scores, 1, width=8)[1][0]) == 201


def test_double_precision_is_kept():
  scores = 1 + 1e-12 * np.random.default_rng(0).permutation(500)
  with precision.enable_x64(True):
    values, indices = ops.top_k(jnp.asarray(scores), 5, width=8)
  expected_values, expected = _reference(scores, 5)
  np.testing.assert_array_equal(indices, expected)
  np.testing.assert_array_equal(values, expected_values)
  assert indices.dtype == jnp.int32

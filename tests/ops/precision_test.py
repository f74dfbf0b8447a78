"""Tests of 64-bit contexts and of sizes brought near 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax.ops import precision


def test_64_bits_are_allowed_inside_the_context_alone():
  assert jnp.ones(1).dtype == jnp.float32
  with precision.enable_x64():
    assert jnp.ones(1).dtype == jnp.float64
    with precision.enable_x64(False):
      assert jnp.ones(1).dtype == jnp.float32
  assert jnp.ones(1).dtype == jnp.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("xp", [np, jnp])
def test_sizes_come_near_one_by_a_power_of_two(xp, dtype):
  info = np.finfo(dtype)
  sizes = np.array([info.max, 1e20, 3, 0.1, 1e-20, info.tiny], dtype)
  with precision.enable_x64(dtype == np.float64):
    factors = np.asarray(precision.near_one(xp.asarray(sizes), xp))
  assert factors.dtype == dtype
  np.testing.assert_array_equal(np.frexp(factors)[0], 0.5)  # powers of two
  scaled = sizes * factors
  assert (scaled > 1e-3).all() and (scaled < 300).all()
  np.testing.assert_array_less(scaled[1:5], 1)
  np.testing.assert_array_less(0.49, scaled[1:5])


def test_zero_and_what_is_not_finite_have_the_factor_one():
  sizes = jnp.array([0.0, jnp.inf, jnp.nan])
  np.testing.assert_array_equal(precision.near_one(sizes), np.ones(3))


def test_the_factor_has_no_slope():
  assert jax.grad(lambda x: x * precision.near_one(x))(jnp.float32(3)) == 0.25


def _rounds(function, x) -> bool:
  """Whether a compiled function's product may round its inputs."""
  text = jax.jit(function).lower(x).as_text()
  assert "dot_general" in text
  # Under `--products` what rounds is an operation of its own.
  return "HIGHEST" not in text or "reduce_precision" in text


def test_products_are_exact_whatever_is_set():
  x = jnp.ones((3, 3))
  exact = precision.exact_products(lambda x: x @ x)
  assert _rounds(lambda x: x @ x, x)
  assert not _rounds(exact, x)
  assert not _rounds(jax.grad(lambda x: exact(x).sum()), x)
  with jax.default_matmul_precision("bfloat16"):
    assert not _rounds(exact, x)


def test_coarse_products_are_the_callers_choice():
  x = jnp.ones((3, 3))
  chosen = precision.chosen_products(lambda x: x @ x)
  assert not _rounds(chosen, x)
  with jax.default_matmul_precision("bfloat16"):
    assert _rounds(chosen, x)
    # Where a guarantee rests on it, the choice is not the caller's.
    assert not _rounds(precision.exact_products(chosen), x)

"""Tests of rows of length 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import ops
from repr_jax.ops.precision import enable_x64

_KINDS = [np.asarray, jnp.asarray]


@pytest.mark.parametrize("kind", _KINDS)
def test_rows_equal_those_divided_by_their_norm(kind):
  rows = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
  expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
  np.testing.assert_allclose(ops.unit_rows(kind(rows)), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", _KINDS)
def test_rows_of_every_scale_have_length_one(kind, dtype):
  info = np.finfo(dtype)
  scales = np.array([info.max / 4, info.tiny * 4, 1e-20, 1, 1e20], dtype)
  with enable_x64(dtype == np.float64):
    unit = ops.unit_rows(kind(np.array([[3, -4, 0]], dtype) * scales[:, None]))
    assert unit.dtype == dtype
  expected = np.tile([0.6, -0.8, 0], (len(scales), 1))
  np.testing.assert_allclose(unit, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", _KINDS)
def test_zero_rows_stay_zero_and_a_nan_fills_its_row(kind):
  rows = np.array([[0, 0], [np.nan, 1], [3, 4]], np.float32)
  unit = np.asarray(ops.unit_rows(kind(rows)))
  assert (unit[0] == 0).all()
  assert np.isnan(unit[1]).all()
  np.testing.assert_allclose(unit[2], [0.6, 0.8], rtol=1e-6)


def test_numpy_gives_numpy_and_jax_gives_jax():
  rows = np.ones((2, 3), np.float32)
  assert type(ops.unit_rows(rows)) is np.ndarray
  assert isinstance(ops.unit_rows(jnp.asarray(rows)), jax.Array)
  assert ops.unit_rows(np.zeros((0, 3), np.float32)).shape == (0, 3)
  assert ops.unit_rows(np.zeros((2, 0), np.float32)).shape == (2, 0)


def test_gradient_of_a_zero_row_is_finite():
  rows = jnp.array([[0.0, 0.0], [3.0, 4.0]])
  gradient = jax.jit(jax.grad(lambda x: ops.unit_rows(x)[:, 0].sum()))(rows)
  assert jnp.isfinite(gradient).all()
  np.testing.assert_allclose(gradient[1], [0.128, -0.096], rtol=1e-5)

"""Operators against the dense matrices that they stand for."""

import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax.ops import operators, sparse

_RNG = np.random.default_rng(0)
_DENSE = (_RNG.poisson(0.7, (40, 12)) * 1.5).astype(np.float32)
_ROWS = (_RNG.random(40) < 0.6).astype(np.float32)
_KINDS = {"dense": jnp.asarray, "sparse": sparse.from_scipy}


def _assert_stands_for(op, expected):
  q = _RNG.normal(size=(expected.shape[1], 3)).astype(np.float32)
  p = _RNG.normal(size=(expected.shape[0], 3)).astype(np.float32)
  assert op.shape == expected.shape
  close = {"rtol": 1e-4, "atol": 1e-3}
  np.testing.assert_allclose(op.matmat(jnp.asarray(q)), expected @ q, **close)
  np.testing.assert_allclose(
    op.rmatmat(jnp.asarray(p)), expected.T @ p, **close
  )
  np.testing.assert_allclose(
    op.normal(jnp.asarray(q)), expected.T @ (expected @ q), **close
  )


@pytest.mark.parametrize("kind", _KINDS)
def test_operators_equal_dense_matrices(kind):
  x = _KINDS[kind](_DENSE)
  mean = jnp.asarray(_RNG.normal(size=12).astype(np.float32))
  for op, expected in (
    (operators.as_operator(x), _DENSE),
    (operators.scaled(x, jnp.asarray(0.5)), 0.5 * _DENSE),
    (operators.row_scaled(x, jnp.asarray(_ROWS)), _ROWS[:, None] * _DENSE),
    (operators.transposed(operators.as_operator(x)), _DENSE.T),
    (operators.centered(x, mean), _DENSE - np.asarray(mean)),
    (
      operators.centered(x, mean, jnp.asarray(_ROWS)),
      _DENSE - np.outer(_ROWS, mean),
    ),
  ):
    _assert_stands_for(op, expected)


def test_an_operator_is_its_own_operator():
  op = operators.as_operator(jnp.asarray(_DENSE))
  assert operators.as_operator(op) is op


@pytest.mark.parametrize("kind", _KINDS)
def test_column_means_are_those_of_the_marked_rows(kind):
  x = _KINDS[kind](_DENSE)
  every = operators.column_means(x, None)
  np.testing.assert_allclose(every, _DENSE.mean(0), rtol=1e-5)
  some = operators.column_means(x, jnp.asarray(_ROWS))
  np.testing.assert_allclose(some, _DENSE[_ROWS > 0].mean(0), rtol=1e-5)
  none = operators.column_means(x, jnp.zeros(40))
  np.testing.assert_array_equal(none, np.zeros(12))


@pytest.mark.parametrize("size", [1e-30, 3.0, 1e30])
def test_range_scale_brings_the_largest_entry_near_one(size):
  x = jnp.asarray([[0.0, -size], [size / 7, 0.0]], jnp.float32)
  largest = float(jnp.max(jnp.abs(operators.range_scale(x) * x)))
  assert 0.5 <= largest < 1


def test_centering_noise_bounds_what_centering_leaves_of_constant_columns():
  x = np.full((500, 3), [1e3, 7e3, 0.1], np.float32)
  mean = operators.column_means(jnp.asarray(x), None)
  op = operators.centered(jnp.asarray(x), mean)
  right = jnp.eye(3)
  left = np.linalg.norm(op.matmat(right), axis=0)
  assert (left <= operators.centering_noise(mean, jnp.ones(500), right)).all()

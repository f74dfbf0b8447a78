"""Projections against cvxpy and against optimality conditions."""

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from repr_jax import ops
from repr_jax.ops import precision, projections


def _system(seed, n=5, d=3, m=6, h=2):
  """A random system that some point meets."""
  rng = np.random.default_rng(seed)
  index = np.stack([rng.choice(n, 3, replace=False) for _ in range(m)])
  coef = rng.normal(size=(m, 3))
  coef[::2, 2] = 0.0
  inner = rng.normal(size=(n, d))
  slack = rng.uniform(size=(m, d)) * (rng.uniform(size=(m, d)) < 0.7)
  bound = np.einsum("mk,mkd->md", coef, inner[index]) + slack
  pairs = rng.integers(n, size=(h, 2))
  normal = rng.normal(size=(h, 2, d))
  limit = np.sum(normal * inner[pairs], axis=(1, 2))
  rows = projections.Rows(index, coef, bound)
  planes = projections.Planes(pairs, normal, limit)
  z = inner + 2 * rng.normal(size=(n, d))
  weight = rng.integers(1, 4, size=n).astype(float)
  return z, weight, rows, planes


def _solve(z, weight, rows, planes):
  x = cvxpy.Variable(z.shape)
  limits = [
    sum(c * x[int(i)] for i, c in zip(index, coef)) <= bound
    for index, coef, bound in zip(*rows)
  ] + [
    sum(v @ x[int(i)] for i, v in zip(index, normal)) <= bound
    for index, normal, bound in zip(*planes)
  ]
  loss = cvxpy.sum(cvxpy.multiply(weight[:, None], cvxpy.square(x - z)))
  cvxpy.Problem(cvxpy.Minimize(loss), limits).solve(solver="CLARABEL")
  return x.value


@pytest.mark.parametrize("seed", range(6))
def test_polyhedron_equals_cvxpy(seed):
  z, weight, rows, planes = _system(seed)
  with precision.enable_x64(True):
    got, left = projections.polyhedron(
      *jax.tree.map(jnp.asarray, (z, weight, rows, planes)),
      tolerance=1e-9,
      max_sweeps=20000,
    )
  np.testing.assert_allclose(got, _solve(z, weight, rows, planes), atol=1e-4)
  assert left < 1e-6


def test_polyhedron_leaves_a_feasible_point_alone():
  z, weight, rows, planes = _system(3)
  inner = _solve(z, weight, rows, planes)
  with precision.enable_x64(True):
    rows = rows._replace(bound=rows.bound + 1)
    planes = planes._replace(bound=planes.bound + 1)
    got, left = projections.polyhedron(
      jnp.asarray(inner),
      jnp.asarray(weight),
      *jax.tree.map(jnp.asarray, (rows, planes)),
    )
  np.testing.assert_array_equal(got, inner)
  assert left == 0


def test_empty_system_changes_nothing():
  z = jnp.ones((2, 3))
  rows = projections.Rows(
    jnp.zeros((0, 2), int), jnp.zeros((0, 2)), jnp.zeros((0, 3))
  )
  planes = projections.Planes(
    jnp.zeros((0, 2), int), jnp.zeros((0, 2, 3)), jnp.zeros(0)
  )
  got, left = projections.polyhedron(z, jnp.ones(2), rows, planes)
  np.testing.assert_array_equal(got, z)
  assert left == 0


def test_tied_equals_least_squares():
  rng = np.random.default_rng(0)
  z = rng.normal(size=(6, 4)).astype(np.float32)
  class_of = np.array([0, 0, 1, 2, 1, 0])
  factor = np.array([1, -1, 0.5, 1, 2, 0.3], np.float32)
  value, weight = projections.tied(z, class_of, factor, 3)
  design = np.zeros((6, 3))
  design[np.arange(6), class_of] = factor
  want = np.linalg.lstsq(design, z, rcond=None)[0]
  np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(weight, (design**2).sum(0), rtol=1e-6)


def test_tied_floor_is_the_nearest_point_outside_the_ball():
  z = jnp.array([[0.3, 0.4], [0.0, 0.0], [3.0, 0.0]])
  floor = jnp.array([1.0, 2.0, 1.0])
  value, _ = projections.tied(z, jnp.arange(3), jnp.ones(3), 3, floor)
  np.testing.assert_allclose(
    value, [[0.6, 0.8], [2.0, 0.0], [3.0, 0.0]], atol=1e-6
  )


def test_pinned_class_is_zero():
  value, weight = projections.tied(
    jnp.ones((2, 3)), jnp.zeros(2, int), jnp.zeros(2), 1
  )
  assert np.all(np.asarray(value) == 0) and weight[0] == 0


def test_lower_first_meets_a_chain_exactly():
  z = jnp.array([[3.0], [2.0], [1.0]])
  rows = projections.Rows(
    jnp.array([[1, 2], [0, 1]]),
    jnp.array([[1.0, -1.0], [1.0, -1.0]]),
    jnp.zeros((2, 1)),
  )
  np.testing.assert_array_equal(projections.lower_first(z, rows)[:, 0], 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_orthant_ball_equals_cvxpy_and_dykstra(seed):
  rng = np.random.default_rng(seed)
  point = 2 * rng.normal(size=5)
  center = np.abs(rng.normal(size=5))
  radius = np.linalg.norm(center)
  x = cvxpy.Variable(5)
  cvxpy.Problem(
    cvxpy.Minimize(cvxpy.sum_squares(x - point)),
    [x >= 0, cvxpy.norm(x - center) <= radius],
  ).solve(solver="CLARABEL")
  got = projections.orthant_ball(
    jnp.asarray(point), jnp.asarray(center), radius
  )
  np.testing.assert_allclose(got, x.value, atol=1e-4)

  def ball(y):
    norm = jnp.linalg.norm(y - center)
    return center + (y - center) * jnp.minimum(1, radius / norm)

  both = projections.dykstra(
    jnp.asarray(point), [ball, lambda y: jnp.maximum(y, 0)]
  )
  np.testing.assert_allclose(both, x.value, atol=2e-4)


def _nearest(point, limits):
  """The nearest point that meets limits, by cvxpy."""
  x = cvxpy.Variable(point.shape)
  loss = cvxpy.sum_squares(x - point)
  cvxpy.Problem(cvxpy.Minimize(loss), limits(x)).solve(solver="CLARABEL")
  return x.value


@pytest.mark.parametrize("seed", range(3))
def test_simple_sets_equal_cvxpy(seed):
  rng = np.random.default_rng(seed)
  point, center, normal = 2 * rng.normal(size=(3, 4)).astype(np.float32)
  for got, limits in (
    (ops.project_nonnegative(point), lambda x: [x >= 0]),
    (ops.project_box(point, -0.5, 1.0), lambda x: [x >= -0.5, x <= 1]),
    (
      ops.project_ball(point, 0.7, center),
      lambda x: [cvxpy.norm(x - center) <= 0.7],
    ),
    (ops.project_halfspace(point, normal, -1.0), lambda x: [normal @ x <= -1]),
  ):
    np.testing.assert_allclose(got, _nearest(point, limits), atol=2e-4)


def test_points_of_simple_sets_stay():
  point = jnp.array([0.3, 0.4])
  for got in (
    ops.project_nonnegative(point),
    ops.project_box(point, 0.0, 1.0),
    ops.project_ball(point, 1.0),
    ops.project_ball(jnp.zeros(2), 0.0),
    ops.project_halfspace(point, jnp.zeros(2), 0.0),
    ops.project_halfspace(point, jnp.array([1.0, 0.0]), 0.5),
  ):
    assert (np.asarray(got) == np.asarray(point)).all() or not got.any()
  slope = jax.jacobian(lambda x: ops.project_ball(x, 1.0))(jnp.zeros(2))
  np.testing.assert_array_equal(slope, np.eye(2))


@pytest.mark.parametrize("seed", range(3))
def test_order_equals_isotonic_regression(seed):
  z = np.random.default_rng(seed).normal(size=(6, 2)).astype(np.float32)
  chain = jnp.arange(6)
  got, left = ops.project_order(z, chain[:-1], chain[1:])
  for column in range(2):
    expected = scipy.optimize.isotonic_regression(z[:, column]).x
    np.testing.assert_allclose(got[:, column], expected, atol=1e-4)
  assert left < 1e-4


def test_order_leaves_padding_alone():
  z = jnp.array([[3.0], [1.0], [9.0]])
  got, _ = ops.project_order(z, jnp.array([0, 2]), jnp.array([1, 2]))
  np.testing.assert_allclose(got, [[2.0], [2.0], [9.0]], atol=1e-5)

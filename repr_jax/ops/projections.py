"""Euclidean projections onto the convex sets that logical rules lead to.

Simple sets (orthant, box, ball, halfspace) are in `optax.projections`. Here
are the ones that are not: vectors tied to one another by factors, systems of
linear inequalities that many vectors share, the part of a ball that lies in
the orthant, and any intersection of sets with known projections.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp


class Rows(NamedTuple):
  """Inequalities that hold in every coordinate.

  Row i says sum_k coef[i, k] z[index[i, k]] <= bound[i], elementwise. Within
  a row the indices with a nonzero coefficient must differ.

  Attributes:
    index: which vectors take part, [m, k].
    coef: their factors, 0. for padding, [m, k].
    bound: [m, d].
  """

  index: jax.Array  # type: ignore[assignment]
  coef: jax.Array
  bound: jax.Array


class Planes(NamedTuple):
  """Halfspaces sum_k <normal[i, k], z[index[i, k]]> <= bound[i].

  Attributes:
    index: which vectors take part, two a halfspace (they may be equal), [h, 2].
    normal: 0. for padding, [h, 2, d].
    bound: [h].
  """

  index: jax.Array  # type: ignore[assignment]
  normal: jax.Array
  bound: jax.Array


def tied(
  z: jax.Array,
  class_of: jax.Array,
  factor: jax.Array,
  num_classes: int,
  floor: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
  """Nearest class values u for vectors tied as z_i = factor_i u_{class_i}.

  u = sum_i factor_i z_i / sum_i factor_i^2 minimizes the distance; a floor
  on the norm of u is then met by stretching it, which is still the nearest
  point because the distance depends on u through norm2(u - u*) alone.

  Args:
    z: vectors, [n, d].
    class_of: the class of each vector, [n].
    factor: its factor; a class whose factors are all 0. is pinned to 0., [n].
    num_classes: C.
    floor: least norm of each class value, [C]; none where absent.

  Returns:
    Class values [C, d] and their weights sum_i factor_i^2, [C].
  """
  chex.assert_rank([z, class_of, factor], [2, 1, 1])
  total = jax.ops.segment_sum(factor[:, None] * z, class_of, num_classes)
  weight = jax.ops.segment_sum(factor**2, class_of, num_classes)
  value = total / jnp.where(weight > 0, weight, 1)[:, None]
  if floor is None:
    return value, weight
  norm = jnp.linalg.norm(value, axis=1)
  first = jnp.zeros_like(value[0]).at[0].set(1)  # a direction for 0
  direction = jnp.where(
    norm[:, None] > 0,
    value / jnp.where(norm > 0, norm, 1)[:, None],
    first,
  )
  stretched = direction * floor[:, None]
  return jnp.where((norm < floor)[:, None], stretched, value), weight


def polyhedron(
  z: jax.Array,
  weight: jax.Array,
  rows: Rows,
  planes: Planes,
  tolerance: float = 1e-6,
  max_sweeps: int = 2000,
) -> tuple[jax.Array, jax.Array]:
  """Nearest vectors that meet all rows and planes at once (Hildreth).

  Minimizes sum_i weight_i norm2(x_i - z_i). This is Dykstra's scheme with
  one multiplier per inequality: a sweep corrects each inequality in turn and
  takes back what an earlier sweep corrected too much, so it converges to the
  projection itself and not just to a feasible point.

  Args:
    z: vectors, [n, d].
    weight: positive weights, [n].
    rows: m coordinatewise inequalities.
    planes: h halfspaces.
    tolerance: stop when a sweep moves nothing by more than this.
    max_sweeps: stop at the latest then.

  Returns:
    The projection [n, d] and the largest violation left, scalar.
  """
  chex.assert_rank([z, weight], [2, 1])
  num_rows, num_planes = rows.index.shape[0], planes.index.shape[0]
  if num_rows + num_planes == 0:
    return z, jnp.zeros((), z.dtype)
  planes = _merge_equal(planes)
  inverse = 1 / weight

  def fix_row(x, row):
    index, coef, bound, multiplier = row
    step = coef * inverse[index]
    length = coef @ step
    gap = (coef @ x[index] - bound) / jnp.where(length > 0, length, 1)
    change = jnp.where(length > 0, jnp.maximum(gap, -multiplier), 0)
    return x.at[index].add(-step[:, None] * change), multiplier + change

  def fix_plane(x, plane):
    index, normal, bound, multiplier = plane
    step = normal * inverse[index][:, None]
    length = jnp.sum(normal * step)
    gap = jnp.sum(normal * x[index]) - bound
    gap = gap / jnp.where(length > 0, length, 1)
    change = jnp.where(length > 0, jnp.maximum(gap, -multiplier), 0)
    return x.at[index].add(-step * change), multiplier + change

  def sweep(carry):
    x, row_m, plane_m, _, count = carry
    before = x
    if num_rows:
      x, row_m = jax.lax.scan(fix_row, x, (*rows, row_m))
    if num_planes:
      x, plane_m = jax.lax.scan(fix_plane, x, (*planes, plane_m))
    return x, row_m, plane_m, jnp.max(jnp.abs(x - before)), count + 1

  def unfinished(carry):
    return (carry[3] > tolerance) & (carry[4] < max_sweeps)

  start = (
    z,
    jnp.zeros((num_rows, z.shape[1]), z.dtype),
    jnp.zeros(num_planes, z.dtype),
    jnp.asarray(jnp.inf, z.dtype),
    0,
  )
  x = jax.lax.while_loop(unfinished, sweep, start)[0]
  return x, violation(x, rows, planes)


def violation(z: jax.Array, rows: Rows, planes: Planes) -> jax.Array:
  """Largest amount by which a row or plane fails; 0 where all hold.

  Args:
    z: vectors, [n, d].
    rows: coordinatewise inequalities.
    planes: halfspaces.

  Returns:
    Scalar.
  """
  worst = jnp.zeros((), z.dtype)
  if rows.index.shape[0]:
    left = jnp.einsum("mk,mkd->md", rows.coef, z[rows.index])
    worst = jnp.maximum(worst, jnp.max(left - rows.bound))
  if planes.index.shape[0]:
    left = jnp.sum(planes.normal * z[planes.index], axis=(1, 2))
    worst = jnp.maximum(worst, jnp.max(left - planes.bound))
  return worst


def lower_first(z: jax.Array, rows: Rows) -> jax.Array:
  """One pass that lowers the first vector of each row until the row holds.

  For rows a <= b in an order in which every b comes to rest before it is
  used (consequents first), the result meets all of them up to rounding. It
  removes the last digits that an iterative projection leaves, no more.

  Args:
    z: vectors, [n, d].
    rows: inequalities whose first coefficient is positive.

  Returns:
    Vectors, [n, d].
  """

  def fix(x, row):
    index, coef, bound = row
    excess = jnp.maximum(coef @ x[index] - bound, 0)
    return x.at[index[0]].add(-excess / coef[0]), None

  if not rows.index.shape[0]:
    return z
  return jax.lax.scan(fix, z, rows)[0]


def orthant_ball(
  x: jax.Array, center: jax.Array, radius: jax.Array, steps: int = 60
) -> jax.Array:
  """Nearest point of the nonnegative orthant within a ball.

  The optimum is max(0, (x + mu c) / (1 + mu)); the one unknown, mu >= 0, is
  found by bisection on mu / (1 + mu). (Clipping, then shrinking to the ball,
  gives a feasible point but not the nearest one.)

  Args:
    x: [d].
    center: c >= 0, [d], so that the set is not empty.
    radius: scalar.
    steps: halvings of the interval.

  Returns:
    The projection, [d].
  """
  chex.assert_rank([x, center], [1, 1])

  def point(share):
    return jnp.maximum((1 - share) * x + share * center, 0)

  def inside(share):
    return jnp.linalg.norm(point(share) - center) <= radius

  def halve(_, interval):
    low, high = interval
    middle = (low + high) / 2
    fits = inside(middle)
    return jnp.where(fits, low, middle), jnp.where(fits, middle, high)

  zero = jnp.zeros((), x.dtype)
  _, high = jax.lax.fori_loop(0, steps, halve, (zero, zero + 1))
  return point(jnp.where(inside(zero), zero, high))


def dykstra(
  x: jax.Array,
  projections: Sequence[Callable[[jax.Array], jax.Array]],
  tolerance: float = 1e-6,
  max_sweeps: int = 2000,
) -> jax.Array:
  """Projection onto an intersection of convex sets (Boyle and Dykstra 1986).

  Args:
    x: the point, any shape.
    projections: the projection onto each set.
    tolerance: stop when a sweep moves nothing by more than this.
    max_sweeps: stop at the latest then.

  Returns:
    The projection, the shape of x; the last set holds exactly.
  """

  def sweep(carry):
    point, corrections, _, count = carry
    before = point
    corrections = list(corrections)
    for i, project in enumerate(projections):
      shifted = point + corrections[i]
      point = project(shifted)
      corrections[i] = shifted - point
    moved = jnp.max(jnp.abs(point - before))
    return point, tuple(corrections), moved, count + 1

  def unfinished(carry):
    return (carry[2] > tolerance) & (carry[3] < max_sweeps)

  zeros = tuple(jnp.zeros_like(x) for _ in projections)
  start = (x, zeros, jnp.asarray(jnp.inf, x.dtype), 0)
  return jax.lax.while_loop(unfinished, sweep, start)[0]


def _merge_equal(planes):
  """Two normals on one vector are one normal, their sum."""
  same = (planes.index[:, 0] == planes.index[:, 1])[:, None]
  first, second = planes.normal[:, 0], planes.normal[:, 1]
  first = jnp.where(same, first + second, first)
  second = jnp.where(same, 0, second)
  return planes._replace(normal=jnp.stack([first, second], axis=1))

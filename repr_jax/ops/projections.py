"""Euclidean projections onto convex sets: P(x) = argmin_y norm(y - x).

Simple sets are the orthant, a box, a ball and a halfspace. Logical rules lead
to others: vectors tied to one another by factors, vectors in a given order,
systems of linear inequalities that many vectors share, the part of a ball in
the orthant, and any intersection of sets with known projections.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from repr_jax.ops.precision import exact_products


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


def nonnegative(x: jax.Array) -> jax.Array:
  """Nearest point of the nonnegative orthant: max(x, 0).

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> ops.project_nonnegative(jnp.array([-1.0, 2.0]))
  Array([0., 2.], dtype=float32)

  Args:
    x: any shape.

  Returns:
    The projection, the shape of x.
  """
  return jnp.maximum(x, 0)


def box(x: jax.Array, lower: ArrayLike, upper: ArrayLike) -> jax.Array:
  """Nearest point of a box: min(max(x, lower), upper).

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> ops.project_box(jnp.array([-1.0, 0.5, 3.0]), 0.0, 1.0)
  Array([0. , 0.5, 1. ], dtype=float32)

  Args:
    x: any shape.
    lower: least values, of a shape that broadcasts.
    upper: largest values, of a shape that broadcasts.

  Returns:
    The projection, the shape of x.
  """
  lower, upper = (jnp.asarray(end, x.dtype) for end in (lower, upper))
  return jnp.clip(x, lower, upper)


def ball(x: jax.Array, radius: ArrayLike, center: ArrayLike = 0.0) -> jax.Array:
  """Nearest point of a ball: c + (x - c) min(1, radius / norm(x - c)).

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> ops.project_ball(jnp.array([6.0, 8.0]), 5.0)
  Array([3., 4.], dtype=float32)

  Args:
    x: [d].
    radius: not negative, scalar.
    center: c, [d] or scalar.

  Returns:
    The projection, [d].
  """
  chex.assert_rank(x, 1)
  radius, center = (jnp.asarray(v, x.dtype) for v in (radius, center))
  apart = x - center
  square = jnp.sum(apart * apart)
  outside = square > radius * radius
  # Avoids a NaN gradient: the slope of sqrt at 0 is infinite.
  length = jnp.sqrt(jnp.where(outside, square, 1))
  return jnp.where(outside, center + apart * (radius / length), x)


@exact_products
def halfspace(x: jax.Array, normal: jax.Array, bound: ArrayLike) -> jax.Array:
  """Nearest point with <normal, x> <= bound.

  x - normal max(<normal, x> - bound, 0) / norm2(normal).

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> ops.project_halfspace(jnp.array([2.0, 5.0]), jnp.array([1.0, 0.0]), 1.0)
  Array([1., 5.], dtype=float32)

  Args:
    x: [d].
    normal: [d]; 0 for no condition.
    bound: scalar.

  Returns:
    The projection, [d].
  """
  chex.assert_rank([x, normal], 1)
  square = normal @ normal
  excess = jnp.maximum(normal @ x - jnp.asarray(bound, x.dtype), 0)
  return x - normal * (excess / jnp.where(square > 0, square, 1))


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
    norm[:, None] > 0, value / jnp.where(norm > 0, norm, 1)[:, None], first
  )
  stretched = direction * floor[:, None]
  return jnp.where((norm < floor)[:, None], stretched, value), weight


@exact_products
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

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> index, coef = jnp.array([[0, 1]]), jnp.array([[1.0, -1.0]])
  >>> rows = ops.Rows(index, coef, jnp.zeros((1, 1)))  # z[0] <= z[1]
  >>> planes = ops.Planes(index[:0], jnp.zeros((0, 2, 1)), jnp.zeros(0))
  >>> z = jnp.array([[3.0], [1.0]])
  >>> nearest, violation = ops.project_polyhedron(z, jnp.ones(2), rows, planes)
  >>> nearest.ravel()
  Array([2., 2.], dtype=float32)

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


def order(
  z: jax.Array,
  below: jax.Array,
  above: jax.Array,
  tolerance: float = 1e-6,
  max_sweeps: int = 2000,
) -> tuple[jax.Array, jax.Array]:
  """Nearest vectors with z[below[i]] <= z[above[i]] in every coordinate.

  For the pairs (0, 1), (1, 2), ... this is isotonic regression.

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> z = jnp.array([[1.0], [4.0], [2.0]])
  >>> ops.project_order(z, jnp.array([0, 1]), jnp.array([1, 2]))[0].ravel()
  Array([1., 3., 3.], dtype=float32)

  Args:
    z: vectors, [n, d].
    below: the smaller vector of each pair, [m].
    above: the larger one, [m]; equal to `below` for padding.
    tolerance: stop when a sweep moves nothing by more than this.
    max_sweeps: stop at the latest then.

  Returns:
    The projection [n, d] and the largest violation left, scalar.
  """
  chex.assert_rank([z, below, above], [2, 1, 1])
  pairs = jnp.stack([below, above], axis=1)
  real = jnp.where(below == above, 0, 1).astype(z.dtype)
  coef = jnp.stack([real, -real], axis=1)
  rows = Rows(pairs, coef, jnp.zeros((pairs.shape[0], z.shape[1]), z.dtype))
  planes = Planes(
    jnp.zeros((0, 2), pairs.dtype),
    jnp.zeros((0, 2, z.shape[1]), z.dtype),
    jnp.zeros(0, z.dtype),
  )
  weight = jnp.ones(z.shape[0], z.dtype)
  return polyhedron(z, weight, rows, planes, tolerance, max_sweeps)


@exact_products
def violation(z: jax.Array, rows: Rows, planes: Planes) -> jax.Array:
  """Largest amount by which a row or plane fails; 0 where all hold.

  Args:
    z: vectors, [n, d].
    rows: coordinatewise inequalities.
    planes: halfspaces.

  Returns:
    The amount, scalar.
  """
  worst = jnp.zeros((), z.dtype)
  if rows.index.shape[0]:
    left = jnp.einsum("mk,mkd->md", rows.coef, z[rows.index])
    worst = jnp.maximum(worst, jnp.max(left - rows.bound))
  if planes.index.shape[0]:
    left = jnp.sum(planes.normal * z[planes.index], axis=(1, 2))
    worst = jnp.maximum(worst, jnp.max(left - planes.bound))
  return worst


@exact_products
def lower_first(
  z: jax.Array, rows: Rows, margin: jax.Array | float = 0.0
) -> jax.Array:
  """One pass that lowers the first vector of each row until the row holds.

  For rows a <= b sorted so that b is final before it is used (consequents
  first), the result meets all of them up to rounding. It removes the small
  violations that an iterative projection leaves.

  Args:
    z: vectors, [n, d].
    rows: inequalities whose first coefficient is positive.
    margin: how far below its bound a row ends, in units of the rounding of its
      terms, so that it holds in exact arithmetic too; scalar.

  Returns:
    Vectors, [n, d].
  """
  unit = margin * jnp.finfo(z.dtype).eps

  def fix(x, row):
    index, coef, bound = row
    size = jnp.abs(coef) @ jnp.abs(x[index]) + jnp.abs(bound)
    excess = jnp.maximum(coef @ x[index] - bound + unit * size, 0)
    return x.at[index[0]].add(-excess / coef[0]), None

  if not rows.index.shape[0]:
    return z
  return jax.lax.scan(fix, z, rows)[0]


def orthant_ball(
  x: jax.Array, center: jax.Array, radius: jax.Array, steps: int = 60
) -> jax.Array:
  """Nearest point of the nonnegative orthant within a ball.

  The optimum is max(0, (1 - s) x + s c). Bisection on s in [0, 1] tells which
  coordinates are positive, and with these the boundary's equation gives s.
  (Clipping, then shrinking to the ball, gives a feasible point but not the
  nearest one.)

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> center = jnp.array([1.0, 0.0])
  >>> ops.project_orthant_ball(jnp.array([4.0, -3.0]), center, 1.0)
  Array([2., 0.], dtype=float32)

  Args:
    x: [d].
    center: c >= 0, [d], so that the set is not empty.
    radius: scalar.
    steps: halvings of the interval.

  Returns:
    The projection, [d].
  """
  chex.assert_rank([x, center], [1, 1])
  radius = jnp.asarray(radius, x.dtype)

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
  # norm2(point - c) = (1 - s)^2 norm2(x - c) on positive coordinates, and
  # c^2 on the others; bisection alone would hide how s depends on x.
  positive = jax.lax.stop_gradient(point(high)) > 0
  reach = radius**2 - jnp.sum(jnp.where(positive, 0, center**2))
  square = jnp.sum(jnp.where(positive, (x - center) ** 2, 0))
  solvable = (reach > 0) & (square > 0)
  kept = jnp.where(reach > 0, reach, 1) / jnp.where(square > 0, square, 1)
  share = jnp.where(solvable, 1 - jnp.sqrt(kept), jax.lax.stop_gradient(high))
  return jnp.where(inside(zero), point(zero), point(jnp.clip(share, 0, 1)))


def dykstra(
  x: jax.Array,
  projections: Sequence[Callable[[jax.Array], jax.Array]],
  tolerance: float = 1e-6,
  max_sweeps: int = 2000,
) -> jax.Array:
  """Projection onto an intersection of convex sets (Boyle and Dykstra 1986).

  >>> import jax.numpy as jnp
  >>> from repr_jax import ops
  >>> sets = (ops.project_nonnegative, lambda x: ops.project_ball(x, 1.0))
  >>> ops.project_intersection(jnp.array([2.0, -1.0]), sets)
  Array([1., 0.], dtype=float32)

  Args:
    x: the point, any shape.
    projections: the projection onto each set; a tuple where jitted.
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
  """Adds up the two normals of planes whose vectors are the same."""
  same = (planes.index[:, 0] == planes.index[:, 1])[:, None]
  first, second = planes.normal[:, 0], planes.normal[:, 1]
  first = jnp.where(same, first + second, first)
  second = jnp.where(same, 0, second)
  return planes._replace(normal=jnp.stack([first, second], axis=1))

"""Projections of a knowledge base onto the sets that its rules define.

A bilinear condition is a halfspace in one table if the other is fixed. Each
step therefore projects the relations with the named entities fixed, then the
named entities with the new relations fixed. A state that meets the conditions
lies in the set of each projection, so no set is empty and the conditions hold
in every later state. If the projection onto a thin set does not converge, its
result is moved toward the state before the step, which lies in the set, until
it meets the conditions.
"""

import functools

import jax
import jax.numpy as jnp

from repr_jax.kb import scores
from repr_jax.kb.rule_compiler import Constraints, System
from repr_jax.ops import projections
from repr_jax.ops.precision import exact_products

# Violation that a step may leave.
TOLERANCE = 1e-6


def project_relations(
  constraints: Constraints,
  params: scores.Params,
  before: jax.Array | None = None,
) -> jax.Array:
  """Nearest relations that meet the rules, with the entities fixed.

  Args:
    before: relations that meet the rules with these entities, [R, p]; None if
      unknown.

  Returns:
    Relations, [R, p].
  """
  nodes = constraints.model.nodes(params.relations)
  value, weight = projections.tied(
    nodes,
    constraints.class_of,
    constraints.factor,
    nodes.shape[0],
    constraints.floor,
  )
  rows, planes = _relation_system(constraints, params, nodes.shape[1])
  if rows.index.shape[0] + planes.index.shape[0]:
    weight = jnp.where(weight > 0, weight, 1)
    value, _ = projections.polyhedron(value, weight, rows, planes)
    value = projections.lower_first(
      value,
      rows_of(constraints.order, jnp.zeros_like(nodes[:1])),
      constraints.margin,
    )
    if before is not None:
      old = _class_values(constraints, before)
      value = _draw_back(value, old, rows, planes)
  nodes = constraints.factor[:, None] * value[constraints.class_of]
  return constraints.model.relations(nodes)


def project_rows(constraints: Constraints, rows: jax.Array) -> jax.Array:
  """Projects entities onto the region of all entities.

  The projection clips to a box or orthant and shrinks to a ball around 0; no
  rule set needs both. A ball around another point is intersected with the
  orthant. `model.ordered` may limit the clipped dimensions.

  Args:
    constraints: the compiled rules.
    rows: entities, [n, d].

  Returns:
    Entities, [n, d].
  """
  if constraints.region is None:
    return rows
  lower, upper, radius, center = constraints.region
  if center is not None:
    middle = jnp.full(rows.shape[-1:], center, rows.dtype)
    project = functools.partial(
      projections.orthant_ball,
      center=middle,
      radius=center * jnp.sqrt(jnp.asarray(rows.shape[-1], rows.dtype)),
    )
    return jax.vmap(project)(rows)
  inside = jnp.clip(rows, lower, upper)
  if constraints.model.ordered is None:
    rows = inside
  else:
    rows = jnp.where(constraints.model.ordered(rows.shape[-1]), inside, rows)
  norm2 = jnp.sum(rows * rows, axis=-1, keepdims=True)
  shrink = radius * jax.lax.rsqrt(jnp.maximum(norm2, radius**2))
  return jnp.where(norm2 > radius**2, rows * shrink, rows)


def project_named(
  constraints: Constraints,
  params: scores.Params,
  before: jax.Array | None = None,
) -> jax.Array:
  """Projects the entities that rules name.

  Args:
    before: entities that meet the rules with these relations, [E, d]; None if
      unknown.

  Returns:
    Entities with the named rows replaced by their joint projection, [E, d].
  """
  if not constraints.named.shape[0]:
    return params.entities
  rows, planes = _entity_system(constraints, params)
  named = params.entities[constraints.named]
  named, _ = projections.polyhedron(
    named, jnp.ones(named.shape[0], named.dtype), rows, planes
  )
  named = project_rows(constraints, named)
  if before is not None:
    named = _draw_back(named, before[constraints.named], rows, planes)
  return params.entities.at[constraints.named].set(named)


def violation(constraints: Constraints, params: scores.Params) -> jax.Array:
  """Largest violation of a condition by a relation or an entity.

  >>> import jax
  >>> from repr_jax import kb
  >>> constraints = kb.compile_rules("A", ["Symm(r)"], ["r"], 3)
  >>> params = kb.init_params("A", jax.random.key(0), 3, 1, 4)
  >>> print(kb.violation(constraints, params) > 0.01)
  True
  >>> print(kb.violation(constraints, kb.project(constraints, params)))
  0.0

  Args:
    constraints: the compiled rules.
    params: entities [E, d] and relations [R, p].

  Returns:
    max over conditions g(params) <= 0 of max(g, 0), scalar; NaN where a table
    is not finite.
  """
  nodes = constraints.model.nodes(params.relations)
  value, _ = projections.tied(
    nodes, constraints.class_of, constraints.factor, nodes.shape[0]
  )
  tied = constraints.factor[:, None] * value[constraints.class_of]
  worst = jnp.max(jnp.abs(tied - nodes)).astype(nodes.dtype)
  if constraints.floor is not None:
    short = constraints.floor - jnp.linalg.norm(value, axis=1)
    worst = jnp.maximum(worst, jnp.max(short))
  system = _relation_system(constraints, params, nodes.shape[1])
  worst = jnp.maximum(worst, projections.violation(value, *system))
  if constraints.named.shape[0]:
    system = _entity_system(constraints, params)
    named = params.entities[constraints.named]
    worst = jnp.maximum(worst, projections.violation(named, *system))
  if constraints.region is not None:
    outside = params.entities - project_rows(constraints, params.entities)
    worst = jnp.maximum(worst, jnp.max(jnp.abs(outside)))
  # A compiled maximum of many numbers may drop a NaN.
  finite = [jnp.isfinite(table).all() for table in params]
  return jnp.where(finite[0] & finite[1], worst, jnp.nan)


def project_step(
  constraints: Constraints, params: scores.Params, before: scores.Params
) -> scores.Params:
  """Both projections after a step that has moved both tables.

  Args:
    constraints: the compiled rules.
    params: the tables after the step, with entities in the region.
    before: the tables before it, which meet the rules.

  Returns:
    Tables that meet the rules.
  """
  relations = project_relations(
    constraints,
    scores.Params(before.entities, params.relations),
    before.relations,
  )
  params = params._replace(relations=relations)
  entities = project_named(constraints, params, before.entities)
  return params._replace(entities=entities)


def project(constraints: Constraints, params: scores.Params) -> scores.Params:
  """Projects tables onto the set that the rules define (thesis algorithm 2).

  Finds the nearest relations for the given entities, then the nearest named
  entities for these relations. Bilinear conditions may need several rounds;
  `checked_start` runs them.

  >>> import jax
  >>> from repr_jax import kb
  >>> constraints = kb.compile_rules("B", ["RelImp(r, s)"], ["r", "s"], 3)
  >>> params = kb.init_params("B", jax.random.key(0), 3, 2, 4)
  >>> projected = kb.project(constraints, params)
  >>> print((projected.relations[0] <= projected.relations[1] + 1e-6).all())
  True

  Args:
    constraints: the compiled rules.
    params: any tables.

  Returns:
    The tables.
  """
  entities = project_rows(constraints, params.entities)
  params = params._replace(entities=entities)
  relations = project_relations(constraints, params)
  params = params._replace(relations=relations)
  return params._replace(entities=project_named(constraints, params))


def _draw_back(new, old, rows, planes):
  """The feasible point nearest to `new` on the segment from `old`.

  Violations are convex, so linear interpolation bounds them on the segment.
  """
  there = projections.violation(new, rows, planes)
  here = projections.violation(old, rows, planes)
  way = jnp.where(there > here, there - here, 1)
  share = jnp.clip((TOLERANCE - here) / way, 0, 1)
  near = old + share * (new - old)
  return jnp.where(there <= jnp.maximum(TOLERANCE, here), new, near)


def _class_values(constraints, relations):
  nodes = constraints.model.nodes(relations)
  return projections.tied(
    nodes, constraints.class_of, constraints.factor, nodes.shape[0]
  )[0]


@exact_products
def rows_of(system: System, fixed: jax.Array) -> projections.Rows:
  """Rows over the free vectors; the fixed ones are moved into the bound.

  Args:
    fixed: vectors held fixed, [f, d].

  Returns:
    The rows that `projections.polyhedron` takes.
  """
  rest = jnp.einsum("ml,mld->md", system.other_coef, fixed[system.other])
  bound = system.bound[:, None] - rest
  return projections.Rows(
    jnp.asarray(system.index), jnp.asarray(system.coef), bound
  )


def _relation_system(constraints, params, width):
  named = params.entities[constraints.named]
  if not named.shape[0]:
    named = jnp.zeros((1, width), params.entities.dtype)
  normal = constraints.plane_coef[..., None] * named[constraints.plane_named]
  planes = projections.Planes(
    jnp.asarray(constraints.plane_class),
    normal,
    jnp.zeros(normal.shape[0], normal.dtype),
  )
  return rows_of(constraints.relation_rows, named), planes


def _entity_system(constraints, params):
  value = _class_values(constraints, params.relations)
  normal = constraints.plane_coef[..., None] * value[constraints.plane_class]
  planes = projections.Planes(
    jnp.asarray(constraints.plane_named),
    normal,
    jnp.zeros(normal.shape[0], normal.dtype),
  )
  return rows_of(constraints.entity_rows, value), planes

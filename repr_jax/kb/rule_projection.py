"""Projections of a knowledge base onto what its rules allow.

Bilinear conditions are halfspaces in the relations for fixed entities and in
the entities for fixed relations, so each step projects one of the two tables
with the other held still: first the relations with the named entities as they
were before the step, then the named entities with the new relations. A state
that meets the conditions leaves both sets nonempty, so the conditions hold in
every state from the first. Where a set is so thin that the projection has not
come near enough to it, its answer is drawn back towards the state before the
step, which lies in the set, as far as is needed.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from repr_jax import errors
from repr_jax.data import rules as rule_files
from repr_jax.kb import rule_compiler as kb_constraints
from repr_jax.kb import rule_kinds, scores
from repr_jax.kb.rule_compiler import Constraints, System
from repr_jax.ops import projections

# What a step may leave of a condition unmet, and what a start may.
_TOLERANCE = 1e-6
_START_TOLERANCE = 1e-5


class Start(NamedTuple):
  """A first state and the largest violation left in it, scalar."""

  params: scores.Params
  residual: jax.Array


def project_relations(
  model: str,
  constraints: Constraints,
  params: scores.Params,
  before: jax.Array | None = None,
) -> jax.Array:
  """Nearest relations that meet the rules, for the entities as they are.

  Args:
    model: one of `kb.scores.SCORES`.
    constraints: the compiled rules.
    params: the tables.
    before: relations that meet the rules with these entities, [R, p]; None
      where none are known.

  Returns:
    Relations, [R, p].
  """
  nodes = _nodes(model, params.relations)
  value, weight = projections.tied(
    nodes,
    constraints.class_of,
    constraints.factor,
    nodes.shape[0],
    constraints.floor if model == "T" else None,
  )
  rows, planes = _relation_system(constraints, params, nodes.shape[1])
  if rows.index.shape[0] + planes.index.shape[0]:
    weight = jnp.where(weight > 0, weight, 1)
    value, _ = projections.polyhedron(value, weight, rows, planes)
    value = projections.lower_first(
      value, _rows(constraints.order, jnp.zeros((1, nodes.shape[1])))
    )
    if before is not None:
      old = _class_values(model, constraints, before)
      value = _draw_back(value, old, rows, planes)
  nodes = constraints.factor[:, None] * value[constraints.class_of]
  return _from_nodes(model, nodes)


def project_rows(constraints: Constraints, rows: jax.Array) -> jax.Array:
  """Nearest entities of the region that all entities live in.

  Orthant, box and ball come one at a time, never together with the ball, so
  clipping and then shrinking is the projection.

  Args:
    constraints: the compiled rules.
    rows: entities, [n, d].

  Returns:
    Entities, [n, d].
  """
  if constraints.region is None:
    return rows
  lower, upper, radius = constraints.region
  rows = jnp.clip(rows, lower, upper)
  norm2 = jnp.sum(rows * rows, axis=-1, keepdims=True)
  shrink = radius * jax.lax.rsqrt(jnp.maximum(norm2, radius**2))
  return jnp.where(norm2 > radius**2, rows * shrink, rows)


def project_named(
  model: str,
  constraints: Constraints,
  params: scores.Params,
  before: jax.Array | None = None,
) -> jax.Array:
  """Puts the entities that rules name where the rules allow.

  Args:
    model: one of `kb.scores.SCORES`.
    constraints: the compiled rules.
    params: the tables.
    before: entities that meet the rules with these relations, [E, d]; None
      where none are known.

  Returns:
    Entities with the named rows replaced by their joint projection, [E, d].
  """
  if not constraints.named.shape[0]:
    return params.entities
  rows, planes = _entity_system(model, constraints, params)
  named = params.entities[constraints.named]
  named, _ = projections.polyhedron(
    named, jnp.ones(named.shape[0], named.dtype), rows, planes
  )
  named = project_rows(constraints, named)
  if before is not None:
    named = _draw_back(named, before[constraints.named], rows, planes)
  return params.entities.at[constraints.named].set(named)


def feasible_start(
  model: str,
  constraints: Constraints,
  params: scores.Params,
  max_rounds: int = 50,
  tolerance: float = _TOLERANCE,
) -> Start:
  """Moves random tables to where the rules hold.

  Each turn meets the linear conditions for relations and named entities at
  once, where they are convex, and then the bilinear ones table by table.

  Args:
    model: one of `kb.scores.SCORES`.
    constraints: the compiled rules.
    params: any tables.
    max_rounds: turns at most.
    tolerance: violation to stop at.

  Returns:
    The tables and the violation left.
  """
  entities = project_rows(constraints, params.entities)

  def turn(carry):
    params, _, count = carry
    params = _meet_linear(model, constraints, params)
    params = params._replace(entities=project_named(model, constraints, params))
    relations = project_relations(model, constraints, params)
    params = params._replace(relations=relations)
    return params, residual(model, constraints, params), count + 1

  def unfinished(carry):
    return (carry[1] > tolerance) & (carry[2] < max_rounds)

  first = (
    params._replace(entities=entities),
    jnp.asarray(jnp.inf, entities.dtype),
    0,
  )
  params, left, _ = jax.lax.while_loop(unfinished, turn, first)
  return Start(params, left)


def checked_start(
  model: str,
  rules: Sequence[rule_files.Rule],
  relations: Sequence[str],
  entities: Sequence[str],
  constraints: Constraints,
  params: scores.Params,
  settings: rule_kinds.Settings | None = None,
) -> scores.Params:
  """A start in which the rules hold, or an error that names those at fault.

  Args:
    model: one of `kb.scores.SCORES`.
    rules: the rules that were compiled.
    relations: names of the relations in the order of their ids.
    entities: names of the entities in the order of their ids.
    constraints: the compiled rules.
    params: any finite tables.
    settings: as for `compile_rules`.

  Returns:
    The tables.
  """
  scores.check_tables(params)
  start = _found_start(model, constraints, params)
  if start is not None:
    scores.check_tables(start)
    return start
  count = params.entities.shape[0]
  small = scores.init_params(
    model, jax.random.key(0), count, len(relations), 4, 1.0
  )

  def possible(kept):
    some = [rules[i] for i in kept]
    compiled = kb_constraints.compile_rules(
      model, some, relations, entities, settings
    )
    return _found_start(model, compiled, small) is not None

  raise errors.InputError(
    f"model {model}: found no vectors that meet these rules together: "
    f"{kb_constraints.conflict(rules, possible)}; leave one out"
  )


def _found_start(model, constraints, params):
  """The first of three starts that comes to meet the rules, or None.

  Bilinear conditions are not convex in both tables at once, and turns from a
  random place may end between their parts. All relations far down, with named
  entities at 0 or at the upper end of the box, meet many of them at once.
  """
  upper = 1.0
  if constraints.region is not None:
    upper = float(jnp.minimum(constraints.region.upper, upper))
  down = -upper - jnp.abs(params.relations)
  starts = [params]
  if constraints.plane_coef.shape[0]:
    starts += [
      scores.Params(params.entities.at[constraints.named].set(end), down)
      for end in (0.0, upper)
    ]
  for start in starts:
    found, left = _start(model, constraints, start)
    if left < _START_TOLERANCE:
      return found
  return None


def residual(
  model: str, constraints: Constraints, params: scores.Params
) -> jax.Array:
  """Largest violation of a condition on relations or named entities.

  Args:
    model: one of `kb.scores.SCORES`.
    constraints: the compiled rules.
    params: the tables.

  Returns:
    The violation, scalar.
  """
  nodes = _nodes(model, params.relations)
  value, _ = projections.tied(
    nodes, constraints.class_of, constraints.factor, nodes.shape[0]
  )
  tied = constraints.factor[:, None] * value[constraints.class_of]
  worst = jnp.max(jnp.abs(tied - nodes))
  system = _relation_system(constraints, params, nodes.shape[1])
  worst = jnp.maximum(worst, projections.violation(value, *system))
  if constraints.named.shape[0]:
    system = _entity_system(model, constraints, params)
    named = params.entities[constraints.named]
    worst = jnp.maximum(worst, projections.violation(named, *system))
  return worst


def project_step(
  model: str,
  constraints: Constraints,
  params: scores.Params,
  before: scores.Params,
) -> scores.Params:
  """Both projections after a step that has moved both tables.

  Args:
    model: one of `kb.scores.SCORES`.
    constraints: the compiled rules.
    params: the tables after the step; entities of the region.
    before: the tables before it, which meet the rules.

  Returns:
    Tables that meet the rules.
  """
  relations = project_relations(
    model,
    constraints,
    scores.Params(before.entities, params.relations),
    before.relations,
  )
  params = params._replace(relations=relations)
  entities = project_named(model, constraints, params, before.entities)
  return params._replace(entities=entities)


def project_tables(
  model: str, constraints: Constraints, params: scores.Params
) -> scores.Params:
  """Both projections over whole tables of which nothing is known.

  Rules with bilinear conditions may need more turns than one: `checked_start`
  takes them.

  Args:
    model: one of `kb.scores.SCORES`.
    constraints: the compiled rules.
    params: any tables.

  Returns:
    The tables.
  """
  entities = project_rows(constraints, params.entities)
  params = params._replace(entities=entities)
  relations = project_relations(model, constraints, params)
  params = params._replace(relations=relations)
  return params._replace(entities=project_named(model, constraints, params))


def _draw_back(new, old, rows, planes):
  """The point nearest to `new` on the way from `old` that is near enough.

  Violations are convex: a share of the way has at most that share of them.
  """
  there = projections.violation(new, rows, planes)
  here = projections.violation(old, rows, planes)
  way = jnp.where(there > here, there - here, 1)
  share = jnp.clip((_TOLERANCE - here) / way, 0, 1)
  near = old + share * (new - old)
  return jnp.where(there <= jnp.maximum(_TOLERANCE, here), new, near)


def _meet_linear(model, constraints, params):
  """Projects classes and named entities onto the linear rows together."""
  count = constraints.named.shape[0]
  if not count:
    return params
  nodes = _nodes(model, params.relations)
  value, weight = projections.tied(
    nodes, constraints.class_of, constraints.factor, nodes.shape[0]
  )
  both = jnp.concatenate([value, params.entities[constraints.named]])
  weight = jnp.concatenate(
    [jnp.where(weight > 0, weight, 1), jnp.ones(count, weight.dtype)]
  )
  none = projections.Planes(
    jnp.zeros((0, 2), jnp.int32),
    jnp.zeros((0, 2, both.shape[1]), both.dtype),
    jnp.zeros(0, both.dtype),
  )
  rows = _rows(constraints.joint_rows, jnp.zeros_like(both[:1]))
  both, _ = projections.polyhedron(both, weight, rows, none)
  nodes = constraints.factor[:, None] * both[constraints.class_of]
  entities = params.entities.at[constraints.named].set(both[-count:])
  return scores.Params(entities, _from_nodes(model, nodes))


_start = functools.partial(jax.jit, static_argnums=0)(feasible_start)


def _nodes(model: str, relations: jax.Array) -> jax.Array:
  """Relations [R, p] as the rows that conditions speak of."""
  if model in ("T", "distmult"):
    return relations
  if model != "R":
    return relations.reshape(2 * relations.shape[0], -1)
  matrices = _matrices(relations)
  both = jnp.stack([matrices, matrices.swapaxes(1, 2)], axis=1)
  return both.reshape(2 * relations.shape[0], -1)


def _from_nodes(model: str, nodes: jax.Array) -> jax.Array:
  if model in ("T", "distmult"):
    return nodes
  if model != "R":
    return nodes.reshape(nodes.shape[0] // 2, -1)
  # The transposes moved as the matrices did: the conditions are the same
  # when all matrices are transposed, so the projection is too.
  return nodes[::2]


def _matrices(relations):
  dim = round(relations.shape[1] ** 0.5)
  return relations.reshape(-1, dim, dim)


def _class_values(model, constraints, relations):
  nodes = _nodes(model, relations)
  return projections.tied(
    nodes, constraints.class_of, constraints.factor, nodes.shape[0]
  )[0]


def _rows(system: System, fixed: jax.Array) -> projections.Rows:
  """Rows over the free vectors, with the fixed ones [f, d] moved right."""
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
  return _rows(constraints.relation_rows, named), planes


def _entity_system(model, constraints, params):
  value = _class_values(model, constraints, params.relations)
  normal = constraints.plane_coef[..., None] * value[constraints.plane_class]
  planes = projections.Planes(
    jnp.asarray(constraints.plane_named),
    normal,
    jnp.zeros(normal.shape[0], normal.dtype),
  )
  return _rows(constraints.entity_rows, value), planes

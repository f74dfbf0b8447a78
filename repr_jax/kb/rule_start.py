"""Starts of training: tables that meet the rules."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from repr_jax import errors
from repr_jax.data.rules import Rule
from repr_jax.kb import rule_compiler, rule_projection, rule_set, scores
from repr_jax.kb.condition_forms import RuleConfig
from repr_jax.kb.rule_compiler import Constraints
from repr_jax.kb.score_model import ScoreModel
from repr_jax.kb.score_models import get_model
from repr_jax.ops import projections

# Violation that a start may have.
_START_TOLERANCE = 1e-5


class Start(NamedTuple):
  """A first state and the largest violation left in it, scalar."""

  params: scores.Params
  residual: jax.Array


def feasible_start(
  constraints: Constraints,
  params: scores.Params,
  max_rounds: int = 200,
  tolerance: float = rule_projection.TOLERANCE,
) -> Start:
  """Moves any tables into the set in which the rules hold.

  Each round meets the linear conditions for relations and named entities at
  once, where they are convex, and then the bilinear ones table by table.
  Bilinear conditions are not convex in both tables at once, so rounds from a
  random start may end with some of them violated. Strongly negative relations,
  with named entities at 0 or at the upper end of the box, meet many of them at
  once: up to three starts are tried.

  Args:
    max_rounds: rounds of each start at most.
    tolerance: violation to stop at.

  Returns:
    The tables and the violation left.
  """
  if not constraints.plane_coef.shape[0]:
    return _approach(constraints, params, max_rounds, tolerance)
  upper = jnp.ones((), params.entities.dtype)
  if constraints.region is not None:
    upper = jnp.minimum(constraints.region.upper, upper)
    if constraints.region.center is not None:
      upper = 2 * constraints.region.center
  upper = upper.astype(params.entities.dtype)
  down = -upper - jnp.abs(params.relations)

  def attempt(carry):
    count, _ = carry
    end = jnp.where(count == 1, 0, upper)
    moved = params.entities.at[constraints.named].set(end)
    first = scores.Params(
      jnp.where(count == 0, params.entities, moved),
      jnp.where(count == 0, params.relations, down),
    )
    return count + 1, _approach(constraints, first, max_rounds, tolerance)

  def failed(carry):
    return (carry[0] < 3) & ~(carry[1].residual < _START_TOLERANCE)

  nowhere = Start(params, jnp.asarray(jnp.inf, params.entities.dtype))
  return jax.lax.while_loop(failed, attempt, (0, nowhere))[1]


_feasible_start = jax.jit(feasible_start)


def _approach(constraints, params, max_rounds, tolerance):
  """One start of `feasible_start`."""
  entities = rule_projection.project_rows(constraints, params.entities)

  def turn(carry):
    params, _, count = carry
    params = _meet_linear(constraints, params)
    params = params._replace(
      entities=rule_projection.project_named(constraints, params)
    )
    relations = rule_projection.project_relations(constraints, params)
    params = params._replace(relations=relations)
    return params, rule_projection.violation(constraints, params), count + 1

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
  constraints: Constraints,
  params: scores.Params,
  rules: Sequence[Rule | str],
  relations: rule_set.Names,
  entities: rule_set.Names,
  config: RuleConfig | None = None,
) -> scores.Params:
  """A start in which the rules hold; the error names rules that conflict.

  >>> import jax
  >>> from repr_jax import kb
  >>> named = ["RelImp(r, s)"], ["r", "s"], ["a", "b", "c"]
  >>> constraints = kb.compile_rules("A", *named)
  >>> params = kb.init_params("A", jax.random.key(0), 3, 2, 4)
  >>> start = kb.checked_start(constraints, params, *named)
  >>> print(kb.violation(constraints, start) < 1e-5)
  True

  Args:
    constraints: the compiled rules.
    params: any finite tables.
    rules: the rules that were compiled.
    relations: as for `compile_rules`.
    entities: as for `compile_rules`.
    config: as for `compile_rules`.

  Returns:
    The tables.
  """
  scores.check_tables(params)
  start, left = _feasible_start(constraints, params)
  if left < _START_TOLERANCE:
    scores.check_tables(start)
    return start
  model = constraints.model
  counts = params.entities.shape[0], params.relations.shape[0]
  small = scores.init_params(model, jax.random.key(0), *counts, 4, 1.0)
  rules = rule_set.parse_rules(rules, relations, entities)

  def possible(kept):
    some = [rules[i] for i in kept]
    compiled = rule_compiler.compile_rules(
      model, some, relations, entities, config
    )
    return _feasible_start(compiled, small).residual < _START_TOLERANCE

  raise errors.InputError(
    f"model {model.name}: no vectors were found that meet these rules "
    f"together: {rule_compiler.conflict(rules, possible)}; leave one out"
  )


def start_params(
  config: Any,
  constraints: Constraints | None,
  key: jax.Array,
  scale: jax.Array | float,
) -> scores.Params:
  """Random tables, moved to where the rules hold.

  Args:
    config: has num_entities, num_relations, model, dim and dtype.
    constraints: compiled rules, or None for none.
    scale: standard deviation of the numbers before projection, scalar.
  """
  check_model(config.model, constraints)
  params = scores.init_params(
    config.model,
    key,
    config.num_entities,
    config.num_relations,
    config.dim,
    jnp.asarray(scale, config.dtype),
    config.dtype,
  )
  if constraints is None:
    return params
  return feasible_start(constraints, params).params


def check_model(
  model: ScoreModel | str, constraints: Constraints | None
) -> None:
  """Raises `InputError` where rules were compiled for another model."""
  if constraints is not None and constraints.model is not get_model(model):
    raise errors.InputError(
      f"the rules were compiled for model {constraints.model.name}, not for "
      f"{get_model(model).name}"
    )


def _meet_linear(constraints, params):
  """Projects classes and named entities onto the linear rows together."""
  count = constraints.named.shape[0]
  if not count:
    return params
  nodes = constraints.model.nodes(params.relations)
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
  rows = rule_projection.rows_of(
    constraints.joint_rows, jnp.zeros_like(both[:1])
  )
  both, _ = projections.polyhedron(both, weight, rows, none)
  nodes = constraints.factor[:, None] * both[constraints.class_of]
  entities = params.entities.at[constraints.named].set(both[-count:])
  return scores.Params(entities, constraints.model.relations(nodes))

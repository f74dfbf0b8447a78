"""Starts that meet the rules, one and many at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import kb
from repr_jax.errors import InputError
from repr_jax.kb import rule_start

_RULES = ["PropTrans(0, 1, 0, 2, 1)", "Entail_A(1, 0, 2, 3)", "RelImp(2, 1)"]


def _tables(seed):
  return kb.init_params("B", jax.random.key(seed), 5, 3, 4, 1.0)


def test_starts_meet_the_rules_under_vmap_too():
  constraints = kb.compile_rules("B", _RULES, 3, 5)
  many = jax.tree.map(lambda *x: jnp.stack(x), *map(_tables, range(3)))
  start = jax.jit(jax.vmap(rule_start.feasible_start, (None, 0)))
  params, left = start(constraints, many)
  assert left.max() < 1e-5
  for i in range(3):
    alone = rule_start.checked_start(constraints, _tables(i), _RULES, 3, 5)
    assert kb.violation(constraints, alone) < 1e-5
    np.testing.assert_allclose(params.entities[i], alone.entities, atol=1e-4)


def test_a_second_start_is_tried_where_the_first_fails():
  """Relations far down meet bilinear conditions that a random place fails."""
  constraints = kb.compile_rules("B", _RULES, 3, 5)
  bad = kb.Params(jnp.full((5, 4), 50.0), jnp.full((3, 8), 50.0))
  assert rule_start.feasible_start(constraints, bad).residual < 1e-5


def test_rules_of_another_model_are_refused():
  constraints = kb.compile_rules("A", _RULES, 3, 5)
  with pytest.raises(InputError, match="compiled for model A, not for B"):
    rule_start.check_model("B", constraints)

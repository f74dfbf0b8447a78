"""Projections onto rules: closed forms, nearest points, and no violation."""

import jax
import numpy as np
import pytest

from repr_jax import kb
from repr_jax.kb import rule_projection

_RULES = ["RelImp(r, s)", "RevImp(s, t)", "Symm(u)"]
_NAMES = ["r", "s", "t", "u"]
_project_relations = jax.jit(rule_projection.project_relations)
_project_rows = jax.jit(rule_projection.project_rows)
_project_step = jax.jit(rule_projection.project_step)


def _params(model, seed=0):
  return kb.init_params(model, jax.random.key(seed), 6, 4, 4, 0.5)


def test_an_implication_averages_what_is_out_of_order():
  """Of r <= s the nearest point is the mean, where r > s."""
  rules = kb.compile_rules("B", ["RelImp(r, s)"], ["r", "s"], 6)
  params = kb.init_params("B", jax.random.key(1), 6, 2, 4, 0.5)
  got = np.asarray(_project_relations(rules, params))
  r, s = np.asarray(params.relations, np.float64)
  mean = (r + s) / 2
  np.testing.assert_allclose(got[0], np.where(r > s, mean, r), atol=1e-6)
  np.testing.assert_allclose(got[1], np.where(r > s, mean, s), atol=1e-6)


@pytest.mark.parametrize("model", ["A", "B", "complex"])
def test_a_projection_is_nearest_and_stays(model):
  rules = kb.compile_rules(model, _RULES, _NAMES, 6)
  params = _params(model)
  once = kb.project(rules, params)
  again = kb.project(rules, once)
  np.testing.assert_allclose(again.relations, once.relations, atol=1e-5)
  assert float(kb.violation(rules, once)) <= 1e-6
  assert float(kb.violation(rules, params)) > 1e-3
  # No other table that meets the rules is nearer, for the same entities.
  fixed = np.asarray(
    _project_relations(rules, params._replace(entities=once.entities))
  )
  distance = np.linalg.norm(fixed - params.relations)
  for seed in range(1, 6):
    other = kb.project(rules, _params(model, seed)).relations
    for share in (0.05, 0.5, 1.0):
      between = fixed + share * (np.asarray(other) - fixed)
      away = np.linalg.norm(between - params.relations)
      assert away >= distance - 1e-5


def test_entities_go_to_the_nearest_of_their_region():
  rules = kb.compile_rules("B", ["RelImp(r, s)"], ["r", "s"], 6)
  rows = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
  got = np.asarray(_project_rows(rules, rows))
  lower, upper, radius = (float(x) for x in rules.region[:3])
  clipped = np.clip(rows, lower, upper)
  norm = np.linalg.norm(clipped, axis=1, keepdims=True)
  expected = clipped * np.minimum(1, radius / norm)
  np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_step_from_a_state_that_meets_the_rules_meets_them():
  rules = kb.compile_rules("B", _RULES, _NAMES, 6)
  before = kb.project(rules, _params("B"))
  before = before._replace(entities=_project_rows(rules, before.entities))
  step = _params("B", 3)
  moved = step._replace(entities=_project_rows(rules, step.entities))
  after = _project_step(rules, moved, before)
  assert float(kb.violation(rules, after)) <= rule_projection.TOLERANCE

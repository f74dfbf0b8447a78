"""Numbers of the conditions of rules, and the bound of a product."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import errors, kb
from repr_jax.kb import condition_forms, rule_projection

_project_rows = jax.jit(rule_projection.project_rows)


@pytest.mark.parametrize(
  "values",
  [
    {"mixing": 1.0},
    {"cap": 0.0},
    {"radius": 0.25},
    {"slack": -1.0},
    {"region": "cone"},
  ],
)
def test_numbers_outside_their_range_are_refused(values):
  with pytest.raises(errors.InputError):
    condition_forms.RuleConfig(**values)


def test_the_box_of_b_decides_at_its_corners():
  """<x, y> <= <x, a> + <y, b> on [0, m]^d if and only if the rows hold."""
  rng = np.random.default_rng(0)
  cap, agree = 0.7, 0
  for _ in range(300):
    a, b = rng.uniform(-0.3, 1, 2)
    rows = condition_forms.bound_product(
      ([(1.0, "a")], []), ([(1.0, "b")], []), cap
    )
    value = {"a": a, "b": b}
    met = all(
      sum(factor * value[name] for factor, name in nodes) <= bound + 1e-12
      for nodes, _, bound in rows
    )
    x, y = cap * rng.uniform(size=(2, 2000))
    x[:4], y[:4] = cap * np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    holds = np.all(x * y <= a * x + b * y + 1e-12)
    assert met == holds
    agree += met
  assert 20 < agree < 280


def test_the_ball_of_b_holds_the_box_and_bounds_products():
  rng = np.random.default_rng(1)
  config = kb.RuleConfig(cap=0.7, region="ball")
  rules = ["TypeImp(r, e, s)"]
  compiled = kb.compile_rules("B", rules, ["r", "s"], ["e", "f"], config)
  inside = 0.7 * rng.integers(2, size=(8, 5)).astype(np.float32)
  projected = _project_rows(compiled, jnp.asarray(inside))
  np.testing.assert_allclose(projected, inside, atol=1e-6)
  far = rng.normal(size=(200, 5)).astype(np.float32) * 3
  x = np.asarray(_project_rows(compiled, jnp.asarray(far)))
  assert x.min() >= 0 and x.max() > 0.75
  sums = 0.35 * x.sum(axis=1)
  assert np.all(x @ x.T <= sums[:, None] + sums + 1e-5)


def test_numbers_of_translations():
  config = condition_forms.RuleConfig(radius=0.5)
  assert config.shrink == pytest.approx(1 / 3) and config.floor == 1.5


@pytest.mark.parametrize("model", ["A", "B", "R", "distmult", "complex"])
def test_slack_holds_one_way_rules_up_to_its_bound(model):
  config = kb.RuleConfig(cap=0.8, slack=0.3)
  rules = [kb.Rule("RelImp", (0, 1))]
  compiled = kb.compile_rules(model, rules, 2, 6, config)
  params = kb.init_params(model, jax.random.key(0), 6, 2, 4, 2.0)
  steps = jnp.array([[1.0], [-1.0]])
  params = params._replace(relations=0 * params.relations + steps)
  params = kb.checked_start(compiled, params, rules, 2, 6, config)
  assert params.entities.min() >= 0 and params.entities.max() <= 0.8
  (proof,) = kb.certify(model, params, rules, 2, 6)
  numbers = params.relations.shape[1]
  bound = config.violation_bound(numbers, model not in "AB")
  assert 0 < proof.bound <= bound + 1e-6
  # The slack is used: numbers of the antecedent lie above the consequent's.
  apart = params.relations[0] - params.relations[1]
  np.testing.assert_allclose(apart.max(), 0.3, atol=1e-5)
  exact = kb.compile_rules(model, rules, 2, 6)
  params = kb.checked_start(exact, params, rules, 2, 6)
  assert kb.certify(model, params, rules, 2, 6)[0].holds


def test_distances_have_no_slack():
  for model in ("C", "T"):
    with pytest.raises(errors.InputError, match="without slack"):
      kb.compile_rules(model, ["RelImp(0, 1)"], 2, 3, kb.RuleConfig(slack=0.1))

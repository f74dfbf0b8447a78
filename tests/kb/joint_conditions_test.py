"""Intersections and disjoint relations; why transitivity is not among them."""

import jax
import numpy as np
import pytest

from repr_jax import kb

_E, _D = 6, 4


def _projected(model, rule, seed=0, config=None):
  compiled = kb.compile_rules(model, [rule], 3, _E, config)
  params = kb.init_params(model, jax.random.key(seed), _E, 3, _D, 1.0)
  return kb.checked_start(compiled, params, [rule], 3, _E, config)


def _all(model, params, relation):
  row = params.relations[relation]
  return np.array(
    [[kb.score(model, row, x, y) for y in params.entities]
     for x in params.entities]
  )  # fmt: skip


@pytest.mark.parametrize(
  "model", ["A", "B", "R", "distmult", "complex", "blocks"]
)
def test_disjoint_relations_are_never_both_positive(model):
  params = _projected(model, kb.Rule("Disj", (0, 1)))
  first, second = _all(model, params, 0), _all(model, params, 1)
  assert (np.minimum(first, second) <= 1e-5).all()
  assert (first + second <= 1e-5).all()


@pytest.mark.parametrize(
  "model", ["B", "D", "R", "T", "T_L1", "complex", "blocks"]
)
def test_an_intersection_scores_at_least_the_lower_of_two(model):
  params = _projected(model, kb.Rule("Inter", (0, 1, 2)), 1)
  first, second, third = (_all(model, params, i) for i in range(3))
  assert (np.minimum(first, second) <= third + 1e-4).all()
  assert np.abs(params.relations).max() > 0.01


def test_distances_have_no_disjoint_relations():
  for model in ("C", "D", "T", "T_L1", "T_L2"):
    assert "Disj" not in kb.MODELS[model].conditions


def test_transitivity_leaves_nothing_of_a_relation():
  rule = kb.Rule("Path", (0, 0, 0))
  params = _projected("A", rule)
  np.testing.assert_allclose(params.relations[0], 0, atol=1e-5)
  # T: equal steps along the relation break it, and any step where it is 0.
  step = np.array([1.0, 0.0])
  for relation in (step, np.zeros(2)):
    one, two = (kb.score("T", relation, k * step, 0 * step) for k in (1, 2))
    assert two < one

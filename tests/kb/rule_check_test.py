"""Violations of rules, against loops over all pairs of entities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import kb
from repr_jax.errors import InputError
from repr_jax.kb import rule_check, rule_projection

_RELATIONS = ["r", "s"]


def _params(model="B", scale=0.5):
  return kb.init_params(model, jax.random.key(0), 7, 2, 4, scale)


def _score(params, r, e, f):
  return float(
    kb.score("B", params.relations[r], *params.entities[jnp.array([e, f])])
  )


def test_real_violations_equal_a_loop_over_pairs():
  params = _params()
  rules = ["RelImp(r, s)", "RevImp(s, r)", "Symm(r)"]
  checked = rule_check.check_rules("B", params, rules, _RELATIONS, 7)
  pairs = [(e, f) for e in range(7) for f in range(7)]
  gaps = [
    [_score(params, 0, e, f) - _score(params, 1, e, f) for e, f in pairs],
    [_score(params, 1, e, f) - _score(params, 0, f, e) for e, f in pairs],
    [_score(params, 0, e, f) - _score(params, 0, f, e) for e, f in pairs],
  ]
  np.testing.assert_allclose(checked.real, np.max(gaps, axis=1), rtol=1e-5)
  assert checked.worst == max(checked.real.max(), checked.sampled.max())


def test_projected_tables_violate_nothing_and_others_do():
  params = _params()
  rules = kb.compile_rules("B", ["RelImp(r, s)"], _RELATIONS, 7)
  arguments = (["RelImp(r, s)"], _RELATIONS, 7, rules)
  before = rule_check.check_rules("B", params, *arguments)
  after = rule_check.check_rules("B", kb.project(rules, params), *arguments)
  assert before.worst > 0.1 and after.worst <= 1e-6


@pytest.mark.parametrize("model", ["A", "B", "C", "T", "complex"])
def test_samples_lie_in_the_region(model):
  rules = kb.compile_rules(model, ["RelImp(r, s)"], _RELATIONS, 7)
  table = np.asarray(_params(model).entities, np.float64)
  drawn = rule_check.sample_entities(np.random.default_rng(0), 64, table, rules)
  assert drawn.shape == (64, 4)
  inside = kb.project(rules, _params(model)._replace(entities=drawn)).entities
  np.testing.assert_allclose(inside, drawn, atol=1e-6)


def test_samples_of_the_ball_lie_in_it():
  rules = kb.compile_rules(
    "B", ["TypeImp(r, 1, s)"], _RELATIONS, 7, kb.RuleConfig(region="ball")
  )
  table = np.asarray(_params().entities, np.float64)
  drawn = rule_check.sample_entities(np.random.default_rng(0), 64, table, rules)
  inside = rule_projection.project_rows(rules, jnp.asarray(drawn, jnp.float32))
  np.testing.assert_allclose(inside, drawn, atol=1e-5)


def test_a_table_that_is_not_finite_is_refused():
  params = _params()
  broken = params._replace(entities=params.entities.at[3, 0].set(np.nan))
  with pytest.raises(InputError, match="row 3"):
    rule_check.check_rules("B", broken, ["Symm(r)"], _RELATIONS, 7)

"""The guarantee of each rule, joint projections against cvxpy, conflicts."""

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers

from repr_jax import errors, kb
from repr_jax.data.rules import KINDS, Rule
from repr_jax.kb import (
  rule_check,
  rule_compiler,
  rule_projection,
  rule_start,
  scores,
)
from repr_jax.kb.condition_forms import RuleConfig
from repr_jax.kb.score_models import MODELS

RELATIONS = [f"r{i}" for i in range(5)]
ENTITIES = [f"e{i}" for i in range(6)]
CASES = [
  (name, kind) for name, model in MODELS.items() for kind in model.conditions
]


_start = jax.jit(rule_start.feasible_start)
_project = jax.jit(rule_projection.project_relations)


def _rule(kind, seed):
  """A rule of a kind about distinct random relations and entities."""
  rng = np.random.default_rng(seed)
  relations, entities = rng.permutation(RELATIONS), rng.permutation(ENTITIES)
  used = {"r": iter(relations), "e": iter(entities)}
  return Rule(kind, tuple(str(next(used[x])) for x in KINDS[kind].signature))


def _params(model, seed, dim=4):
  return kb.init_params(
    model, jax.random.key(seed), len(ENTITIES), len(RELATIONS), dim, scale=1.0
  )


def _check(model, params, rules, constraints):
  return rule_check.check_rules(
    model, params, rules, RELATIONS, ENTITIES, constraints, samples=2000
  )


# `certificates_test` proves the same for some starts in the everyday tier.
@pytest.mark.long
@pytest.mark.parametrize(("model", "kind"), CASES)
def test_each_rule_holds_on_its_whole_region(model, kind):
  for seed in range(3):
    rules = [_rule(kind, seed)]
    compiled = rule_compiler.compile_rules(model, rules, RELATIONS, ENTITIES)
    loose = _params(model, seed)
    params, residual = _start(compiled, loose)
    assert residual < 1e-5
    assert _check(model, params, rules, compiled).worst <= 1e-5


@pytest.mark.parametrize(("model", "kind"), tiers.some(CASES, 3))
def test_check_sees_violations_of_free_vectors(model, kind):
  worst = _check(model, _params(model, 0), [_rule(kind, 0)], None).worst
  if (model, kind) == ("distmult", "Symm"):
    assert worst <= 1e-12  # holds for any vectors
  else:
    assert worst > 0.01


@pytest.mark.parametrize("model", sorted(MODELS))
def test_many_rules_hold_together(model):
  kinds = [k for k in MODELS[model].conditions if model != "T"]
  if model == "B":  # no start is found for all ten on five relations
    kinds = [kind for kind in kinds if kind not in ("Inter", "Disj")]
  rules = [_rule(kind, 10 + i) for i, kind in enumerate(kinds)]
  if model == "T":
    rules = [
      Rule("RelImp", ("r0", "r1")),
      Rule("RelImp", ("r1", "r2")),
      Rule("RelImp", ("r0", "r2")),
      Rule("RevImp", ("r0", "r3")),
      Rule("Symm", ("r4",)),
    ]
  compiled = rule_compiler.compile_rules(model, rules, RELATIONS, ENTITIES)
  params, residual = _start(compiled, _params(model, 1))
  assert residual < 1e-5
  assert _check(model, params, rules, compiled).worst <= 1e-5


def _parts(model, x, relation):
  """The two halves, or the matrix and its transpose, of a cvxpy relation."""
  if model == "R":
    return x[relation], x[relation].T
  width = x[relation].shape[0] // 2
  return x[relation][:width], x[relation][width:]


def _oracle(model, rules, relations, entities, mutual=0):
  """The nearest relations by cvxpy; the first `mutual` rules by equality."""
  dim = entities.shape[1]
  shape = (dim, dim) if model == "R" else (relations.shape[1],)
  x = [cvxpy.Variable(shape) for _ in relations]
  targets = [r.reshape(shape) for r in np.asarray(relations)]
  limits = []

  def implies(a, b, place):
    if place < mutual:
      limits.append(a == b)
      return
    limits.append(a <= b)
    if model in ("C", "D"):
      limits.append(b <= -a)

  for place, rule in enumerate(rules):
    ids = [
      (RELATIONS if letter == "r" else ENTITIES).index(name)
      for name, letter in zip(rule.arguments, rule.kind.signature)
    ]
    if rule.kind.name == "Symm":
      first, second = _parts(model, x, ids[0])
      limits.append(first == second)
    elif rule.kind.name in ("RelImp", "RevImp"):
      first, second = _parts(model, x, ids[0])
      other = _parts(model, x, ids[1])[
        :: 1 if rule.kind.name == "RelImp" else -1
      ]
      implies(first, other[0], place)
      implies(second, other[1], place)
    else:
      side = 0 if rule.kind.name == "Entail_B" else 1
      (r, s), (e, f) = ids[::2], entities[ids[1::2]]
      near, other = _parts(model, x, r)[side], _parts(model, x, s)[side]
      far, beyond = _parts(model, x, r)[1 - side], _parts(model, x, s)[1 - side]
      if model == "B":
        limits.append(other >= near + e - f)
      else:
        implies(near, other, place)
      if model == "D":
        limits.append(near - other <= f - e)
      if model in ("A", "B"):
        limits.append(far @ e <= beyond @ f)
      else:
        limits += [far - e <= beyond - f, beyond + far <= e + f]
  loss = sum(cvxpy.sum_squares(a - b) for a, b in zip(x, targets))
  cvxpy.Problem(cvxpy.Minimize(loss), limits).solve(solver="CLARABEL")
  return np.stack([np.ravel(one.value) for one in x])


ORDER_RULES = [
  [("RelImp", 0, 1), ("RelImp", 1, 2), ("RelImp", 0, 3), ("RelImp", 3, 2)],
  [("RevImp", 0, 1), ("RelImp", 1, 2), ("Symm", 3), ("RelImp", 3, 0)],
  [("RelImp", 0, 1), ("RevImp", 2, 1), ("RevImp", 1, 3), ("RelImp", 3, 4)],
]
CIRCLES = [
  [("RevImp", 0, 1), ("RevImp", 1, 0), ("RelImp", 2, 0)],
  [("RelImp", 0, 1), ("RelImp", 1, 2), ("RelImp", 2, 0), ("RevImp", 2, 3)],
]


def _named(specs):
  return [Rule(kind, tuple(RELATIONS[i] for i in ids)) for kind, *ids in specs]


@pytest.mark.parametrize(
  ("case", "model"),
  tiers.some([(case, model) for case in range(5) for model in "ABRCD"], 3),
)
def test_shared_relations_are_projected_as_cvxpy_does(model, case):
  rules = _named((ORDER_RULES + CIRCLES)[case])
  compiled = rule_compiler.compile_rules(model, rules, RELATIONS, ENTITIES)
  params = _params(model, case, dim=3)
  got = _project(compiled, params)
  mutual = (0, 0, 0, 2, 3)[case]  # rules of a circle come first
  want = _oracle(
    model, rules, params.relations, np.asarray(params.entities), mutual
  )
  np.testing.assert_allclose(got, want, atol=1e-4)


@pytest.mark.parametrize(
  ("seed", "model"),
  tiers.some([(seed, model) for seed in range(2) for model in "ABCD"], 3),
)
def test_entailments_are_projected_as_cvxpy_does(model, seed):
  rules = [_rule("Entail_B", seed), _rule("Entail_A", seed + 5)]
  rules.append(_rule("RelImp", seed + 9))
  compiled = rule_compiler.compile_rules(model, rules, RELATIONS, ENTITIES)
  params = _start(compiled, _params(model, seed)).params
  noise = jax.random.normal(jax.random.key(seed), params.relations.shape)
  params = params._replace(relations=params.relations + noise)
  got = _project(compiled, params)
  want = _oracle(model, rules, params.relations, np.asarray(params.entities))
  np.testing.assert_allclose(got, want, atol=1e-4)


def test_order_projection_is_exactly_ordered():
  rules = _named(ORDER_RULES[0])
  compiled = rule_compiler.compile_rules("A", rules, RELATIONS, ENTITIES)
  got = np.asarray(_project(compiled, _params("A", 3)))
  for rule in rules:
    first, second = (got[RELATIONS.index(name)] for name in rule.arguments)
    assert np.all(first <= second + 1e-6)


def test_mutual_rules_are_their_mean():
  rules = _named([("RevImp", 0, 1), ("RevImp", 1, 0)])
  compiled = rule_compiler.compile_rules("B", rules, RELATIONS, ENTITIES)
  params = _params("B", 0)
  got = _project(compiled, params)
  r, s = params.relations[0], params.relations[1]
  mean = (r + jnp.roll(s, 4)) / 2
  np.testing.assert_allclose(got[0], mean, rtol=1e-6)
  np.testing.assert_array_equal(got[1], jnp.roll(got[0], 4))
  np.testing.assert_array_equal(got[2:], params.relations[2:])
  assert compiled.region is None  # equality needs no sign
  free = rule_compiler.compile_rules(
    "B", rules, RELATIONS, ENTITIES, nonnegative=True
  )
  assert free.region.lower == 0


def test_translations_are_tied_with_a_floor():
  rules = _named([("RelImp", 0, 1)])
  settings = RuleConfig(radius=0.5)
  compiled = rule_compiler.compile_rules(
    "T", rules, RELATIONS, ENTITIES, settings
  )
  params = scores.Params(jnp.ones((6, 4)), jnp.full((5, 4), 0.01))
  params = _start(compiled, params).params
  np.testing.assert_allclose(
    params.relations[1], params.relations[0] / 3, rtol=1e-6
  )
  assert np.linalg.norm(params.relations[0]) >= 1.5 - 1e-5
  assert np.linalg.norm(params.entities, axis=1).max() <= 0.5 + 1e-6


def test_bilinear_conflict_is_found():
  # With q = r1 = r2, PropTrans asks <q, e0> >= 0 and q <= -e0 / 2, so e0 = 0
  # and q <= 0; then a + b = -q / 2 with a = q / 2 >= 0 cannot reach 1 / 2.
  rules = [
    Rule("RelImp", ("r1", "r2")),
    Rule("PropTrans", ("r0", "r0", "e0", "r0", "e0")),
    Rule("Symm", ("r0",)),
  ]
  compiled = rule_compiler.compile_rules("B", rules, RELATIONS, ENTITIES)
  with pytest.raises(errors.InputError, match="together") as caught:
    rule_start.checked_start(
      compiled, _params("B", 0), rules, RELATIONS, ENTITIES
    )
  assert "RelImp" not in str(caught.value)
  for rule in rules[1:]:
    assert rule.kind.name in str(caught.value)


def test_missing_conditions_and_names_are_named():
  with pytest.raises(errors.InputError, match=r"C has no .* PropTrans.*A, B"):
    rule_compiler.compile_rules(
      "C", [_rule("PropTrans", 0)], RELATIONS, ENTITIES
    )
  with pytest.raises(errors.InputError, match="unknown relation 'zz'"):
    rule_compiler.compile_rules(
      "A", [Rule("Symm", ("zz",))], RELATIONS, ENTITIES
    )
  with pytest.raises(errors.InputError, match="unknown entity 'who'"):
    rule_compiler.compile_rules(
      "A", [Rule("Entail_B", ("r0", "who", "r0", "e1"))], RELATIONS, ENTITIES
    )

"""Certificates agree with scores, with enumeration and with the projection."""

import functools
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiers

from repr_jax import kb
from repr_jax.data import rules as rule_files
from repr_jax.data import triples
from repr_jax.errors import InputError
from repr_jax.kb import certificates
from repr_jax.ops import precision

_E, _D = 7, 4
_NAMES = ["r", "s", "t"]
_CASES = [
  (model, rule)
  for model in kb.MODELS
  for rule in ("RelImp(r, s)", "RevImp(r, s)", "Symm(r)")
] + [
  *((x, "Entail_B(r, 0, s, 1)") for x in ("A", "B", "C", "D", "T", "T_L1")),
  *((x, "Entail_A(r, 0, s, 1)") for x in ("A", "B", "C", "D", "T_L2")),
  *((x, "TypeImp(r, 2, s)") for x in "AB"),
  *((x, "PropTrans(r, s, 0, t, 1)") for x in "AB"),
  *((x, "Path(r, s, t)") for x in "AB"),
  *((x, "Inter(r, s, t)") for x in ("A", "R", "complex", "blocks", "T", "D")),
  *(
    (x, "Disj(r, s)") for x in ("A", "B", "R", "distmult", "complex", "blocks")
  ),
]


def _rule(text):
  kind, _, rest = text.partition("(")
  names = [x.strip() for x in rest.rstrip(")").split(",")]
  names = [int(x) if x.isdigit() else _NAMES.index(x) for x in names]
  return kb.Rule(kind, names)


def _params(model, seed=0, scale=1.0):
  params = kb.init_params(model, jax.random.key(seed), _E, 3, _D, scale)
  return kb.Params(*(np.asarray(x, np.float64) for x in params))


def _gaps(model, params, rule):
  """min(antecedents) - consequent for all entities, by the scores."""
  body, head = rule.kind.bind(rule.arguments)
  names = rule.kind.variables
  worst, where = -np.inf, None
  sign = 1 if rule.kind.negated else -1
  with precision.enable_x64(True):
    # All scores by one program, [relations, heads, tails].
    score = functools.partial(kb.score, model)
    for axes in ((None, None, 0), (None, 0, None), (0, None, None)):
      score = jax.vmap(score, axes)
    tables = map(jnp.asarray, (params.relations, params.entities))
    relations, entities = tables
    scores = np.asarray(score(relations, entities, entities))
    for chosen in np.ndindex(*[_E] * len(names)):
      given = dict(zip(names, chosen))

      def value(atom, given=given):
        ends = [given.get(x, x) for x in atom[1:]]
        return float(scores[(atom.relation, *ends)])

      gap = min(map(value, body)) + sign * value(head)
      if gap > worst:
        worst, where = gap, chosen
  return worst, where


@pytest.mark.parametrize(("model", "text"), tiers.some(_CASES, 2))
def test_bounds_are_those_of_all_pairs(model, text):
  rule, params = _rule(text), _params(model, 3)
  (proof,) = kb.certify(model, params, [rule], 3, _E)
  worst, where = _gaps(model, params, rule)
  assert proof.bound >= worst - 1e-9
  assert proof.holds == (proof.bound <= 0)
  assert proof.pairs == _E ** len(rule.kind.variables)
  if proof.worst is not None:
    assert not proof.holds
    if model != "T_L2":  # its gap is that of squares
      assert float(proof.gap) == pytest.approx(worst, abs=1e-9)
      assert float(proof.bound) == pytest.approx(worst, abs=1e-6)
    assert len(proof.worst) == len(where)


@pytest.mark.parametrize(("model", "text"), tiers.some(_CASES, 4))
def test_projected_tables_are_certified(model, text):
  rule = _rule(text)
  compiled = kb.compile_rules(model, [rule], 3, _E, kb.RuleConfig(0.8, 0.2))
  params = kb.init_params(model, jax.random.key(1), _E, 3, _D, 0.3)
  params = kb.checked_start(compiled, params, [rule], 3, _E)
  (proof,) = kb.certify(model, params, [rule], 3, _E)
  kinds = ("Rel", "Rev", "Sym", "Dis", "Int", "Pat")
  exact = text[:3] in kinds and model not in ("T", "T_L2")
  exact &= text[:3] != "Int" or model != "D"
  assert proof.bound <= (0 if exact else 1e-2 if model == "T_L2" else 1e-5)


@pytest.mark.parametrize("share", [0.25, 0.5])
@pytest.mark.parametrize("model", ["distmult", "complex", "blocks"])
def test_a_block_carries_the_order_and_the_rest_keeps_its_signs(model, share):
  block = kb.order_block(model, share)
  rules = [kb.Rule("RelImp", (0, 1)), kb.Rule("RevImp", (1, 2))]
  compiled = kb.compile_rules(block, rules, 3, _E)
  params = kb.init_params(block, jax.random.key(0), _E, 3, 8, 1.0)
  place = 7 if model == "distmult" else 3  # the last one, which is ordered
  steps = params.relations.at[:, place].set(jnp.array([0.0, 5.0, 9.0]))
  params = params._replace(relations=steps)
  kept = kb.checked_start(compiled, params, rules, 3, _E)
  mask = block.ordered(8)
  assert (kept.entities[:, mask] >= 0).all()
  np.testing.assert_array_equal(
    kept.entities[:, ~mask], params.entities[:, ~mask]
  )
  assert all(x.holds for x in kb.certify(block, kept, rules, 3, _E))
  assert kb.check_rules(block, kept, rules, 3, _E, compiled).worst < 1e-6
  # The order is not met by equality.
  np.testing.assert_array_equal(kept.relations[:, place], [0, 5, 9])
  # One number of one relation out of place is noticed.
  broken = kept.relations.at[0, place].add(9.0)
  moved = kept._replace(relations=broken)
  assert not kb.certify(block, moved, rules[:1], 3, _E)[0].holds


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize(
  ("name", "columns"), [("complex", (3, 11)), ("blocks", (3, 19))]
)
def test_joint_rules_with_reciprocal_rows(name, columns, share):
  model = kb.reciprocal(kb.order_block(name, share))
  rules = [kb.Rule("Inter", (0, 1, 2)), kb.Rule("Disj", (2, 3))]
  compiled = kb.compile_rules(model, rules, 4, _E)
  params = kb.init_params(model, jax.random.key(0), _E, 4, 8, 1.0)
  kept = kb.checked_start(compiled, params, rules, 4, _E)
  assert all(x.holds for x in kb.certify(model, kept, rules, 4, _E))
  assert kb.check_rules(model, kept, rules, 4, _E, compiled).worst == 0
  assert np.abs(kept.relations).max() > 0.1
  # Both directions, and one number out of place is noticed.
  for column in columns:
    broken = kept.relations.at[3, column].add(50.0)
    broken = kept._replace(relations=broken)
    assert not kb.certify(model, broken, rules[1:], 4, _E)[0].holds


def test_models_without_a_polynomial_are_refused():
  def ask(relation, known):
    return kb.Query(relation * known, jnp.zeros(()))

  model = kb.ScoreModel("mine", ask, ask)
  params = _params("distmult")
  with pytest.raises(InputError, match="no certificate for model mine"):
    kb.certify(model, params, [kb.Rule("Symm", (0,))], 3, _E)


def test_bad_blocks_are_refused():
  for model, share in (("A", 0.5), ("complex", 0.0), ("complex", 1.5)):
    with pytest.raises(InputError):
      kb.order_block(model, share)


def test_enumeration_of_a_real_graph_agrees():
  root = os.environ.get("REPR_JAX_DATA")
  if not root or not (pathlib.Path(root) / "sportsnell").exists():
    pytest.skip("REPR_JAX_DATA has no sportsnell")
  folder = pathlib.Path(root) / "sportsnell"
  facts = triples.read_triples(folder / "train.txt.gz")
  rules = rule_files.read_rules(folder / "rules.tsv")
  named = rules, facts.relations, facts.entities
  block = kb.order_block("complex", 0.5)
  compiled = kb.compile_rules(block, *named)
  count = len(facts.entities)
  params = kb.init_params(
    block, jax.random.key(0), count, len(facts.relations), 16
  )
  params = kb.checked_start(compiled, params, *named)
  proofs = kb.certify(block, params, *named)
  assert all(x.holds and x.pairs == count**2 for x in proofs)
  moved = params.relations.at[:, 7].add(jnp.arange(11.0))
  proofs = kb.certify(block, params._replace(relations=moved), *named)
  table = np.asarray(params.entities, np.float64)
  ids = {name: i for i, name in enumerate(facts.relations)}
  for rule, proof in zip(rules, proofs, strict=True):
    r, s = (np.asarray(moved, np.float64)[ids[x]] for x in rule.arguments)
    a, b = (r - s)[:8], (r - s)[8:]
    re, im = table[:, :8], table[:, 8:]
    gap = (re * a + im * -b) @ re.T + (im * a + re * b) @ im.T
    assert proof.holds == (gap.max() <= 0)
    if not proof.holds:
      assert float(proof.bound) == pytest.approx(gap.max(), abs=1e-8)
      assert float(proof.gap) == pytest.approx(gap.max(), abs=1e-9)


def test_polynomials_are_the_scores():
  for model in certificates._POLYNOMIALS:
    params = _params(model, 5)
    with precision.enable_x64(True):
      made = float(
        kb.score(
          model,
          *map(
            jnp.asarray,
            (params.relations[1], params.entities[0], params.entities[2]),
          ),
        )
      )
    tables = params.entities, params.relations
    atom = kb.Rule("RelImp", (1, 1)).kind.bind((1, 1))[1]
    part = certificates._atom(model, tables, atom)
    none = certificates._Gap(part.constant * 0, {}, {}, {})
    value = float(
      certificates._value([part], none, params.entities, ["x", "y"], (0, 2))
    )
    expected = -(made**2) if model == "T_L2" else made
    assert value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_rules_hold_in_both_directions_of_a_reciprocal_model(share):
  model = kb.reciprocal(kb.order_block("complex", share))
  rules = [kb.Rule("RelImp", (0, 1)), kb.Rule("RevImp", (1, 2))]
  compiled = kb.compile_rules(model, rules, 3, _E)
  config = kb.CandidateConfig(_E, 3, model, 8)
  init, update = kb.candidate_softmax(config, optax.adagrad(0.5), compiled)
  facts = np.array([[0, 0, 1], [2, 1, 3], [4, 2, 0]])
  state = init(jax.random.key(0), scale=0.5)
  for _ in range(3):
    state, _ = update(state, kb.CandidateBatch(facts))
  assert all(x.holds for x in kb.certify(model, state.params, rules, 3, _E))
  checked = kb.check_rules(model, state.params, rules, 3, _E, compiled)
  assert checked.worst < 1e-6
  moved = state.params.relations.at[0, 11].add(9.0)  # for heads alone
  moved = state.params._replace(relations=moved)
  assert not kb.certify(model, moved, rules, 3, _E)[0].holds
  with pytest.raises(InputError, match="reciprocal already"):
    kb.reciprocal(model)

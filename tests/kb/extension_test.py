"""A score model and a kind of rule defined here, without a change of ours."""

import numpy as np
import pytest

from repr_jax import kb
from repr_jax.errors import InputError


def _implies(ids, config):
  del config
  return kb.Conditions(order=[((ids[0], 0), (ids[1], 0))])


def _ask(relation, known):
  """sum_i r_i e_i f_i - norm2(e) - norm2(f), for either open slot."""
  return kb.Query(relation * known, -known @ known)


MODEL = kb.ScoreModel(
  "short",
  tail_query=_ask,
  head_query=_ask,
  norm_weight=1.0,
  conditions={"RelImp": _implies},
)


def _chain_of(ids, config):
  """A: r(x,y) & s(y,z) ==> t(x,z), with lambda of the antecedents.

  min(a, b) <= m a + (1 - m) b, so t1 >= m r1, m r2 + (1 - m) s1 <= 0 and
  t2 >= (1 - m) s2 suffice for nonnegative entities.
  """
  r, s, t = ids
  m = config.mixing
  return kb.Conditions(
    orthant=True,
    linear=[
      ([(m, (r, 0)), (-1, (t, 0))], [], 0.0),
      ([(m, (r, 1)), (1 - m, (s, 0))], [], 0.0),
      ([(1 - m, (s, 1)), (-1, (t, 1))], [], 0.0),
    ],
  )


CHAIN = kb.RuleKind(
  "Chain", "r(x,y) & s(y,z) ==> t(x,z)", conditions={"A": _chain_of}
)
_FACTS = [
  (f"p{i}", name, f"p{(3 * i + step) % 8}")
  for i in range(8)
  for name, step in (("r", 1), ("s", 2), ("t", 5))
]


def test_a_model_of_its_own_scores_as_its_formula():
  rng = np.random.default_rng(0)
  r, e, f = (rng.normal(size=4).astype(np.float32) for _ in range(3))
  want = np.sum(r * e * f) - e @ e - f @ f
  np.testing.assert_allclose(kb.score(MODEL, r, e, f), want, rtol=1e-5)
  for score_all, known, other in (
    (kb.score_all_tails, e, f),
    (kb.score_all_heads, f, e),
  ):
    got = score_all(MODEL, r[None], known[None], other[None])
    np.testing.assert_allclose(got, [[want]], rtol=1e-4)


def test_a_model_of_its_own_is_trained_and_its_rule_holds():
  rules = ["RelImp(r, s)"]
  free = kb.fit(_FACTS, model=MODEL, dim=8, epochs=20, scale=0.5)
  loose = free._replace(rules=[kb.Rule("RelImp", ["r", "s"])]).violations()
  fitted = kb.fit(_FACTS, rules, model=MODEL, dim=8, epochs=20, scale=0.5)
  assert fitted.losses[-1] < fitted.losses[0]
  assert max(fitted.violations().values()) <= 1e-5 < max(loose.values())


def test_a_kind_of_rule_of_its_own_holds_for_all_entities():
  rules = [kb.Rule(CHAIN, ["r", "s", "t"])]
  free = kb.fit(_FACTS, model="A", dim=8, epochs=20, scale=0.5)
  loose = free._replace(rules=rules).violations()
  fitted = kb.fit(_FACTS, rules, model="A", dim=8, epochs=20, scale=0.5)
  assert fitted.losses[-1] < fitted.losses[0]
  assert max(fitted.violations().values()) <= 1e-5 < max(loose.values())


def test_a_model_without_conditions_is_named():
  with pytest.raises(InputError, match=r"short has no .* Chain.* are A"):
    kb.fit(_FACTS, [kb.Rule(CHAIN, ["r", "s", "t"])], model=MODEL)

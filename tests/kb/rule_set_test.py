"""Rules as objects and as text, by name and by id."""

import pytest

from repr_jax.data.rules import KINDS, Rule
from repr_jax.errors import InputError
from repr_jax.kb import rule_set
from repr_jax.kb.condition_forms import RuleConfig
from repr_jax.kb.score_models import MODELS


@pytest.mark.parametrize(
  "rule",
  [
    Rule("Entail_B", ("r", "a", "s", "b")),
    Rule("Entail_B", (0, 0, 1, 1)),
    "Entail_B(r, a, s, b)",
    "Entail_B\tr\ta\ts\tb",
    "r(x,a) ==> s(x,b)",
  ],
)
def test_one_rule_in_five_forms(rule):
  got = rule_set.index_rules([rule], ["r", "s"], ["a", "b"])
  assert got == [(KINDS["Entail_B"], (0, 0, 1, 1))]


def test_ids_as_text_where_there_are_no_names():
  assert rule_set.index_rules(["RelImp(0, 1)"], 2, 9)[0][1] == (0, 1)
  for text in ("RelImp(0, 2)", "RelImp(0, r)"):
    with pytest.raises(InputError, match="unknown relation"):
      rule_set.index_rules([text], 2, 9)
  with pytest.raises(InputError, match="unknown relation -1"):
    rule_set.index_rules([Rule("Symm", (-1,))], 2, 9)


def test_conditions_of_rules_are_joined():
  rules = ["RelImp(0, 1)", "Symm(1)", "Entail_A(0, 2, 1, 3)"]
  indexed = rule_set.index_rules(rules, 2, 4)
  got = rule_set.collect(MODELS["A"], indexed, RuleConfig())
  assert len(got.order) == 3 and len(got.ties) == len(got.bilinear) == 1
  assert got.orthant and not got.box
  assert rule_set.able(KINDS["PropTrans"]) == ["A", "B"]

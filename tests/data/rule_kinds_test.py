"""Kinds of rules: forms, arguments and what they derive."""

import pytest

from repr_jax.data.rule_kinds import KINDS, Atom, RuleKind, Variable, match
from repr_jax.errors import InputError


def test_arguments_follow_the_form_or_the_order():
  assert KINDS["PropTrans"].signature == "rrere"
  assert KINDS["TypeImp"].letters == ["r", "e", "s"]
  chain = RuleKind("Chain", "r(x,y) & s(y,z) ==> t(x,z)")
  assert chain.letters == ["r", "s", "t"] and chain.variables == ["x", "y", "z"]
  body, head = chain.bind([1, 2, 3])
  assert body == [(1, "x", "y"), (2, "y", "z")] and head == (3, "x", "z")


@pytest.mark.parametrize(
  ("form", "order", "message"),
  [
    ("r(x,y)", "", "is not like"),
    ("r(x) ==> s(x,y)", "", "is not like"),
    ("r(x,e) ==> s(x,y)", "", "the head has y"),
    ("r(x,y) ==> s(x,e)", "r,s", "does not have the letters r,s,e"),
  ],
)
def test_bad_forms_are_named(form, order, message):
  with pytest.raises(InputError, match=f"rule kind Odd.*{message}"):
    RuleKind("Odd", form, order)


def test_a_name_that_looks_like_a_variable_is_a_name():
  facts = [("x", "r", "y"), ("a", "r", "b")]
  got = KINDS["Entail_B"].consequences(["r", "y", "s", "z"], facts)
  assert got == {("x", "s", "z")}


def test_a_variable_used_twice_is_one_entity():
  loop = RuleKind("Loop", "r(x,x) ==> s(x,x)")
  facts = [(0, 0, 0), (0, 0, 1)]
  assert loop.consequences([0, 1], facts) == {(0, 1, 0)}


def test_the_most_special_form_is_chosen():
  x, y = Variable("y"), Variable("z")
  kinds = KINDS.values()
  same = match(kinds, [Atom("r", x, y)], Atom("r", y, x))
  other = match(kinds, [Atom("r", x, y)], Atom("s", y, x))
  assert same == (KINDS["Symm"], ("r",))
  assert other == (KINDS["RevImp"], ("r", "s"))
  assert match(kinds, [Atom("r", x, x)], Atom("s", x, x)) is None

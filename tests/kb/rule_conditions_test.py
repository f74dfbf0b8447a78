"""Conditions on their own: enough for the rule, at their boundary."""

import pytest

from repr_jax import kb
from repr_jax.errors import InputError


def test_ordered_and_scaled_nodes_are_refused():
  def both(ids, config):
    del config
    node = (ids[0], 0), (ids[1], 0)
    return kb.Conditions(order=[node], ties=[(*node, 0.5)])

  kind = kb.RuleKind("Both", "r(x,y) ==> s(x,y)", conditions={"T": both})
  with pytest.raises(InputError, match="tie it with a ratio other than 1"):
    kb.compile_rules("T", [kb.Rule(kind, (0, 1))], 2, 3)

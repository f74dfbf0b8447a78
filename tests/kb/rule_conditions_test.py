"""Conditions on their own: enough for the rule, at their boundary."""

import numpy as np
import pytest

from repr_jax import kb
from repr_jax.errors import InputError
from repr_jax.kb import rule_conditions


def test_the_box_of_b_decides_at_its_corners():
  """<x, y> <= <x, a> + <y, b> on [0, m]^d if and only if the rows hold."""
  rng = np.random.default_rng(0)
  cap, agree = 0.7, 0
  for _ in range(300):
    a, b = rng.uniform(-0.3, 1, 2)
    rows = rule_conditions._bound_product(
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


def test_numbers_of_translations():
  config = kb.RuleConfig(radius=0.5)
  assert config.shrink == pytest.approx(1 / 3) and config.floor == 1.5


def test_ordered_and_scaled_nodes_are_refused():
  def both(ids, config):
    del config
    node = (ids[0], 0), (ids[1], 0)
    return kb.Conditions(order=[node], ties=[(*node, 0.5)])

  kind = kb.RuleKind("Both", "r(x,y) ==> s(x,y)", conditions={"T": both})
  with pytest.raises(InputError, match="tie it with a ratio other than 1"):
    kb.compile_rules("T", [kb.Rule(kind, (0, 1))], 2, 3)

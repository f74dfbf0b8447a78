"""Rules in every state: each trainer, large steps, rules that share names."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from repr_jax import kb
from repr_jax.data.rules import Rule
from repr_jax.kb import (
  candidate_training,
  negatives,
  pair_training,
  rule_check,
  rule_compiler,
  rule_start,
)
from repr_jax.kb.candidate_loss import CandidateConfig
from repr_jax.kb.condition_forms import RuleConfig

RELATIONS = [f"r{i}" for i in range(5)]
ENTITIES = [f"e{i}" for i in range(14)]
CONFIG = RuleConfig(0.8, 0.2)
RULES = {
  "mixed": [
    Rule("RevImp", ("r1", "r4")),
    Rule("TypeImp", ("r3", "e5", "r4")),
    Rule("Entail_B", ("r2", "e2", "r1", "e1")),
  ],
  "of itself": [
    Rule("TypeImp", ("r0", "e4", "r0")),
    Rule("TypeImp", ("r0", "e2", "r0")),
  ],
  "two steps": [
    Rule("PropTrans", ("r0", "r1", "e0", "r2", "e1")),
    Rule("Entail_A", ("r1", "e0", "r3", "e6")),
    Rule("RelImp", ("r3", "r2")),
  ],
  "intersections": [
    Rule("Inter", ("r0", "r1", "r2")),
    Rule("Disj", ("r2", "r3")),
    Rule("RelImp", ("r4", "r0")),
  ],
  "translated": [
    Rule("RelImp", ("r0", "r1")),
    Rule("RevImp", ("r1", "r3")),
    Rule("Entail_A", ("r1", "e3", "r2", "e6")),
    Rule("Entail_B", ("r2", "e2", "r1", "e1")),
  ],
}


def _facts():
  rng = np.random.default_rng(0)
  facts = np.stack([rng.integers(n, size=40) for n in (14, 5, 14)], axis=1)
  return np.unique(facts, axis=0).astype(np.int32)


def _pairs(model, compiled, known, facts):
  config = pair_training.SGDConfig(14, 5, model, 6, batch_size=4)

  def start(params):
    rates = jnp.float32(0.3), jnp.float32(0.001)
    return pair_training.SGDState(params, *rates)

  def go_on(state, key):
    return pair_training.train_pass(config, compiled, known, facts, state, key)[
      0
    ]

  return start, go_on


def _many(candidates, model, compiled, known, facts):
  config = CandidateConfig(
    14, 5, model, 6, batch_size=8, num_candidates=candidates
  )
  adam = optax.adam(0.3)

  def start(params):
    return candidate_training.from_params(config, adam, params, 1e-3)

  def go_on(state, key):
    return candidate_training.train_pass(
      config, adam, compiled, known, facts, state, key
    )[0]

  return start, go_on


TRAINERS = {
  "pairs": _pairs,
  "all": functools.partial(_many, 0),
  "some": functools.partial(_many, 6),
}


@pytest.mark.parametrize(
  ("model", "name", "trainer"),
  [("A", "two steps", "some"), ("T", "translated", "all")]
  # Each trainer meets other rules every day, and all of them in the long tier.
  + [("B", *pair) for pair in zip(list(RULES)[:3], TRAINERS)]
  + [("B", "mixed, ball", "all"), ("complex", "intersections", "all")]
  + [
    pytest.param(*case, marks=pytest.mark.long)
    for case in [
      ("A", "mixed", "all"),
      ("B", "two steps, ball", "all"),
      ("T", "translated", "pairs"),
      ("T", "translated", "some"),
      ("B", "intersections", "all"),
      ("R", "intersections", "all"),
      *(
        ("B", name, trainer)
        for i, name in enumerate(list(RULES)[:3])
        for j, trainer in enumerate(TRAINERS)
        if i != j
      ),
    ]
  ],
)
def test_rules_hold_after_each_pass(model, name, trainer):
  name, _, region = name.partition(", ")
  rules, facts = RULES[name], _facts()
  config = dataclasses.replace(CONFIG, region=region or "box")
  compiled = rule_compiler.compile_rules(
    model, rules, RELATIONS, ENTITIES, config
  )
  known = negatives.known_facts(facts, len(ENTITIES), len(RELATIONS))
  loose = kb.init_params(
    model, jax.random.key(3), len(ENTITIES), len(RELATIONS), 6
  )
  params = rule_start.checked_start(
    compiled, loose, rules, RELATIONS, ENTITIES, config
  )
  start, go_on = TRAINERS[trainer](model, compiled, known, jnp.asarray(facts))
  state, go_on = start(params), jax.jit(go_on)
  for i in range(4):
    state = go_on(state, jax.random.key(i))
    checked = rule_check.check_rules(
      model, state.params, rules, RELATIONS, ENTITIES, compiled, samples=500
    )
    assert checked.worst <= 1e-5
  moved = jnp.abs(state.params.entities - params.entities)
  assert jnp.median(moved.max(axis=1)) > 1e-3  # training went on


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
  "pairs, apart",
  [
    ([("Symm", "r0"), ("RelImp", "r0", "r1")], True),
    ([("Symm", "r0"), ("Symm", "r1"), ("RelImp", "r0", "r1")], True),
    ([("RevImp", "r0", "r1"), ("RelImp", "r0", "r1"), ("Symm", "r4")], True),
    (
      [
        ("RelImp", "r0", "r1"),
        ("RelImp", "r1", "r2"),
        ("RelImp", "r2", "r4"),
        ("RelImp", "r0", "r3"),
        ("RelImp", "r3", "r4"),
      ],
      False,
    ),
  ],
)
def test_translations_that_no_floor_fits_are_equal(pairs, apart, order):
  rules = [Rule(kind, tuple(names)) for kind, *names in pairs][::order]
  if apart:  # a rule that hangs together with no other keeps its floor
    rules.append(Rule("RelImp", ("r2", "r3")))
  compiled = rule_compiler.compile_rules("T", rules, RELATIONS, ENTITIES)
  loose = kb.init_params("T", jax.random.key(0), 14, 5, 6)
  params = rule_start.checked_start(compiled, loose, rules, RELATIONS, ENTITIES)
  checked = rule_check.check_rules(
    "T", params, rules, RELATIONS, ENTITIES, compiled, samples=500
  )
  assert checked.worst <= 1e-5
  np.testing.assert_array_equal(params.relations[0], params.relations[1])
  assert not apart or compiled.floor is not None

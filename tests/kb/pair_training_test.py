"""Projected SGD: algorithm 2 by hand, rules in every state, one compile."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax.data.rules import Rule
from repr_jax.kb import (
  negatives,
  pair_training,
  rule_check,
  rule_projection,
  scores,
)
from repr_jax.kb import rule_compiler as kb_constraints
from repr_jax.ops import shuffle

RELATIONS = ["r0", "r1", "r2"]
ENTITIES = [f"e{i}" for i in range(12)]


def _facts():
  rng = np.random.default_rng(0)
  facts = np.stack([rng.integers(n, size=25) for n in (12, 3, 12)], axis=1)
  return np.unique(facts, axis=0).astype(np.int32)


@pytest.mark.parametrize("unknown", ["any", "corrupt"])
def test_one_step_is_algorithm_2(unknown):
  """Model A, batch 1, gradients as the thesis writes them."""
  options = pair_training.Options("A", 1, unknown)
  facts = _facts()[:1]
  known = negatives.known_facts(facts, 12, 3)
  params = scores.init_params("A", jax.random.key(0), 12, 3, 4, 0.5)
  pairs = pair_training.draw_pairs(
    options, known, jnp.asarray(facts), jax.random.key(1)
  )
  rates = pair_training.Rates(0.1, 0.01)
  got, _ = pair_training.update(options, None, params, pairs, rates)
  e, r = (np.asarray(x, np.float64).copy() for x in params)
  h, k, t = facts[0]
  if unknown == "any":
    other = int(pairs.relations[1, 0])
    oh, ot = (int(x) for x in pairs.entities[2:, 0])
  else:
    z, other = int(pairs.entities[2, 0]), k
    oh, ot = (h, z) if pairs.is_tail[0] else (z, t)
  tuple_, other_tuple = (np.r_[e[a], e[b]] for a, b in ((h, t), (oh, ot)))
  v = 1 / (1 + np.exp(r[k] @ tuple_ - r[other] @ other_tuple))
  slope = {k: np.zeros(8), other: np.zeros(8)}
  slope[k] -= v * tuple_
  slope[other] += v * other_tuple
  times = 2 if k == other and unknown == "any" else 1
  for i, g in slope.items():
    r[i] -= 0.1 * (g / times + 0.02 * np.asarray(params.relations[i]))
  np.testing.assert_allclose(got.relations, r, atol=1e-6)
  v = 1 / (1 + np.exp(r[k] @ tuple_ - r[other] @ other_tuple))
  moved = np.zeros_like(e)
  for row, g in (
    (h, -v * r[k][:4]),
    (t, -v * r[k][4:]),
    (oh, v * r[other][:4]),
    (ot, v * r[other][4:]),
  ):
    moved[row] += g
  for row in np.asarray(pairs.entities)[:, 0]:
    moved[row] += 0.02 * e[row]
  np.testing.assert_allclose(got.entities, e - 0.1 * moved, atol=1e-6)


def test_a_batch_stays_until_all_its_steps_are_made():
  options = pair_training.Options("B", 2, repeats=3)
  facts = jnp.asarray(_facts()[:5])  # the last batch has one fact
  known = negatives.known_facts(np.asarray(facts), 12, 3)
  params = scores.init_params("B", jax.random.key(0), 12, 3, 4)
  rates, key = pair_training.Rates(0.1, 0.01), jax.random.key(3)
  got, _ = pair_training.train_pass(
    options, None, known, facts, params, key, rates
  )
  order_key, draw_key = jax.random.split(key)
  order = shuffle.random_order(order_key, 5)
  want = params
  for i, draw in enumerate(jax.random.split(draw_key, 3)):
    ids = order[(2 * i + np.arange(2)) % 5]
    pairs = pair_training.draw_pairs(
      options, known, jnp.tile(facts[ids], (3, 1)), draw
    )
    for j in range(3):
      part = jax.tree.map(lambda x, j=j: x[..., 2 * j : 2 * j + 2], pairs)
      if i == 2:
        part = part._replace(fine=part.fine & jnp.array([True, False]))
      want, _ = pair_training.update(options, None, want, part, rates)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), got, want
  )
  assert float(jnp.abs(got.entities - params.entities).max()) > 0.01


@pytest.mark.parametrize("model", ["A", "B", "D", "R", "T"])
def test_rules_hold_after_training_and_nothing_compiles_again(model):
  rules = [Rule("RelImp", ("r0", "r1")), Rule("RevImp", ("r1", "r2"))]
  if model in "ABCD":
    rules.append(Rule("Entail_B", ("r0", "e1", "r2", "e2")))
  if model in "AB":
    rules.append(Rule("PropTrans", ("r0", "r1", "e3", "r2", "e4")))
  compiled = kb_constraints.compile_rules(model, rules, RELATIONS, ENTITIES)
  params = rule_projection.checked_start(
    model,
    rules,
    RELATIONS,
    ENTITIES,
    compiled,
    scores.init_params(model, jax.random.key(0), 12, 3, 5, 0.3),
  )
  options = pair_training.Options(model, 4)
  facts = _facts()
  known = negatives.known_facts(facts, 12, 3)
  before = pair_training.train._cache_size()
  first = None
  for i in range(3):
    params, losses = pair_training.train(
      options,
      compiled,
      known,
      jnp.asarray(facts),
      params,
      jax.random.split(jax.random.key(i), 2),
      pair_training.Rates(0.1, 0.001),
    )
    first = losses[0] if first is None else first
  assert pair_training.train._cache_size() == before + 1
  assert np.isfinite(losses).all() and losses[-1] < first
  checked = rule_check.check_rules(
    model, params, rules, RELATIONS, ENTITIES, compiled
  )
  assert checked.worst <= 1e-5


def test_untouched_rows_stay_and_left_out_pairs_do_nothing():
  options = pair_training.Options("T", 3, "corrupt")
  facts = _facts()[:3]
  known = negatives.known_facts(facts, 12, 3)
  params = scores.init_params("T", jax.random.key(0), 12, 3, 4)
  pairs = pair_training.draw_pairs(
    options, known, jnp.asarray(facts), jax.random.key(0)
  )
  rates = pair_training.Rates(0.1, 0.01)
  got, _ = pair_training.update(options, None, params, pairs, rates)
  rest = np.setdiff1d(np.arange(12), pairs.entities)
  np.testing.assert_array_equal(got.entities[rest], params.entities[rest])
  none = pairs._replace(fine=jnp.zeros(3, bool))
  got, loss = pair_training.update(
    options, None, params, none, pair_training.Rates(0.1, 0.0)
  )
  np.testing.assert_array_equal(got.entities, params.entities)
  np.testing.assert_array_equal(got.relations, params.relations)
  assert loss == 0


def test_the_last_batch_is_padded_with_pairs_that_do_nothing():
  facts = _facts()[:5]
  known = negatives.known_facts(facts, 12, 3)
  params = scores.init_params("B", jax.random.key(0), 12, 3, 4)
  keys = jax.random.split(jax.random.key(0), 1)
  rates = pair_training.Rates(0.0, 0.0)
  _, losses = pair_training.train(
    pair_training.Options("B", 4),
    None,
    known,
    jnp.asarray(facts),
    params,
    keys,
    rates,
  )
  assert np.isfinite(losses).all()

"""Projected SGD: algorithm 2 by hand, rules in every state, one compile."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import kb
from repr_jax.data.rules import Rule
from repr_jax.errors import InputError
from repr_jax.kb import (
  negatives,
  pair_training,
  rule_check,
  rule_compiler,
  rule_start,
)
from repr_jax.ops import shuffle

RELATIONS = ["r0", "r1", "r2"]
ENTITIES = [f"e{i}" for i in range(12)]


# Programs, where each operation would be compiled alone.
_update = jax.jit(pair_training.update, static_argnums=0)
_draw = jax.jit(pair_training.draw_pairs, static_argnames="kind")
_train_pass = jax.jit(pair_training.train_pass, static_argnums=0)


def _state(params, learning_rate=0.1, penalty=0.01):
  rates = jnp.float32(learning_rate), jnp.float32(penalty)
  return pair_training.SGDState(params, *rates)


def _config(model, batch_size, negatives="any", steps=1):
  return pair_training.SGDConfig(
    12, 3, model, 4, negatives, batch_size, steps_per_batch=steps
  )


def _facts():
  rng = np.random.default_rng(0)
  facts = np.stack([rng.integers(n, size=25) for n in (12, 3, 12)], axis=1)
  return np.unique(facts, axis=0).astype(np.int32)


@pytest.mark.parametrize("kind", ["any", "corrupt"])
def test_one_step_is_algorithm_2(kind):
  """Model A, batch 1, gradients as the thesis writes them."""
  config = _config("A", 1, kind)
  facts = _facts()[:1]
  known = negatives.known_facts(facts, 12, 3)
  params = kb.init_params("A", jax.random.key(0), 12, 3, 4, 0.5)
  pairs = _draw(known, jnp.asarray(facts), jax.random.key(1), kind)
  got = _update(config, None, _state(params), pairs)[0].params
  e, r = (np.asarray(x, np.float64).copy() for x in params)
  h, k, t = facts[0]
  if kind == "any":
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
  times = 2 if k == other and kind == "any" else 1
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
  config = _config("B", 2, steps=3)
  facts = jnp.asarray(_facts()[:5])  # the last batch has one fact
  known = negatives.known_facts(np.asarray(facts), 12, 3)
  params = kb.init_params("B", jax.random.key(0), 12, 3, 4)
  key = jax.random.key(3)
  got, _ = _train_pass(config, None, known, facts, _state(params), key)
  order_key, draw_key = jax.random.split(key)
  order = shuffle.random_order(order_key, 5)
  want = _state(params)
  for i, draw in enumerate(jax.random.split(draw_key, 3)):
    ids = order[(2 * i + np.arange(2)) % 5]
    pairs = _draw(known, jnp.tile(facts[ids], (3, 1)), draw)
    for j in range(3):
      part = jax.tree.map(lambda x, j=j: x[..., 2 * j : 2 * j + 2], pairs)
      if i == 2:
        part = part._replace(valid=part.valid & jnp.array([True, False]))
      want, _ = _update(config, None, want, part)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), got, want
  )
  moved = jnp.abs(got.params.entities - params.entities)
  assert float(moved.max()) > 0.01


@pytest.mark.parametrize(
  "model", ["B", *(pytest.param(x, marks=pytest.mark.long) for x in "ADRT")]
)
def test_rules_hold_after_training_and_nothing_compiles_again(model):
  rules = [Rule("RelImp", ("r0", "r1")), Rule("RevImp", ("r1", "r2"))]
  if model in "ABCD":
    rules.append(Rule("Entail_B", ("r0", "e1", "r2", "e2")))
  if model in "AB":
    rules.append(Rule("PropTrans", ("r0", "r1", "e3", "r2", "e4")))
  compiled = rule_compiler.compile_rules(model, rules, RELATIONS, ENTITIES)
  params = rule_start.checked_start(
    compiled,
    kb.init_params(model, jax.random.key(0), 12, 3, 5, 0.3),
    rules,
    RELATIONS,
    ENTITIES,
  )
  state = _state(params, 0.1, 0.001)
  facts = _facts()
  known = negatives.known_facts(facts, 12, 3)
  before = pair_training.train._cache_size()
  first = None
  for i in range(3):
    state, losses = pair_training.train(
      _config(model, 4),
      compiled,
      known,
      jnp.asarray(facts),
      state,
      jax.random.split(jax.random.key(i), 2),
    )
    first = losses[0] if first is None else first
  assert pair_training.train._cache_size() == before + 1
  assert np.isfinite(losses).all() and losses[-1] < first
  checked = rule_check.check_rules(
    model, state.params, rules, RELATIONS, ENTITIES, compiled
  )
  assert checked.worst <= 1e-5


def test_untouched_rows_stay_and_left_out_pairs_do_nothing():
  config = _config("T", 3, "corrupt")
  facts = _facts()[:3]
  known = negatives.known_facts(facts, 12, 3)
  params = kb.init_params("T", jax.random.key(0), 12, 3, 4)
  pairs = _draw(known, jnp.asarray(facts), jax.random.key(0), "corrupt")
  got = _update(config, None, _state(params), pairs)[0].params
  rest = np.setdiff1d(np.arange(12), pairs.entities)
  np.testing.assert_array_equal(got.entities[rest], params.entities[rest])
  none = pairs._replace(valid=jnp.zeros(3, bool))
  got, loss = _update(config, None, _state(params, penalty=0.0), none)
  np.testing.assert_array_equal(got.params.entities, params.entities)
  np.testing.assert_array_equal(got.params.relations, params.relations)
  assert loss == 0


def test_the_last_batch_is_padded_with_pairs_that_do_nothing():
  """Five facts in batches of four: the second batch has one that counts."""
  config = _config("B", 4)
  facts = jnp.asarray(_facts()[:5])
  known = negatives.known_facts(np.asarray(facts), 12, 3)
  params = kb.init_params("B", jax.random.key(0), 12, 3, 4)
  key = jax.random.key(5)
  got, loss = _train_pass(config, None, known, facts, _state(params), key)
  order_key, draw_key = jax.random.split(key)
  order = jnp.resize(shuffle.random_order(order_key, 5), (8,))
  pairs = _draw(known, facts[order], draw_key)
  assert pairs.valid.all()
  state, losses = _state(params), []
  for count, start in ((4, 0), (1, 4)):
    part = jax.tree.map(lambda x, i=start: x[..., i : i + 4], pairs)
    part = part._replace(valid=jnp.arange(4) < count)
    state, one = _update(config, None, state, part)
    losses.append(float(one))
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), got, state
  )
  np.testing.assert_allclose(loss, np.mean(losses), rtol=1e-6)
  # The padding counts a fact twice where it is not left out.
  full = jax.tree.map(lambda x: x[..., 4:], pairs)
  twice, _ = _update(config, None, state, full)
  assert (
    float(jnp.abs(twice.params.entities - got.params.entities).max()) > 1e-4
  )


def test_bad_configs_are_refused():
  with pytest.raises(InputError, match='"any" or "corrupt", not \'all\''):
    _config("A", 4, "all")
  with pytest.raises(InputError, match="steps_per_batch"):
    _config("A", 4, steps=0)
  with pytest.raises(InputError, match="batch_size"):
    _config("A", 0)
  compiled = rule_compiler.compile_rules("A", [], 3, 12)
  with pytest.raises(InputError, match="compiled for model A, not for B"):
    pair_training.projected_sgd(_config("B", 4), compiled)


def test_gradients_taken_once_are_a_plain_step_of_both_tables():
  config = dataclasses.replace(_config("B", 5), gradients="once")
  facts = _facts()[:5]
  known = negatives.known_facts(facts, 12, 3)
  params = kb.init_params("B", jax.random.key(0), 12, 3, 4, 0.5)
  pairs = _draw(known, jnp.asarray(facts), jax.random.key(1))

  def loss(entities):
    rows = params.relations[pairs.relations], entities[pairs.entities]
    return pair_training._loss(config, pairs, *rows)

  state = _state(params, penalty=0.0)
  moved = _update(config, None, state, pairs)[0].params
  expected = params.entities - 0.1 * jax.jit(jax.grad(loss))(params.entities)
  np.testing.assert_allclose(moved.entities, expected, atol=1e-6)
  twice = dataclasses.replace(config, gradients="twice")
  other = _update(twice, None, state, pairs)[0].params
  np.testing.assert_allclose(moved.relations, other.relations, atol=1e-6)
  assert np.abs(moved.entities - other.entities).max() > 1e-4
  with pytest.raises(InputError, match="once"):
    dataclasses.replace(config, gradients="thrice")

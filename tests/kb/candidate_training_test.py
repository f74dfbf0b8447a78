"""Losses over many candidates, and training under rules with optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from repr_jax.data.rules import Rule
from repr_jax.errors import InputError
from repr_jax.kb import (
  candidate_loss,
  candidate_training,
  negatives,
  rule_check,
  rule_compiler,
  rule_projection,
  scores,
)
from repr_jax.kb.candidate_loss import CandidateBatch, CandidateConfig
from repr_jax.ops import precision

RELATIONS = ["r0", "r1", "r2"]
ENTITIES = [f"e{i}" for i in range(30)]


def _config(model, batch_size, candidates=0, loss="softmax", penalty="n3"):
  return CandidateConfig(30, 3, model, 4, loss, penalty, batch_size, candidates)


def _facts(seed=0, count=40):
  rng = np.random.default_rng(seed)
  facts = rng.integers(30, size=(count, 3))
  facts[:, 1] %= 3
  return np.unique(facts, axis=0).astype(np.int32)


def _reference(config, facts, params, weight):
  """Both sides by loops over facts and entities, in float64."""
  e, r = (np.asarray(x, np.float64) for x in params)
  listed = {tuple(f) for f in facts.tolist()}
  total, penalty = 0.0, 0.0

  def score(h, k, t):
    return float(scores.score(config.model, r[k], e[h], e[t]))

  for h, k, t in facts.tolist():
    truth = score(h, k, t)
    for side in (0, 2):
      rows = [(z, k, t) if side == 0 else (h, k, z) for z in range(len(e))]
      values = np.array([score(*row) for row in rows])
      if config.loss == "softmax":
        total += np.log(np.sum(np.exp(values))) - truth
      else:
        valid = [row not in listed for row in rows]
        total += np.mean(np.log1p(np.exp(values[valid] - truth)))
    for x in (e[h], e[t], r[k]):
      if config.model.name == "complex":
        x = np.hypot(*np.split(x, 2))
      power = 3 if config.regularizer == "n3" else 2
      penalty += np.sum(np.abs(x) ** power)
  return (total / 2 + weight * penalty) / len(facts)


@pytest.mark.parametrize("model", ["B", "T", "R", "complex"])
@pytest.mark.parametrize("loss", ["softmax", "bpr"])
@pytest.mark.parametrize("penalty", ["n3", "l2"])
def test_loss_equals_a_plain_count(model, loss, penalty):
  config = _config(model, 1, 0, loss, penalty)
  facts = _facts()[:1]  # one fact: BPR's mean over a batch is a plain mean
  with precision.enable_x64(True):
    params = scores.init_params(
      model, jax.random.key(0), 30, 3, 4, 0.7, jnp.float64
    )
    known = negatives.known_facts(facts, 30, 3)
    got = candidate_loss.batch_loss(
      config, known, params, CandidateBatch(jnp.asarray(facts)), 0.1
    )
    want = _reference(config, facts, params, 0.1)
  np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("candidates", [None, np.array([4, 7, 1, 2, 9])])
def test_matrices_at_once_give_the_slopes_of_a_matrix_for_each_fact(
  monkeypatch, candidates
):
  config = _config("R", 20)
  facts = _facts()[:20]
  with precision.enable_x64(True):
    params = scores.init_params(
      "R", jax.random.key(0), 30, 3, 4, 0.7, jnp.float64
    )
    known = negatives.known_facts(facts, 30, 3)

    def loss(params):
      return candidate_loss.batch_loss(
        config,
        known,
        params,
        CandidateBatch(jnp.asarray(facts), candidates),
        0.1,
      )

    at_once = jax.value_and_grad(loss)(params)
    monkeypatch.setattr(candidate_loss, "_TOGETHER", 0)
    for_each = jax.value_and_grad(loss)(params)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12),
    at_once,
    for_each,
  )


def test_a_sample_estimates_the_full_softmax():
  config = _config("complex", 8)
  facts = jnp.asarray(_facts()[:8])
  params = scores.init_params("complex", jax.random.key(1), 30, 3, 4, 0.5)
  known = negatives.known_facts(np.asarray(facts), 30, 3)
  full = candidate_loss.batch_loss(
    config, known, params, CandidateBatch(facts), 0.0
  )
  draws = jax.random.randint(jax.random.key(2), (200, 20), 0, 30)
  sampled = jax.vmap(
    lambda ids: candidate_loss.batch_loss(
      config, known, params, CandidateBatch(facts, ids), 0.0
    )
  )(draws)
  np.testing.assert_allclose(sampled.mean(), full, rtol=0.03)


@pytest.mark.parametrize("model", ["T", "R", "complex"])
@pytest.mark.parametrize("head, tail", [(4, 7), (4, 4)])
def test_a_sample_counts_the_entity_of_the_other_place_once(model, head, tail):
  config = _config(model, 1, 5)
  fact = np.array([[head, 1, tail]], np.int32)
  drawn, others = np.array([4, 7, 1, 2, 9]), {7, 1, 2, 9} - {tail}
  with precision.enable_x64(True):
    params = scores.init_params(
      model, jax.random.key(0), 30, 3, 4, 0.7, jnp.float64
    )
    known = negatives.known_facts(fact, 30, 3)
    got = candidate_loss.batch_loss(
      config,
      known,
      params,
      CandidateBatch(jnp.asarray(fact), jnp.asarray(drawn)),
      0.0,
    )
    e, r = (np.asarray(x) for x in params)

    def weight(h, t):
      return np.exp(float(scores.score(model, r[1], e[h], e[t])))

    truth, want = weight(head, tail), 0.0
    for own, way in (
      (tail, lambda z: weight(z, tail)),
      (head, lambda z: weight(head, z)),
    ):
      # Each entity that is drawn stands for six; these two for themselves.
      rest = 30 / 5 * sum(way(z) for z in others)
      rest += way(own) if head != tail else 0
      want += np.log1p(rest / truth) / 2
  np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("candidates", [0, 10])
def test_training_learns_keeps_rules_and_compiles_once(candidates):
  rules = [
    Rule("RevImp", ("r0", "r1")),
    Rule("RevImp", ("r1", "r0")),
    Rule("Symm", ("r2",)),
  ]
  compiled = rule_compiler.compile_rules("complex", rules, RELATIONS, ENTITIES)
  assert compiled.region is None
  config = _config("complex", 10, candidates)
  optimizer = optax.adagrad(0.1, initial_accumulator_value=0.0, eps=1e-24)
  facts = _facts(3)
  known = negatives.known_facts(facts, 30, 3)
  params = scores.init_params("complex", jax.random.key(0), 30, 3, 16, 0.1)
  state = candidate_training.from_params(config, optimizer, params, 1e-4)
  losses = []
  before = candidate_training.train._cache_size()
  for i in range(30):
    state, loss = candidate_training.train(
      config,
      optimizer,
      compiled,
      known,
      jnp.asarray(facts),
      state,
      jax.random.key(i),
    )
    losses.append(float(loss))
  assert candidate_training.train._cache_size() == before + 1
  assert losses[-1] < 0.7 * losses[0]
  checked = rule_check.check_rules(
    "complex", state.params, rules, RELATIONS, ENTITIES, compiled
  )
  assert checked.worst <= 1e-5


def test_bad_config_are_refused():
  with pytest.raises(InputError, match="loss must be"):
    _config("T", 1, 0, "hinge")
  with pytest.raises(InputError, match="regularizer must be"):
    _config("T", 1, 0, "bpr", "l1")
  with pytest.raises(InputError, match="needs known"):
    candidate_training.candidate_softmax(
      _config("T", 1, 0, "bpr"), optax.sgd(0.1)
    )


@pytest.mark.parametrize("sampled", [False, True])
def test_runs_with_their_own_keys_and_rates_in_one_program(sampled):
  """Any optax optimizer; its rate is in the state by inject_hyperparams."""
  compiled = rule_compiler.compile_rules("complex", ["RevImp(0, 1)"], 3, 30)
  optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=0.1)
  init, update = candidate_training.candidate_softmax(
    _config("complex", 8), optimizer, compiled
  )
  drawn = jnp.arange(3, 9) if sampled else None
  batch = CandidateBatch(jnp.asarray(_facts()[:8]), drawn)
  keys = jax.random.split(jax.random.key(0), 3)
  rates, weights = jnp.array([0.01, 0.1, 0.5]), jnp.array([0.0, 0.01, 0.1])

  def start(key, rate, weight):
    state = init(key, weight)
    memory = state.optimizer
    rates = {**memory.hyperparams, "learning_rate": rate}
    return state._replace(optimizer=memory._replace(hyperparams=rates))

  states = jax.vmap(start)(keys, rates, weights)
  many = jax.jit(jax.vmap(update, (0, None)))
  for _ in range(3):
    states, losses = many(states, batch)
  worst = jax.vmap(rule_projection.violation, (None, 0))(
    compiled, states.params
  )
  assert losses.shape == (3,) and worst.max() < 1e-5
  for i in range(3):
    alone = start(keys[i], rates[i], weights[i])
    for _ in range(3):
      alone, _ = update(alone, batch)
    jax.tree.map(
      lambda x, y, i=i: np.testing.assert_allclose(
        x, y[i], rtol=1e-4, atol=1e-4
      ),
      alone.params,
      states.params,
    )

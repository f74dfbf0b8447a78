"""Training against candidates under rules, with any optax optimizer."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from repr_jax import kb
from repr_jax.data.rules import Rule
from repr_jax.errors import InputError
from repr_jax.kb import candidate_training, negatives, rule_check, rule_compiler
from repr_jax.kb.candidate_loss import CandidateConfig

RELATIONS = ["r0", "r1", "r2"]
ENTITIES = [f"e{i}" for i in range(30)]


def _config(model, batch_size, candidates=0, loss="softmax", penalty="n3"):
  return CandidateConfig(30, 3, model, 4, loss, penalty, batch_size, candidates)


def _facts(seed=0, count=40):
  rng = np.random.default_rng(seed)
  facts = rng.integers(30, size=(count, 3))
  facts[:, 1] %= 3
  return np.unique(facts, axis=0).astype(np.int32)


@pytest.mark.parametrize(("candidates", "dropout"), [(0, 0.0), (10, 0.1)])
def test_training_learns_keeps_rules_and_compiles_once(candidates, dropout):
  rules = [
    Rule("RevImp", ("r0", "r1")),
    Rule("RevImp", ("r1", "r0")),
    Rule("Symm", ("r2",)),
  ]
  compiled = rule_compiler.compile_rules("complex", rules, RELATIONS, ENTITIES)
  assert compiled.region is None
  config = dataclasses.replace(
    _config("complex", 10, candidates), dropout=dropout > 0
  )
  optimizer = optax.adagrad(0.1, initial_accumulator_value=0.0, eps=1e-24)
  facts = _facts(3)
  known = negatives.known_facts(facts, 30, 3)
  params = kb.init_params("complex", jax.random.key(0), 30, 3, 16, 0.1)
  state = candidate_training.from_params(
    config, optimizer, params, 1e-4, dropout
  )
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
  with pytest.raises(InputError, match="scores by a distance"):
    CandidateConfig(30, 3, "T", 4, dropout=True)
  with pytest.raises(InputError, match="needs known"):
    candidate_training.candidate_softmax(
      _config("T", 1, 0, "bpr"), optax.sgd(0.1)
    )


def test_each_dropout_of_the_state_reaches_the_loss():
  config = dataclasses.replace(_config("complex", 10), dropout=True)
  optimizer, facts = optax.sgd(0.1), _facts()
  losses = []
  for rates in ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5)):
    params = kb.init_params(
      "complex", jax.random.key(0), 30, 3, 4, scale=1.0
    )  # `train` takes its buffers
    state = candidate_training.from_params(
      config, optimizer, params, 1e-4, *rates
    )
    _, loss = candidate_training.train(
      config, optimizer, None, None, facts, state, jax.random.key(1)
    )
    losses.append(round(float(loss), 4))
  assert len(set(losses)) == 4, losses

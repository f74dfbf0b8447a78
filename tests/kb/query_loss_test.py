"""Full softmax by questions against the loss of single facts."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tiers

from repr_jax import kb
from repr_jax.errors import InputError
from repr_jax.kb import candidate_loss, candidate_training, query_loss
from repr_jax.kb.candidate_loss import CandidateBatch, CandidateConfig, Noise
from repr_jax.kb.score_models import reciprocal


def _facts():
  rng = np.random.default_rng(0)
  facts = rng.integers(7, size=(40, 3))
  facts[:, 1] %= 2
  return np.unique(facts, axis=0).astype(np.int32)


def test_groups_hold_each_fact_once_on_each_side():
  facts = _facts()
  given, relations, sides, answers = query_loss.group_queries(facts, 3)
  back = {0: [], 2: []}
  for g, r, side, row in zip(given, relations, sides, answers):
    for answer in row[row >= 0]:
      back[side].append((answer, r, g) if side == 0 else (g, r, answer))
  wanted = sorted(map(tuple, facts))
  assert sorted(back[0]) == wanted
  assert sorted(back[2]) == wanted
  assert len(given) < 2 * len(facts)
  assert (answers[:, 0] >= 0).all()
  with pytest.raises(InputError, match="max_answers"):
    query_loss.group_queries(facts, 0)


@pytest.mark.parametrize(
  ("model", "regularizer"),
  tiers.some(
    [
      ("complex", "n3"),
      *((x, "n3") for x in (reciprocal("complex"), "R", "T", "T_L1")),
      # DURA takes models whose score is a product.
      *((x, "dura") for x in (reciprocal("complex"), "complex", "R", "B")),
      *((x, "n3") for x in ("T_L2", "B")),
    ],
    5,
  ),
)
def test_loss_and_gradient_are_those_of_single_facts(model, regularizer):
  config = CandidateConfig(7, 2, model, 4, regularizer=regularizer)
  facts = _facts()
  params = kb.init_params(config.model, jax.random.key(1), 7, 2, 4, 0.7)
  batch = query_loss.group_queries(facts, 3)

  def single(params):
    pairs = CandidateBatch(jnp.asarray(facts))
    return candidate_loss.batch_loss(config, None, params, pairs, 0.3)

  def grouped(params):
    return query_loss.query_loss(config, params, batch, 0.3)

  expected, slopes = jax.jit(jax.value_and_grad(single))(params)
  value, ours = jax.jit(jax.value_and_grad(grouped))(params)
  np.testing.assert_allclose(value, expected, rtol=1e-5)

  @jax.jit
  def with_dropout(rate):
    noise = Noise(jax.random.key(0), 0.0, rate)
    return query_loss.query_loss(config, params, batch, 0.3, noise)

  np.testing.assert_allclose(with_dropout(0.0), expected, rtol=1e-5)
  assert abs(with_dropout(0.5) - expected) > 1e-3
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, atol=2e-5), ours, slopes
  )


def test_sums_do_not_overflow():
  table = jnp.array([[1000.0], [0.0]])
  value = query_loss.log_sum_products(table, jnp.ones((1, 1)), None)
  np.testing.assert_allclose(value, [1000.0])


def test_passes_learn_and_refuse_other_losses():
  facts = _facts()
  config = CandidateConfig(7, 2, "complex", 4, batch_size=8)
  optimizer = optax.adagrad(0.3, initial_accumulator_value=0.0)
  groups = jax.tree.map(jnp.asarray, query_loss.group_queries(facts, 4))
  params = kb.init_params("complex", jax.random.key(0), 7, 2, 16, 0.1)
  state = candidate_training.from_params(config, optimizer, params, 0.0)
  losses = []
  for i in range(10):
    state, loss = candidate_training.train(
      config, optimizer, None, None, groups, state, jax.random.key(i)
    )
    losses.append(float(loss))
  assert losses[-1] < 0.9 * losses[0]
  noisy = CandidateConfig(7, 2, "complex", 4, batch_size=8, dropout=True)
  with pytest.raises(InputError, match="pass key"):
    candidate_training.update(noisy, optimizer, None, None, state, groups)
  bpr = CandidateConfig(7, 2, "complex", 4, "bpr")
  with pytest.raises(InputError, match="softmax"):
    candidate_training.update(bpr, optimizer, None, None, state, groups)
  large = CandidateConfig(7, 2, "complex", 4, batch_size=1000)
  with pytest.raises(InputError, match="1000 questions"):
    candidate_training.train_pass(
      large, optimizer, None, None, groups, state, jax.random.key(0)
    )


@pytest.mark.parametrize(
  "model", ["complex", reciprocal("complex"), "R", "A", "B", "blocks"]
)
def test_relations_are_predicted_among_all(model):
  config = CandidateConfig(7, 3, model, 4, predict_relations=True)
  plain = dataclasses.replace(config, predict_relations=False)
  facts = _facts()
  facts[::3, 1] = 2
  params = kb.init_params(config.model, jax.random.key(1), 7, 3, 4, 0.7)
  batch = query_loss.group_queries(facts, 3)
  both = query_loss.query_loss(config, params, batch, 0.3, None, 2.0)
  ours = both - query_loss.query_loss(plain, params, batch, 0.3)

  # Fact by fact: a reciprocal model has inverses among its relations.
  base = config.model.base or config.model
  rows, losses = params.relations, []
  if config.model.base is not None:
    rows = jnp.concatenate(jnp.split(rows, 2, axis=1))
  score = jax.vmap(lambda r, h, t: kb.score(base, r, h, t), (0, None, None))
  for head, relation, tail in facts:
    head, tail = params.entities[head], params.entities[tail]
    for turned in (False, True):
      ends, right = (head, tail), relation
      if turned and config.model.base is not None:
        ends, right = (tail, head), relation + 3
      logits = score(rows, *ends)
      losses.append(jax.nn.logsumexp(logits) - logits[right])
  np.testing.assert_allclose(ours, 2 * np.mean(losses), rtol=1e-4)


def test_the_weight_of_relations_is_part_of_the_state():
  facts = _facts()
  config = CandidateConfig(
    7, 2, "complex", 4, batch_size=8, predict_relations=True
  )
  optimizer = optax.sgd(0.1)
  init, update = kb.candidate_softmax(config, optimizer)
  batch = query_loss.group_queries(facts, 4)
  losses = [
    update(init(jax.random.key(0), scale=1.0, relation_weight=x), batch)[1]
    for x in (0.0, 0.5, 1.0)
  ]
  np.testing.assert_allclose(losses[2] - losses[1], losses[1] - losses[0], 1e-4)
  assert losses[1] - losses[0] > 0.1
  with pytest.raises(InputError, match="group_queries"):
    update(init(jax.random.key(0)), CandidateBatch(facts))
  with pytest.raises(InputError, match="distance"):
    CandidateConfig(7, 2, "T", 4, predict_relations=True)

"""Losses over many candidates, and training under rules with optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from repr_jax.data.rules import Rule
from repr_jax.kb import candidate_training, negatives, rule_check, scores
from repr_jax.kb import rule_compiler as kb_constraints
from repr_jax.ops import precision

RELATIONS = ["r0", "r1", "r2"]
ENTITIES = [f"e{i}" for i in range(30)]


def _facts(seed=0, count=40):
  rng = np.random.default_rng(seed)
  facts = rng.integers(30, size=(count, 3))
  facts[:, 1] %= 3
  return np.unique(facts, axis=0).astype(np.int32)


def _reference(options, facts, params, weight):
  """Both sides by loops over facts and entities, in float64."""
  e, r = (np.asarray(x, np.float64) for x in params)
  listed = {tuple(f) for f in facts.tolist()}
  total, penalty = 0.0, 0.0

  def score(h, k, t):
    return float(scores.score(options.model, r[k], e[h], e[t]))

  for h, k, t in facts.tolist():
    truth = score(h, k, t)
    for side in (0, 2):
      rows = [(z, k, t) if side == 0 else (h, k, z) for z in range(len(e))]
      values = np.array([score(*row) for row in rows])
      if options.loss == "softmax":
        total += np.log(np.sum(np.exp(values))) - truth
      else:
        fine = [row not in listed for row in rows]
        total += np.mean(np.log1p(np.exp(values[fine] - truth)))
    for x in (e[h], e[t], r[k]):
      if options.model == "complex":
        x = np.hypot(*np.split(x, 2))
      power = 3 if options.penalty == "n3" else 2
      penalty += np.sum(np.abs(x) ** power)
  return (total / 2 + weight * penalty) / len(facts)


@pytest.mark.parametrize("model", ["B", "T", "R", "complex"])
@pytest.mark.parametrize("loss", ["softmax", "bpr"])
@pytest.mark.parametrize("penalty", ["n3", "l2"])
def test_loss_equals_a_plain_count(model, loss, penalty):
  options = candidate_training.Options(model, 1, 0, loss, penalty)
  facts = _facts()[:1]  # one fact: BPR's mean over a batch is a plain mean
  with precision.enable_x64(True):
    params = scores.init_params(
      model, jax.random.key(0), 30, 3, 4, 0.7, jnp.float64
    )
    known = negatives.known_facts(facts, 30, 3)
    got = candidate_training.batch_loss(
      options, known, params, jnp.asarray(facts), None, 0.1
    )
    want = _reference(options, facts, params, 0.1)
  np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("candidates", [None, np.array([4, 7, 1, 2, 9])])
def test_matrices_at_once_give_the_slopes_of_a_matrix_for_each_fact(
  monkeypatch, candidates
):
  options = candidate_training.Options("R", 20, 0, penalty="n3")
  facts = _facts()[:20]
  with precision.enable_x64(True):
    params = scores.init_params(
      "R", jax.random.key(0), 30, 3, 4, 0.7, jnp.float64
    )
    known = negatives.known_facts(facts, 30, 3)

    def loss(params):
      return candidate_training.batch_loss(
        options, known, params, jnp.asarray(facts), candidates, 0.1
      )

    at_once = jax.value_and_grad(loss)(params)
    monkeypatch.setattr(candidate_training, "_TOGETHER", 0)
    for_each = jax.value_and_grad(loss)(params)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12),
    at_once,
    for_each,
  )


def test_a_sample_estimates_the_full_softmax():
  options = candidate_training.Options("complex", 8, 0)
  facts = jnp.asarray(_facts()[:8])
  params = scores.init_params("complex", jax.random.key(1), 30, 3, 4, 0.5)
  known = negatives.known_facts(np.asarray(facts), 30, 3)
  full = candidate_training.batch_loss(options, known, params, facts, None, 0.0)
  draws = jax.random.randint(jax.random.key(2), (200, 20), 0, 30)
  sampled = jax.vmap(
    lambda ids: candidate_training.batch_loss(
      options, known, params, facts, ids, 0.0
    )
  )(draws)
  np.testing.assert_allclose(sampled.mean(), full, rtol=0.03)


@pytest.mark.parametrize("model", ["T", "R", "complex"])
@pytest.mark.parametrize("head, tail", [(4, 7), (4, 4)])
def test_a_sample_counts_the_entity_of_the_other_place_once(model, head, tail):
  options = candidate_training.Options(model, 1, 5)
  fact = np.array([[head, 1, tail]], np.int32)
  drawn, others = np.array([4, 7, 1, 2, 9]), {7, 1, 2, 9} - {tail}
  with precision.enable_x64(True):
    params = scores.init_params(
      model, jax.random.key(0), 30, 3, 4, 0.7, jnp.float64
    )
    known = negatives.known_facts(fact, 30, 3)
    got = candidate_training.batch_loss(
      options, known, params, jnp.asarray(fact), jnp.asarray(drawn), 0.0
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
  compiled = kb_constraints.compile_rules("complex", rules, RELATIONS, ENTITIES)
  assert compiled.region is None
  options = candidate_training.Options("complex", 10, candidates)
  optimizer = optax.adagrad(0.1, initial_accumulator_value=0.0, eps=1e-24)
  facts = _facts(3)
  known = negatives.known_facts(facts, 30, 3)
  params = scores.init_params("complex", jax.random.key(0), 30, 3, 16, 0.1)
  state = candidate_training.init(optimizer, params)
  losses = []
  before = candidate_training.train._cache_size()
  for i in range(30):
    state, loss = candidate_training.train(
      options,
      optimizer,
      compiled,
      known,
      jnp.asarray(facts),
      state,
      jax.random.key(i),
      1e-4,
    )
    losses.append(float(loss))
  assert candidate_training.train._cache_size() == before + 1
  assert losses[-1] < 0.7 * losses[0]
  checked = rule_check.check_rules(
    "complex", state.params, rules, RELATIONS, ENTITIES, compiled
  )
  assert checked.worst <= 1e-5


def test_bad_options_are_refused():
  with pytest.raises(ValueError, match="loss"):
    candidate_training.Options("T", 1, 0, "hinge")
  with pytest.raises(ValueError, match="penalty"):
    candidate_training.Options("T", 1, 0, "bpr", "l1")

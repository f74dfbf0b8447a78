"""Losses over many candidates against plain counts."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiers

from repr_jax import kb
from repr_jax.errors import InputError
from repr_jax.kb import candidate_loss, negatives, scores
from repr_jax.kb.candidate_loss import CandidateBatch, CandidateConfig, Noise
from repr_jax.ops import precision

RELATIONS = ["r0", "r1", "r2"]
ENTITIES = [f"e{i}" for i in range(30)]


# One program, where the loss as it is compiles each of its operations.
_loss = jax.jit(candidate_loss.batch_loss, static_argnums=0)


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
    if config.regularizer == "dura":
      slopes = jax.grad(functools.partial(scores.score, config.model), (1, 2))(
        r[k], e[h], e[t]
      )
      penalty += sum(np.sum(np.square(x)) for x in (e[h], e[t], *slopes))
      continue
    for x in (e[h], e[t], r[k]):
      if config.model.name == "complex":
        x = np.hypot(*np.split(x, 2))
      power = 3 if config.regularizer == "n3" else 2
      penalty += np.sum(np.abs(x) ** power)
  return (total / 2 + weight * penalty) / len(facts)


_LOSSES = itertools.product(
  ["B", "T", "R", "complex"], ["softmax", "bpr"], ["n3", "l2", "dura"]
)


@pytest.mark.parametrize(("model", "loss", "penalty"), tiers.some(_LOSSES, 5))
def test_loss_equals_a_plain_count(model, loss, penalty):
  if model == "T" and penalty == "dura":
    with pytest.raises(InputError, match="by a distance; dura takes"):
      _config(model, 1, 0, loss, penalty)
    return
  config = _config(model, 1, 0, loss, penalty)
  facts = _facts()[:1]  # one fact: BPR's mean over a batch is a plain mean
  with precision.enable_x64(True):
    params = scores.init_params(
      model, jax.random.key(0), 30, 3, 4, 0.7, jnp.float64
    )
    known = negatives.known_facts(facts, 30, 3)
    got = _loss(config, known, params, CandidateBatch(jnp.asarray(facts)), 0.1)
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

    at_once = jax.jit(jax.value_and_grad(loss))(params)
    monkeypatch.setattr(candidate_loss, "_TOGETHER", 0)
    for_each = jax.jit(jax.value_and_grad(loss))(params)
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
  full = _loss(config, known, params, CandidateBatch(facts), 0.0)
  draws = jax.random.randint(jax.random.key(2), (200, 20), 0, 30)
  sampled = jax.jit(
    jax.vmap(
      lambda ids: _loss(config, known, params, CandidateBatch(facts, ids), 0.0)
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
    got = _loss(
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


@pytest.mark.parametrize("candidates", [None, jnp.array([0, 2, 3])])
def test_inverse_rows_that_are_conjugate_change_nothing(candidates):
  params = kb.init_params("complex", jax.random.key(0), 6, 2, 4, 1.0)
  real, imaginary = jnp.split(params.relations, 2, axis=1)
  rows = [real, imaginary, real, -imaginary]
  twice = params._replace(relations=jnp.concatenate(rows, axis=1))
  facts = jnp.array([[0, 1, 2], [3, 0, 1], [5, 1, 4]])
  batch = kb.CandidateBatch(facts, candidates)
  one, two = (
    _loss(
      kb.CandidateConfig(6, 2, model, 4), None, tables, batch, 0.1
    )
    for model, tables in (
      ("complex", params), (kb.reciprocal("complex"), twice)
    )
  )  # fmt: skip
  np.testing.assert_allclose(one, two, rtol=1e-5)
  ranks = [
    kb.rank(*kb.scorers(model, tables), np.asarray(facts), np.asarray(facts))
    for model, tables in (
      ("complex", params), (kb.reciprocal("complex"), twice)
    )
  ]  # fmt: skip
  assert kb.summary(ranks[0]) == kb.summary(ranks[1])
  score = kb.score(kb.reciprocal("complex"), twice.relations[0], *params[0][:2])
  np.testing.assert_allclose(
    score, kb.score("complex", params.relations[0], *params[0][:2]), rtol=1e-5
  )


_DROPPED = itertools.product(
  ["R", "complex", kb.reciprocal("complex")], [None, np.array([4, 7, 1, 2, 9])]
)


@pytest.mark.parametrize(("model", "candidates"), tiers.some(_DROPPED, 5))
def test_dropout_drops_questions_and_no_answers(model, candidates):
  config = _config(model, 4)
  facts = jnp.asarray(_facts()[:4])
  params = scores.init_params(config.model, jax.random.key(0), 30, 3, 4, 0.7)
  batch = CandidateBatch(facts, candidates)

  def loss(noise):
    return _loss(config, None, params, batch, 0.1, noise)

  key = jax.random.key(3)
  whole = loss(None)
  np.testing.assert_allclose(loss(Noise(key, 0.0)), whole, rtol=1e-5)
  assert abs(loss(Noise(key, 0.5)) - whole) > 1e-3
  assert abs(loss(Noise(key, 0.0, 0.5)) - whole) > 1e-3
  # All is dropped: every score is 0, and the penalty is that of whole rows.
  penalty = whole - _loss(config, None, params, batch, 0.0)
  nothing = loss(Noise(key, 1 - 1e-7)) - penalty
  if candidates is None:
    np.testing.assert_allclose(nothing, np.log(30), rtol=1e-4)
    nothing = loss(Noise(key, 0.0, 1 - 1e-7)) - penalty
    np.testing.assert_allclose(nothing, np.log(30), rtol=1e-4)
  rows = candidate_loss.drop(Noise(key, 0.25), 0, jnp.ones((100, 100)))
  np.testing.assert_allclose(np.unique(rows), [0, 1 / 0.75], rtol=1e-6)
  assert abs(float(rows.mean()) - 1) < 0.02

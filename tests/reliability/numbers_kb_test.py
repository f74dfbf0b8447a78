"""Knowledge bases at the edge: nothing unknown, one of each, ties, no rules.

Rules that contradict one another are in `tests/kb/rule_compiler_test.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.sparse as sp

from repr_jax import kb
from repr_jax.data.rules import Rule
from repr_jax.errors import InputError
from repr_jax.kb import (
  candidate_training,
  combine,
  negatives,
  pair_training,
  rescal_als,
  scores,
  slices,
)
from repr_jax.kb.rule_check import RuleCheck

pytestmark = pytest.mark.long  # edges, which compile much

_KEY = jax.random.key(0)
_KEYS = jax.random.split(_KEY, 2)


def _all_facts(entities: int, relations: int) -> np.ndarray:
  grid = np.indices((entities, relations, entities)).reshape(3, -1).T
  return grid.astype(np.int32)


def _same(found: scores.Params, expected: scores.Params) -> None:
  for one, other in zip(found, expected):
    np.testing.assert_array_equal(one, other)


def _trained(kind, facts, known, params):
  config = pair_training.SGDConfig(
    *(len(x) for x in params), "A", 1, kind, batch_size=4
  )
  params = jax.tree.map(jnp.copy, params)  # Training takes the tables' memory.
  state = pair_training.SGDState(params, jnp.float32(0.1), jnp.float32(0))
  state, losses = pair_training.train(
    config, None, known, jnp.asarray(facts), state, _KEYS
  )
  return state.params, losses


@pytest.mark.parametrize("kind", ["any", "corrupt"])
@pytest.mark.parametrize("entities", [1, 2])
def test_nothing_is_learned_where_every_fact_is_known(kind, entities):
  """The search for an unknown fact ends, and no pair counts."""
  facts = np.resize(_all_facts(entities, 1), (4, 3))
  known = kb.known_facts(facts, entities, 1)
  assert not negatives.draw_any(known, _KEY, 8).valid.any()
  start = kb.init_params("A", _KEY, entities, 1, 1)
  params, losses = _trained(kind, facts, known, start)
  np.testing.assert_array_equal(losses, 0)
  _same(params, start)


def test_one_fact_many_times_is_that_fact():
  """Of one dimension, with a relation that has no fact."""
  facts = np.array([[0, 0, 1]] * 4, np.int32)
  once = kb.known_facts(facts[:1], 3, 2)
  known = kb.known_facts(facts, 3, 2)
  np.testing.assert_array_equal(once.words, known.words)
  start = kb.init_params("A", _KEY, 3, 2, 1)
  params, losses = _trained("corrupt", facts, known, start)
  assert np.isfinite(losses).all() and (np.asarray(losses) > 0).all()
  np.testing.assert_array_equal(params.relations[1], start.relations[1])
  ranks = kb.rank(*kb.scorers("A", params), facts[:1], facts)
  assert all(np.isfinite(list(kb.summary(ranks).values())))


@pytest.mark.parametrize("loss", ["softmax", "bpr"])
def test_one_entity_has_no_rival(loss):
  facts = np.zeros((2, 3), np.int32)
  known = kb.known_facts(facts, 1, 1)
  config = kb.CandidateConfig(1, 1, "complex", 2, loss, batch_size=2)
  optimizer = optax.sgd(0.1)
  start = kb.init_params("complex", _KEY, 1, 1, 2)
  state = candidate_training.from_params(
    config, optimizer, jax.tree.map(jnp.copy, start), 0.0
  )
  state, value = candidate_training.train(
    config, optimizer, None, known, jnp.asarray(facts), state, _KEY
  )
  # The fact's score is computed apart from the candidates': last bits differ.
  np.testing.assert_allclose(value, 0, atol=1e-8)
  _same(state.params, start)


def test_too_few_facts_are_named():
  known = kb.known_facts(np.zeros((0, 3), int), 3, 2)
  start = kb.init_params("A", _KEY, 3, 2, 1)
  with pytest.raises(InputError, match="no facts to train on"):
    _trained("any", np.zeros((0, 3), np.int32), known, start)
  config = kb.CandidateConfig(3, 2, "complex", 2, batch_size=8)
  optimizer = optax.sgd(0.1)
  state = candidate_training.from_params(
    config, optimizer, kb.init_params("complex", _KEY, 3, 2, 2)
  )
  with pytest.raises(InputError, match="a batch of 8 facts is larger than"):
    candidate_training.train_pass(
      config, optimizer, None, known, jnp.zeros((4, 3), int), state, _KEY
    )


@pytest.mark.parametrize("model", ["A", "complex"])
def test_no_rules_change_nothing(model):
  params = kb.init_params(model, _KEY, 3, 2, 4)
  compiled = kb.compile_rules(model, [], ["r", "s"], ["a", "b", "c"])
  _same(kb.project(compiled, params), params)
  started = kb.checked_start(compiled, params, [], ["r", "s"], ["a", "b", "c"])
  _same(started, params)


def test_scores_that_are_all_equal_rank_in_the_middle():
  params = scores.Params(jnp.ones((5, 2)), jnp.full((2, 4), 1e3))
  facts = np.array([[0, 0, 1], [2, 1, 2]])
  ranks = kb.rank(*kb.scorers("A", params), facts, facts)
  for side in (ranks.head, ranks.tail):
    np.testing.assert_array_equal(side.filtered.realistic, 3)
  np.testing.assert_array_equal(
    combine.sureness("A", params, facts, "tail"), np.zeros((2, 2))
  )
  one = kb.init_params("A", _KEY, 1, 1, 2)
  fact = np.zeros((1, 3), int)
  np.testing.assert_array_equal(
    combine.sureness("A", one, fact, "head"), np.zeros((1, 2))
  )
  alone = kb.rank(*kb.scorers("A", one), fact, fact)
  assert kb.summary(alone)["mrr"] == 1
  with pytest.raises(InputError, match="cannot be combined"):
    combine.choice_features(fact, 1, np.full((1, 2), np.nan), np.ones((1, 2)))


def test_logistic_choice_at_the_edge():
  """Features of hundreds, separable; then no example that counts."""
  rng = np.random.default_rng(0)
  x = 300 * rng.standard_normal((40, 3)).astype(np.float32)
  y = (x[:, 0] > 0).astype(np.float32)
  w = np.asarray(kb.fit_logistic(x, y, np.ones(40, np.float32)), np.float64)
  chance = 1 / (1 + np.exp(-x @ w))
  np.testing.assert_allclose(x.T @ (chance - y) + w, 0, atol=1e-3)
  none = kb.fit_logistic(x, y, np.zeros(40, np.float32))
  np.testing.assert_array_equal(none, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("field", ["entities", "relations"])
@pytest.mark.parametrize("size", [4, 5000])
def test_tables_that_are_not_finite_are_named(size, field, value):
  """A compiled maximum of 4,096 numbers or more passes over a NaN."""
  params = kb.init_params("A", _KEY, size, 2, 2)
  table = getattr(params, field)
  params = params._replace(**{field: table.at[1, 0].set(value)})
  names = ["r", "s"], [f"e{i}" for i in range(size)]
  rules = [Rule("RelImp", ("r", "s"))]
  compiled = kb.compile_rules("A", rules, *names)
  message = f"row 1 of the table of {field} is not finite"
  for constraints in (None, compiled):
    with pytest.raises(InputError, match=message):
      kb.check_rules("A", params, rules, *names, constraints)
  with pytest.raises(InputError, match=message):
    kb.checked_start(compiled, params, rules, *names)
  with pytest.raises(InputError, match=message):
    combine.sureness("A", params, np.array([[0, 0, 1]]), "tail")


@pytest.mark.parametrize("scale", [np.nan, np.inf])
def test_a_scale_that_is_not_finite_is_named(scale):
  with pytest.raises(InputError, match=f"start must be finite, not {scale}"):
    scores.init_params("B", _KEY, 3, 2, 2, scale=scale)


def test_the_worst_violation_is_a_nan_where_one_is():
  sampled, real = np.array([0.5, 1.0]), np.array([0.0, np.nan])
  assert np.isnan(RuleCheck(sampled, real).worst)
  assert RuleCheck(sampled, sampled).worst == 1
  assert RuleCheck(sampled[:0], sampled[:0]).worst == 0


@pytest.mark.parametrize("size", [2, 70])
def test_a_matrix_with_a_nan_violates_nothing(size):
  matrix = jnp.triu(jnp.ones((size, size))).at[0, 0].set(jnp.nan)
  with pytest.raises(InputError, match="not a finite number"):
    kb.violating_triple(matrix)


@pytest.mark.parametrize(
  "fact, message",
  [
    ([0, 0, 3], r"fact 1, \[0, 0, 3\], has an id outside the 3 entities"),
    ([0, 2, 0], "and 2 relations"),
    ([-1, 0, 0], "id outside"),
    ([0, 0.5, 0], "whole numbers"),
  ],
)
def test_facts_outside_the_universe_are_named(fact, message):
  facts = np.array([[0, 0, 1], fact])
  with pytest.raises(InputError, match=message):
    kb.known_facts(facts, 3, 2)


def test_rescal_of_full_rank_and_of_one_entity():
  rng = np.random.default_rng(0)
  dense = [(rng.random((6, 6)) < 0.3) + np.eye(6) for _ in range(2)]
  matrices = slices.make_slices([sp.csr_matrix(x) for x in dense])
  state = rescal_als.init(matrices, 6, _KEY)
  np.testing.assert_allclose(state.fit, 1, atol=1e-5)
  left, right, cores = state.model
  found = jnp.einsum("ia,kab,jb->kij", left, cores, right)
  np.testing.assert_allclose(found, dense, atol=1e-4)
  one = slices.make_slices([sp.csr_matrix([[3.0]])])
  state = rescal_als.update(one, rescal_als.init(one, 1, _KEY))
  left, right, cores = state.model
  np.testing.assert_allclose(left @ cores[0] @ right.T, [[3]], rtol=1e-5)


@pytest.mark.parametrize(
  "matrices, message",
  [
    ([], "no relation matrix"),
    ([sp.csr_matrix((3, 3))], "relation matrix 0 .* no nonzero entry"),
    ([1e25 * sp.eye(3)], "relation matrix 0 .* overflow"),
    ([sp.eye(3), np.inf * sp.eye(3)], "relation matrix 1 .* infinite"),
  ],
)
def test_relations_that_cannot_be_fitted_are_named(matrices, message):
  with pytest.raises(InputError, match=message):
    slices.make_slices(matrices)


@pytest.mark.parametrize("name", ["mixing", "cap", "radius"])
@pytest.mark.parametrize("value", [np.inf, np.nan, -1.0])
def test_numbers_of_rules_that_are_not_finite_are_named(name, value):
  with pytest.raises(InputError, match=name):
    kb.RuleConfig(**{name: value})

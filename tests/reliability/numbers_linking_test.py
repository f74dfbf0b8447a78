"""Linking and measures at the edge: no words, one mention, ties, one item."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import evaluation, linking, ops
from repr_jax.data import testsets
from repr_jax.data.documents import candidates
from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)
from repr_jax.data.documents.packing import Packed, pack
from repr_jax.data.documents.priors import Prior
from repr_jax.data.relatedness import RelatednessQuery
from repr_jax.errors import InputError
from repr_jax.evaluation import tables
from repr_jax.linking import (
  disambiguation,
  entity_vectors,
  mention_retrieval,
  posterior_means,
)

pytestmark = pytest.mark.long  # edges, which compile much

_CONFIG = disambiguation.Config(keep=2, hidden=4, iterations=3)


def test_fields_without_a_state_say_nothing():
  unary = jnp.full((3, 2), jnp.nan)
  pairwise = jnp.full((3, 3, 2, 2), jnp.nan)
  nobody = jnp.zeros((3, 2), bool)
  found = ops.max_product(unary, pairwise, nobody)
  np.testing.assert_array_equal(found, 0)
  # One variable is left: it keeps its own scores, to the last infinity.
  mask = nobody.at[1].set(True)
  scores = unary.at[1].set(jnp.array([1e30, -1e30]))
  found = ops.max_product(scores, pairwise, mask)
  np.testing.assert_allclose(found[1, 0], 0, atol=1e-6)
  np.testing.assert_array_equal(found[jnp.array([0, 2])], 0)
  assert np.isfinite(found).all()


@pytest.mark.parametrize("coherence", [True, False])
def test_equal_candidates_are_decided_by_place(coherence):
  """No words, no prior, no vectors; then mentions without candidates."""
  config = disambiguation.Config(
    keep=2, hidden=4, iterations=3, coherence=coherence
  )
  params = linking.init_params(config, 3, jax.random.key(0))
  words = disambiguation.Tables(np.zeros((4, 3)), np.zeros((2, 3)))
  candidates = np.array([[[0, 1], [2, 3]], [[-1, -1], [1, -1]]])
  documents = Packed(
    candidates,
    np.zeros((2, 2, 2), np.float32),
    np.full((2, 2, 3), -1),
    np.full((2, 2), -1),
  )
  one = functools.partial(linking.disambiguate, config, params, words)
  found = jax.jit(jax.vmap(one))(documents).best
  np.testing.assert_array_equal(found, [[0, 0], [-1, 0]])


def _packed(probability: float, words=("none",)):
  mention = LinkedMention(0, 1, "Who", "E", [("E", probability), ("F", 1.0)])
  document = LinkedDocument("d", ("Who",), (mention,))
  lists = candidates.document_candidates(
    candidates.build_index(Prior({})), document
  )
  places = {"E": 0, "F": 1}
  index = {word: i for i, word in enumerate(words)}
  (group,) = pack([document], [lists], places, index, context=4)
  return group.packed


@pytest.mark.parametrize("probability", [0.0, 1e-300, 1.0])
def test_priors_of_zero_and_one(probability):
  found = _packed(probability)
  assert np.isfinite(found.log_prior).all()
  place = found.candidates[0, 0].tolist().index(0)
  expected = np.log(max(probability, 1e-4))
  np.testing.assert_allclose(found.log_prior[0, 0, place], expected, rtol=1e-6)


@pytest.mark.parametrize("probability", [np.nan, np.inf, -0.5])
def test_priors_that_are_no_probability_are_named(probability):
  with pytest.raises(InputError, match="candidate 'E' of 'Who' has the"):
    _packed(probability)


def test_entities_without_words_and_words_without_length():
  vectors = np.array([[0, 0], [1e-38, 0], [0, 1e30]], np.float32)
  offsets, words = np.array([0, 0, 1, 2, 4]), np.array([0, 1, 2, 2])
  found = entity_vectors.fit_max_margin(
    vectors, offsets, words, np.ones(3), key=jax.random.key(0), steps=3
  )
  np.testing.assert_array_equal(found[0], 0)
  np.testing.assert_allclose(np.linalg.norm(found[1:], axis=1), 1, rtol=1e-5)
  with pytest.raises(InputError, match="nothing to fit"):
    posterior_means.fit_posterior_means(
      sp.csr_array((3, 5), dtype=np.float32), key=jax.random.key(0), epochs=0
    )


def test_ensembles_of_constant_scores():
  constant = np.array([[2.0, 2.0, -np.inf], [-np.inf] * 3])
  other = np.array([[1e30, -1e30, -np.inf], [-np.inf] * 3])
  both = np.stack([constant, other]).astype(np.float32)
  found = jax.jit(jax.vmap(linking.ensemble, (1, None)))(both, np.ones(2))
  np.testing.assert_array_equal(found[0], [0.5, 0, -np.inf])
  assert np.isneginf(found[1]).all()
  both[1, 0, 0] = np.nan
  broken = linking.ensemble(both[:, 0], np.ones(2))
  assert np.isnan(broken[:2]).all() and np.isneginf(broken[2])


def test_reranking_vectors_of_zero():
  vectors = np.array([[0, 0], [3e30, 0], [0, -1e-30]], np.float32)
  found = mention_retrieval.rerank_batch(
    vectors, np.array([0, 1]), np.array([[1, 2, -1], [1, 2, 0]])
  )
  np.testing.assert_allclose(found, [[0, 0, -np.inf], [1, 0, 0]], atol=1e-6)


@pytest.mark.parametrize("r", [0.0, 0.3, 0.8, 1.0])
def test_one_system_beside_itself(r):
  """No difference, whatever the rounding of a spread of zero."""
  t, p = evaluation.williams_test(r, r, 1.0, 20)
  assert (t, p) == (0.0, 0.5)
  assert np.isnan(evaluation.williams_test(0.9, 0.9, -0.9, 20)).all()
  same = np.full(5, r)
  rng = np.random.default_rng(0)
  for test in (evaluation.paired_bootstrap, evaluation.paired_permutation):
    found = test(same, same, rng)
    assert found.value == 0 and found.p_value == 1


def test_one_query_and_two():
  rng = np.random.default_rng(0)
  for n, least in ((1, 1.0), (2, 0.5)):
    found = evaluation.paired_permutation(np.zeros(n), np.ones(n), rng)
    assert found.p_value == least  # of 2^n signs, two are as extreme
    found = evaluation.paired_bootstrap(np.zeros(n), np.ones(n), rng)
    assert (found.lower, found.upper) == (1, 1)
    assert np.isnan(found.p_value) == (n == 1)
  assert evaluation.spearman([1, 2], [5, 9]) == 1
  assert evaluation.spearman([1, 1], [5, 9]) == 0
  with pytest.raises(ValueError, match="2 or more"):
    evaluation.spearman([1], [1])
  assert tables.threshold(3, "correlation") == np.inf
  assert tables.threshold(0, "accuracy") == np.inf
  assert evaluation.mrds_accuracy(1) == 1.0


def test_measures_without_anything_relevant():
  ranked = np.zeros(3, int)
  for value in (
    evaluation.average_precision(ranked, 0),
    evaluation.inferred_ap(ranked, 0),
    evaluation.ndcg(ranked, ranked),
    evaluation.r_precision(ranked, 0),
    evaluation.recall(ranked, 0, 2),
    evaluation.reciprocal_rank(ranked[:0]),
    evaluation.precision(ranked[:0], 1),
  ):
    assert value == 0
  nobody = np.zeros(0, int)
  found = evaluation.evaluate_linking(nobody, nobody, nobody.astype(bool))
  assert found.f1 == found.recall == 0 and found.mentions == 0


def test_relatedness_of_tiny_huge_and_bad_vectors():
  base = np.array([[1, 0], [1, 1], [0, 1], [-1, 1]], np.float32)
  rows = {name: i for i, name in enumerate("abcd")}
  query = RelatednessQuery("q", "a", ("b", "c", "d"), (1, 0, 1))
  expected = evaluation.evaluate_relatedness([query], base, rows)
  for scale in (1e-30, 1e30):
    found = evaluation.evaluate_relatedness([query], scale * base, rows)
    assert found.means == expected.means and found.coverage == 1
  base[2, 0] = np.nan
  with pytest.raises(InputError, match="not finite"):
    evaluation.evaluate_relatedness([query], base, rows)


def test_vectors_near_the_largest_number():
  vectors = np.array([[2e38, 0], [3e38, 3e38], [0, -3e38]], np.float32)
  found = mention_retrieval.rerank_batch(
    vectors, np.array([1]), np.array([[0, 1, 2]])
  )
  np.testing.assert_allclose(found, [[0.5**0.5, 1, -(0.5**0.5)]], rtol=1e-5)
  base = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
  base /= np.abs(base).max()
  terms, questions = jnp.arange(6), jnp.array([[0, 1, 2], [3, 4, 5]])
  for method in ("add", "mul"):
    answers = [
      evaluation.solve_analogies(x, terms, questions, method=method)
      for x in (base, base * np.float32(3e38), base * np.float32(1e-36))
    ]
    np.testing.assert_array_equal(answers[1], answers[0])
    np.testing.assert_array_equal(answers[2], answers[0])


@pytest.mark.parametrize("scale", [1.0, 1e10, 1e30])
def test_beliefs_beside_masked_states_are_probabilities(scale):
  """However low the scores of the states that there are."""
  rng = np.random.default_rng(0)
  unary = -scale * (1 + rng.random((3, 3), np.float32))
  pairwise = -scale * (1 + rng.random((3, 3, 3, 3), np.float32))
  pairwise = pairwise + pairwise.transpose(1, 0, 3, 2)
  mask = jnp.array([[1, 1, 0], [0, 1, 1], [0, 0, 0]], bool)
  found = ops.max_product(unary, pairwise, mask)
  total = np.where(mask, np.exp(found), 0).sum(axis=1)
  np.testing.assert_allclose(total, [1, 1, 0], atol=1e-6)
  slope = jax.jit(jax.grad(lambda x: ops.max_product(unary, x, mask)[0, 0]))(
    pairwise
  )
  assert np.isfinite(slope).all()


@pytest.mark.parametrize("name", ["margin", "alpha", "learning_rate"])
def test_rates_of_max_margin_vectors_are_named(name):
  with pytest.raises(InputError, match=f"{name} must be finite, not nan"):
    entity_vectors.fit_max_margin(
      np.eye(2), np.array([0, 1]), np.array([0]), np.ones(2),
      key=jax.random.key(0), **{name: np.nan},
    )  # fmt: skip


def test_test_sets_at_the_edge():
  """No question, vectors of whole numbers, and an index of other vectors."""
  index, nothing = {"a": 0, "b": 1, "c": 2, "d": 3}, np.zeros((0,))
  no_questions = testsets.AnalogySet("none", [], [])
  with pytest.raises(InputError, match="only 0 of 0"):
    evaluation.evaluate_analogies(np.eye(4), index, no_questions)
  no_pairs = testsets.SimilaritySet("none", [], nothing)
  with pytest.warns(UserWarning, match="only 0 of 0"):
    found = evaluation.evaluate_similarity(
      np.eye(4), index, no_pairs, empty="warn"
    )
  assert found.coverage == 0
  questions = testsets.AnalogySet("q", [("a", "b", "c", "d")], ["s"])
  vectors = np.array([[1, 0], [1, 1], [0, 1], [0, 2]])
  whole = evaluation.evaluate_analogies(vectors, index, questions)
  floats = evaluation.evaluate_analogies(vectors * 1.0, index, questions)
  np.testing.assert_array_equal(whole.answers, floats.answers)
  pairs = testsets.SimilaritySet("p", [("a", "b"), ("c", "d")], np.arange(2.0))
  for few in (vectors[:3], jnp.asarray(vectors[:3])):
    with pytest.raises(InputError, match="row 3, but there are 3 vectors"):
      evaluation.evaluate_analogies(few, index, questions)
    with pytest.raises(InputError, match="row 3, but there are 3 vectors"):
      evaluation.evaluate_similarity(few, index, pairs)


def test_first_of_equals_is_the_lowest_index():
  values, ids = ops.top_k(jnp.full(200, -jnp.inf), 3)
  np.testing.assert_array_equal(ids, [0, 1, 2])
  assert np.isneginf(values).all()

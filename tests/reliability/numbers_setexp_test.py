"""Queries at the edge, for every system: sizes, weights, counts, absences."""

import functools
from typing import NamedTuple

import hypothesis
import jax
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

from repr_jax import setexp
from repr_jax.data import entities
from repr_jax.data.entities import features
from repr_jax.errors import InputError
from repr_jax.setexp import explain, fitting, gaussian_scores, systems
from repr_jax.setexp.baselines import bm25, setexpan, word2vecf
from repr_jax.setexp.query import best, exclude, make_query

pytestmark = pytest.mark.long  # edges, which compile much

_ENTITIES, _FEATURES, _BARE = 1010, 40, 7
_POOLINGS = [f"features_{pooling}" for pooling in setexp.POOLINGS]
_SYSTEMS = (
  "bm25",
  "bernoulli",
  "poisson",
  "gaussian",
  "word2vecf",
  "setexpan",
  *gaussian_scores.SCORES,
  *_POOLINGS,
)


class _System(NamedTuple):
  system: systems.System
  model: object

  def scores(self, query):
    return self.system.score_batch([query])[0]

  def rows(self, query, rows):
    return self.system.score_rows(query, rows)

  def rationale(self, query):
    return self.system.rationale(query)

  def parts(self, query, entity):
    return self.system.contributions(query, [entity])[0]


@pytest.fixture(scope="module")
def counts():
  rng = np.random.default_rng(0)
  table = rng.poisson(0.4, (_ENTITIES, _FEATURES))
  table[np.arange(_ENTITIES), rng.integers(_FEATURES, size=_ENTITIES)] += 1
  table[_BARE] = 0
  return sp.csr_array(table.astype(np.float32))


@pytest.fixture(scope="module")
def encoded(counts):
  return _model(setexp.Config(dim=3, hidden=(8,), weighting="log1p"), counts)


def _model(config, counts):
  statistics = setexp.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(0), statistics)
  return setexp.model_from_scipy(config, params, statistics.inputs, counts)


@pytest.fixture(scope="module")
def system(counts, encoded):
  """A system by its name, fitted once."""
  rng = np.random.default_rng(1)
  vectors = rng.standard_normal((_ENTITIES, 4)).astype(np.float32)
  vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
  vectors[_BARE] = 0
  contexts = rng.standard_normal((_FEATURES, 4)).astype(np.float32)

  @functools.cache
  def make(name):
    if name in gaussian_scores.SCORES or name.startswith("features_"):
      score, _, pooling = name.partition("_")
      ranking = systems.RankingConfig(name)
      if score == "features":
        ranking = systems.RankingConfig(score, 0.5, 0.3, pooling)
      return _System(systems.nvse(encoded, ranking), encoded)
    baseline = systems.find_baseline(name)
    if name == "word2vecf":
      model = word2vecf.Model(vectors, contexts, contexts[:8], 5)
    elif name == "setexpan":
      config = setexpan.Config(features=20, samples=4, candidates=50)
      model = setexpan.fit(counts, config)
    else:
      model = baseline.fit(counts, 0)
    return _System(systems.bind(baseline, model), model)

  return make


def _is_answered(found: _System, query) -> None:
  """Scores, rationale and rows without features are all finite."""
  scores = found.scores(query)
  assert scores.shape == (_ENTITIES,) and np.isfinite(scores).all()
  assert len(best(exclude(scores, query), 5)) == 5
  assert np.isfinite(found.rationale(query)).all()
  bare = sp.csr_array((2, _FEATURES), dtype=np.float32)
  assert np.isfinite(found.rows(query, bare)).all()


@pytest.mark.parametrize(
  "name",
  [
    pytest.param(name, marks=pytest.mark.long if name == "setexpan" else ())
    for name in _SYSTEMS
  ],
)
def test_one_member_and_a_thousand(system, counts, name):
  found = system(name)
  _is_answered(found, make_query(counts, [3]))
  everyone = np.setdiff1d(np.arange(1001), [_BARE])
  _is_answered(found, make_query(counts, everyone))


@pytest.mark.parametrize("name", _SYSTEMS)
@pytest.mark.parametrize(
  "weights",
  [(1e6, -1e6, 0.0), (1e6, 1e6, 1e-6), (-1e6, 0.0, -1.0), (1e-38, -1e-38, 0.0)],
)
def test_extreme_weights(system, counts, name, weights):
  _is_answered(system(name), make_query(counts, [3, 9, 20], weights))


# SetExpan ranks all that are not in the query, and so depends on who is.
@pytest.mark.parametrize("name", [x for x in _SYSTEMS if x != "setexpan"])
def test_a_member_of_weight_zero_says_nothing(system, counts, name):
  found = system(name)
  with_zero = make_query(counts, [3, 9, 20], [1.0, 0.0, -2.0])
  without = make_query(counts, [3, 20], [1.0, -2.0])
  np.testing.assert_allclose(
    found.scores(with_zero), found.scores(without), rtol=1e-5, atol=1e-5
  )
  np.testing.assert_allclose(
    found.rationale(with_zero), found.rationale(without), rtol=1e-4, atol=1e-6
  )


@hypothesis.settings(max_examples=12, deadline=None, derandomize=True)
@hypothesis.given(
  name=st.sampled_from(_SYSTEMS),
  weights=st.lists(
    st.floats(-1e6, 1e6, width=32, allow_subnormal=True), min_size=3, max_size=3
  ).filter(any),
  seed=st.integers(0, 99),
)
def test_any_weights(system, counts, name, weights, seed):
  rows = np.random.default_rng(seed).choice(_ENTITIES, 3, replace=False)
  hypothesis.assume(_BARE not in rows and np.any(np.float32(weights)))
  _is_answered(system(name), make_query(counts, rows, weights))


def test_large_queries_are_scored_by_definition(system, counts, encoded):
  everyone = np.setdiff1d(np.arange(1001), [_BARE])
  weights = np.random.default_rng(0).uniform(-2, 3, len(everyone))
  query = make_query(counts, everyone, weights)
  weights = query.weights.astype(np.float64)
  dense = counts.toarray().astype(np.float64)
  present = (dense > 0).sum(axis=0)
  idf = np.maximum(np.log((_ENTITIES - present + 0.5) / (present + 0.5)), 0)
  norm = 1.5 * (0.25 + 0.75 * dense.sum(1) / dense.sum(1).mean())
  eager = idf * dense * 2.5 / (dense + norm[:, None])
  expected = eager @ (weights @ dense[everyone])
  found = system("bm25").scores(query)
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-2)
  vectors = system("word2vecf").model.entities.astype(np.float64)
  apart = ((vectors[:, None] - vectors[everyone][None]) ** 2).sum(axis=2)
  found = system("word2vecf").scores(query)
  np.testing.assert_allclose(found, -apart @ weights, rtol=1e-3, atol=1e-2)
  xi, precision = (np.asarray(x, np.float64).T for x in encoded.entities)
  own = weights @ xi[everyone]
  expected = -((own - xi) ** 2).sum(axis=1)
  np.testing.assert_allclose(system("xi").scores(query), expected, rtol=1e-3)
  mean = own / (np.abs(weights) @ precision[everyone])
  expected = -((mean - xi / precision) ** 2).sum(axis=1)
  found = system("mean").scores(query)
  np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_precision_of_a_query_is_never_negative(counts, encoded):
  """Signs reach the means alone, so that no weights break the product."""
  query = make_query(counts, [3, 9], [-1e6, -1.0])
  for name in gaussian_scores.SCORES:
    own = systems.nvse(encoded, systems.RankingConfig(name))
    flipped = make_query(counts, [3, 9], [1e6, 1.0])
    one, other = own.score_batch([query, flipped])
    assert np.isfinite(one).all()
    if name in ("mean", "kl_entity"):  # these order by the mean
      assert (one != other).any()


@pytest.mark.parametrize("weights", [(1e-39, 1e-45), (1e-39, -1e-39), (2, 6)])
def test_normalized_weights_of_any_size(counts, encoded, weights):
  own = systems.nvse(encoded, systems.RankingConfig("xi", normalize=True))
  found = own.score_batch([make_query(counts, [3, 9], weights)])
  assert np.isfinite(found).all()
  if weights == (2, 6):
    shares = make_query(counts, [3, 9], (0.25, 0.75))
    np.testing.assert_allclose(found, own.score_batch([shares]), rtol=1e-4)


def test_huge_counts_and_weights_together():
  table = np.ones((6, 5), np.float32)
  table[:3] = [[1e30, 0, 2, 0, 1], [1e30, 1, 0, 0, 1], [0, 5, 1e30, 1, 0]]
  table[3:, 0] = 0
  counts = sp.csr_array(table)
  query = make_query(counts, [0, 1, 2], [1e6, 1e6, -1e6])
  lexical = systems.bind(bm25.BM25, bm25.fit(counts))
  assert np.isfinite(lexical.score_batch([query])).all()
  model = _model(setexp.Config(dim=3, hidden=(8,), weighting="bm25"), counts)
  for pooling in setexp.POOLINGS:
    ranking = systems.RankingConfig("features", 0.5, 0.5, pooling)
    found = systems.nvse(model, ranking).score_batch([query])
    assert np.isfinite(found).all()


@pytest.mark.parametrize("name", _SYSTEMS)
def test_contributions_sum_to_the_score(system, counts, name):
  found = system(name)
  query = make_query(counts, [3, 9, 20], [1.0, 2.0, -0.5])
  scores = found.scores(query)
  order = np.argsort(-scores)
  for entity in (*order[[0, 3, 8, 40, -1]].tolist(), 3, _BARE):
    parts = found.parts(query, entity)
    sizes = [float(np.abs(x).sum()) for x in (parts.features, parts.dimensions)]
    # Rounding is that of the largest terms where they cancel.
    assert float(parts.total) == pytest.approx(
      float(scores[entity]), rel=2e-5, abs=1e-6 * sum(sizes)
    )


@pytest.mark.parametrize("pooling", setexp.POOLINGS)
def test_a_batch_of_queries_of_any_size(counts, encoded, pooling):
  """Queries of one member and of a thousand, and a member that is new."""
  ranking = systems.RankingConfig("features", 0.5, 0.3, pooling)
  own = systems.nvse(encoded, ranking)
  new = sp.csr_array(counts[[50]])
  queries = [
    make_query(counts, [1, 2]),
    make_query(counts, [x for x in range(10, 1000) if x != _BARE]),
    make_query(counts, [4, 5], [1.0, -1.0]),
    make_query(counts, [6], None, new),
    make_query(counts, [8]),
  ]
  padded = setexp.pad_queries(encoded, queries)
  answers = setexp.expand(encoded, padded, ranking.traced(), 10)
  for query, ids, values in zip(queries, *map(np.asarray, answers)):
    scores = exclude(own.score_batch([query])[0], query)
    rows = best(scores, 10)
    np.testing.assert_allclose(values, scores[rows], rtol=1e-3)
    assert not np.isin(ids, query.ids).any()


def test_reasons_at_the_edge():
  names = ["a", "b", "c"]
  found = explain.top_features(np.zeros(3), names, 9)
  assert [x.name for x in found] == names
  assert explain.top_features(np.ones(3), names, 0) == []
  featurize = lambda text: sp.csr_array(np.array([[float(len(text)), 0, 0]]))  # noqa: E731
  rank = functools.partial(explain.justifications, lambda rows: rows.sum(1))
  assert rank(featurize, []) == []
  only = rank(featurize, ["", "yes", "yes"], 5)
  assert [x.sentence for x in only] == ["yes", ""]
  (concept,) = explain.concept_table(np.zeros((3, 2)), names, 9, True)
  assert len(concept.positive) == len(concept.negative) == 3


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_parameters_that_are_not_finite_are_refused(counts, encoded, value):
  """The loss of a step is that before it: it cannot tell."""
  config, params, inputs = encoded.config, encoded.params, encoded.inputs
  hyper = setexp.Hyper(value)
  with pytest.raises(InputError, match=f"rate must be .* not {value}"):
    fitting.fit(counts, config, jax.random.key(0), epochs=1, hyper=hyper)
  start = np.full((_FEATURES, 8), value, np.float32)
  with pytest.raises(InputError, match="not finite"):
    fitting.fit(counts, config, jax.random.key(0), epochs=0, word_vectors=start)
  bad = params._replace(table=params.table.at[3, 0].set(value))
  with pytest.raises(InputError, match="table of the model"):
    setexp.model_from_scipy(config, bad, inputs, counts)
  with pytest.raises(InputError, match="mean_length of the model"):
    bad = inputs._replace(mean_length=value)
    setexp.model_from_scipy(config, params, bad, counts)


def test_mentions_that_reach_past_their_sentence():
  sentence = entities.Sentence("d", ("Bach", "wrote"), ((0, 1, "bach"),))
  table = features.build([sentence], drop_most_frequent=0, min_count=1)
  far = entities.Sentence("d", ("Bach", "wrote"), ((0, 10**12, "bach"),))
  found = features.featurize(table, [far]).toarray()
  np.testing.assert_array_equal(
    found, features.featurize(table, [sentence]).toarray()
  )


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_counts_that_are_no_counts_are_refused(counts, encoded, value):
  bad = counts.toarray()
  bad[5, 5] = value
  bad = sp.csr_array(bad)
  with pytest.raises(InputError, match="finite"):
    word2vecf.fit(bad, epochs=1)
  with pytest.raises(InputError, match="finite"):
    setexp.model_from_scipy(encoded.config, encoded.params, encoded.inputs, bad)
  with pytest.raises(InputError, match="finite"):
    setexpan.fit(bad)

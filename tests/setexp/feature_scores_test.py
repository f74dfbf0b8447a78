"""Ranking by the decoder: against the formula written out in loops."""

import jax
import jax.test_util
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import setexp
from repr_jax.data import synthetic_corpora
from repr_jax.setexp import systems
from repr_jax.setexp.baselines import bm25
from repr_jax.setexp.query import make_query


@pytest.fixture(scope="module")
def counts():
  world = synthetic_corpora.entity_sets(
    np.random.default_rng(0), clusters=3, members=8, shared_features=10
  )
  return world.counts


@pytest.fixture(scope="module", params=["multinomial", "multilabel"])
def model(request, counts):
  config = setexp.Config(dim=3, hidden=(6,), decoder=request.param)
  return _model(config, counts)


def _model(config, counts):
  statistics = setexp.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(1), statistics)
  return setexp.model_from_scipy(config, params, statistics.inputs, counts)


def _score(model, query, power=0.5, pooling="mean", share=0.0):
  ranking = systems.RankingConfig("features", power, share, pooling)
  return systems.nvse(model, ranking).score_batch([query])[0]


def _table(counts):
  """BM25's weights of all features, dense."""
  return bm25.weigh_rows(bm25.fit(counts, positive=True), counts)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_scores_are_the_formula(model, counts, power):
  query = make_query(counts, [0, 3], [1.0, -0.5])
  found = _score(model, query, power, "product")
  mean = np.zeros(3)
  precision = np.zeros(3)
  for row, weight in ((0, 1.0), (3, -0.5)):
    mean += weight * np.asarray(model.entities.xi)[:, row]
    precision += abs(weight) * np.asarray(model.entities.precision)[:, row]
  table = np.asarray(model.params.decoder, np.float64)
  logits = table[:, :-1] @ (mean / precision) + table[:, -1]
  p = np.exp(logits)
  bernoulli = model.config.decoder == "multilabel"
  p = p / (1 + p) if bernoulli else p / p.sum()
  dense = counts.toarray()
  size, width = dense.shape
  frequency = (dense > 0).sum(axis=0)
  length = dense.sum(axis=1)
  for x in range(size):
    expected = 0.0
    for i in range(width):
      idf = np.log(1 + (size - frequency[i] + 0.5) / (frequency[i] + 0.5))
      norm = 1.5 * (0.25 + 0.75 * length[x] / length.mean())
      tf = dense[x, i] * 2.5 / (dense[x, i] + norm)
      expected += p[i] ** power * idf * tf
    assert found[x] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_poolings_agree_where_they_must(model, counts):
  def score(pooling, query):
    return _score(model, query, pooling=pooling)

  one = make_query(counts, [4], [2.0])
  alone = make_query(counts, [4])
  several = make_query(counts, [4, 5, 20], [1.0, 0.5, -0.25])
  # One member is its own mean and its own product, and weighs what it may.
  np.testing.assert_allclose(
    score("mean", one), score("product", one), rtol=1e-4
  )
  np.testing.assert_allclose(
    score("merged", alone), score("mean", alone), rtol=1e-4
  )
  sizes = np.array([1.0, 0.5, -0.25]) / 1.75
  xi, precision = (np.asarray(x)[:, [4, 5, 20]] for x in model.entities)
  table = np.asarray(model.params.decoder)
  logits = table[:, :-1] @ ((xi / precision) @ sizes) + table[:, -1]
  p = 1 / (1 + np.exp(-logits))
  if model.config.decoder == "multinomial":
    p = np.exp(logits) / np.exp(logits).sum()
  np.testing.assert_allclose(
    score("mean", several), _table(counts) @ np.sqrt(p), rtol=1e-4
  )
  union = make_query(
    counts, [], new_rows=counts[[4]] + counts[[5]] + counts[[20]]
  )
  np.testing.assert_allclose(
    score("merged", make_query(counts, [4, 5, 20])),
    score("product", union),
    rtol=1e-4,
  )


def test_the_own_share_smooths_the_members_counts(model, counts):
  weights = [1.0, 0.5, -0.25]
  query = make_query(counts, [4, 5, 20], weights)
  rows = counts.toarray()[[4, 5, 20]]
  own = np.zeros(counts.shape[1])
  for i in range(len(own)):
    total = sum(w * x[i] for w, x in zip(weights, rows))
    share = sum(max(w, 0) for w, x in zip(weights, rows) if x[i] > 0)
    own[i] = max(total, 0) * share
  p = _score(model, query, 1.0)
  if model.config.decoder == "multilabel":  # Presences become shares.
    table = np.asarray(model.params.decoder)
    mean = np.asarray(model.entities.xi / model.entities.precision)
    z = mean[:, [4, 5, 20]] @ (np.array(weights) / 1.75)
    p = p / (1 / (1 + np.exp(-table[:, :-1] @ z - table[:, -1]))).sum()
  found = _score(model, query, 1.0, share=0.3)
  expected = 0.7 * p + 0.3 * (_table(counts) @ own) / own.sum()
  np.testing.assert_allclose(found, expected, rtol=1e-4)
  # One member without the decoder is BM25, up to scale.
  one = make_query(counts, [4])
  members = _score(model, one, 1.0, share=1.0)
  index = bm25.fit(counts, positive=True)
  (lexical,) = systems.bind(bm25.BM25, index).score_batch([one])
  length = counts[[4]].sum()
  np.testing.assert_allclose(members * length, lexical, rtol=1e-4)
  only_away = make_query(counts, [4], [-1.0])
  assert np.isfinite(_score(model, only_away, share=0.5)).all()


def test_two_kinds_alone_are_told_apart():
  # Every feature of a kind is in half of the entities.
  kinds = np.kron(np.eye(2), np.ones((6, 5)))
  counts = sp.csr_array(kinds.astype(np.float32))
  built = _model(setexp.Config(dim=2, hidden=(4,)), counts)
  found = _score(built, make_query(counts, [0, 1, 2]), share=0.5)
  assert found[3:6].min() > found[6:].max()


@pytest.mark.parametrize("pooling", setexp.POOLINGS)
def test_batches_and_new_members_score_as_the_table(model, counts, pooling):
  ranking = systems.RankingConfig("features", 0.75, 0.4, pooling)
  system = systems.nvse(model, ranking)
  rng = np.random.default_rng(0)
  queries = []
  for _ in range(20):  # More than are multiplied one by one.
    ids = rng.choice(counts.shape[0], rng.integers(1, 6), replace=False)
    queries.append(make_query(counts, ids, rng.uniform(-1, 2, len(ids))))
  many = system.score_batch(queries)
  for row, query in zip(many, queries):
    one = system.score_batch([query])[0]
    np.testing.assert_allclose(row, one, rtol=1e-4)
    outside = system.score_rows(query, counts)
    np.testing.assert_allclose(outside, one, rtol=1e-4)
  known = make_query(counts, [1, 4], [1.0, 0.5])
  new = make_query(counts, [4], [0.5, 1.0], new_rows=counts[[1]])
  np.testing.assert_allclose(
    *(system.score_batch([x]) for x in (known, new)), rtol=1e-4
  )


def test_gradients_of_the_settings_by_finite_differences(model, counts):
  query = setexp.pad_queries(model, [make_query(counts, [1, 4], [1.0, 0.5])])
  query = jax.tree.map(lambda x: x[0], query)
  base = setexp.make_ranking("features", power=0.6, member_share=0.4)

  def score(power, share):
    ranking = base._replace(power=power, member_share=share)
    return setexp.score_entities(model, query, ranking)[9]

  jax.test_util.check_grads(
    score, (0.6, 0.4), order=1, modes=["rev"], atol=2e-2, rtol=2e-2, eps=1e-2
  )

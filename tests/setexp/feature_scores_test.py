"""Ranking by the decoder: against the formula written out in loops."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.data import synthetic_corpora
from repr_jax.errors import InputError
from repr_jax.setexp import autoencoder, expansion, feature_scores
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
  config = autoencoder.Config(latent=3, hidden=(6,), decoder=request.param)
  params = autoencoder.init_params(config, jax.random.key(1), counts)
  return expansion.build(config, params, autoencoder.statistics(counts), counts)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_scores_are_the_formula(model, counts, power):
  query = make_query(counts, [0, 3], [1.0, -0.5])
  found = feature_scores.score(
    feature_scores.fit(model, counts, power, "product"), query
  )
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
    return feature_scores.score(
      feature_scores.fit(model, counts, 0.5, pooling), query
    )

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
  fitted = feature_scores.fit(model, counts)
  np.testing.assert_allclose(
    score("mean", several), fitted.table @ np.sqrt(p), rtol=1e-4
  )
  union = make_query(
    counts, [], new_rows=counts[[4]] + counts[[5]] + counts[[20]]
  )
  np.testing.assert_allclose(
    score("merged", make_query(counts, [4, 5, 20])),
    score("product", union),
    rtol=1e-4,
  )
  with pytest.raises(InputError, match="pooling"):
    feature_scores.fit(model, counts, 0.5, "sum")


def test_the_own_share_smooths_the_members_counts(model, counts):
  weights = [1.0, 0.5, -0.25]
  query = make_query(counts, [4, 5, 20], weights)
  rows = counts.toarray()[[4, 5, 20]]
  own = np.zeros(counts.shape[1])
  for i in range(len(own)):
    total = sum(w * x[i] for w, x in zip(weights, rows))
    share = sum(max(w, 0) for w, x in zip(weights, rows) if x[i] > 0)
    own[i] = max(total, 0) * share
  decoder = feature_scores.fit(model, counts, 1.0)
  p = feature_scores.score(decoder, query)
  if model.config.decoder == "multilabel":  # Presences become shares.
    table = np.asarray(model.params.decoder)
    mean = np.asarray(model.entities.xi / model.entities.precision)
    z = mean[:, [4, 5, 20]] @ (np.array(weights) / 1.75)
    p = p / (1 / (1 + np.exp(-table[:, :-1] @ z - table[:, -1]))).sum()
  found = feature_scores.score(
    feature_scores.fit(model, counts, 1.0, own=0.3), query
  )
  expected = 0.7 * p + 0.3 * (decoder.table @ own) / own.sum()
  np.testing.assert_allclose(found, expected, rtol=1e-4)
  # One member without the decoder is BM25, up to scale.
  one = make_query(counts, [4])
  members = feature_scores.score(
    feature_scores.fit(model, counts, 1.0, own=1.0), one
  )
  lexical = bm25.score(bm25.fit(counts, positive=True), one)
  length = counts[[4]].sum()
  np.testing.assert_allclose(members * length, lexical, rtol=1e-4)
  only_away = make_query(counts, [4], [-1.0])
  assert np.isfinite(
    feature_scores.score(decoder._replace(own=0.5), only_away)
  ).all()
  for share in (-0.1, 1.1, np.nan):
    with pytest.raises(InputError, match="own share"):
      feature_scores.fit(model, counts, own=share)


def test_two_kinds_alone_are_told_apart():
  # Every feature of a kind is in half of the entities.
  kinds = np.kron(np.eye(2), np.ones((6, 5)))
  counts = sp.csr_array(kinds.astype(np.float32))
  config = autoencoder.Config(latent=2, hidden=(4,))
  params = autoencoder.init_params(config, jax.random.key(0), counts)
  built = expansion.build(
    config, params, autoencoder.statistics(counts), counts
  )
  query = make_query(counts, [0, 1, 2])
  found = feature_scores.score(
    feature_scores.fit(built, counts, own=0.5), query
  )
  assert found[3:6].min() > found[6:].max()


def test_rows_and_batches_score_as_the_table(model, counts):
  fitted = feature_scores.fit(model, counts, own=0.4)
  queries = [make_query(counts, ids) for ids in ([1], [2, 9, 17])]
  new = make_query(counts, [], new_rows=counts[[1]])
  both = feature_scores.score_batch(fitted, [*queries, new])
  for row, query in zip(both, queries):
    one = feature_scores.score(fitted, query)
    np.testing.assert_allclose(row, one, rtol=1e-5)
    outside = feature_scores.score_rows(fitted, query, counts)
    np.testing.assert_allclose(outside, one, rtol=1e-5)
  np.testing.assert_allclose(both[2], both[0], rtol=1e-4)
  assert feature_scores.score_batch(fitted, []).shape == (0, counts.shape[0])
  np.testing.assert_array_equal(
    feature_scores.rationale(fitted, queries[0]),
    expansion.rationale(model, queries[0]),
  )


@pytest.mark.parametrize("power", [0.0, -1.0, np.nan, np.inf])
def test_a_power_that_cannot_be_is_refused(model, counts, power):
  with pytest.raises(InputError, match="power"):
    feature_scores.fit(model, counts, power)

"""Many queries at once have the answers of each alone."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.setexp import (
  autoencoder,
  expansion,
  feature_scores,
  feature_scores_batch,
)
from repr_jax.setexp.query import best, exclude, make_query


@pytest.fixture(scope="module")
def counts():
  rng = np.random.default_rng(0)
  table = rng.poisson(0.4, (300, 50)) + np.eye(300, 50)
  return sp.csr_array(table.astype(np.float32))


def _model(counts, kind):
  config = autoencoder.Config(
    latent=4, hidden=(8,), decoder=kind, weighting="bm25"
  )
  params = autoencoder.init_params(config, jax.random.key(0), counts)
  return expansion.build(config, params, autoencoder.statistics(counts), counts)


def _queries(counts, number):
  rng = np.random.default_rng(1)
  found = []
  for _ in range(number):
    rows = rng.choice(
      np.flatnonzero(np.diff(counts.indptr)), rng.integers(1, 9)
    )
    rows = np.unique(rows)
    weights = rng.uniform(-1, 2, len(rows))
    found.append(make_query(counts, rows, weights))
  return found


@pytest.mark.parametrize(
  ("kind", "pooling", "own", "number"),
  [
    ("multinomial", "mean", 0.5, 70),
    ("multinomial", "product", 0.0, 5),
    ("multilabel", "merged", 0.3, 9),
    ("multinomial", "mean", 1.0, 2),
  ],
)
def test_a_batch_answers_as_each_query_alone(
  counts, kind, pooling, own, number
):
  model = _model(counts, kind)
  fitted = feature_scores.fit(model, counts, 0.75, pooling, own)
  queries = _queries(counts, number)
  found = feature_scores_batch.expand_batch(
    feature_scores_batch.prepare(fitted, 12), queries, 20
  )
  assert len(found) == number
  for query, answer in zip(queries, found):
    scores = exclude(feature_scores.score(fitted, query), query)
    rows = best(scores, 20)
    np.testing.assert_allclose(answer.scores, scores[rows], rtol=2e-4)
    # The same entities where rounding cannot change the order.
    np.testing.assert_allclose(scores[answer.ids], answer.scores, rtol=2e-4)
    assert not set(answer.ids.tolist()) & set(query.ids.tolist())


def test_other_numbers_of_queries_and_members_compile_nothing(
  counts, compilations
):
  fitted = feature_scores.fit(
    _model(counts, "multinomial"), counts, 0.75, own=0.5
  )
  batch = feature_scores_batch.prepare(fitted, 12)
  queries = _queries(counts, 64)
  for size in feature_scores_batch.SIZES:
    feature_scores_batch.expand_batch(batch, queries[:size], 10)

  def mixed():
    for size in (3, 7, 9, 20, 33, 50, 64):
      feature_scores_batch.expand_batch(batch, queries[-size:], 10)
    return ()

  assert compilations.during(mixed) == 0


def test_more_is_asked_for_than_there_is(counts):
  fitted = feature_scores.fit(_model(counts, "multinomial"), counts)
  batch = feature_scores_batch.prepare(fitted, 4)
  queries = [make_query(counts, [i, 7 + i]) for i in range(3)]
  for answer in feature_scores_batch.expand_batch(batch, queries, 1_000):
    assert len(answer.ids) == 298
  assert feature_scores_batch.expand_batch(batch, []) == []

"""The cosine score: its formula, its parts, and what it does not see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import setexp

_COUNTS = np.random.default_rng(0).poisson(0.8, (12, 9)).astype(np.float32)
_COUNTS[:, 0] += 1


def _model(**options):
  config = setexp.Config(dim=3, hidden=(3,), weighting="bm25", **options)
  statistics = setexp.statistics_from_scipy(config, sp.csr_array(_COUNTS))
  params = setexp.init(config, jax.random.key(1), statistics)
  bias = jnp.array([0.3, -0.2, 0.1])
  params.encoder["bias"] = bias
  return setexp.model_from_scipy(
    config, params, statistics.inputs, sp.csr_array(_COUNTS)
  )


def _query(model, ids, weights=None):
  query = setexp.make_query(sp.csr_array(_COUNTS), ids, weights)
  padded = setexp.pad_queries(model, [query])
  return jax.tree.map(lambda x: x[0], padded)


@pytest.mark.parametrize("activation", ["tanh", "linear"])
def test_scores_are_cosines_of_centered_means(activation):
  model = _model(activation=activation, unit_inputs=True)
  means = np.asarray(model.side.mean, np.float64).T
  apart = means - means.mean(axis=0)
  units = apart / np.linalg.norm(apart, axis=1, keepdims=True)
  total = 2.0 * units[1] - 0.5 * units[4]
  wanted = units @ total / np.linalg.norm(total)
  ranking = setexp.make_ranking("cosine")
  query = _query(model, [1, 4], [2.0, -0.5])
  scores = setexp.score_entities(model, query, ranking)
  np.testing.assert_allclose(scores, wanted, atol=1e-5)
  rows = setexp.rows_from_scipy(sp.csr_array(_COUNTS))
  again = setexp.score_rows(model, query, ranking, rows)
  np.testing.assert_allclose(again, wanted, atol=1e-5)


@pytest.mark.parametrize("pooling", setexp.POOLINGS)
@pytest.mark.parametrize("unit_inputs", [False, True])
def test_parts_of_a_linear_encoder_are_features(pooling, unit_inputs):
  model = _model(activation="linear", unit_inputs=unit_inputs)
  ranking = setexp.make_ranking("cosine", pooling=pooling)
  query = _query(model, [0, 3, 7])
  scores = setexp.score_entities(model, query, ranking)
  for entity in range(len(_COUNTS)):
    parts = setexp.contributions(model, query, entity, ranking)
    assert abs(float(parts.total - scores[entity])) < 1e-5
    assert not np.any(parts.dimensions)
    by_feature = parts.by_feature(9)
    assert not by_feature[_COUNTS[entity] == 0].any()


def test_parts_of_another_encoder_are_dimensions():
  model = _model(activation="tanh")
  ranking = setexp.make_ranking("cosine")
  query = _query(model, [0, 3])
  scores = setexp.score_entities(model, query, ranking)
  parts = setexp.contributions(model, query, 5, ranking)
  assert abs(float(parts.total - scores[5])) < 1e-5
  assert not np.any(parts.features)


def test_removing_the_best_feature_lowers_the_cosine():
  """The parts are reasons: without the largest the entity falls."""
  model = _model(activation="linear", unit_inputs=True)
  ranking = setexp.make_ranking("cosine")
  query = _query(model, [0, 3])
  scores = np.asarray(setexp.score_entities(model, query, ranking))
  less = _COUNTS.copy()
  for entity in range(len(_COUNTS)):
    parts = setexp.contributions(model, query, entity, ranking)
    less[entity, np.argmax(parts.by_feature(9))] = 0
  rows = setexp.rows_from_scipy(sp.csr_array(less))
  again = np.asarray(setexp.score_rows(model, query, ranking, rows))
  assert np.sum(again < scores) >= 10


def test_lengths_of_concepts_do_not_count():
  model = _model(activation="linear")
  ranking = setexp.make_ranking("cosine")
  query = _query(model, [0, 3])
  scores = setexp.score_entities(model, query, ranking)
  scaled = model.params._replace(table=model.params.table * 3)
  scaled.encoder["bias"] = model.params.encoder["bias"] * 3
  other = setexp.model_from_scipy(
    model.config, scaled, model.inputs, sp.csr_array(_COUNTS)
  )
  again = setexp.score_entities(other, query, ranking)
  np.testing.assert_allclose(again, scores, atol=1e-5)


def test_both_ways_to_a_model_agree():
  model = _model(activation="linear", unit_inputs=True)
  rows = setexp.rows_from_dense(jnp.asarray(_COUNTS))
  other = setexp.make_model(model.config, model.params, model.inputs, rows)
  ranking = setexp.make_ranking("cosine")
  query = _query(model, [0, 3])
  for entity in (2, 5):
    one, two = (
      setexp.contributions(x, query, entity, ranking).by_feature(9)
      for x in (model, other)
    )
    np.testing.assert_allclose(one, two, atol=1e-5)


@pytest.mark.parametrize("activation", ["tanh", "linear"])
def test_noise_and_hubs_lower_scores_and_stand_in_the_parts(activation):
  plain = _model(activation=activation, unit_inputs=True)
  model = setexp.fit_cosine(plain, 2.0, 0.5)
  means = np.asarray(model.side.mean, np.float64).T
  noise = np.mean(1 / np.asarray(model.side.precision, np.float64), axis=1)
  signal = means.var(axis=0)
  apart = (means - means.mean(axis=0)) * (signal / (signal + noise)) ** 2
  units = apart / np.linalg.norm(apart, axis=1, keepdims=True)
  cosines = units @ units.T
  np.fill_diagonal(cosines, 0)
  total = units[1] + units[4]
  wanted = (
    units @ total / np.linalg.norm(total) - 0.5 * cosines.sum(axis=1) / 11
  )
  ranking = setexp.make_ranking("cosine")
  query = _query(model, [1, 4])
  scores = setexp.score_entities(model, query, ranking)
  np.testing.assert_allclose(scores, wanted, atol=1e-5)
  parts = setexp.contributions(model, query, 5, ranking)
  np.testing.assert_allclose(parts.total, scores[5], atol=1e-5)
  # The row of an entity has itself among its neighbors.
  rows = setexp.rows_from_scipy(sp.csr_array(_COUNTS))
  again = setexp.score_rows(model, query, ranking, rows)
  near = np.sort(cosines + np.eye(12), axis=1)[:, 1:].mean(axis=1)
  crowded = cosines.sum(axis=1) / 11
  np.testing.assert_allclose(again, wanted + (crowded - near) / 2, atol=1e-5)
  other = setexp.make_ranking("xi")
  np.testing.assert_array_equal(
    setexp.score_entities(model, query, other),
    setexp.score_entities(plain, query, other),
  )

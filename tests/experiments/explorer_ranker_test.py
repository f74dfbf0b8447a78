"""Shapes of the explorer's queries and sentences."""

import numpy as np
import pytest
import scipy.sparse as sp

from experiments.explorer import ranker
from repr_jax.errors import InputError


@pytest.fixture(scope="module")
def fitted(explored):
  return ranker.Ranker(explored.opened, ("bm25",), members=12)


def _queries(fitted):
  usable = np.flatnonzero(np.diff(fitted.table.counts.indptr))
  return [
    fitted.query(usable[i : i + len(weights)].tolist(), weights)
    for i, weights in enumerate(([1.0], [1.0, 0.5, -0.7], [0.2] * 12))
  ]


def test_generalized_cca_is_offered_on_request(trained):
  offered = ranker.Ranker(trained, ("gcca",), members=12)
  rivers = [offered.table.rows[f"river{i}"] for i in range(3)]
  (found,) = offered.rank("gcca", "", [offered.query(rivers, [1.0] * 3)], 5)
  names = [offered.table.entities[x] for x in found.rows]
  assert all(x.startswith("river") for x in names)
  assert "gcca" in offered.systems


def test_a_query_too_large_for_a_batch_has_the_same_answer(fitted, monkeypatch):
  queries = _queries(fitted)
  batched = fitted.rank("nvse", "features", queries, 9)
  monkeypatch.setattr(ranker, "_ENTRIES", queries[1].rows.nnz)
  apart = fitted.rank("nvse", "features", queries, 9)
  for one, other in zip(batched, apart):
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-5)


@pytest.mark.parametrize("system", ["nvse", "nvse+bm25", "bm25"])
def test_a_long_sentence_has_the_same_score(fitted, system, monkeypatch):
  query = _queries(fitted)[1]
  ranking = "xi" if system == "nvse" else ""
  rows = fitted.table.counts[:20]
  expected = fitted.score_rows(system, ranking, query, rows)
  assert np.ptp(expected) > 0
  monkeypatch.setattr(ranker, "_WIDTH", int(np.median(np.diff(rows.indptr))))
  monkeypatch.setattr(ranker, "_CELLS", 4 * fitted._longest)
  scores = fitted.score_rows(system, ranking, query, rows)
  np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)


def test_queries_that_cannot_be_asked_are_refused(fitted):
  with pytest.raises(InputError, match="13 entities, 12 are allowed"):
    fitted.query(list(range(13)), [1.0] * 13)
  mute = fitted.table.rows["mute"]
  with pytest.raises(InputError, match="Mute has no features"):
    fitted.query([mute], [1.0])
  with pytest.raises(InputError, match="zero"):
    fitted.query([fitted.table.rows["river1"]], [0.0])


def test_a_model_without_features_is_refused(fitted):
  table, empty = fitted.table, sp.csr_array(fitted.table.counts.shape)
  fitted.table = type(table)(
    empty, table.entities, table.names, table.features, table.sentences
  )
  with pytest.raises(InputError, match="no entity of the model has a feature"):
    fitted.warm_up(5)
  fitted.table = table

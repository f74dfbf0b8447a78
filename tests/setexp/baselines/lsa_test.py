"""LSA against numpy's SVD, and the parts of its score."""

import asked
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.setexp.autoencoder import bm25_weights
from repr_jax.setexp.baselines import lsa
from repr_jax.setexp.query import make_query

_score = asked.score(lsa.LSA)
_score_rows = asked.score_rows(lsa.LSA)
_rationale = asked.rationale(lsa.LSA)
_contributions = asked.contributions(lsa.LSA)


def _counts(seed=0, entities=30, features=18):
  rng = np.random.default_rng(seed)
  dense = rng.poisson(0.8, (entities, features)).astype(np.float32)
  dense[:, 0] = 1
  dense[3] = 0
  return sp.csr_array(dense)


def _reference(counts, rank, power):
  """Unit vectors by numpy's SVD of the dense weighted rows."""
  dense = counts.toarray().astype(np.float64)
  df = (dense > 0).sum(axis=0)
  idf = np.log1p((len(dense) - df + 0.5) / (df + 0.5))
  length = dense.sum(axis=1, keepdims=True)
  weighted = bm25_weights(dense, idf, length, length.mean())
  norms = np.linalg.norm(weighted, axis=1, keepdims=True)
  u, s, _ = np.linalg.svd(weighted / np.where(norms > 0, norms, 1))
  z = u[:, :rank] * s[:rank] ** power
  return z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_scores_are_cosines_of_the_svd(power):
  counts = _counts()
  model = lsa.fit(counts, rank=6, power=power)
  query = make_query(counts, [0, 5, 9], [1.0, 2.0, -0.5])
  unit = _reference(counts, 6, power)
  total = query.weights @ unit[[0, 5, 9]]
  wanted = unit @ total / np.linalg.norm(total)
  wanted[3] = 0  # an entity without features
  np.testing.assert_allclose(_score(model, query), wanted, atol=2e-4)


def test_a_given_projection_takes_the_place_of_the_svd():
  counts = _counts()
  rng = np.random.default_rng(1)
  projection = rng.normal(size=(18, 4)).astype(np.float32)
  model = lsa.fit(counts, projection=projection)
  z = lsa.unit_rows(counts)[1].toarray() @ projection
  wanted = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
  np.testing.assert_allclose(model.entities, wanted, atol=1e-5)


@pytest.mark.parametrize("hubness", [0.0, 0.5])
def test_parts_add_up_to_the_score(hubness):
  counts = _counts()
  model = lsa.fit(counts, rank=6, hubness=hubness)
  assert np.any(np.asarray(model.crowding)) == bool(hubness)
  query = make_query(counts, [0, 5], [1.0, -0.5])
  scores = _score(model, query)
  for entity in range(counts.shape[0]):
    parts = _contributions(model, query, entity)
    own = set(parts.indices[parts.features != 0])
    assert own <= set(counts[[entity]].indices)
    assert abs(float(parts.total) - scores[entity]) < 1e-5


def test_new_rows_score_as_those_of_the_table():
  counts = _counts()
  model = lsa.fit(counts, rank=6)
  known = make_query(counts, [0, 5])
  new = make_query(counts, [0], new_rows=counts[[5]])
  np.testing.assert_allclose(
    _score(model, new), _score(model, known), atol=1e-5
  )
  np.testing.assert_allclose(
    _score_rows(model, known, counts), _score(model, known), atol=1e-5
  )


def test_the_rationale_is_what_one_more_unit_of_a_feature_adds():
  counts = _counts()
  model = lsa.fit(counts, rank=6)
  query = make_query(counts, [0, 5])
  weights = _rationale(model, query)
  rows = model.rows
  table = sp.csr_array((rows.values, rows.items, rows.starts), counts.shape)
  unnormalized = table @ weights
  np.testing.assert_allclose(
    unnormalized / model.lengths, _score(model, query), atol=1e-5
  )


def test_bad_settings_are_refused():
  counts = _counts()
  with pytest.raises(InputError, match="rank"):
    lsa.fit(counts, rank=0)
  with pytest.raises(InputError, match="power"):
    lsa.fit(counts, power=float("nan"))
  with pytest.raises(InputError, match="no row for each of 18 features"):
    lsa.fit(counts, projection=np.ones((17, 2)))
  with pytest.raises(InputError, match="not finite"):
    lsa.fit(counts, projection=np.full((18, 2), np.nan))
  assert lsa.fit(counts, rank=500).projection.shape[1] == 18

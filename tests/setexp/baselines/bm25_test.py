"""BM25 against its formula written as loops, and its two paths."""

import math

import asked
import jax
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.data import synthetic_corpora
from repr_jax.errors import InputError
from repr_jax.setexp import from_scipy
from repr_jax.setexp.baselines import bm25
from repr_jax.setexp.query import best, exclude, make_query

_score = asked.score(bm25.BM25)
_score_rows = asked.score_rows(bm25.BM25)
_rationale = asked.rationale(bm25.BM25)


def _counts(seed=0, entities=30, features=12):
  rng = np.random.default_rng(seed)
  dense = rng.poisson(0.7, (entities, features))
  dense[:, 0] = 1  # every entity has it: its IDF is negative
  dense[3] = 0
  return sp.csr_array(dense.astype(np.float32))


def _formula(dense, query_row, row, k1, b, floor):
  """The sum of thesis 4.3.1, one feature after another."""
  size = len(dense)
  average = sum(map(sum, dense)) / size
  total = 0.0
  for i, wanted in enumerate(query_row):
    frequency = sum(entity[i] > 0 for entity in dense)
    idf = math.log((size - frequency + 0.5) / (frequency + 0.5))
    norm = k1 * (1 - b + b * sum(row) / average)
    if row[i]:
      total += max(idf, floor) * wanted * row[i] * (k1 + 1) / (row[i] + norm)
  return total


@pytest.mark.parametrize("k1, b, floor", [(1.5, 0.75, 0.0), (0.9, 0.4, -9.0)])
def test_scores_are_the_formula(k1, b, floor):
  counts = _counts()
  index = bm25.fit(counts, k1=k1, b=b, floor=floor)
  new = sp.csr_array(np.eye(1, 12, 4, dtype=np.float32) * 3)
  query = make_query(counts, [0, 5, 9], [1.0, 2.0, -0.5, 1.5], new)
  dense = counts.toarray().tolist()
  wanted = [
    _formula(dense, query.weights @ query.rows, row, k1, b, floor)
    for row in dense
  ]
  np.testing.assert_allclose(_score(index, query), wanted, rtol=2e-5, atol=1e-5)
  np.testing.assert_allclose(
    _score_rows(index, query, counts), wanted, rtol=2e-5, atol=1e-5
  )


def test_the_floor_silences_common_features():
  counts = _counts()
  assert bm25.fit(counts).idf[0] == 0
  assert bm25.fit(counts, floor=0.1).idf[0] == np.float32(0.1)
  assert bm25.fit(counts, floor=-np.inf).idf[0] < -2


def test_the_positive_form_keeps_all_features_in_order():
  counts = _counts()
  raw = bm25.fit(counts, floor=-np.inf).idf
  found = bm25.fit(counts, positive=True).idf
  assert (found > 0).all()
  np.testing.assert_allclose(found, np.log1p(np.exp(raw)), rtol=1e-5)


def test_both_conventions_of_the_rationale():
  counts = _counts()
  index = bm25.fit(counts)
  query = make_query(counts, [0, 5], [1.0, -0.5])
  plain = counts[[0]].toarray()[0] - 0.5 * counts[[5]].toarray()[0]
  one = jax.tree.map(lambda x: x[0], from_scipy.pad_members([query]))
  np.testing.assert_allclose(bm25.rationale(index, one, idf=False), plain)
  np.testing.assert_allclose(_rationale(index, query), plain * index.idf)


def test_a_negative_member_is_a_difference():
  counts = _counts()
  index = bm25.fit(counts)
  both = _score(index, make_query(counts, [0, 5], [1.0, -1.0]))
  first = _score(index, make_query(counts, [0]))
  second = _score(index, make_query(counts, [5]))
  np.testing.assert_allclose(both, first - second, atol=1e-4)


def test_clusters_are_recovered():
  world = synthetic_corpora.entity_sets(np.random.default_rng(0))
  index = bm25.fit(world.counts)
  query = make_query(world.counts, [0, 1, 2])
  found = best(exclude(_score(index, query), query), 10)
  assert (world.cluster[found] == world.cluster[0]).mean() >= 0.9
  top = np.argsort(-_rationale(index, query))[:10]
  assert (world.feature_cluster[top] == world.cluster[0]).mean() >= 0.8


def test_extreme_counts_stay_finite():
  counts = _counts().toarray()
  counts[0, 1] = 1e30
  counts = sp.csr_array(counts)
  for k1 in (0.0, 1.5):
    index = bm25.fit(counts, k1=k1)
    assert np.isfinite(_score(index, make_query(counts, [1, 2]))).all()
  empty = sp.csr_array((1, 12), dtype=np.float32)
  assert _score_rows(index, make_query(counts, [1]), empty).tolist() == [0]


@pytest.mark.parametrize(
  "counts, options, message",
  [
    (np.zeros((2, 3)), {}, "cannot be fitted"),
    (-np.ones((2, 3)), {}, "0 or more"),
    (np.full((2, 3), np.nan), {}, "finite"),
    (np.ones((2, 3)), {"k1": -1.0}, "k1 of 0"),
    (np.ones((2, 3)), {"b": 1.5}, "b from 0"),
  ],
)
def test_bad_input_is_refused(counts, options, message):
  with pytest.raises(InputError, match=message):
    bm25.fit(sp.csr_array(counts), **options)

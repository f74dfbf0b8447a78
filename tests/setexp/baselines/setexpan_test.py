"""SetExpan against its three steps written as loops."""

import math

import asked
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.data import synthetic_corpora
from repr_jax.errors import InputError
from repr_jax.setexp.baselines import setexpan
from repr_jax.setexp.query import best, exclude, make_query

_score = asked.score(setexpan.SETEXPAN)
_score_rows = asked.score_rows(setexpan.SETEXPAN)
_rationale = asked.rationale(setexpan.SETEXPAN)


def _counts(seed=0, entities=25, features=14):
  rng = np.random.default_rng(seed)
  dense = rng.poisson(0.4, (entities, features)).astype(np.float32)
  dense[0] = 0
  dense[1, 0] = 1
  return sp.csr_array(dense)


def _weights(dense):
  """f_ec of Shen et al., one entry after another."""
  size = len(dense)
  found = np.zeros_like(dense, dtype=float)
  for c in range(dense.shape[1]):
    column = dense[:, c]
    if (column > 0).sum() < 2:
      continue
    idf = max(math.log(size) - math.log(column.sum()), 0)
    for e in range(size):
      found[e, c] = math.log(1 + column[e]) * idf
  return found


def _jaccard(a, b):
  high = sum(max(x, y) for x, y in zip(a, b))
  return sum(min(x, y) for x, y in zip(a, b)) / high if high else 0.0


def test_one_round_with_all_features_is_a_ranking_by_similarity():
  """With ratio 1 every list is the same, so that ranks are known."""
  counts = _counts()
  config = setexpan.Config(
    features=6, samples=2, ratio=1.0, iterations=1, rank=5.0
  )
  model = setexpan.fit(counts, config)
  weights = _weights(counts.toarray())
  rows = model.rows
  table = sp.csr_array((rows.values, rows.items, rows.starts), (25, 14))
  np.testing.assert_allclose(table.toarray(), weights, rtol=1e-5)
  members = [2, 3, 4]
  query = make_query(counts, members, [1.0, 2.0, -0.5])
  strength = np.array([1.0, 2.0, -0.5]) @ weights[members]
  kept = np.argsort(-strength, kind="stable")[:6]
  kept = kept[strength[kept] > 0]
  found = _rationale(model, query)
  np.testing.assert_allclose(found[kept], strength[kept], rtol=1e-5)
  assert np.count_nonzero(found) == kept.size
  similarity = np.array(
    [
      sum(
        w * _jaccard(row[kept], weights[m][kept])
        for m, w in zip(members, [1.0, 2.0, -0.5])
      )
      / 3.5
      for row in weights
    ]
  )
  np.testing.assert_allclose(
    _score_rows(model, query, counts), similarity, atol=1e-5
  )
  scores = _score(model, query)
  others = [e for e in range(25) if e not in members]
  order = sorted(others, key=lambda e: -similarity[e])
  positive = [e for e in order if similarity[e] > 1e-7]
  for position, entity in enumerate(positive):
    np.testing.assert_allclose(scores[entity], 1 / (position + 1), rtol=1e-5)
  for entity in set(others) - set(positive):
    np.testing.assert_allclose(
      scores[entity], similarity[entity] - 1, atol=1e-5
    )


def test_the_set_grows_and_early_members_lead():
  world = synthetic_corpora.entity_sets(np.random.default_rng(0))
  model = setexpan.fit(world.counts)
  query = make_query(world.counts, [0, 1, 2])
  scores = exclude(_score(model, query), query)
  found = best(scores, 10)
  assert (world.cluster[found] == world.cluster[0]).mean() >= 0.9
  assert (scores > 1).any(), "nobody joined"
  top = np.argsort(-_rationale(model, query))[:10]
  assert (world.feature_cluster[top] == world.cluster[0]).mean() >= 0.8


def test_the_seed_decides():
  world = synthetic_corpora.entity_sets(
    np.random.default_rng(0), signal=0.3, tokens=20
  )
  query = make_query(world.counts, [0, 1, 2])
  first, again, other = (
    _score(setexpan.fit(world.counts, setexpan.Config(seed=seed)), query)
    for seed in (0, 0, 1)
  )
  np.testing.assert_array_equal(first, again)
  assert (first != other).any()


@pytest.mark.parametrize("weights", [[1.0, -1.0], [-1.0, -2.0], [1e6, 1e-6]])
def test_scores_are_finite(weights):
  counts = _counts().toarray()
  counts[3, 1] = 1e30
  counts = sp.csr_array(counts)
  model = setexpan.fit(counts)
  query = make_query(counts, [2, 3], weights)
  assert np.isfinite(_score(model, query)).all()


def test_a_member_without_shared_features():
  counts = sp.csr_array(np.eye(4, dtype=np.float32))
  scores = _score(setexpan.fit(counts), make_query(counts, [1]))
  assert np.isfinite(scores).all() and scores.argmax() == 1


@pytest.mark.parametrize(
  "counts, config, message",
  [
    (np.zeros((2, 3)), setexpan.Config(), "cannot be fitted"),
    (-np.ones((2, 3)), setexpan.Config(), "0 or more"),
    (np.ones((2, 3)), setexpan.Config(ratio=0.0), "cannot work"),
    (np.ones((2, 3)), setexpan.Config(iterations=0), "cannot work"),
  ],
)
def test_bad_input_is_refused(counts, config, message):
  with pytest.raises(InputError, match=message):
    setexpan.fit(sp.csr_array(counts), config)

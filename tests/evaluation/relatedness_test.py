"""Relatedness against scalar loops, scipy and ideal orders."""

import math

import numpy as np
import pytest
from scipy import stats

from repr_jax.data.relatedness import RelatednessQuery
from repr_jax.evaluation import relatedness, retrieval


def _scalar_ndcg(ranked, k):
  def dcg(row):
    return sum(
      rel / math.log2(max(2, rank))
      for rank, rel in enumerate(row, 1)
      if rank <= k
    )

  ideal = dcg(sorted(ranked, reverse=True))
  return dcg(ranked) / ideal if ideal else 0.0


@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_ndcg_by_hand(k):
  rng = np.random.default_rng(k)
  for _ in range(20):
    ranked = rng.integers(0, 2, 12)
    assert np.isclose(relatedness.ndcg(ranked, k), _scalar_ndcg(ranked, k))
  assert relatedness.ndcg(np.zeros(4), k) == 0
  assert relatedness.ndcg(np.array([1, 1, 0, 0]), k) == 1


def test_the_first_two_ranks_count_alike():
  assert relatedness.ndcg(np.array([0, 1]), 2) == 1
  assert retrieval.ndcg(np.array([0, 1]), np.array([0, 1]), 2) < 1


@pytest.fixture
def world():
  rng = np.random.default_rng(0)
  names = [f"e{i}" for i in range(12)]
  vectors = rng.normal(size=(12, 5)).astype(np.float32)
  rows = {name: i for i, name in enumerate(names)}
  return names, vectors, rows


def _cosine(a, b):
  a, b = a.astype(float), b.astype(float)
  return a @ b / math.sqrt((a @ a) * (b @ b))


def test_labeled_queries_against_a_loop(world):
  names, vectors, rows = world
  gold = (0.0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0)
  query = RelatednessQuery("q", "e0", tuple(names[1:]), gold)
  found = relatedness.evaluate_relatedness([query], vectors, rows)
  order = sorted(range(11), key=lambda i: -_cosine(vectors[0], vectors[i + 1]))
  ranked = [gold[i] for i in order]
  hits = [i for i, rel in enumerate(ranked, 1) if rel]
  expected = {f"NDCG@{k}": _scalar_ndcg(ranked, k) for k in (1, 5, 10)}
  expected["MAP"] = sum((j + 1) / i for j, i in enumerate(hits)) / 3
  assert found.means == pytest.approx(expected)
  assert found.coverage == 1
  scaled = relatedness.evaluate_relatedness([query], vectors * 9, rows)
  assert scaled.means == pytest.approx(expected)


def test_ranked_queries_against_scipy(world):
  names, vectors, rows = world
  gold = tuple(-float(i) for i in range(1, 12))
  query = RelatednessQuery("q", "e0", tuple(names[1:]), gold)
  found = relatedness.evaluate_relatedness([query], vectors, rows)
  cosines = [_cosine(vectors[0], v) for v in vectors[1:]]
  expected = stats.spearmanr(cosines, gold).statistic
  assert np.isclose(found.means["Spearman"], expected)


def test_what_has_no_vector_is_last_or_left_out_and_counted(world):
  _, vectors, rows = world
  vectors = vectors.copy()
  vectors[2] = 0
  queries = [
    RelatednessQuery("a", "e0", ("e1", "e2", "e3", "gone"), (0, 1, 0, 1)),
    RelatednessQuery("b", "gone", ("e1", "e3"), (1, 0)),
    RelatednessQuery("c", "e2", ("e1", "e3"), (1, 0)),
    RelatednessQuery("d", "e0", ("e1", "e3"), (0, 0)),
  ]
  last = relatedness.evaluate_relatedness(queries, vectors, rows)
  assert last.skipped == ["b", "c", "d"]
  assert last.queries["a"]["MAP"] == pytest.approx((1 / 3 + 2 / 4) / 2)
  assert last.coverage == 4 / 10
  skip = relatedness.evaluate_relatedness(
    queries, vectors, rows, missing="skip"
  )
  assert skip.skipped == ["a", "b", "c", "d"]
  assert skip.means == {}

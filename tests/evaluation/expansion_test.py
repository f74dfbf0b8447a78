"""Gold sets: which queries are drawn, and measures against loops."""

import math

import numpy as np
import pytest

from repr_jax.errors import InputError
from repr_jax.evaluation import expansion

_SETS = {"b": list(range(10)), "a": [10, 11, 12, 13], "few": [1, 2]}
_SENTENCES = np.array([1, 1, 1, 1, 2, 5, 9, 10, 10, 200, 11, 50, 100, 101])


def test_queries_are_of_one_stratum():
  rng = np.random.default_rng(0)
  found = expansion.gold_queries(_SETS, _SENTENCES, 3, rng, per_set=4)
  kinds = {(query.name, query.stratum) for query in found}
  assert kinds == {("a", "11-100"), ("b", "1"), ("b", "2-10")}
  assert len(found) == 12
  for query in found:
    low, high = expansion.STRATA[query.stratum]
    assert len(set(query.members)) == 3
    assert (_SENTENCES[query.members] >= low).all()
    assert (_SENTENCES[query.members] <= high).all()
    both = sorted([*query.members, *query.relevant])
    assert both == sorted(_SETS[query.name])


def test_the_generator_decides():
  draws = [
    expansion.gold_queries(_SETS, _SENTENCES, 3, np.random.default_rng(seed))
    for seed in (0, 0, 3)
  ]
  names = [[query.members.tolist() for query in draw] for draw in draws]
  assert names[0] == names[1] != names[2]


def test_a_set_must_leave_something_to_find():
  rng = np.random.default_rng(0)
  assert not expansion.gold_queries({"x": [0, 1, 2]}, np.ones(3), 3, rng)


def _measures(scores, members, relevant):
  order = [i for i in np.argsort(-scores) if i not in members]
  found, precisions, gain = 0, [], 0.0
  for position, entity in enumerate(order, 1):
    if entity in relevant:
      found += 1
      precisions.append(found / position)
      gain += 1 / math.log2(position + 1)
  ideal = sum(1 / math.log2(i + 2) for i in range(len(relevant)))
  first = min(order.index(x) for x in relevant) + 1
  top = sum(x in relevant for x in order[: len(relevant)]) / len(relevant)
  return sum(precisions) / len(relevant), 1 / first, top, gain / ideal


def test_measures_are_those_of_loops():
  rng = np.random.default_rng(0)
  table = rng.normal(size=(5, 30))
  queries, relevants, rows = [], [], []
  for scores in table:
    drawn = rng.choice(30, 9, replace=False)
    queries.append(drawn[:3])
    relevants.append(drawn[3:])
    rows.append(_measures(scores, set(drawn[:3]), set(drawn[3:])))
  given = iter(table)
  found = expansion.evaluate_expansion(
    lambda members: next(given), queries, relevants
  )
  for i, name in enumerate(("map", "recip_rank", "Rprec", "ndcg")):
    np.testing.assert_allclose(found[name], [row[i] for row in rows])


def test_members_of_the_query_do_not_count():
  scores = np.array([9.0, 8.0, 3.0, 2.0])
  found = expansion.evaluate_expansion(
    lambda members: scores, [np.array([0, 1])], [np.array([2])]
  )
  assert found["map"].tolist() == [1.0]


def test_a_score_that_is_not_a_number_is_refused():
  with pytest.raises(InputError, match="not a number"):
    expansion.evaluate_expansion(
      lambda members: np.array([np.nan, 1.0]), [np.array([0])], [np.array([1])]
    )

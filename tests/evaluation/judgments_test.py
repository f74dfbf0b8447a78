"""Judged queries: hiding members, ranks with ties, and agreement."""

import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.data.entities.judged import (
  JudgedQuery,
  Member,
  read_judged_queries,
)
from repr_jax.errors import InputError
from repr_jax.evaluation import judgments

_ROWS = {f"e{i}": i for i in range(6)}
_COUNTS = sp.csr_array(
  np.array(
    [[1, 0, 0], [0, 2, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0], [3, 0, 1]],
    np.float32,
  )
)


def _featurize(text):
  return sp.csr_array(np.array([[text.count(x) for x in "abc"]], np.float32))


def _query(members, systems=None, places=None, qid="1", group="1"):
  return JudgedQuery(
    qid, group, "1", "c", tuple(members), systems or {}, places or {}
  )


def test_each_member_with_ids_is_hidden_once():
  one, two = Member("x", "", ("e0",)), Member("y", "", ())
  three = Member("z", "", ("e1", "e2"))
  queries = [
    _query([one, two, three]),
    _query([one, two, three], group="2"),
    _query([one], qid="2"),
  ]
  held = judgments.leave_one_out(queries)
  assert [item.hidden for item in held] == [one, three]
  assert held[0].members == (two, three) and held[1].members == (one, two)


def test_a_member_counts_one_however_many_share_its_name():
  members = [
    Member("x", "", ("e0", "e1")),
    Member("y", "aab", ()),
    Member("z", "b", ("e3", "unknown")),
    Member("empty", "", ("e4",)),
    Member("nothing", "xyz", ()),
  ]
  query = judgments.build_query(members, _ROWS, _COUNTS, _featurize)
  assert query.ids.tolist() == [0, 1, 3, -1]
  assert query.weights.tolist() == [0.5, 0.5, 1.0, 1.0]
  assert query.rows.toarray()[-1].tolist() == [2, 1, 0]
  last = members[-1:]
  assert judgments.build_query(last, _ROWS, _COUNTS, _featurize) is None


def test_ranks_leave_out_members_and_other_candidates():
  scores = np.array([9.0, 5.0, 7.0, 5.0, 8.0, 5.0])
  first = Member("x", "", ("e0",))
  held = [
    # e0 is a member and e4, e2 are above; e3 and e5 are level with e1.
    judgments.HeldOut("1", "1", (first,), Member("h", "", ("e1",))),
    # The better of e1 and e2 counts; e4 is above it.
    judgments.HeldOut("1", "1", (first,), Member("h", "", ("e1", "e2"))),
    judgments.HeldOut("1", "1", (first,), Member("h", "", ("gone",))),
    judgments.HeldOut("1", "1", (first,), Member("h", "", ("e0",))),
    judgments.HeldOut(
      "1", "1", (Member("n", "", ()),), Member("h", "", ("e1",))
    ),
  ]
  ranks = judgments.held_out_ranks(
    lambda query: scores, held, _ROWS, _COUNTS, _featurize
  )
  np.testing.assert_array_equal(ranks, [4.0, 2.0, np.nan, np.nan, 3.5])


def test_summary_of_ranks():
  found = judgments.rank_summary(np.array([1.0, 4.0, np.nan, 50.0, 200.0]))
  np.testing.assert_allclose(found["mrr"], (1 + 1 / 4 + 1 / 50 + 1 / 200) / 4)
  assert found["recall_10"] == 0.5 and found["recall_100"] == 0.75
  assert found["queries"] == 4
  with pytest.raises(InputError, match="no hidden member"):
    judgments.rank_summary(np.array([np.nan]))


def test_agreement_with_the_judges():
  scores = np.array([9.0, 5.0, 7.0, 5.0, 8.0, 4.0])
  systems = {"A": ("e0", "e4"), "B": ("e1", "e2"), "C": (), "D": ("e3", "e2")}
  places = {"A": 1, "B": 2, "C": 3, "D": None}
  member = Member("x", "", ("e0",))
  args = (_ROWS, _COUNTS, _featurize)
  found = judgments.pair_agreement(
    lambda query: scores, [_query([member], systems, places)], *args
  )
  assert found.agrees.tolist() == [1.0, 1.0, 1.0] and found.share == 1.0
  against = {"A": 3, "B": 1, "D": 2, "C": 2}
  found = judgments.pair_agreement(
    lambda query: scores, [_query([member], systems, against)], *args
  )
  # B over A is not shared, B and D are level for the scorer, C is worst.
  assert sorted(found.agrees) == [0.0, 0.0, 0.0, 0.5, 1.0]
  with pytest.raises(InputError, match="no pair"):
    judgments.pair_agreement(
      lambda query: scores, [_query([member], systems, {})], *args
    )


def test_first_places_count_ties_for_both():
  queries = [
    _query([], {}, {"A": 1, "B": 1, "C": 2}),
    _query([], {}, {"A": 1, "B": 2, "C": None}),
    _query([], {}, {"A": 2, "D": 1}, group="2"),
  ]
  assert judgments.first_places(queries) == {
    "1": {"A": 2, "B": 1, "C": 0},
    "2": {"A": 0, "D": 1},
  }


def test_places_by_group_size_and_stratum():
  members = [Member("a", "", ()), Member("b", "", ())]
  queries = [
    _query(members, {}, {"A": 1, "B": 3}),
    _query(members, {}, {"A": 3, "B": 1}),
    _query(members, {}, {"A": None, "B": 4}),
    _query([], {}, {"A": 2}),
  ]
  counted = judgments.place_counts(queries)
  assert [cell.size for cell in counted] == [0, 2]
  assert list(counted.values()) == [
    {"A": (0, 1, 0)},
    {"A": (1, 0, 1), "B": (1, 0, 1)},
  ]


def test_published_first_places(shared_data):
  path = shared_data / "tinkerbell" / "queries.jsonl.gz"
  if not path.exists():
    pytest.skip(f"no judged queries at {path}")
  queries = read_judged_queries(path)
  assert len(queries) == 480
  assert judgments.first_places(queries) == {
    "1": {"NVSE": 98, "BM25": 84, "BS": 59},
    "2": {"NVSE": 154, "SETEXPAN": 44, "W2V": 42},
  }

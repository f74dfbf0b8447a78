"""The test of reasons, on a score whose reasons are known."""

import numpy as np
import scipy.sparse as sp

from experiments.nvse import deletion, figures
from repr_jax.setexp import systems
from repr_jax.setexp.query import make_query


def test_contributions_cost_most_where_they_are_the_score():
  rng = np.random.default_rng(0)
  counts = sp.csr_array(rng.poisson(0.5, (60, 40)).astype(np.float32))
  system = systems.baseline("bm25", counts)
  # A list of features that has nothing to do with the score.
  system = system._replace(rationale=lambda query: np.arange(40.0))
  tasks = [
    figures.Task(
      str(i), str(i), "", make_query(counts, [i, i + 1]), np.array([0]),
      np.array([i, i + 1]),
    )
    for i in range(12)
  ]  # fmt: skip
  outcome = deletion.deletion(system, counts, tasks, k=3, most=10)
  assert tuple(outcome) == deletion.LISTS
  right, wrong, drawn = outcome.values()
  assert right.lost > 2 * max(wrong.lost, drawn.lost)
  assert right.place > max(wrong.place, drawn.place)
  none = deletion.deletion(system, counts, tasks[:2], k=0)
  assert none["contributions"] == none["random"]
  assert none["random"].place == 1
  assert abs(none["random"].lost) < 1e-6


def test_printed_features_account_for_a_share_of_the_score():
  rng = np.random.default_rng(0)
  counts = sp.csr_array(rng.poisson(0.5, (60, 40)).astype(np.float32))
  system = systems.baseline("bm25", counts)
  queries = deletion.random_queries(counts, 5)
  assert all(len(set(x.ids.tolist())) == 3 for x in queries)
  all_of_them = deletion.printed_shares(system, counts, queries, k=40)
  np.testing.assert_allclose(all_of_them, 1, rtol=1e-4)
  three = deletion.printed_shares(system, counts, queries, k=3)
  assert 0.1 < three.whole <= three.each < 1

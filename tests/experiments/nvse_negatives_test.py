"""Negative seeds on overlapping sets."""

import types

import numpy as np
import scipy.sparse as sp

from experiments.nvse import negatives
from repr_jax.setexp import systems

_SETS = {
  "red": [f"e{i}" for i in range(12)],
  "blue": [f"e{i}" for i in range(11, 23)],
  "lone": [f"e{i}" for i in range(23, 30)],
}


def _table():
  """Red and blue share a feature; each has one of its own, less heavy."""
  counts = np.zeros((30, 4), np.float32)
  counts[:23, 0] = 3.0
  counts[:12, 1] = 1.0
  counts[11:23, 2] = 1.0
  counts[23:, 3] = 1.0
  return types.SimpleNamespace(
    counts=sp.csr_array(counts), rows={f"e{i}": i for i in range(30)}
  )


def _system(table):
  def score_batch(queries):
    return np.stack(
      [table.counts @ (x.rows.T @ x.weights) for x in queries]
    ) + 2.5 * np.random.default_rng(0).normal(size=(len(queries), 30))

  return systems.System("sum", score_batch, None, None, None)


def test_pairs_are_of_overlapping_sets():
  drawn = negatives.pairs(_table(), _SETS)
  assert {x.unit for x in drawn} == {"red", "blue"}
  for seeds in drawn:
    assert not set(seeds.wanted) & set(seeds.relevant)
    assert not set(seeds.unwanted) & set(seeds.outside)
    assert 11 not in seeds.relevant and 11 in seeds.outside
    assert not set(seeds.relevant) & set(seeds.outside)


def test_sets_that_do_not_overlap_give_no_pair():
  assert not negatives.pairs(_table(), {"lone": _SETS["lone"]})


def test_negative_seeds_keep_the_other_set_out(monkeypatch):
  table = _table()
  # One wanted set in each half.
  monkeypatch.setattr(
    "experiments.nvse.figures.in_first_half", lambda unit: unit == "red"
  )
  drawn = negatives.pairs(table, _SETS)
  outcome = negatives.evaluate(_system(table), table, drawn, (-1.0,))
  assert outcome.weight == -1.0 and set(outcome.tried) == {0.0, -1.0}
  assert outcome.map[1] > outcome.map[0]
  assert outcome.unwanted[1] <= outcome.unwanted[0]
  assert "weight -1" in negatives.to_text("sum", outcome)[0]


def test_a_half_without_queries_has_no_outcome(monkeypatch):
  table = _table()
  monkeypatch.setattr(
    "experiments.nvse.figures.in_first_half", lambda unit: True
  )
  drawn = negatives.pairs(table, _SETS)
  assert negatives.evaluate(_system(table), table, drawn) is None

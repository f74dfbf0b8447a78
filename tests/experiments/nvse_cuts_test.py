"""Cuts of rankings: what they find where scores tell, and where not."""

import numpy as np
import scipy.sparse as sp

from experiments.nvse import cuts
from experiments.nvse.figures import Task
from repr_jax.setexp import systems
from repr_jax.setexp.query import make_query

_SIZES = (4, 6, 9, 12, 16, 20)
_COUNTS = sp.csr_array(np.eye(70, dtype=np.float32))


def _world(noise):
  """Sets that scores separate up to noise; rows 0 to 2 ask for each."""
  rng = np.random.default_rng(1)
  tasks, scores = [], {}
  for i in range(24):
    size = _SIZES[i % 6]
    relevant = np.arange(3, 3 + size)
    query = make_query(_COUNTS, [0, 1, 2], [1.0, 1.0, 1.0 + i])
    row = noise * rng.normal(size=70)
    row[relevant] += 3.0
    row[:3] = 3.0
    scores[1.0 + i] = row
    tasks.append(Task(f"t{i}", f"u{i}", "any", query, relevant, np.arange(3)))

  def score_batch(queries):
    return np.stack([scores[float(x.weights[2])] for x in queries])

  system = systems.System("fake", score_batch, None, None, None)
  return system, tasks


def test_a_clear_edge_is_found():
  system, tasks = _world(0.2)
  outcome = cuts.evaluate(system, tasks[:12], tasks[12:])
  assert outcome.f1["best"] == 1.0
  assert outcome.f1["cut"] > 0.99 > outcome.f1["fixed"]
  assert outcome.gain.value > 0
  assert outcome.error < 0.02


def test_without_an_edge_chances_are_shares():
  system, tasks = _world(8.0)
  outcome = cuts.evaluate(system, tasks[:12], tasks[12:])
  assert outcome.f1["cut"] <= outcome.f1["best"] < 1
  assert max(x for x, _, _ in outcome.rows) < 0.8
  assert any("F1" in line for line in cuts.to_text(outcome))

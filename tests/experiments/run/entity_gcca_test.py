"""Generalized CCA of entities, compared with numpy and as a system."""

import numpy as np
import pytest
import scipy.sparse as sp

from experiments.run import entity_gcca, expander
from repr_jax.setexp.baselines import lsa
from repr_jax.setexp.query import make_query


def _table():
  rng = np.random.default_rng(0)
  counts = rng.poisson(0.8, (30, 20)).astype(np.float32)
  counts[:, 0] = 1
  counts[3, 14:] = 0  # an entity without links
  names = [f"word:{i}" for i in range(14)] + [f"link:{i}" for i in range(6)]
  return sp.csr_array(counts), names


def _reference(counts, power, ridge, rank):
  """Unit vectors of the weighted rows by dense decompositions."""
  rows = lsa.unit_rows(counts)[1].toarray().astype(np.float64)
  columns, seen = [], []
  for block in (slice(0, 14), slice(14, 20)):
    u, s, _ = np.linalg.svd(rows[:, block], full_matrices=False)
    there = s > 1e-5 * s[0]
    u, s = u[:, there], s[there]
    columns.append(u * s / np.sqrt(ridge * np.mean(s**2) + s**2))
    seen.append(np.any(rows[:, block], axis=1))
  scale = 1 / np.sqrt(np.sum(seen, axis=0))
  u, s, _ = np.linalg.svd(np.hstack(columns) * scale[:, None])
  z = u[:, :rank] * s[:rank] ** (2 * power)
  return z / np.linalg.norm(z, axis=1, keepdims=True)


@pytest.mark.parametrize(("power", "ridge"), [(0.0, 0.5), (1.0, 1.0)])
def test_entities_lie_in_the_common_space_of_the_kinds(power, ridge):
  counts, names = _table()
  # Twice the rank covers all singular vectors of both views.
  model = entity_gcca.fit(counts, names, rank=8, power=power, ridge=ridge)
  wanted = _reference(counts, power, ridge, 8)
  cosines = np.asarray(model.entities @ model.entities.T)
  np.testing.assert_allclose(cosines, wanted @ wanted.T, atol=2e-3)


def test_directions_that_a_kind_lacks_do_not_change_its_ridge():
  counts, names = _table()
  counts = counts.toarray()
  counts[:, 17:] = counts[:, 14:17]  # six links in three directions
  model = entity_gcca.fit(sp.csr_array(counts), names, rank=8)
  wanted = _reference(sp.csr_array(counts), 1.0, 1.0, 8)
  cosines = np.asarray(model.entities @ model.entities.T)
  np.testing.assert_allclose(cosines, wanted @ wanted.T, atol=2e-3)


def test_it_answers_and_explains_as_a_system(trained):
  system = expander.Expander(trained.table, trained.model).system("gcca")
  query = make_query(trained.table.counts, [1, 2], [1.0, -0.5])
  (scores,) = system.score_batch([query])
  parts = system.contributions(query, [0, 4])
  totals = [float(x.total) for x in parts]
  np.testing.assert_allclose(totals, scores[[0, 4]], atol=1e-5)
  assert system.name == "gcca"

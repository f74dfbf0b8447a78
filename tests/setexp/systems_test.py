"""All systems are asked in one way, singly and in batches."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import setexp
from repr_jax.errors import InputError
from repr_jax.setexp import systems
from repr_jax.setexp.baselines import sgns, word2vecf


@pytest.fixture(scope="module")
def counts():
  rng = np.random.default_rng(0)
  dense = rng.poisson(0.5, (20, 12)) + np.eye(20, 12)
  return sp.csr_array(dense.astype(np.float32))


@pytest.fixture(scope="module")
def system(counts):
  """Systems by name, fitted once."""
  made = {}

  def make(name):
    if name not in made:
      made[name] = fit(name)
    return made[name]

  def fit(name):
    if name == "nvse":
      config = setexp.Config(dim=2, hidden=(3,))
      statistics = setexp.statistics_from_scipy(config, counts)
      params = setexp.init(config, jax.random.key(0), statistics)
      model = setexp.model_from_scipy(config, params, statistics.inputs, counts)
      return systems.nvse(model, systems.RankingConfig("xi"))
    vectors = None
    if name == "word2vecf":
      vectors = word2vecf.fit(counts, sgns.Config(dim=4), epochs=1)
    return systems.baseline(name, counts, vectors=vectors)

  return make


@pytest.mark.parametrize("name", ["nvse", *systems.BASELINES])
def test_batches_rows_and_parts_agree(system, counts, name):
  asked, new = system(name), sp.csr_array(counts[[4]])
  queries = [
    setexp.make_query(counts, [1, 2], [1.0, -0.5]),
    setexp.make_query(counts, [3], [1.0, 2.0], new),
  ]
  scores = asked.score_batch(queries)
  assert scores.shape == (2, 20) and np.isfinite(scores).all()
  for query, own in zip(queries, scores):
    np.testing.assert_allclose(asked.score_batch([query])[0], own, rtol=1e-4)
    parts = asked.contributions(query, [7, 0, 3])
    totals = [float(x.total) for x in parts]
    np.testing.assert_allclose(totals, own[[7, 0, 3]], rtol=1e-5, atol=1e-5)
  assert asked.score_rows(queries[0], counts[:3]).shape == (3,)
  width = asked.rationale(queries[0]).shape
  assert width == (12,)


def test_an_ensemble_is_the_sum_of_standard_scores(system, counts):
  query = setexp.make_query(counts, [1, 2])
  both = [system(x).score_batch([query])[0] for x in ("bm25", "bernoulli")]
  fused = systems.fuse(system("bm25"), system("bernoulli"), 0.3)
  standard = [(x - x.mean()) / x.std() for x in both]
  wanted = 0.3 * standard[0] + 0.7 * standard[1]
  np.testing.assert_allclose(fused.score_batch([query])[0], wanted, atol=1e-4)
  (parts,) = fused.contributions(query, [5])
  assert float(parts.total) == pytest.approx(wanted[5], abs=1e-5)


def test_unknown_systems_are_refused(counts):
  with pytest.raises(InputError, match="no system 'cosine'"):
    systems.baseline("cosine", counts)


def test_a_query_of_new_members_scores_nothing_by_other_features():
  counts = sp.csr_array(np.eye(3, dtype=np.float32))
  own = systems.System(
    "own",
    lambda queries: np.stack([x.rows.toarray()[0] for x in queries]),
    lambda query, rows: np.zeros(rows.shape[0]),
    lambda query, entities: [],
    lambda query: np.zeros(3),
  )
  system = systems.with_features(own, counts[:, [2, 1, 0]], ["a", "b", "c"])
  known = setexp.make_query(counts, [0], [1.0])
  new = setexp.make_query(counts, [], [1.0], counts[[1]])
  scores = system.score_batch([new, known])
  assert scores.tolist() == [[0, 0, 0], [0, 0, 1]]
  with pytest.raises(InputError, match="own knows the entities of the corpus"):
    system.contributions(new, [0])

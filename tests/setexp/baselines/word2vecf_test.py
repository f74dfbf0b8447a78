"""Word2vecf against scalar loops, finite differences and planted clusters."""

import asked
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy import optimize

from repr_jax.data import synthetic_corpora
from repr_jax.errors import InputError
from repr_jax.evaluation import retrieval
from repr_jax.setexp.baselines import sgns, word2vecf
from repr_jax.setexp.query import best, exclude, make_query
from repr_jax.setexp.rows import rows_from_scipy

_score = asked.score(word2vecf.WORD2VECF)
_score_rows = asked.score_rows(word2vecf.WORD2VECF)
_rationale = asked.rationale(word2vecf.WORD2VECF)


@pytest.fixture(scope="module")
def world():
  return synthetic_corpora.entity_sets(np.random.default_rng(0))


@pytest.fixture(scope="module")
def model(world):
  return word2vecf.fit(world.counts, sgns.Config(dim=20), epochs=20)


def test_training_compiles_once(compilations):
  counts = synthetic_corpora.entity_sets(
    np.random.default_rng(0), clusters=2, members=4, tokens=8
  ).counts
  config = sgns.Config(dim=4, batch_size=16)
  word2vecf.fit(counts, config, epochs=1)
  again = compilations.during(lambda: word2vecf.fit(counts, config, epochs=2))
  assert again == 0


def _mean_ap(model, world, ids):
  values = []
  for row in ids:
    query = make_query(world.counts, [row])
    scores = exclude(_score(model, query), query)
    order = best(scores, len(scores))
    same = world.cluster[order] == world.cluster[row]
    values.append(retrieval.average_precision(same, int(same.sum())))
  return np.mean(values)


def test_clusters_are_recovered(world, model):
  assert _mean_ap(model, world, range(0, 100, 9)) > 0.9
  query = make_query(world.counts, [0, 1, 2])
  top = np.argsort(-_rationale(model, query))[:10]
  assert (world.feature_cluster[top] == world.cluster[0]).mean() >= 0.8


def test_new_entities_fall_into_their_cluster(world):
  held = np.arange(len(world.cluster)) % 4 == 0
  trained = word2vecf.fit(world.counts[~held], sgns.Config(dim=20), epochs=20)
  vectors = word2vecf.encode(trained, world.counts[held])
  nearest = np.argmax(vectors @ trained.entities.T, axis=1)
  found = world.cluster[~held][nearest]
  assert (found == world.cluster[held]).mean() > 0.9


def test_folding_in_ends_at_the_optimum(world, model):
  """Many steps reach the minimum that a general solver finds."""
  row = world.counts[[5]]
  padded = jax.tree.map(lambda x: x[0], rows_from_scipy(row))
  trained = jax.tree.map(jnp.asarray, model)
  vector = word2vecf.fold_in(trained, padded, steps=4000)
  counts, total = row.toarray()[0], row.sum()

  def objective(v):
    near = counts @ np.logaddexp(0, -model.contexts @ v)
    far = np.logaddexp(0, model.noise @ v).mean() * model.negatives * total
    return near + far + v @ v / 2

  found = optimize.minimize(objective, np.zeros(20)).x
  np.testing.assert_allclose(vector, found / np.linalg.norm(found), atol=2e-3)


def test_scores_are_distances(world, model):
  query = make_query(world.counts, [3, 40], [2.0, -0.5, 1.0], world.counts[[7]])
  members = np.stack(
    [
      model.entities[3],
      model.entities[40],
      word2vecf.encode(model, world.counts[[7]])[0],
    ]
  )
  wanted = [
    -sum(w * ((v - m) ** 2).sum() for w, m in zip(query.weights, members))
    for v in model.entities
  ]
  scores = _score(model, query)
  np.testing.assert_allclose(scores, wanted, atol=1e-4)
  rows = _score_rows(model, query, world.counts[[7]])
  folded = [
    -sum(
      w * ((members[2] - m) ** 2).sum() for w, m in zip(query.weights, members)
    )
  ]
  np.testing.assert_allclose(rows, folded, atol=1e-4)


def test_an_entity_without_features_has_a_score(world):
  counts = sp.csr_array(
    sp.vstack([world.counts, sp.csr_array((1, world.counts.shape[1]))])
  )
  trained = word2vecf.fit(counts, sgns.Config(dim=4), epochs=1)
  assert not trained.entities[-1].any()
  scores = _score(trained, make_query(counts, [0]))
  assert np.isfinite(scores).all()


@pytest.mark.parametrize(
  "counts, message",
  [
    (np.zeros((2, 3)), "no entity has any feature"),
    (np.full((2, 3), np.inf), "finite"),
    (np.full((2, 3), 1e9), "1e6"),
  ],
)
def test_bad_input_is_refused(counts, message):
  with pytest.raises(InputError, match=message):
    word2vecf.fit(sp.csr_array(counts))


def test_a_rate_that_diverges_is_named():
  counts = sp.csr_array(np.full((4, 3), 50.0, np.float32))
  with pytest.raises(InputError, match="learning rate of 1e"):
    word2vecf.fit(counts, sgns.Config(dim=4, learning_rate=1e30), epochs=3)


def test_runs_of_one_program_are_those_alone(world):
  configs = [
    sgns.Config(dim=4, learning_rate=rate, power=power)
    for rate, power in ((0.1, 0.75), (0.05, 1.0))
  ]
  together = word2vecf.fit_runs(world.counts, configs, [0, 3], epochs=2)
  for config, seed, model in zip(configs, (0, 3), together):
    alone = word2vecf.fit(world.counts, config, epochs=2, seed=seed)
    for one, other in zip(model, alone):
      np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
  with pytest.raises(InputError, match="learning rate and power"):
    other = sgns.Config(dim=5)
    word2vecf.fit_runs(world.counts, [*configs, other], [0, 1, 2], epochs=1)

"""Queries of the autoencoder: scores, padding, blocks, files."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.sparse as sp
import scipy.stats

from repr_jax import errors
from repr_jax.data import synthetic_corpora
from repr_jax.ops import gaussian, precision
from repr_jax.setexp import (
  autoencoder,
  expansion,
  fitting,
  gaussian_scores,
  model_files,
)
from repr_jax.setexp import query as query_lib


@pytest.fixture(scope="module")
def world():
  return synthetic_corpora.entity_sets(
    np.random.default_rng(0), clusters=4, members=25, shared_features=40
  )


@pytest.fixture(scope="module")
def model(world):
  config = autoencoder.Config(latent=6, hidden=(24,), weighting="log1p")
  fitted = fitting.fit(
    world.counts, config, jax.random.key(0), epochs=25, batch=20, rate=5e-3
  )
  return expansion.build(config, fitted.params, fitted.inputs, world.counts)


def _scalar(name, prior, m1, v1, m2, v2):
  """One pair of Gaussians (query, entity), in plain Python floats."""
  total = 0.0
  for a, s, b, t in zip(m1, v1, m2, v2):
    forward = 0.5 * (np.log(t / s) + (s + (a - b) ** 2) / t - 1)
    backward = 0.5 * (np.log(s / t) + (t + (a - b) ** 2) / s - 1)
    if name == "xi":
      total -= (a / s - b / t) ** 2
    elif name == "mean":
      total -= (a - b) ** 2
    elif name == "kl_query":
      total -= forward
    elif name == "kl_entity":
      total -= backward
    elif name == "kl_symmetric":
      total -= forward + backward
    elif name == "product_kernel":
      total += scipy.stats.norm.logpdf(a - b, 0, np.sqrt(s + t))
    else:
      p, q, base = (
        scipy.stats.norm(x, np.sqrt(y)) for x, y in ((a, s), (b, t), (0, prior))
      )

      def ratio(z, p=p, q=q, base=base):
        return np.exp(p.logpdf(z) + q.logpdf(z) - base.logpdf(z))

      total += np.log(scipy.integrate.quad(ratio, -15, 15, limit=200)[0])
  return total


@pytest.mark.parametrize("name", gaussian_scores.RANKINGS)
def test_scores_equal_scalar_ones(name):
  """The Bayesian ratio by brute-force integration."""
  rng = np.random.default_rng(1)
  means = rng.standard_normal((6, 2))
  variances = rng.uniform(0.3, 0.8, (6, 2))
  with precision.enable_x64(True):
    natural = gaussian.to_natural(jnp.asarray(means), jnp.asarray(variances))
    query = gaussian.Natural(*(x[0] for x in natural))
    side = gaussian_scores.entity_side(
      name, gaussian.Natural(*(x.T for x in natural))
    )
    found = gaussian_scores.scores(name, 1.5, query, *side)
    expected = [
      _scalar(name, 1.5, means[0], variances[0], means[i], variances[i])
      for i in range(6)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    many = jax.vmap(lambda q: gaussian_scores.scores(name, 1.5, q, *side))(
      natural
    )
    np.testing.assert_allclose(many[0], found, rtol=1e-9, atol=1e-12)


def test_distances_are_best_at_the_entity_itself(model, world):
  asked = query_lib.make_query(world.counts, [7])
  for name in ("xi", "kl_query", "kl_entity", "kl_symmetric", "mean"):
    found = expansion.score(expansion.with_ranking(model, name), asked)
    assert np.argmax(found) == 7
    np.testing.assert_allclose(found[7], 0, atol=1e-2)


def test_query_is_the_weighted_product(model, world):
  """`score` from the definition, with a negative weight, normalized or not."""
  ids, weights = [3, 30, 55], np.array([2.0, -1.0, 0.5], np.float32)
  asked = query_lib.make_query(world.counts, ids, weights)
  xi = np.asarray(model.entities.xi, np.float64)
  combined = xi[:, ids] @ weights
  for normalize, scale in ((False, 1.0), (True, 3.5)):
    changed = expansion.with_ranking(model, "xi", normalize)
    found = expansion.score(changed, asked)
    expected = -np.sum((combined[:, None] / scale - xi) ** 2, axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", gaussian_scores.RANKINGS)
def test_padding_and_batches_change_nothing(model, world, name, monkeypatch):
  changed = expansion.with_ranking(model, name)
  make = functools.partial(query_lib.make_query, world.counts)
  queries = [make([1]), make([2, 40, 60, 80, 99], [1, -2, 1, 1, 0.5])]
  single = np.stack([expansion.score(changed, x) for x in queries])
  np.testing.assert_allclose(
    expansion.score_batch(changed, queries), single, rtol=1e-4, atol=1e-3
  )
  original = expansion._blocks

  def spoiled(model, queries):
    for members, weights, ids, count in original(model, queries):
      empty = (weights == 0)[..., None]
      garbage = [np.where(empty, np.nan, x) for x in members]
      yield gaussian.Natural(*garbage), weights, ids, count

  clean = [expansion.expand(changed, x, 20) for x in queries]
  monkeypatch.setattr(expansion, "_blocks", spoiled)
  np.testing.assert_array_equal(
    np.stack([expansion.score(changed, x) for x in queries]), single
  )
  for before, asked in zip(clean, queries):
    after = expansion.expand(changed, asked, 20)
    jax.tree.map(np.testing.assert_array_equal, before, after)


@pytest.mark.parametrize("name", gaussian_scores.RANKINGS)
def test_best_entities_in_order_without_the_querys_own(model, world, name):
  changed = expansion.with_ranking(model, name)
  asked = query_lib.make_query(world.counts, [0, 1, 26], [1, 1, -1])
  scores = query_lib.exclude(expansion.score(changed, asked), asked)
  found = expansion.expand(changed, asked, k=200)
  assert len(found.ids) == 97 and not {0, 1, 26} & set(found.ids)
  np.testing.assert_allclose(found.scores, np.sort(scores)[::-1][:97])
  np.testing.assert_array_equal(scores[found.ids], found.scores)
  (other,) = expansion.expand_batch(changed, [asked], k=10)
  np.testing.assert_array_equal(other.ids, found.ids[:10])


def test_members_of_the_set_come_first(model, world):
  """Precision at 10 of two members of each cluster."""
  changed = expansion.with_ranking(model, "xi", normalize=True)
  queries = [
    query_lib.make_query(world.counts, [i, i + 1]) for i in range(0, 100, 25)
  ]
  answers = expansion.expand_batch(changed, queries, k=10)
  hits = [
    np.mean(world.cluster[x.ids] == world.cluster[q.ids[0]])
    for x, q in zip(answers, queries)
  ]
  assert np.mean(hits) > 0.9


def test_more_queries_than_a_block(model, world):
  queries = [query_lib.make_query(world.counts, [i]) for i in range(70)]
  scores = expansion.score_batch(model, queries)
  assert scores.shape == (70, 100)
  np.testing.assert_allclose(
    scores[68], expansion.score(model, queries[68]), rtol=1e-4, atol=1e-4
  )
  answers = expansion.expand_batch(model, queries, k=3)
  assert len(answers) == 70
  assert expansion.score_batch(model, []).shape == (0, 100)


def test_new_entities_are_encoded_from_their_rows(model, world):
  known = query_lib.make_query(world.counts, [4, 9])
  new = query_lib.make_query(world.counts, [4], new_rows=world.counts[[9]])
  assert list(new.ids) == [4, -1]
  np.testing.assert_allclose(
    expansion.score(model, new),
    expansion.score(model, known),
    rtol=1e-4,
    atol=1e-3,
  )
  answer = expansion.expand(model, new, 99)
  assert 9 in answer.ids and 4 not in answer.ids


def test_rows_are_scored_as_entities(model, world):
  asked = query_lib.make_query(world.counts, [4, 9, 30], [1, 2, -1])
  for name in gaussian_scores.RANKINGS:
    changed = expansion.with_ranking(model, name)
    whole = expansion.score(changed, asked)
    rows = [60, 3, 11, 5, 80]
    found = expansion.score_rows(changed, asked, world.counts[rows])
    np.testing.assert_allclose(found, whole[rows], rtol=1e-3, atol=1e-2)


def test_rationale_is_the_decoder_at_the_mean(model, world):
  asked = query_lib.make_query(world.counts, [50, 51, 52], [1, 1, 0.5])
  natural = [np.asarray(x, np.float64)[:, asked.ids] for x in model.entities]
  mean = natural[0] @ asked.weights / (natural[1] @ asked.weights)
  table = np.asarray(model.params.decoder, np.float64)
  logits = table @ np.append(mean, 1)
  expected = np.exp(logits) / np.exp(logits).sum()
  found = expansion.rationale(model, asked)
  np.testing.assert_allclose(found, expected, rtol=1e-3)
  base = np.exp(table[:, -1]) / np.exp(table[:, -1]).sum()
  relative = expansion.rationale(model, asked, relative=True)
  np.testing.assert_allclose(
    relative, expected * np.log(expected / base), atol=1e-4
  )
  answer = expansion.expand(model, asked, 5, features=7)
  np.testing.assert_array_equal(
    answer.features, np.argsort(-found, kind="stable")[:7]
  )
  np.testing.assert_allclose(answer.weights, found[answer.features])
  # The features that the query makes likelier are those of its cluster.
  own = world.feature_cluster[np.argsort(-relative)[:7]]
  assert np.mean(own == world.cluster[50]) > 0.8


@pytest.mark.parametrize("name", gaussian_scores.RANKINGS)
@pytest.mark.parametrize("weights", [[1e6, -1e6], [1e-30, 1e-38], [-1, -1]])
def test_extreme_weights_give_finite_scores(model, world, name, weights):
  changed = expansion.with_ranking(model, name)
  asked = query_lib.make_query(world.counts, [0, 30], weights)
  assert np.isfinite(expansion.score(changed, asked)).all()
  assert np.isfinite(expansion.rationale(changed, asked)).all()
  answer = expansion.expand(changed, asked, 5)
  assert len(answer.ids) == 5 and np.isfinite(answer.scores).all()


def test_one_compilation_for_each_size_of_query(model, world, compilations):
  make = functools.partial(query_lib.make_query, world.counts)
  expansion.expand(model, make([1, 2, 3]), 10)
  assert (
    compilations.during(lambda: expansion.expand(model, make([4]), 10)) == 0
  )
  four = make([5, 6, 7, 8], [1, -1, 2, 0.5])
  assert compilations.during(lambda: expansion.expand(model, four, 10)) == 0


def test_entities_without_features_are_finite(model, world):
  rows = sp.csr_array((3, world.counts.shape[1]), dtype=np.float32)
  for found in expansion.encode_rows(*model[:3], rows):
    assert np.isfinite(found).all()
  asked = query_lib.make_query(world.counts, [0])
  assert np.isfinite(expansion.score_rows(model, asked, rows)).all()
  assert expansion.score_rows(model, asked, rows[:0]).shape == (0,)


def test_wrong_requests_are_refused(model, world):
  with pytest.raises(errors.InputError, match="no ranking score 'cosine'"):
    expansion.with_ranking(model, "cosine")
  with pytest.raises(errors.InputError, match="features, the model"):
    expansion.build(*model[:3], world.counts[:, :-1])


@pytest.fixture
def saved(model, tmp_path):
  model_files.save(tmp_path / "model", *model[:3], "abc")
  return tmp_path / "model"


def test_a_model_comes_back_as_it_was(model, world, saved):
  config, params, inputs = model_files.load(saved, "abc")
  assert config == model.config
  jax.tree.map(np.testing.assert_array_equal, params, model.params)
  again = expansion.build(config, params, inputs, world.counts)
  asked = query_lib.make_query(world.counts, [3, 8])
  np.testing.assert_array_equal(
    expansion.score(again, asked), expansion.score(model, asked)
  )
  model_files.load(saved)
  assert sorted(x.name for x in saved.iterdir()) == [
    "model.json",
    "parameters.npz",
  ]


def test_models_of_other_features_or_damaged_are_refused(model, saved):
  with pytest.raises(errors.InputError, match="trained on other features"):
    model_files.load(saved, "abd")
  notes = (saved / "model.json").read_text()
  (saved / "model.json").write_text(notes.replace("log1p", "raw"))
  with pytest.raises(errors.InputError, match="belongs to another model"):
    model_files.load(saved)
  (saved / "model.json").write_text(notes.replace("log1p", "none"))
  with pytest.raises(errors.InputError, match="weighting must be one of"):
    model_files.load(saved)
  (saved / "model.json").write_text("{}")
  with pytest.raises(errors.InputError, match="does not describe a model"):
    model_files.load(saved)
  (saved / "model.json").write_text(notes)
  (saved / "parameters.npz").write_bytes(b"PK")
  with pytest.raises(errors.InputError, match="not a readable"):
    model_files.load(saved)
  with pytest.raises(errors.InputError, match="no such file"):
    model_files.load(saved / "nothing")

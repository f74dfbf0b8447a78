"""Queries of the autoencoder: scores, padding, batches, contributions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.sparse as sp
import scipy.stats

from repr_jax import errors, ops, setexp
from repr_jax.data import synthetic_corpora
from repr_jax.ops import gaussian, precision
from repr_jax.setexp import fitting, from_scipy, gaussian_scores, systems
from repr_jax.setexp import query as query_lib


@pytest.fixture(scope="module")
def world():
  return synthetic_corpora.entity_sets(
    np.random.default_rng(0), clusters=4, members=25, shared_features=40
  )


@pytest.fixture(scope="module")
def model(world):
  config = setexp.Config(dim=6, hidden=(24,), weighting="log1p")
  fitted = fitting.fit(
    world.counts, config, jax.random.key(0), epochs=25, batch_size=20,
    hyper=setexp.Hyper(5e-3),
  )  # fmt: skip
  return setexp.model_from_scipy(
    config, fitted.params, fitted.inputs, world.counts
  )


def _system(model, score, **settings):
  return systems.nvse(model, systems.RankingConfig(score, **settings))


def _scores(model, query, score, **settings):
  return _system(model, score, **settings).score_batch([query])[0]


def _one(model, query, **shape):
  padded = setexp.pad_queries(model, [query], **shape)
  return jax.tree.map(lambda x: x[0], padded)


def _weights(name):
  return jnp.asarray([float(x == name) for x in gaussian_scores.SCORES])


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


@pytest.mark.parametrize("name", gaussian_scores.SCORES)
def test_scores_equal_scalar_ones(name):
  """The Bayesian ratio by brute-force integration."""
  rng = np.random.default_rng(1)
  means = rng.standard_normal((6, 2))
  variances = rng.uniform(0.3, 0.8, (6, 2))
  with precision.enable_x64(True):
    natural = ops.to_natural(jnp.asarray(means), jnp.asarray(variances))
    query = gaussian.Natural(*(x[0] for x in natural))
    side = gaussian_scores.entity_side(
      gaussian.Natural(*(x.T for x in natural))
    )
    weights = _weights(name).astype(jnp.float64)
    found = gaussian_scores.scores(weights, 1.5, query, side)
    expected = [
      _scalar(name, 1.5, means[0], variances[0], means[i], variances[i])
      for i in range(6)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    many = jax.jit(
      jax.vmap(lambda q: gaussian_scores.scores(weights, 1.5, q, side))
    )(natural)
    np.testing.assert_allclose(many[0], found, rtol=1e-9, atol=1e-12)
    # Each coordinate adds the score of its own pair of Gaussians.
    entity = gaussian.Natural(*(x[3] for x in natural))
    parts = gaussian_scores.parts(weights, 1.5, query, entity)
    apart = [
      _scalar(name, 1.5, *(x[[j]] for x in pair))
      for j in range(2)
      for pair in [(means[0], variances[0], means[3], variances[3])]
    ]
    np.testing.assert_allclose(parts, apart, rtol=1e-6, atol=1e-9)


def test_a_sum_of_scores_is_their_sum(model, world):
  query = _one(model, query_lib.make_query(world.counts, [3, 30], [1.0, -0.5]))
  rankings = [setexp.make_ranking(x, power=0.5) for x in setexp.SCORES]
  rng = np.random.default_rng(0)
  mixture = rng.uniform(-1, 1, 9).astype(np.float32)
  both = rankings[0]._replace(scores=mixture)
  alone = [setexp.score_entities(model, query, x) for x in rankings]
  expected = mixture @ np.stack(alone)
  found = setexp.score_entities(model, query, both)
  np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-2)
  # Scores are traced: many of them are one program.
  stacked = jax.tree.map(lambda *x: jnp.stack(x), *rankings)
  many = jax.jit(jax.vmap(setexp.score_entities, (None, None, 0)))(
    model, query, stacked
  )
  np.testing.assert_allclose(many, np.stack(alone), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", setexp.SCORES)
def test_contributions_sum_to_the_score(model, world, name):
  query = query_lib.make_query(world.counts, [3, 30, 55], [2.0, -1.0, 0.5])
  system = _system(model, name)
  scores = system.score_batch([query])[0]
  for entity in np.argsort(-scores)[[0, 4, 20]]:
    (parts,) = system.contributions(query, [int(entity)])
    assert parts.total == pytest.approx(scores[entity], rel=1e-5)
    own = np.flatnonzero(parts.by_feature(world.counts.shape[1]))
    assert set(own) <= set(world.counts[[entity]].indices)
    assert bool(len(own)) == (name == "features")
    assert parts.dimensions.any() == (name != "features")


def test_contributions_of_an_ensemble_sum_to_its_score(model, world):
  query = query_lib.make_query(world.counts, [3, 4])
  lexical = systems.baseline("bm25", world.counts)
  for score in ("features", "xi"):
    both = systems.fuse(_system(model, score), lexical, 0.3)
    scores = both.score_batch([query])[0]
    for entity in np.argsort(-scores)[[2, 9]].tolist():
      (parts,) = both.contributions(query, [entity])
      assert parts.total == pytest.approx(scores[entity], rel=1e-5)


def test_distances_are_best_at_the_entity_itself(model, world):
  asked = query_lib.make_query(world.counts, [7])
  for name in ("xi", "kl_query", "kl_entity", "kl_symmetric", "mean"):
    found = _scores(model, asked, name)
    assert np.argmax(found) == 7
    np.testing.assert_allclose(found[7], 0, atol=1e-2)


def test_query_is_the_weighted_product(model, world):
  """A score from the definition, with a negative weight, normalized or not."""
  ids, weights = [3, 30, 55], np.array([2.0, -1.0, 0.5], np.float32)
  asked = query_lib.make_query(world.counts, ids, weights)
  xi = np.asarray(model.entities.xi, np.float64)
  combined = xi[:, ids] @ weights
  for normalize, scale in ((False, 1.0), (True, 3.5)):
    found = _scores(model, asked, "xi", normalize=normalize)
    expected = -np.sum((combined[:, None] / scale - xi) ** 2, axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    posterior = setexp.query_posterior(model, _one(model, asked), normalize)
    np.testing.assert_allclose(posterior.xi, combined / scale, rtol=1e-4)


@pytest.mark.parametrize("name", setexp.SCORES)
def test_padding_and_batches_change_nothing(model, world, name):
  make = functools.partial(query_lib.make_query, world.counts)
  queries = [make([1]), make([2, 40, 60, 80, 99], [1, -2, 1, 1, 0.5])]
  ranking = setexp.make_ranking(name)
  for query in queries:
    alone = setexp.score_entities(model, _one(model, query), ranking)
    padded = _one(model, query, members=11, entries=999)
    empty, absent = padded.weights == 0, padded.entries.feature == 50_000
    outside = padded.entries.feature >= world.counts.shape[1]
    assert empty.any() and outside.any() and not absent.any()
    garbage = padded._replace(
      ids=np.where(empty, 77, padded.ids),
      entries=setexp.Entries(
        np.where(outside, 5, padded.entries.member),
        np.where(outside, -3, padded.entries.feature),
        np.where(outside, np.nan, padded.entries.count),
      ),
    )
    for other in (padded, garbage):
      found = setexp.score_entities(model, other, ranking)
      np.testing.assert_allclose(found, alone, rtol=1e-4, atol=1e-4)
  many = _system(model, name).score_batch(queries)
  single = [_scores(model, x, name) for x in queries]
  np.testing.assert_allclose(many, single, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", setexp.SCORES)
def test_best_entities_in_order_without_the_querys_own(model, world, name):
  asked = query_lib.make_query(world.counts, [0, 1, 26], [1, 1, -1])
  ranking = setexp.make_ranking(name)
  scores = query_lib.exclude(_scores(model, asked, name), asked)
  padded = setexp.pad_queries(model, [asked])
  found = setexp.expand(model, padded, ranking, 100)
  ids, values = np.asarray(found.ids[0, :97]), np.asarray(found.scores[0])
  assert not {0, 1, 26} & set(ids)
  assert np.isneginf(values[97:]).all()
  np.testing.assert_allclose(
    values[:97], np.sort(scores)[::-1][:97], rtol=1e-5, atol=1e-4
  )
  np.testing.assert_allclose(scores[ids], values[:97], rtol=1e-5, atol=1e-4)


def test_members_of_the_set_come_first(model, world):
  """Precision at 10 of two members of each cluster."""
  queries = [
    query_lib.make_query(world.counts, [i, i + 1]) for i in range(0, 100, 25)
  ]
  padded = setexp.pad_queries(model, queries)
  for name in ("xi", "features"):
    ranking = setexp.make_ranking(name, normalize=True)
    ids = np.asarray(setexp.expand(model, padded, ranking, 10).ids)
    own = world.cluster[[q.ids[0] for q in queries]]
    assert np.mean(world.cluster[ids] == own[:, None]) > 0.9


def test_more_queries_than_a_block(model, world):
  queries = [query_lib.make_query(world.counts, [i]) for i in range(70)]
  system = _system(model, "features")
  scores = system.score_batch(queries)
  assert scores.shape == (70, 100)
  np.testing.assert_allclose(
    scores[68], _scores(model, queries[68], "features"), rtol=1e-4
  )
  assert len(system.score_batch([])) == 0


@pytest.mark.parametrize("name", ["xi", "features"])
def test_new_entities_are_encoded_from_their_rows(model, world, name):
  known = query_lib.make_query(world.counts, [4, 9])
  new = query_lib.make_query(world.counts, [4], new_rows=world.counts[[9]])
  assert list(new.ids) == [4, -1]
  np.testing.assert_allclose(
    _scores(model, new, name), _scores(model, known, name), rtol=1e-4, atol=1e-3
  )
  padded = setexp.pad_queries(model, [new])
  answer = setexp.expand(model, padded, setexp.make_ranking(name), 99)
  assert 9 in answer.ids[0] and 4 not in answer.ids[0]


@pytest.mark.parametrize("name", setexp.SCORES)
def test_rows_are_scored_as_entities(model, world, name):
  asked = query_lib.make_query(world.counts, [4, 9, 30], [1, 2, -1])
  whole = _scores(model, asked, name)
  rows = [60, 3, 11, 5, 80]
  found = _system(model, name).score_rows(asked, world.counts[rows])
  np.testing.assert_allclose(found, whole[rows], rtol=1e-3, atol=1e-2)


def test_the_thesis_rationale_is_the_decoder_at_the_mean(model, world):
  asked = query_lib.make_query(world.counts, [50, 51, 52], [1, 1, 0.5])
  natural = [np.asarray(x, np.float64)[:, asked.ids] for x in model.entities]
  mean = natural[0] @ asked.weights / (natural[1] @ asked.weights)
  table = np.asarray(model.params.decoder, np.float64)
  logits = table @ np.append(mean, 1)
  expected = np.exp(logits) / np.exp(logits).sum()
  found = setexp.decoder_rationale(model, _one(model, asked))
  np.testing.assert_allclose(found, expected, rtol=1e-3)
  base = np.exp(table[:, -1]) / np.exp(table[:, -1]).sum()
  relative = setexp.decoder_rationale(model, _one(model, asked), True)
  np.testing.assert_allclose(
    relative, expected * np.log(expected / base), atol=1e-4
  )
  # The features that the query makes likelier are those of its cluster.
  own = world.feature_cluster[np.argsort(-relative)[:7]]
  assert np.mean(own == world.cluster[50]) > 0.8


@pytest.mark.parametrize("name", setexp.SCORES)
@pytest.mark.parametrize("weights", [[1e6, -1e6], [1e-30, 1e-38], [-1, -1]])
def test_extreme_weights_give_finite_scores(model, world, name, weights):
  asked = query_lib.make_query(world.counts, [0, 30], weights)
  system = _system(model, name)
  assert np.isfinite(system.score_batch([asked])).all()
  assert np.isfinite(system.rationale(asked)).all()


def test_one_compilation_for_all_scores_and_sizes(model, world, compilations):
  make = functools.partial(query_lib.make_query, world.counts)

  def ask(query, score):
    padded = setexp.pad_queries(model, [query], entries=1024)
    return setexp.expand(model, padded, setexp.make_ranking(score), 10)

  ask(make([1, 2, 3]), "xi")
  assert compilations.during(lambda: ask(make([4]), "features")) == 0
  four = make([5, 6, 7, 8], [1, -1, 2, 0.5])
  assert compilations.during(lambda: ask(four, "bayes")) == 0


def test_entities_without_features_are_finite(model, world):
  rows = sp.csr_array((3, world.counts.shape[1]), dtype=np.float32)
  for found in from_scipy.encode_rows(
    model.config, model.params, model.inputs, rows
  ):
    assert np.isfinite(found).all()
  asked = query_lib.make_query(world.counts, [0])
  for name in ("xi", "features"):
    system = _system(model, name)
    assert np.isfinite(system.score_rows(asked, rows)).all()
    assert system.score_rows(asked, rows[:0]).shape == (0,)


def test_wrong_requests_are_refused(model, world):
  for name, value, message in (
    ("score", "sine", "no score 'sine'"),
    ("pooling", "sum", "no pooling"),
    ("power", 0.0, "power"),
    ("power", np.nan, "power"),
    ("member_share", 1.1, "share"),
  ):
    with pytest.raises(errors.InputError, match=message):
      setexp.make_ranking(**{name: value})
  with pytest.raises(errors.InputError, match="features, the model"):
    setexp.model_from_scipy(
      model.config, model.params, model.inputs, world.counts[:, :-1]
    )

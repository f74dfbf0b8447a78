"""The model against plain numpy, on corpora with one right answer."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from repr_jax import linking
from repr_jax.data.documents import packing
from repr_jax.linking import disambiguation, train
from repr_jax.linking.disambiguation import Config, Params, Tables
from repr_jax.ops import precision


class _Planted(NamedTuple):
  """Documents with ambiguous mentions of entities.

  Attributes:
    candidates: entity ids, int32 [docs, mentions, c].
    prior: p(entity | mention) of the candidates, float32 [docs, mentions, c].
    context: ids of the words around, int32 [docs, mentions, w].
    gold: which candidate is meant, int32 [docs, mentions].
    entity_vectors: unit vectors, float32 [e, d].
    word_vectors: unit vectors, float32 [v, d].
  """

  candidates: np.ndarray
  prior: np.ndarray
  context: np.ndarray
  gold: np.ndarray
  entity_vectors: np.ndarray
  word_vectors: np.ndarray


def _planted(
  rng: np.random.Generator,
  evidence: str = "context",
  documents: int = 20,
  mentions: int = 4,
  candidates: int = 3,
  topics: int = 6,
  words: int = 10,
  noise: float = 0.1,
) -> _Planted:
  """Documents in which the prior misleads and other evidence decides.

  Every entity and word has a topic, and vectors near its topic's axis. One
  candidate of each mention has the right topic, and not the highest prior.

  Args:
    rng: the source of randomness.
    evidence: "context": each mention has a topic of its own, and its words
      have it too. "coherence": all mentions of a document share a topic, the
      words say nothing, and the first mention alone has a telling prior.
    documents: the number of documents.
    mentions: mentions in each.
    candidates: candidates of each mention, from 2 up to `topics`.
    topics: the number of topics.
    words: context words of each mention.
    noise: how far vectors lie from their topic's axis.

  Returns:
    The documents and vectors.
  """
  shape = (documents, mentions)
  topic = rng.integers(topics, size=shape)
  if evidence == "coherence":
    topic = np.repeat(topic[:, :1], mentions, axis=1)
  # Candidates have distinct topics, the right one at a random place.
  order = rng.permuted(np.tile(np.arange(topics), (*shape, 1)), axis=-1)
  others = order[order != topic[..., None]].reshape(*shape, topics - 1)
  gold = rng.integers(candidates, size=shape)
  chosen = others[..., :candidates].copy() if candidates < topics else order
  if candidates < topics:
    np.put_along_axis(chosen, gold[..., None], topic[..., None], axis=-1)
  else:
    gold = np.argmax(chosen == topic[..., None], axis=-1)
  per_topic = 5
  entities = chosen * per_topic + rng.integers(per_topic, size=chosen.shape)
  telling = np.zeros(shape, bool)
  telling[:, 0] = evidence == "coherence"
  word_topic = topic if evidence == "context" else np.full(shape, topics)
  context = word_topic[..., None] * 20 + rng.integers(20, size=(*shape, words))
  return _Planted(
    entities.astype(np.int32),
    _priors(rng, gold, candidates, telling),
    context.astype(np.int32),
    gold.astype(np.int32),
    _near_axes(rng, np.repeat(np.arange(topics), per_topic), topics, noise),
    _near_axes(rng, np.repeat(np.arange(topics + 1), 20), topics, noise),
  )


def _priors(
  rng: np.random.Generator, gold: np.ndarray, c: int, telling: np.ndarray
) -> np.ndarray:
  """Priors [.., c] with the gold candidate first (telling) or not."""
  prior = rng.uniform(1.0, 2.0, (*gold.shape, c))
  place = np.arange(c) == gold[..., None]
  weight = np.where(telling, 20.0 * c, 0.5)[..., None]
  prior = np.where(place, weight, prior)
  return (prior / prior.sum(axis=-1, keepdims=True)).astype(np.float32)


def _near_axes(
  rng: np.random.Generator, topic: np.ndarray, topics: int, noise: float
) -> np.ndarray:
  """Unit vectors near their topic's axis; random ones for topic `topics`."""
  axes = np.concatenate([np.eye(topics), np.zeros((1, topics))])
  spread = np.where(topic == topics, 1.0, noise)[:, None]
  vectors = axes[topic] + spread * rng.standard_normal((len(topic), topics))
  norms = np.linalg.norm(vectors, axis=1, keepdims=True)
  return (vectors / norms).astype(np.float32)


_CONFIG = Config(keep=3, hidden=5)
_TRAINER = train.disambiguator(_CONFIG, optax.adam(1e-2))


_scores = jax.jit(disambiguation.document_scores, static_argnums=0)


def _best(config, params, tables, documents):
  """The best candidates of several documents."""
  one = functools.partial(disambiguation.disambiguate, config, params, tables)
  return jax.jit(jax.vmap(one))(documents).best


def _document(rng, m=4, c=3, k=6, entities=9, words=11):
  """A document with gaps: a mention without candidates, one without words."""
  candidates = rng.integers(entities, size=(m, c))
  candidates[rng.random((m, c)) < 0.3] = -1
  candidates[0] = -1
  candidates[1:, 0] = rng.integers(entities, size=m - 1)
  around = rng.integers(words, size=(m, k))
  around[rng.random((m, k)) < 0.3] = -1
  around[-1] = -1
  gold = np.where(candidates[:, 0] >= 0, 0, -1)
  prior = np.log(rng.uniform(0.01, 1, (m, c)))
  return packing.Packed(candidates, prior, around, gold)


def _world(seed, d=4):
  rng = np.random.default_rng(seed)
  params = linking.init_params(_CONFIG, d, jax.random.key(seed))
  params = Params(*(x + 0.3 * rng.standard_normal(x.shape) for x in params))
  tables = Tables(rng.standard_normal((9, d)), rng.standard_normal((11, d)))
  return rng, params, tables


def _plain_scores(config, params, tables, document):
  """The thesis' local model, one mention and one candidate at a time."""
  params = Params(*map(np.asarray, params))
  scores = np.full(document.candidates.shape, -np.inf)
  for row, ids in enumerate(document.candidates):
    known = [w for w in document.words[row] if w >= 0]
    there = [e for e in ids if e >= 0]
    votes = {
      place: max(
        tables.entities[e] @ (params.attention * tables.words[w]) for e in there
      )
      for place, w in enumerate(known)
      if there
    }
    kept = sorted(votes, key=votes.__getitem__, reverse=True)[: config.keep]
    weights = np.exp([votes[place] for place in kept])
    for column, e in enumerate(ids):
      if e < 0:
        continue
      score = 0.0
      for place, weight in zip(kept, weights / weights.sum()):
        word = tables.words[known[place]]
        score += weight * tables.entities[e] @ (params.context * word)
      inputs = np.array([score, document.log_prior[row, column], 1.0])
      hidden = np.maximum(inputs @ params.inner[:3], 0)
      scores[row, column] = hidden @ params.outer
  return scores


@pytest.mark.parametrize("seed", range(3))
def test_local_scores_equal_plain_numpy(seed):
  with precision.enable_x64():
    rng, params, tables = _world(seed)
    document = _document(rng)
    config = Config(coherence=False, keep=3, hidden=5)
    found = _scores(config, params, tables, document)
    expected = _plain_scores(config, params, tables, document)
    mask = document.candidates >= 0
    np.testing.assert_allclose(found[mask], expected[mask], rtol=1e-10)
    assert (np.asarray(found)[~mask] < -1e8).all()


def test_a_global_network_that_sees_the_context_alone_is_the_local_one():
  with precision.enable_x64():
    rng, params, tables = _world(4)
    document = _document(rng)
    config = Config(True, True, True, keep=3, hidden=5)
    # The field's score counts nothing, the context's what it counts locally.
    first, prior, one, _ = params.inner
    moved = params._replace(
      inner=jnp.stack([jnp.zeros_like(first), prior, one, first])
    )
    found = _scores(config, moved, tables, document)
    expected = _scores(
      Config(coherence=False, keep=3, hidden=5), params, tables, document
    )
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    both = _scores(config, params, tables, document)
    mask = document.candidates >= 0
    assert np.abs(both[mask] - np.asarray(found)[mask]).max() > 1e-3


def test_pairs_are_bilinear_and_shared_by_the_mentions_that_count():
  with precision.enable_x64():
    rng, params, tables = _world(0)
    entities = tables.entities[rng.integers(9, size=(4, 3))]
    mask = np.ones((4, 3), bool)
    mask[0] = False
    found = disambiguation.pair_scores(params, entities, mask)
    c = np.diag(params.pair)
    expected = 2 / (3 - 1) * entities[1, 2] @ c @ entities[3, 0]
    np.testing.assert_allclose(found[1, 3, 2, 0], expected)
    np.testing.assert_allclose(found[3, 1, 0, 2], expected)


@pytest.mark.parametrize("coherence", [True, False])
def test_gradients_equal_finite_differences(coherence):
  with precision.enable_x64():
    rng, params, tables = _world(1)
    batch = jax.tree.map(lambda *x: np.stack(x), _document(rng), _document(rng))
    config = Config(coherence, True, True, keep=3, hidden=5, iterations=4)

    @jax.jit
    def loss(params):
      return train.batch_loss(config, params, tables, batch, 0.5)[0]

    slopes = jax.jit(jax.grad(loss))(params)
    assert loss(params) > 0
    for name, slope in slopes._asdict().items():
      direction = rng.standard_normal(slope.shape)
      ends = [
        loss(params._replace(**{name: getattr(params, name) + s * direction}))
        for s in (1e-6, -1e-6)
      ]
      numeric = (ends[0] - ends[1]) / 2e-6
      np.testing.assert_allclose(
        np.sum(slope * direction), numeric, rtol=1e-5, atol=1e-9
      )


def test_what_is_masked_changes_nothing():
  rng, params, tables = _world(2)
  document = _document(rng)
  batch = packing.Packed(*(np.asarray(x)[None] for x in document))
  mask = batch.candidates >= 0
  other = packing.Packed(
    np.where(mask, batch.candidates, -7),
    np.where(mask, batch.log_prior, np.nan),
    np.where(batch.words >= 0, batch.words, -3),
    batch.gold,
  )
  run = jax.jit(
    jax.value_and_grad(
      lambda params, batch: train.batch_loss(_CONFIG, params, tables, batch),
      has_aux=True,
    )
  )
  clean, same = run(params, batch), run(params, other)
  jax.tree.map(np.testing.assert_array_equal, clean, same)
  # A wider form of the same document has the same scores.
  wider = packing.Packed(
    *(
      np.pad(x, [(0, 0), (0, 2), *[(0, 1)] * (x.ndim - 2)], constant_values=-1)
      for x in batch
    )
  )
  np.testing.assert_allclose(run(params, wider)[0][0], clean[0][0], rtol=1e-5)


def test_one_mention_and_none():
  rng, params, tables = _world(3)
  document = packing.Packed(*(np.asarray(x)[None, 1:2] for x in _document(rng)))
  found = _best(_CONFIG, params, tables, document)
  assert found.shape == (1, 1) and found[0, 0] >= 0
  empty = document._replace(
    candidates=np.full_like(document.candidates, -1), gold=np.full((1, 1), -1)
  )
  assert _best(_CONFIG, params, tables, empty)[0, 0] == -1
  loss, right = jax.jit(train.batch_loss, static_argnums=0)(
    _CONFIG, params, tables, empty
  )
  assert loss == 0 and right == 0


def test_the_margin_loss():
  scores = jnp.array([[1.0, 0.95, 2.0, 9.0], [0.0, 0.0, 0.0, 0.0]])
  mask = jnp.array([[True, True, True, False], [True, True, True, True]])
  loss, count = disambiguation.margin_loss(
    scores, mask, jnp.array([0, -1]), 0.1
  )
  np.testing.assert_allclose(loss, 0.05 + 1.1, rtol=1e-6)
  assert count == 1


def _train(world, config, margin=0.01, steps=150):
  # A prior that is drawn apart: that of the world is lowest where it is right,
  # which a network can learn.
  size = world.candidates.shape
  prior = np.random.default_rng(5).dirichlet(np.ones(size[-1]), size[:-1])
  world = world._replace(prior=prior.astype(np.float32))
  packed = packing.Packed(
    world.candidates, np.log(world.prior), world.context, world.gold
  )
  tables = Tables(
    jnp.asarray(world.entity_vectors), jnp.asarray(world.word_vectors)
  )
  half = len(world.gold) // 2
  first = packing.Packed(*(jnp.asarray(x[:half]) for x in packed))
  rest = packing.Packed(*(x[half:] for x in packed))
  init, update = train.disambiguator(config, optax.adam(1e-2))
  state = init(jax.random.key(0), tables)
  for _ in range(steps):
    state, info = update(state, tables, first, margin)
  found = _best(config, state.params, tables, rest)
  by_prior = rest.log_prior.argmax(-1) == rest.gold
  return np.mean(found == rest.gold), by_prior.mean(), info


def test_context_decides_against_the_prior():
  rng = np.random.default_rng(0)
  world = _planted(rng, "context", documents=80)
  right, prior, _ = _train(world, Config(coherence=False, hidden=20))
  assert right > 0.95 > prior


def test_only_coherence_decides():
  rng = np.random.default_rng(1)
  world = _planted(rng, "coherence", documents=240, mentions=7)
  together, _, _ = _train(world, Config(True, hidden=20), 0.1)
  alone, _, _ = _train(world, Config(False, hidden=20), 0.1)
  assert together > 0.95
  assert alone < 0.6


def test_the_average_is_the_mean_of_the_first_steps():
  rng, _, tables = _world(5)
  batch = packing.Packed(*(np.asarray(x)[None] for x in _document(rng)))
  tables = Tables(*map(jnp.asarray, tables))
  init, update = _TRAINER
  state = init(jax.random.key(0), tables)
  seen = []
  for _ in range(3):
    # The margin is so wide that all are short of it.
    state, _ = update(state, tables, batch, 9.0)
    seen.append(jax.tree.map(np.array, state.params))
  mean = jax.tree.map(lambda *x: np.mean(x, axis=0), *seen)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7),
    state.average,
    mean,
  )
  assert not np.allclose(seen[0].outer, seen[2].outer)


def test_a_step_is_the_optimizers():
  rng, _, tables = _world(6)
  batch = packing.Packed(*(np.asarray(x)[None] for x in _document(rng)))
  tables = Tables(*map(jnp.asarray, tables))
  slopes = jax.jit(
    jax.grad(lambda x: train.batch_loss(_CONFIG, x, tables, batch, 9.0)[0])
  )
  for optimizer in (optax.sgd(0.1), optax.adam(1e-2)):
    init, update = train.disambiguator(_CONFIG, optimizer)
    state = init(jax.random.key(0), tables)
    change, _ = jax.jit(optimizer.update)(
      slopes(state.params), state.optimizer, state.params
    )
    expected = optax.apply_updates(state.params, change)
    after, _ = update(state, tables, batch, 9.0)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
      after.params,
      expected,
    )
    assert not np.allclose(after.params.outer, state.params.outer)


def test_a_step_compiles_once_whatever_margin_and_rate(compilations):
  rng, _, tables = _world(4)
  batch = packing.Packed(*(np.asarray(x)[None] for x in _document(rng)))
  tables = Tables(*map(jnp.asarray, tables))
  optimizer = optax.inject_hyperparams(optax.adam)(1e-3)
  init, update = train.disambiguator(_CONFIG, optimizer)
  state = init(jax.random.key(0), tables)
  state, _ = update(state, tables, batch, 0.01)
  moved = jax.tree.map(jnp.copy, state)
  moved.optimizer.hyperparams["learning_rate"] = jnp.asarray(1.0)
  (fast, _), (slow, _) = (update(x, tables, batch, 9.0) for x in (moved, state))
  assert compilations.during(lambda: update(moved, tables, batch, 2.0)) == 0
  step = [np.abs(x.params.outer - state.params.outer) for x in (fast, slow)]
  assert (step[0] >= 100 * step[1]).all() and step[1].any()


@pytest.mark.parametrize("coherence", [True, False])
def test_contributions_add_up_and_name_the_cause(coherence):
  with precision.enable_x64():
    rng, params, tables = _world(7)
    document = _document(rng)
    config = Config(coherence, True, True, keep=3, hidden=5)
    run = jax.jit(disambiguation.contributions, static_argnums=0)
    parts = run(config, params, tables, document)
    mask = document.candidates >= 0
    scores = _scores(config, params, tables, document)
    np.testing.assert_allclose(sum(parts)[mask], scores[mask], rtol=1e-10)
    for part in parts:
      np.testing.assert_array_equal(np.asarray(part)[~mask], 0)
    # Without words the context has no part, alone a mention no coherence.
    silent = document._replace(words=np.full_like(document.words, -1))
    parts = run(config, params, tables, silent)
    np.testing.assert_allclose(parts.context, 0, atol=1e-12)
    alone = packing.Packed(*(x[1:2] for x in document))
    parts = run(config, params, tables, alone)
    np.testing.assert_allclose(parts.coherence, 0, atol=1e-12)
    assert np.abs(parts.context).max() > 1e-3

"""Doors of `repr_jax.linking`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse as sp
from doors.door import Door

from repr_jax import linking
from repr_jax.setexp import autoencoder

_CONFIG = linking.Config(
  field_prior=True, join_context=True, keep=3, hidden=4, iterations=3
)
_MARGIN = linking.MarginConfig(4, 3)
_VAE = autoencoder.Config(dim=3, hidden=(4,), weighting="bm25")
_D, _C, _K = 3, 4, 5


def _random(seed, dtype, *shape):
  rng = np.random.default_rng([seed, *shape])
  return jnp.asarray(rng.standard_normal(shape).astype(dtype))


def _ids(seed, high, *shape):
  """Ids whose last entries are padding."""
  ids = np.random.default_rng(seed).integers(high, size=shape)
  ids[..., -1] = -1
  return jnp.asarray(ids, jnp.int32)


def _params(seed, dtype):
  params = linking.init_params(_CONFIG, _D, jax.random.key(seed))
  return jax.tree.map(
    lambda x: (x + 0.3 * _random(seed, dtype, *x.shape)).astype(dtype), params
  )


def _tables(seed, dtype):
  return linking.Tables(
    _random(seed, dtype, 9, _D), _random(seed, dtype, 8, _D)
  )


def _document(seed, dtype):
  candidates = _ids(seed, 9, 3, _C).at[2].set(-1)
  gold = jnp.asarray([1, -1, -1], jnp.int32)
  return linking.Packed(
    candidates,
    -jnp.abs(_random(seed, dtype, 3, _C)),
    _ids(seed, 8, 3, _K),
    gold,
  )


def _garbage_document(document):
  mask = document.candidates >= 0
  return document._replace(
    candidates=jnp.where(mask, document.candidates, -7),
    log_prior=jnp.where(mask, document.log_prior, jnp.nan),
    words=jnp.where(document.words >= 0, document.words, -5),
  )


def _local(seed, dtype):
  mask = jnp.asarray([True, True, True, False])
  known = jnp.asarray([True, True, False, True, False])
  entities, words = _random(seed, dtype, _C, _D), _random(seed, dtype, _K, _D)
  return _params(seed, dtype), entities, mask, words, known


def _local_garbage(params, entities, mask, words, known):
  entities = jnp.where(mask[:, None], entities, jnp.nan)
  return (
    params,
    entities,
    mask,
    jnp.where(known[:, None], words, jnp.inf),
    known,
  )


def _scored(seed, dtype):
  return _params(seed, dtype), _tables(seed, dtype), _document(seed, dtype)


def _scored_garbage(params, tables, document):
  return params, tables, _garbage_document(document)


def _batch(seed, dtype):
  documents = [_document(10 * seed + i, dtype) for i in range(2)]
  return jax.tree.map(lambda *x: jnp.stack(x), *documents)


_TRAINER = linking.disambiguator(_CONFIG, optax.adam(1e-2))


def _training(seed, dtype):
  tables = _tables(seed, dtype)
  params = _params(seed, dtype)
  state = linking.State(
    params, params, optax.adam(1e-2).init(params), jnp.zeros((), jnp.int32)
  )
  return state, tables, _batch(seed, dtype), jnp.asarray(0.5, dtype)


def _training_garbage(state, tables, batch, margin):
  return state, tables, _garbage_document(batch), margin


def _noise():
  return linking.unigram_noise(np.arange(1, 9))


def _table(seed, dtype):
  table = _random(seed, dtype, 8, _D)
  return table / jnp.linalg.norm(table, axis=1, keepdims=True)


def _margin(seed, dtype):
  table = _table(seed, dtype)
  state = linking.MarginState(table[seed % 8], jnp.abs(table[0]))
  words = jnp.asarray([1, 2, 3, 4, 5, 6], jnp.int32)
  begin, size = jnp.asarray(2, jnp.int32), jnp.asarray(3, jnp.int32)
  rates = jnp.asarray(0.5, dtype), jnp.asarray(0.3, dtype)
  return state, jax.random.key(seed), table, begin, size, words, *rates


def _margin_update(state, key, table, begin, size, words, margin, rate):
  _, update = linking.max_margin(_MARGIN)
  bag = linking.Bag(begin, size, words)
  return update(state, key, table, bag, _noise(), margin, rate)


def _margin_garbage(state, key, table, begin, size, words, *rates):
  """The words of other entities."""
  words = words.at[:2].set(7).at[5].set(0)
  return state, key, table, begin, size, words, *rates


def _vae(seed, dtype):
  counts = sp.csr_array(np.random.default_rng(0).poisson(1.0, (6, 8)))
  statistics = autoencoder.statistics_from_scipy(
    _VAE, counts.astype(np.float32)
  )
  params = autoencoder.init(_VAE, jax.random.key(seed), statistics)
  params = jax.tree.map(lambda x: x.astype(dtype), params)
  inputs = jax.tree.map(lambda x: jnp.asarray(x, dtype), statistics.inputs)
  return params, inputs, _ids(seed, 8, 4), jnp.abs(_random(seed, dtype, 4))


def _vae_garbage(params, inputs, words, counts):
  return params, inputs, words.at[-1].set(-9), counts.at[-1].set(jnp.nan)


def _search(seed, dtype):
  rng = np.random.default_rng(seed)
  rows = jnp.asarray(rng.permuted(np.tile(np.arange(9), (6, 1)), axis=1)[:, :4])
  index = linking.Index(rows, jnp.abs(_random(seed, dtype, 6, 4)), 9)
  weights = jnp.abs(_random(seed, dtype, 4))
  return index, linking.Query(_ids(seed, 6, 4), weights), jnp.asarray(seed % 9)


def _search_garbage(index, query, exclude):
  return index, linking.Query(
    query.chunks.at[-1].set(-4), query.weights.at[-1].set(jnp.nan)
  ), exclude  # fmt: skip


def _rerank(seed, dtype):
  return _random(seed, dtype, 9, _D), jnp.asarray(seed % 9), _ids(seed, 9, 5)


def _rerank_garbage(vectors, query, candidates):
  return vectors, query, candidates.at[-1].set(-6)


def _ensemble(seed, dtype):
  scores = _random(seed, dtype, 2, 5).at[:, -1].set(-jnp.inf)
  return scores, jnp.abs(_random(seed, dtype, 2))


def _ensemble_garbage(scores, weights):
  return scores.at[0, -1].set(5.0), weights


def _key_and_tables(seed, dtype):
  return jax.random.key(seed), _tables(seed, dtype)


def _evidence(seed, dtype):
  nodes = jnp.asarray([[0, 1, -1], [2, 3, 4], [-1, -1, -1]], jnp.int32)
  edges = jnp.asarray([[0, 2], [3, 1], [4, 0], [-1, -1]], jnp.int32)
  return linking.Evidence(
    features=_random(seed, dtype, 3, 3, 2),
    nodes=nodes,
    edges=edges,
    groups=jnp.asarray([0, 1, -1], jnp.int32),
    shapes=jnp.where(nodes >= 0, nodes % 2, -1),
    degrees=jnp.ones(6, dtype),
    gold=jnp.asarray([1, -1, -1], jnp.int32),
  )


def _graph(seed, dtype):
  chances = jnp.abs(_random(seed + 1, dtype, 3, 3))
  return _evidence(seed, dtype), chances / chances.sum(axis=1, keepdims=True)


def _evidence_garbage(evidence):
  mask = evidence.nodes >= 0
  return evidence._replace(
    features=jnp.where(mask[..., None], evidence.features, jnp.nan),
    nodes=jnp.where(mask, evidence.nodes, -9),
    edges=jnp.where(evidence.edges >= 0, evidence.edges, -3),
    shapes=jnp.where(mask, evidence.shapes, -4),
    groups=jnp.where(evidence.groups >= 0, evidence.groups, -2),
  )


def _graph_garbage(evidence, chances):
  mask = evidence.nodes >= 0
  return _evidence_garbage(evidence), jnp.where(mask, chances, jnp.nan)


def _ranker_params(seed, dtype, size):
  params = [_random(seed, dtype, size) for _ in range(3)]
  params[1] = jnp.abs(params[1]) + 1
  inner = _random(seed, dtype, size, 4)
  outer = _random(seed + 1, dtype, 4), _random(seed + 2, dtype, 4)
  return linking.RankerParams(*params, inner, *outer)


def _two_passes(seed, dtype):
  first, second = (_ranker_params(seed, dtype, n) for n in (2, 18))
  return first, second, _evidence(seed, dtype)


def _ranked(seed, dtype):
  mask = jnp.asarray([[True, True, False], [True, False, False]])
  return _ranker_params(seed, dtype, 2), _random(seed, dtype, 2, 3, 2), mask


def _ranked_garbage(params, features, mask):
  return params, jnp.where(mask[..., None], features, jnp.nan), mask


def _parts(params, features, mask):
  groups = jnp.asarray([1, 0])
  return linking.score_parts(params, features, groups, mask, num_groups=2)


_RANKER = linking.ranker(linking.RankerConfig(4), optax.sgd(0.1))


def _ranker_step(seed, dtype):
  params, features, mask = _ranked(seed, dtype)
  state = linking.RankerState(params, optax.sgd(0.1).init(params))
  return state, features, mask, jnp.asarray([1, 0], jnp.int32)


def _ranker_step_garbage(state, features, mask, gold):
  return state, jnp.where(mask[..., None], features, jnp.nan), mask, gold


def _kind_params(seed, dtype):
  return linking.KindParams(
    _random(seed, dtype, 6, 2), _random(seed, dtype, 5, 2),
    _random(seed, dtype, 5), _random(seed, dtype),
  )  # fmt: skip


def _kinds(seed, dtype):
  return _kind_params(seed, dtype), _ids(seed, 6, 4), _ids(seed, 5, 3, 2)


def _kinds_garbage(params, contexts, kinds):
  return (
    params,
    jnp.where(contexts >= 0, contexts, -8),
    jnp.where(kinds >= 0, kinds, -3),
  )


def _kinds_masked(seed, dtype):
  mask = jnp.asarray([True, True, False])
  return *_kinds(seed, dtype), jnp.abs(_random(seed, dtype, 3)), mask


def _kinds_masked_garbage(params, contexts, kinds, log_links, mask):
  log_links = jnp.where(mask, log_links, jnp.nan)
  return *_kinds_garbage(params, contexts, kinds), log_links, mask


_KINDS = linking.kind_ranker(linking.KindConfig(6, 5, 2), optax.sgd(0.1))


def _kind_step(seed, dtype):
  params = _kind_params(seed, dtype)
  batch = linking.KindArrays(
    _ids(seed, 6, 2, 4),
    _ids(seed, 5, 2, 3, 2),
    jnp.abs(_random(seed, dtype, 2, 3)),
    jnp.asarray([[True, True, False], [True, True, True]]),
    jnp.asarray([1, -1], jnp.int32),
  )
  return linking.KindState(params, optax.sgd(0.1).init(params)), batch


def _kind_step_garbage(state, batch):
  log_links = jnp.where(batch.mask, batch.log_links, jnp.nan)
  return state, batch._replace(log_links=log_links)


def _call(door):
  return functools.partial(door, _CONFIG)


_DRAWS = "draws weights of JAX's default float type"
DOORS = [
  Door("linking.fit", host="reads documents"),
  Door("linking.unigram_noise", host="builds an alias table by a loop"),
  Door("linking.index_mentions", host="cuts postings of text into chunks"),
  Door("linking.index_fields", host="cuts postings of text into chunks"),
  Door("linking.make_queries", host="looks words up"),
  Door("linking.max_margin", host="returns two functions"),
  Door(
    "linking.max_margin.init",
    lambda seed, dtype: (jax.random.key(seed), _table(seed, dtype)),
    call=linking.max_margin(_MARGIN)[0],
    grad="draws a start",
  ),
  Door(
    "linking.max_margin.update",
    _margin,
    call=_margin_update,
    vmap=(0, 0, None, 0, 0, None, 0, 0),
    grad=(2, 6),
    mask=_margin_garbage,
  ),
  Door(
    "linking.posterior_mean",
    _vae,
    call=functools.partial(linking.posterior_mean, _VAE),
    grad=(3,),
    mask=_vae_garbage,
  ),
  Door(
    "linking.init_params",
    lambda seed, dtype: (jax.random.key(seed),),
    call=functools.partial(linking.init_params, _CONFIG, _D),
    grad="draws weights",
    dtypes=_DRAWS,
  ),
  Door(
    "linking.local_scores",
    _local,
    call=_call(linking.local_scores),
    grad=(0, 1, 3),
    mask=_local_garbage,
  ),
  Door(
    "linking.disambiguate",
    _scored,
    call=_call(linking.disambiguate),
    vmap=(None, None, 0),
    grad=(0, 1),
    mask=_scored_garbage,
  ),
  Door(
    "linking.contributions",
    _scored,
    call=_call(linking.contributions),
    vmap=(None, None, 0),
    grad=(0, 1),
    mask=_scored_garbage,
  ),
  Door("linking.disambiguator", host="returns two functions"),
  Door(
    "linking.disambiguator.init",
    _key_and_tables,
    call=_TRAINER[0],
    vmap=(0, None),
    grad="draws weights",
    dtypes=_DRAWS,
  ),
  Door(
    "linking.disambiguator.update",
    _training,
    call=_TRAINER[1],
    grad="a step of an optimizer; `disambiguate` has the gradient",
    mask=_training_garbage,
    tolerance=1e-3,
  ),
  Door(
    "linking.search",
    _search,
    call=functools.partial(linking.search, k=3),
    grad="its scores are a sum of products",
    mask=_search_garbage,
  ),
  Door("linking.fit_rankers", host="trains in batches"),
  Door("linking.decide", host="goes through groups of documents"),
  Door("linking.graph_features", _graph, grad=(1,), mask=_graph_garbage),
  Door("linking.pagerank", _graph, grad=(1,), mask=_graph_garbage),
  Door("linking.best_pagerank", _graph, grad=(1,), mask=_graph_garbage),
  Door("linking.coherence", _graph, grad=(1,), mask=_graph_garbage),
  Door("linking.messages", _graph, grad=(1,), mask=_graph_garbage),
  Door("linking.fit_kinds", host="trains in batches"),
  Door("linking.cross_kinds", host="trains in batches"),
  Door("linking.apply_kinds", host="goes through batches"),
  Door("linking.kind_scores", _kinds, grad=(0,), mask=_kinds_garbage),
  Door("linking.kind_parts", _kinds, grad=(0,), mask=_kinds_garbage),
  Door(
    "linking.kind_features",
    _kinds_masked,
    grad=(0,),
    mask=_kinds_masked_garbage,
  ),
  Door("linking.kind_ranker", host="returns two functions"),
  Door(
    "linking.kind_ranker.init",
    lambda seed, dtype: (jax.random.key(seed),),
    call=_KINDS[0],
    grad="draws weights",
    dtypes=_DRAWS,
  ),
  Door(
    "linking.kind_ranker.update",
    _kind_step,
    call=_KINDS[1],
    grad="a step of an optimizer; `kind_scores` has the gradient",
    mask=_kind_step_garbage,
  ),
  Door("linking.candidate_scores", _ranked, grad=(0,), mask=_ranked_garbage),
  Door(
    "linking.score_parts", _ranked, call=_parts, grad=(0,), mask=_ranked_garbage
  ),
  Door(
    "linking.rank_document",
    _two_passes,
    vmap=(None, None, 0),
    grad=(0, 1),
    mask=lambda a, b, evidence: (a, b, _evidence_garbage(evidence)),
  ),
  Door("linking.ranker", host="returns two functions"),
  Door(
    "linking.ranker.init",
    lambda seed, dtype: (jax.random.key(seed), *_ranked(seed, dtype)[1:]),
    call=_RANKER[0],
    grad="draws weights",
    mask=lambda key, features, mask: (
      key,
      *_ranked_garbage(None, features, mask)[1:],
    ),
  ),
  Door(
    "linking.ranker.update",
    _ranker_step,
    call=_RANKER[1],
    grad="a step of an optimizer; `candidate_scores` has the gradient",
    mask=_ranker_step_garbage,
  ),
  Door("linking.rerank", _rerank, grad=(0,), mask=_rerank_garbage),
  Door("linking.ensemble", _ensemble, grad=(1,), mask=_ensemble_garbage),
]

"""Doors of `repr_jax.setexp`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from doors.door import Door

from repr_jax import setexp

_CONFIG = setexp.Config(dim=2, hidden=(4,))
_CONSTRUCTOR = "arranges host data"
_INTEGERS = "ranks and indices have no slope"


def _counts(seed, dtype):
  rng = np.random.default_rng(seed)
  return jnp.asarray(rng.poisson(1.0, (6, 5)) + np.eye(6, 5), dtype)


def _statistics(seed, dtype):
  return setexp.statistics(_CONFIG, _counts(seed, dtype))


def _params(seed, dtype):
  key = jax.random.key(seed)
  return setexp.init(_CONFIG, key, _statistics(seed, dtype))


def _row(seed, dtype):
  """Features of one entity; the last place is padding."""
  return setexp.Rows(
    jnp.array([0, 3, 4, 5]), jnp.asarray([1.0 + seed, 2.0, 1.0, 7.0], dtype)
  )


def _spoiled(row):
  return row._replace(counts=row.counts.at[..., -1].set(jnp.nan))


def _entity(seed, dtype):
  inputs = _statistics(seed, dtype).inputs
  return _params(seed, dtype), inputs, _row(seed, dtype)


def _with_noise(seed, dtype):
  noise = np.random.default_rng(seed).normal(size=(3, 2))
  return *_entity(seed, dtype), jnp.asarray(noise, dtype)


def _rows(seed, dtype):
  counts = _counts(seed, dtype)
  padded = jnp.pad(counts, ((0, 0), (0, 1)))
  return setexp.rows_from_dense(padded)


def _units(seed, dtype):
  vectors = np.random.default_rng(seed).normal(size=(6, 3))
  return jnp.asarray(
    vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype
  )


def _model(seed, dtype):
  inputs = _statistics(seed, dtype).inputs
  params, rows = _params(seed, dtype), _rows(seed, dtype)
  return setexp.make_model(_CONFIG, params, inputs, rows)


def _query(seed, dtype):
  """Two members and padding."""
  ids, weights = jnp.array([seed % 3, 4, 1]), jnp.asarray([1, -0.4, 0], dtype)
  return setexp.query_of_rows(_rows(seed, dtype), ids, weights)


def _ranking(seed, dtype):
  mixture = np.random.default_rng(seed).uniform(0.1, 1, 9)
  ranking = setexp.make_ranking("features", power=0.6, member_share=0.4)
  ranking = ranking._replace(scores=mixture)

  def put(x):
    return jnp.asarray(x, dtype if np.asarray(x).dtype.kind == "f" else None)

  return jax.tree.map(put, ranking)


def _asked(seed, dtype):
  return _model(seed, dtype), _query(seed, dtype)


def _ranked(seed, dtype):
  return *_asked(seed, dtype), _ranking(seed, dtype)


def _explained(seed, dtype):
  model, query, ranking = _ranked(seed, dtype)
  return model, query, jnp.int32(5), ranking


def _batch(seed, dtype):
  queries = [_query(seed + i, dtype) for i in range(3)]
  stacked = jax.tree.map(lambda *x: jnp.stack(x), *queries)
  return _model(seed, dtype), stacked, _ranking(seed, dtype)


def _new_rows(seed, dtype):
  row = jax.tree.map(lambda x: x[None], _row(seed, dtype))
  return *_ranked(seed, dtype), row


def _over_one_device(model, queries, ranking, device=None):
  mesh = jax.sharding.Mesh(
    np.array([device or jax.devices()[0]]), ("entities",)
  )
  return setexp.expand_sharded(model, mesh, queries, ranking, 3)


def _spoil_query(query):
  padding = query.weights == 0
  owner = jnp.take_along_axis(padding, query.entries.member, axis=-1)
  count = jnp.where(owner, jnp.nan, query.entries.count)
  return query._replace(entries=query.entries._replace(count=count))


def _state(seed, dtype, optimizer=optax.adam):
  init, _ = setexp.vae(_CONFIG, optimizer)
  return init(jax.random.key(seed), _statistics(seed, dtype))


def _step(seed, dtype):
  hyper = setexp.Hyper(*(jnp.asarray(x, dtype) for x in (0.01, 0.5, 0.1)))
  batch = setexp.dense_batch(_counts(seed, dtype))
  return _state(seed, dtype), batch, jax.random.key(seed), hyper


def _padded_step(seed, dtype):
  state, batch, key, hyper = _step(seed, dtype)
  cells = jnp.append(batch.cells, batch.cells.size)
  counts = jnp.append(batch.counts, jnp.asarray(0, dtype))
  return state, batch._replace(cells=cells, counts=counts), key, hyper


def _scored(seed, dtype):
  """Scores of two queries, their members and the answers."""
  rng = np.random.default_rng(seed)
  scores = jnp.asarray(rng.normal(size=(2, 8)), dtype)
  members = jnp.zeros((2, 8), dtype).at[:, :2].set(1)
  return scores, members, jnp.asarray(rng.uniform(size=(2, 8)) < 0.4)


def _chances(seed, dtype):
  scores, members, _ = _scored(seed, dtype)
  weights = np.random.default_rng(seed).normal(size=5)
  return jnp.asarray(weights, dtype), scores[0], members[0]


def _bind(function):
  return functools.partial(function, _CONFIG)


DOORS = [
  Door(
    "setexp.statistics",
    lambda seed, dtype: (_counts(seed, dtype),),
    call=_bind(setexp.statistics),
    grad="counts are whole numbers",
  ),
  Door(
    "setexp.init",
    lambda seed, dtype: (jax.random.key(seed), _statistics(seed, dtype)),
    call=_bind(setexp.init),
    grad="draws",
  ),
  Door(
    "setexp.encode",
    _entity,
    call=_bind(setexp.encode),
    grad=(0,),
    mask=lambda params, inputs, row: (params, inputs, _spoiled(row)),
  ),
  Door(
    "setexp.elbo",
    _with_noise,
    call=_bind(setexp.elbo),
    grad=(0, 3),
    mask=lambda params, inputs, row, noise: (
      params,
      inputs,
      _spoiled(row),
      noise,
    ),
  ),
  Door("setexp.vae", host="makes a pair of functions"),
  Door(
    "setexp.vae.init",
    lambda seed, dtype: (jax.random.key(seed), _statistics(seed, dtype)),
    call=setexp.vae(_CONFIG).init,
    grad="draws",
  ),
  Door(
    "setexp.vae.update",
    _padded_step,
    call=setexp.vae(_CONFIG).update,
    grad="an optimizer's step is not differentiated",
    mask=lambda state, batch, key, hyper: (
      state,
      batch._replace(counts=batch.counts.at[-1].set(jnp.nan)),
      key,
      hyper,
    ),
    tolerance=1e-3,
  ),
  Door(
    "setexp.parameters",
    lambda seed, dtype: (_state(seed, dtype),),
    call=_bind(setexp.parameters),
    grad="selects fields",
  ),
  Door(
    "setexp.rows_from_dense",
    lambda seed, dtype: (_counts(seed, dtype),),
    grad=(0,),
  ),
  Door("setexp.rows_from_scipy", host=_CONSTRUCTOR),
  Door("setexp.statistics_from_scipy", host=_CONSTRUCTOR),
  Door("setexp.model_from_scipy", host=_CONSTRUCTOR),
  Door("setexp.make_query", host=_CONSTRUCTOR),
  Door("setexp.pad_queries", host=_CONSTRUCTOR),
  Door("setexp.make_ranking", host="checks names"),
  Door("setexp.fit", host="trains by epochs and looks names up"),
  Door(
    "setexp.dense_batch", lambda seed, dtype: (_counts(seed, dtype),), grad=(0,)
  ),
  Door(
    "setexp.make_model",
    lambda seed, dtype: (
      _params(seed, dtype),
      _statistics(seed, dtype).inputs,
      _rows(seed, dtype),
    ),
    call=_bind(setexp.make_model),
    grad=(0,),
    mask=lambda params, inputs, rows: (params, inputs, _spoiled(rows)),
  ),
  Door(
    "setexp.fit_cosine",
    lambda seed, dtype: (
      _model(seed, dtype),
      jnp.asarray(1 + seed, dtype),
      jnp.asarray(0.5, dtype),
    ),
    grad="neighbors change with the parameters",
  ),
  Door(
    "setexp.crowding",
    lambda seed, dtype: (
      *[_units(seed, dtype)] * 2,
      jnp.arange(6, dtype=jnp.int32),
    ),
    grad=(0,),
  ),
  Door(
    "setexp.query_of_rows",
    lambda seed, dtype: (
      _rows(seed, dtype),
      jnp.array([seed % 3, 4]),
      jnp.asarray([1, -0.4], dtype),
    ),
    grad="gathers",
  ),
  Door(
    "setexp.query_posterior",
    _asked,
    grad=(0,),
    mask=lambda model, query: (model, _spoil_query(query)),
  ),
  Door(
    "setexp.score_entities",
    _ranked,
    grad="feature_scores_test has it: rankings hold integers too",
    mask=lambda model, query, ranking: (model, _spoil_query(query), ranking),
    tolerance=1e-3,
  ),
  Door(
    "setexp.score_rows",
    _new_rows,
    grad="that of score_entities",
    mask=lambda model, query, ranking, rows: (
      model,
      query,
      ranking,
      _spoiled(rows),
    ),
    tolerance=1e-3,
  ),
  Door(
    "setexp.contributions",
    _explained,
    grad="that of score_entities",
    mask=lambda model, query, entity, ranking: (
      model,
      _spoil_query(query),
      entity,
      ranking,
    ),
    tolerance=1e-3,
  ),
  Door(
    "setexp.expand",
    _batch,
    call=functools.partial(setexp.expand, k=3),
    grad=_INTEGERS,
    mask=lambda model, queries, ranking: (
      model,
      jax.vmap(_spoil_query)(queries),
      ranking,
    ),
    tolerance=1e-3,
  ),
  Door("setexp.place_model", host="lays arrays out on devices"),
  Door(
    "setexp.expand_sharded",
    _batch,
    call=_over_one_device,
    vmap="takes a batch of queries",
    grad=_INTEGERS,
    mask=lambda model, queries, ranking: (
      model,
      jax.vmap(_spoil_query)(queries),
      ranking,
    ),
  ),
  Door(
    "setexp.decoder_rationale",
    _asked,
    grad=(0,),
    mask=lambda model, query: (model, _spoil_query(query)),
  ),
  Door("setexp.chances", _chances, grad=(0, 1)),
  Door(
    "setexp.fit_chances",
    _scored,
    grad="an optimum of many steps",
    tolerance=1e-3,
  ),
  Door(
    "setexp.expected_cut",
    lambda seed, dtype: (jax.nn.sigmoid(_scored(seed, dtype)[0][0]),),
    grad=_INTEGERS,
  ),
]

"""Doors of `repr_jax.kb`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse
from doors.door import Door

from repr_jax import kb
from repr_jax.kb import transitivity

_HOST = "returns objects or numpy arrays for the host"
_PAIR = "makes a pair of functions, which have rows"
_RULES = ["RelImp(0, 1)", "RevImp(1, 2)"]
_FACTS = np.array([[0, 0, 1], [2, 1, 3], [4, 2, 0]], np.int32)


def _normal(dtype, seed, *shapes):
  rng = np.random.default_rng(seed)
  return tuple(jnp.asarray(rng.normal(size=x).astype(dtype)) for x in shapes)


def _fact(seed, dtype):
  return _normal(dtype, seed, 8, 4, 4)


def _slot(seed, dtype):
  return _normal(dtype, seed, (3, 8), (3, 4), (5, 4))


def _start(seed, dtype):
  return jax.random.key(seed), jnp.asarray(np.array(0.1 + seed, dtype))


def _init_params(dtype, key, scale):
  return kb.init_params("B", key, 5, 3, 4, scale, dtype=dtype)


def _tables(seed, dtype):
  entities, relations = _normal(dtype, seed, (5, 4), (3, 8))
  return kb.compile_rules("B", _RULES, 3, 5, dtype=dtype), kb.Params(
    entities, relations
  )


def _known(seed, dtype):
  del dtype
  return kb.known_facts((_FACTS + seed) % (5, 3, 5), 5, 3), jnp.asarray(_FACTS)


def _draw(seed, dtype):
  return *_known(seed, dtype), jax.random.key(seed)


def _masked_pairs(state, pairs):
  wrong = pairs._replace(entities=pairs.entities.at[:, 2].set(1))
  return state, wrong._replace(relations=pairs.relations.at[:, 2].set(0))


def _sgd(dtype):
  constraints = kb.compile_rules("B", _RULES, 3, 5, dtype=dtype)
  return kb.projected_sgd(kb.SGDConfig(5, 3, "B", 4, dtype=dtype), constraints)


def _sgd_start(seed, dtype):
  rates = (0.1 * (1 + seed), 0.01 * seed, 0.1 + 0.1 * seed)
  return jax.random.key(seed), *(jnp.asarray(np.array(x, dtype)) for x in rates)


def _sgd_step(seed, dtype):
  state = _sgd(dtype)[0](*_sgd_start(seed, dtype))
  pairs = kb.draw_pairs(*_draw(seed, dtype))
  valid = jnp.array([True, True, False])
  return state, pairs._replace(valid=valid)


def _candidates(dtype):
  config = kb.CandidateConfig(5, 3, "B", 4, dtype=dtype)
  constraints = kb.compile_rules("B", _RULES, 3, 5, dtype=dtype)
  optimizer = optax.inject_hyperparams(optax.adagrad)(learning_rate=0.1)
  return kb.candidate_softmax(config, optimizer, constraints)


def _candidates_start(seed, dtype):
  rates = (0.01 * seed, 0.1 + 0.1 * seed)
  return jax.random.key(seed), *(jnp.asarray(np.array(x, dtype)) for x in rates)


def _candidates_step(seed, dtype):
  state = _candidates(dtype)[0](*_candidates_start(seed, dtype))
  rate = jnp.asarray(np.array(0.1 + seed, dtype))
  memory = state.optimizer
  rates = {**memory.hyperparams, "learning_rate": rate}
  state = state._replace(optimizer=memory._replace(hyperparams=rates))
  drawn = jnp.asarray((np.arange(3) + seed) % 5, jnp.int32)
  return state, kb.CandidateBatch(jnp.asarray(_FACTS), drawn)


def _slices(seed, dtype):
  rng = np.random.default_rng(seed)
  bases = [scipy.sparse.csr_matrix(rng.normal(size=(6, 6))) for _ in range(2)]
  return kb.make_slices(bases, dtype=dtype)


def _ridge(seed, dtype):
  return kb.Ridge(*(jnp.asarray(np.array(x + seed, dtype)) for x in (0.1, 0.2)))


def _rescal_start(seed, dtype):
  return _slices(0, dtype), jax.random.key(seed), _ridge(seed, dtype)


_INIT, _UPDATE = kb.rescal(kb.RescalConfig(3, start="random"))


def _rescal_step(seed, dtype):
  return _INIT(*_rescal_start(seed, dtype)), _slices(0, dtype)


def _logistic(seed, dtype):
  x, noise = _normal(dtype, seed, (8, 3), 8)
  weights = jnp.asarray(np.arange(8) > 0).astype(dtype)
  return x, (noise > 0).astype(dtype), weights, jnp.asarray(1.0 + seed, dtype)


def _pick(make, place):
  """A function of the pair of the arguments' float type."""

  def call(*arguments):
    floats = [
      x.dtype
      for x in jax.tree.leaves(arguments)
      if jnp.issubdtype(x.dtype, jnp.floating)
    ]
    return make(floats[0])[place](*arguments)

  return call


def _typed_params(key, scale):
  return _init_params(scale.dtype, key, scale)


_ITERATES = "projections iterate until they converge"
_STEP = "a step of training is not differentiated"
DOORS = [
  Door("kb.score", _fact, functools.partial(kb.score, "B"), grad=(0, 1, 2)),
  Door(
    "kb.score_all_heads",
    _slot,
    functools.partial(kb.score_all_heads, "D"),
    grad=(0, 1, 2),
  ),
  Door(
    "kb.score_all_tails",
    _slot,
    functools.partial(kb.score_all_tails, "D"),
    grad=(0, 1, 2),
  ),
  Door("kb.init_params", _start, _typed_params, grad=(1,)),
  Door("kb.project", _tables, vmap=(None, 0), grad=_ITERATES),
  Door(
    "kb.violation",
    _tables,
    vmap=(None, 0),
    grad="a maximum of many conditions has kinks",
  ),
  Door("kb.is_known", _known, grad="integers", dtypes="integers"),
  Door("kb.draw_pairs", _draw, grad="integers", dtypes="integers"),
  Door("kb.projected_sgd", host=_PAIR),
  Door("kb.projected_sgd.init", _sgd_start, _pick(_sgd, 0), grad=_ITERATES),
  Door(
    "kb.projected_sgd.update",
    _sgd_step,
    _pick(_sgd, 1),
    grad=_STEP,
    mask=_masked_pairs,
  ),
  Door("kb.candidate_softmax", host=_PAIR),
  Door(
    "kb.candidate_softmax.init",
    _candidates_start,
    _pick(_candidates, 0),
    grad=_ITERATES,
  ),
  Door(
    "kb.candidate_softmax.update",
    _candidates_step,
    _pick(_candidates, 1),
    grad=_STEP,
  ),
  Door("kb.rescal", host=_PAIR),
  Door(
    "kb.rescal.init",
    _rescal_start,
    _INIT,
    vmap=(None, 0, 0),
    grad="factors come from decompositions of random bases",
  ),
  Door("kb.rescal.update", _rescal_step, _UPDATE, vmap=(0, None), grad=_STEP),
  Door(
    "kb.violating_triple",
    lambda seed, dtype: _normal(dtype, seed, (4, 4)),
    jitted=lambda: transitivity._widest,
    grad="eigenvectors have free signs, and the widest margin switches",
  ),
  Door(
    "kb.fit_logistic",
    _logistic,
    grad=(0, 1, 2, 3),
    mask=lambda x, y, w, r: (x.at[0].set(7.0), y.at[0].set(0.5), w, r),
  ),
  Door("kb.compile_rules", host="reads names and rules"),
  Door("kb.checked_start", host="refuses rules that contradict each other"),
  Door("kb.check_rules", host="samples entities and takes scores in float64"),
  Door("kb.certify", host="computes with rational numbers"),
  Door("kb.order_block", host="makes a score model"),
  Door("kb.reciprocal", host="makes a score model"),
  Door("kb.known_facts", host="builds a table from numpy arrays"),
  Door("kb.group_queries", host="sorts numpy arrays"),
  Door("kb.make_slices", host="builds tiles from scipy matrices"),
  Door("kb.fit", host="takes and answers names"),
  Door("kb.scorers", host="checks tables and returns functions"),
  Door("kb.rank", host="feeds blocks of queries to a compiled program"),
  Door("kb.summary", host=_HOST),
  Door("kb.per_relation", host=_HOST),
  Door("kb.sureness", host="feeds blocks of queries to a compiled program"),
  Door("kb.choice_features", host=_HOST),
  Door("kb.better", host=_HOST),
  Door("kb.merge_ranks", host=_HOST),
]

"""Word2vecf: entities as words, their features as contexts (thesis 4.3.3).

Vectors are trained by skip-gram with negative sampling (`sgns`); each count
of a feature is one pair. Then

    score(Q, x) = -sum over the query of tau_q ||v_x - v_q||^2, unit vectors,

which for unit vectors is 2 (v_x . sum_q tau_q v_q - sum_q tau_q): weights act
through the weighted mean, and negative ones push away.

An entity that was not trained on, or a sentence, is folded in from the
vectors of its contexts (`fold_in`).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy import special

from repr_jax.errors import InputError
from repr_jax.setexp.baselines import sgns
from repr_jax.setexp.baselines.baseline import Baseline
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.query import Query

_DEFAULT = sgns.Config()
_NOISE = 512
_RIDGE = 1.0


class Model(NamedTuple):
  """Trained vectors on the host.

  Attributes:
    entities: unit vectors, float32 [X, d]; zero for one without features.
    contexts: vectors of contexts, float32 [F, d].
    noise: contexts drawn as negatives, for `fold_in`, float32 [n, d].
    negatives: K of the training.
  """

  entities: np.ndarray
  contexts: np.ndarray
  noise: np.ndarray
  negatives: int


def fit(
  counts: sp.csr_array,
  config: sgns.Config = _DEFAULT,
  *,
  epochs: int = 100,
  seed: int = 0,
) -> Model:
  """Trains vectors of all entities and contexts.

  Args:
    counts: feature counts, [X, F].
    config: how to train.
    epochs: passes over all pairs, 100 in the thesis. Entities with a dozen
      features each need them: at 20 half of the precision is missing.
    seed: of starts, orders and negatives.

  Returns:
    The model.
  """
  counts = sp.csr_array(counts, dtype=np.float32)
  if not np.isfinite(counts.data).all() or (counts.data < 0).any():
    raise InputError("word2vecf needs counts that are finite, 0 or more")
  if not counts.data.any():
    raise InputError("no entity has any feature: word2vecf has no pair")
  if counts.data.max() > 1e6:
    raise InputError("word2vecf makes a pair of each count: one is over 1e6")
  frequency = counts.sum(axis=0, dtype=np.float64) ** config.power
  noise = sgns.make_noise(frequency)
  rng = np.random.default_rng(seed)
  state = sgns.init(jax.random.key(seed), counts.shape, config.dim)
  for epoch in range(epochs):
    drawn = sgns.pairs(counts, rng, config)
    steps = len(drawn[0])
    done = (epoch + np.linspace(0, 1, steps, endpoint=False)) / epochs
    rates = config.learning_rate * np.maximum(1 - done, 1e-4)
    rates = rates.astype(np.float32)
    entities, contexts, weights, rate = map(jnp.asarray, (*drawn, rates))
    batches = sgns.Batch(entities, contexts, weights, rate)
    state, _ = sgns.train(config, noise, state, batches)
  vectors = np.asarray(state.entities)
  if not np.isfinite(vectors).all():
    raise InputError(
      f"word2vecf diverged at a learning rate of {config.learning_rate}: "
      "lower it"
    )
  vectors = vectors * (np.diff(counts.indptr) > 0)[:, None]
  table, share = np.asarray(state.contexts), frequency / frequency.sum()
  return Model(
    _unit(vectors),
    table,
    table[rng.choice(len(table), _NOISE, p=share)],
    config.num_negatives,
  )


def fold_in(model: Model, rows: sp.csr_array, steps: int = 50) -> np.ndarray:
  """Unit vectors of entities from their features alone.

  The training loss of a row is convex in its own vector while contexts stay
  as they are; from zero, `steps` steps of gradient descent are taken, each of
  a length that cannot overshoot. Few steps and a small ridge stand for the
  early end of training: on planted clusters that are hard to tell apart this
  ranked a little better than the centered mean of the contexts' vectors.

  Args:
    model: from `fit`.
    rows: feature counts, [s, F].
    steps: of gradient descent.

  Returns:
    Unit vectors, float32 [s, d]; zero for a row without features.
  """
  rows = sp.csr_array(rows, dtype=np.float32)
  owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
  total = np.maximum(rows.sum(axis=1, dtype=np.float64), 1e-30)
  share = (rows.data / total[owner]).astype(np.float32)
  contexts, noise = model.contexts[rows.indices], model.noise
  ratio = model.negatives / len(noise)
  ridge = (_RIDGE / np.maximum(total, 1))[:, None].astype(np.float32)
  curvature = (
    np.bincount(owner, share * (contexts**2).sum(axis=1), rows.shape[0])
    + ratio * (noise**2).sum()
  )
  length = (1 / (curvature[:, None] / 4 + ridge)).astype(np.float32)
  vectors = np.zeros((rows.shape[0], contexts.shape[1]), np.float32)
  for _ in range(steps):
    pull = share * special.expit(-(vectors[owner] * contexts).sum(axis=1))
    near = sp.csr_array((pull, rows.indices, rows.indptr), rows.shape)
    slope = near @ model.contexts - ridge * vectors
    slope -= ratio * special.expit(vectors @ noise.T) @ noise
    vectors += length * slope
  return _unit(vectors * (np.diff(rows.indptr) > 0)[:, None])


def score(model: Model, query: Query) -> np.ndarray:
  """Minus the weighted squared distance to the members.

  Args:
    model: from `fit`.
    query: members with weights; new ones are folded in.

  Returns:
    Scores of all entities, float32 [X].
  """
  return _score(model.entities, _members(model, query), query.weights)


def score_rows(model: Model, query: Query, rows: sp.csr_array) -> np.ndarray:
  """Scores rows that are not in the table, such as sentences.

  Args:
    model: from `fit`.
    query: the query.
    rows: feature counts, [s, F].

  Returns:
    Scores, float32 [s].
  """
  return _score(fold_in(model, rows), _members(model, query), query.weights)


def contributions(model: Model, query: Query, entity: int) -> Contributions:
  """What each dimension of the vectors added to the score of an entity.

  Args:
    model: from `fit`.
    query: the query.
    entity: its row.

  Returns:
    -sum_q tau_q (v_x[j] - v_q[j])^2: a sum over dimensions, [d].
  """
  apart = model.entities[entity] - _members(model, query)
  parts = -query.weights.astype(np.float64) @ apart.astype(np.float64) ** 2
  none = np.zeros(0, np.int64)
  return Contributions(none, np.zeros(0), parts, np.zeros(()))


def rationale(model: Model, query: Query) -> np.ndarray:
  """How much each context goes with the query's vectors, u_c . mean v_q.

  Args:
    model: from `fit`.
    query: the query.

  Returns:
    Weights of all features, float32 [F].
  """
  mean = query.weights @ _members(model, query) / np.abs(query.weights).sum()
  return np.asarray(model.contexts @ mean, np.float32)


def _members(model: Model, query: Query) -> np.ndarray:
  """Unit vectors of the members, [q, d]."""
  vectors = np.array(model.entities[np.maximum(query.ids, 0)])
  new = np.flatnonzero(query.ids < 0)
  if new.size:
    vectors[new] = fold_in(model, query.rows[new])
  return vectors


def _score(
  vectors: np.ndarray, members: np.ndarray, weights: np.ndarray
) -> np.ndarray:
  # ||a - b||^2 by products: one pass over the table.
  squares = (vectors**2).sum(axis=1)
  scores = 2 * vectors @ (weights @ members) - weights.sum() * squares
  return (scores - weights @ (members**2).sum(axis=1)).astype(np.float32)


def _unit(vectors: np.ndarray) -> np.ndarray:
  norms = np.linalg.norm(vectors, axis=1, keepdims=True)
  return (vectors / np.maximum(norms, 1e-30)).astype(np.float32)


WORD2VECF = Baseline(
  "word2vecf",
  lambda counts, seed: fit(counts, seed=seed),
  score,
  score_rows,
  contributions,
  rationale,
)

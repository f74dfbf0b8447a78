"""Word2vecf: entities as words, their features as contexts (thesis 4.3.3).

Vectors are trained by skip-gram with negative sampling (`sgns`); each count
of a feature is one pair. Then

    score(Q, x) = -sum over the query of tau_q ||v_x - v_q||^2, unit vectors,

which for unit vectors is 2 (v_x . sum_q tau_q v_q - sum_q tau_q). Members of
negative weight push entities away.

An entity that was not trained on, or a sentence, is folded in from the
vectors of its contexts (`fold_in`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax
from jax.sharding import Mesh

from repr_jax.errors import InputError
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp.baselines import sgns
from repr_jax.setexp.baselines.baseline import (
  Baseline,
  clean_rows,
  member_vectors,
  read_counts,
)
from repr_jax.setexp.expansion import PaddedQuery
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.from_scipy import padded_rows
from repr_jax.setexp.rows import Rows

_DEFAULT = sgns.Config()
_NOISE = 512
_RIDGE = 1.0
_STEPS = 50


class Model(NamedTuple):
  """Trained vectors.

  Attributes:
    entities: unit vectors, [X, d]; zero for one without features.
    contexts: vectors of contexts, [F, d].
    noise: contexts drawn as negatives, for `fold_in`, [n, d].
    negatives: K of the training, [].
  """

  entities: Any
  contexts: Any
  noise: Any
  negatives: Any


def fit(
  counts: Any,
  config: sgns.Config = _DEFAULT,
  *,
  epochs: int = 100,
  seed: int = 0,
) -> Model:
  """Trains vectors of all entities and contexts.

  >>> import scipy.sparse
  >>> from repr_jax import setexp
  >>> counts = scipy.sparse.csr_array([[2.0, 1.0], [0.0, 1.0], [1.0, 3.0]])
  >>> setexp.word2vecf_fit(counts, epochs=1).entities.shape
  (3, 100)

  Args:
    counts: feature counts, [X, F].
    config: how to train.
    epochs: passes over all pairs, 100 in the thesis. Entities with a dozen
      features need that many: 20 epochs give half the precision.
    seed: of starts, orders and negatives.

  Returns:
    The model.
  """
  (model,) = fit_runs(counts, [config], [seed], epochs=epochs)
  if not np.isfinite(model.entities).all():
    raise InputError(
      f"word2vecf diverged at a learning rate of {config.learning_rate}: "
      "lower it"
    )
  return model


def fit_runs(
  counts: Any,
  configs: Sequence[sgns.Config],
  seeds: Sequence[int],
  *,
  epochs: int = 100,
  mesh: Mesh | None = None,
) -> list[Model]:
  """`fit` of several runs in one program.

  >>> import scipy.sparse
  >>> from repr_jax.setexp.baselines import sgns, word2vecf
  >>> counts = scipy.sparse.csr_array([[2.0, 1.0], [0.0, 1.0], [1.0, 3.0]])
  >>> configs = [sgns.Config(learning_rate=x) for x in (0.05, 0.1)]
  >>> len(word2vecf.fit_runs(counts, configs, [0, 0], epochs=1))
  2

  Args:
    counts: feature counts, [X, F].
    configs: of each run; they differ in `learning_rate` and `power` alone.
    epochs: passes over all pairs.
    mesh: devices that share the runs, all axes together; None for one device.

  Returns:
    The models; a run that diverged has values that are not finite.
  """
  counts = read_counts(counts, "word2vecf")
  if counts.data.max() > 1e6:
    raise InputError("word2vecf makes a pair of each count: one is over 1e6")
  static = common(configs[0])
  if any(common(config) != static for config in configs):
    raise InputError("runs of one program differ in learning rate and power")
  # Copies of the last run fill up the last device.
  more = 0 if mesh is None else -len(configs) % mesh.size
  runs = list(zip(configs, seeds, strict=True))
  runs += runs[-1:] * more
  totals = counts.sum(axis=0, dtype=np.float64)
  frequencies = [totals**config.power for config, _ in runs]
  noises = _stack([sgns.make_noise(frequency) for frequency in frequencies])
  rngs = [np.random.default_rng(seed) for _, seed in runs]
  states = _stack(
    [
      sgns.init(jax.random.key(seed), counts.shape, static.dim)
      for _, seed in runs
    ]
  )
  for epoch in range(epochs):
    batches = []
    for (config, _), rng in zip(runs, rngs):
      drawn: Any = sgns.pairs(counts, rng, config)
      steps = len(drawn[0])
      done = (epoch + np.linspace(0, 1, steps, endpoint=False)) / epochs
      rates: Any = config.learning_rate * np.maximum(1 - done, 1e-4)
      batches.append(sgns.Batch._make((*drawn, rates.astype(np.float32))))
    states, _ = sgns.train_runs(static, mesh, noises, states, _stack(batches))
  models = []
  for i, (config, _) in enumerate(runs[: len(configs)]):
    vectors = np.asarray(states.entities[i])
    vectors = vectors * (np.diff(counts.indptr) > 0)[:, None]
    table, share = np.asarray(states.contexts[i]), frequencies[i]
    chosen = rngs[i].choice(len(table), _NOISE, p=share / share.sum())
    models.append(
      Model(
        np.asarray(_unit(vectors)), table, table[chosen], config.num_negatives
      )
    )
  return models


def common(config: sgns.Config) -> sgns.Config:
  """The settings that all runs of one program share; others are 0."""
  return config._replace(learning_rate=0.0, power=0.0)


def _stack(trees: Sequence[Any]) -> Any:
  return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


@chosen_products
def fold_in(model: Model, row: Rows, steps: int = _STEPS) -> jax.Array:
  """The unit vector of an entity from its features alone.

  With fixed contexts, the training loss of a row is convex in its vector.
  `steps` steps of gradient descent start from zero, with a step size that
  cannot overshoot. Few steps and a small ridge imitate training that ends
  early: on planted clusters that are hard to tell apart this ranked a little
  better than the centered mean of the contexts' vectors.

  Args:
    model: from `fit`.
    row: feature counts, fields [m].
    steps: of gradient descent.

  Returns:
    [d]; zero for a row without features.
  """
  row = clean_rows(row, model.contexts.shape[0])
  contexts, noise = model.contexts[row.indices], model.noise
  # Scaled first, so that sums of the largest counts are finite.
  largest = jnp.max(row.counts)
  scaled = row.counts / jnp.where(largest > 0, largest, 1)
  share = (scaled / jnp.maximum(scaled.sum(), 1e-30)).astype(noise.dtype)
  total = jnp.maximum(scaled.sum() * largest, 1).astype(noise.dtype)
  ratio = jnp.asarray(model.negatives, noise.dtype) / noise.shape[0]
  ridge = _RIDGE / total
  curvature = share @ (contexts**2).sum(axis=1) + ratio * (noise**2).sum()
  length = 1 / (curvature / 4 + ridge)

  def step(_, vector):
    pull = share * jax.nn.sigmoid(-(contexts @ vector))
    slope = pull @ contexts - ridge * vector
    slope -= ratio * jax.nn.sigmoid(noise @ vector) @ noise
    return vector + length * slope

  vector = lax.fori_loop(0, steps, step, jnp.zeros_like(noise[0]))
  return _unit(jnp.where(largest > 0, vector, 0))


@chosen_products
def score(model: Model, query: PaddedQuery) -> jax.Array:
  """Minus the weighted squared distance to the members.

  >>> import jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> vectors = jnp.eye(3)
  >>> model = setexp.Word2vecf(vectors, vectors, vectors, 5)
  >>> rows = setexp.rows_from_dense(vectors)
  >>> query = setexp.query_of_rows(rows, jnp.array([1]), jnp.array([1.0]))
  >>> setexp.word2vecf_score(model, query).tolist()
  [-2.0, 0.0, -2.0]

  Args:
    model: from `fit`.
    query: members with weights; new ones are folded in (`encode`).

  Returns:
    Scores of all entities, [X].
  """
  return _score(model, query, model.entities)


@chosen_products
def score_rows(model: Model, query: PaddedQuery, rows: Rows) -> jax.Array:
  """Scores [s] of rows that are not in the table, such as sentences."""
  return _score(model, query, jax.vmap(lambda x: fold_in(model, x))(rows))


def encode(model: Model, rows: sp.csr_array) -> np.ndarray:
  """Unit vectors of new entities from their features [s, F], [s, d]."""
  folded = _fold_in(model, padded_rows(rows))
  return np.asarray(folded)[: rows.shape[0]]


def contributions(
  model: Model, query: PaddedQuery, entity: jax.Array
) -> Contributions:
  """Splits the score of an entity over the dimensions of the vectors.

  >>> import jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> vectors = jnp.eye(3)
  >>> model = setexp.Word2vecf(vectors, vectors, vectors, 5)
  >>> rows = setexp.rows_from_dense(vectors)
  >>> query = setexp.query_of_rows(rows, jnp.array([1]), jnp.array([1.0]))
  >>> float(setexp.word2vecf_contributions(model, query, 0).total)
  -2.0

  Args:
    model: from `fit`.
    query: the query.
    entity: its row, int32 [].

  Returns:
    -sum_q tau_q (v_x[j] - v_q[j])^2: a sum over dimensions, [d].
  """
  members, vector = (
    member_vectors(query, model.entities),
    model.entities[entity],
  )
  weights = jnp.asarray(query.weights).astype(vector.dtype)
  parts = -jnp.sum(weights[:, None] * (vector - members) ** 2, axis=0)
  none = jnp.zeros(0, parts.dtype)
  return Contributions(
    jnp.zeros(0, jnp.int32), none, parts, jnp.zeros((), parts.dtype)
  )


@chosen_products
def rationale(model: Model, query: PaddedQuery) -> jax.Array:
  """Score of each context for the query, u_c . mean v_q, [F]."""
  members, weights = member_vectors(query, model.entities), query.weights
  mean = weights @ members / jnp.maximum(jnp.sum(jnp.abs(weights)), 1e-30)
  return model.contexts @ mean


@chosen_products
def _score(model: Model, query: PaddedQuery, vectors: jax.Array) -> jax.Array:
  # ||a - b||^2 by products: one pass over the table.
  members = member_vectors(query, model.entities)
  weights = jnp.asarray(query.weights).astype(members.dtype)
  squares = (vectors**2).sum(axis=1)
  scores = 2 * vectors @ (weights @ members) - weights.sum() * squares
  return scores - weights @ (members**2).sum(axis=1)


def _unit(vectors: jax.Array) -> jax.Array:
  norms = jnp.linalg.norm(vectors, axis=-1, keepdims=True)
  return vectors / jnp.maximum(norms, 1e-30)


_fold_in = jax.jit(jax.vmap(fold_in, in_axes=(None, 0)))

WORD2VECF = Baseline(
  "word2vecf",
  lambda counts, seed: fit(counts, seed=seed),
  score,
  score_rows,
  contributions,
  rationale,
  encode,
)

"""Vectors of entities by an autoencoder of their bags of words (thesis 6.2).

The vector of an entity is the posterior mean of its bag. The null objective
uses an untrained encoder.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax.sharding import Mesh

from repr_jax.linking import entity_vectors
from repr_jax.setexp import (
  autoencoder,
  fit_runs,
  fitting,
  from_scipy,
  rows,
  train,
)

_HYPER = train.Hyper()
# Settings of the thesis (notes to 6.2.3); words are up to the caller.
THESIS_CONFIG = autoencoder.Config(
  dim=300, hidden=(150,), weighting="bm25", lower_bounded_variance=True
)


def bag_counts(
  offsets: np.ndarray, words: np.ndarray, size: int
) -> sp.csr_array:
  """Bags of words as counts, the input of `fit_posterior_means`.

  Args:
    offsets: where the bag of each entity begins, and the end, int [n + 1].
    words: ids of the words, repeats included, int32 [nnz].
    size: the number of words V.

  Returns:
    float32 CSR [n, V], sorted columns.
  """
  entity_vectors.check_bags(offsets, words, size)
  ones = np.ones(len(words), np.float32)
  place = np.asarray(words, np.int32).copy(), np.asarray(offsets).copy()
  counts = sp.csr_array((ones, *place), shape=(len(offsets) - 1, size))
  counts.sum_duplicates()
  return counts


def posterior_mean(
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  words: jax.Array,
  counts: jax.Array,
) -> jax.Array:
  """The vector of one entity: the mean of q(z | its bag) (thesis eq. 6.3).

  Parameters that were not trained give the null objective.

  >>> import jax, jax.numpy as jnp, numpy as np, scipy.sparse as sp
  >>> from repr_jax import linking
  >>> from repr_jax.setexp import autoencoder
  >>> table = sp.csr_array(np.eye(4, dtype=np.float32))
  >>> config = autoencoder.Config(dim=3, hidden=(5,))
  >>> statistics = autoencoder.statistics_from_scipy(config, table)
  >>> params = autoencoder.init(config, jax.random.key(0), statistics)
  >>> inputs = statistics.inputs
  >>> words, counts = jnp.array([2, 0, -1]), jnp.array([1., 3, 0])
  >>> linking.posterior_mean(config, params, inputs, words, counts).shape
  (3,)

  Args:
    config: the autoencoder, static.
    params: its parameters.
    inputs: statistics of its training counts.
    words: ids of the entity's words, int [w]; -1 for padding.
    counts: count of each, [w].

  Returns:
    The mean, not scaled, [d]; zero for an entity without words.
  """
  row = rows.Rows(jnp.asarray(words), jnp.asarray(counts))
  mean = autoencoder.encode(config, params, inputs, row).mean
  return jnp.where((row.indices >= 0).any(), mean, 0)


def fit_posterior_means(
  counts: sp.csr_array,
  *,
  key: jax.Array,
  config: autoencoder.Config = THESIS_CONFIG,
  epochs: int = 10,
  hyper: train.Hyper = _HYPER,
  batch_size: int = 256,
  word_vectors: np.ndarray | None = None,
  unique: bool = False,
  mesh: Mesh | None = None,
) -> np.ndarray:
  """Trains an autoencoder of the bags and encodes them (thesis eq. 6.3).

  Args:
    counts: words of each entity, [n, V].
    key: random key, or one per run of several runs in one program, [s].
    epochs: passes over the entities; 0 for the null objective, a random
      encoder.
    hyper: learning rate of Adam, beta and smoothing; each one number, or one
      per run [s].
    batch_size: entities in a step.
    word_vectors: start of the encoder's first layer, [V, h]; random by
      default.
    unique: whether equal bags are trained on once.
    mesh: devices that share several runs; None for one device.

  Returns:
    Means, not scaled, float32 [n, d], or [s, n, d] for several runs; a run that
    diverged is not finite, an entity without words is zero.
  """
  counts = sp.csr_array(counts)
  full = np.flatnonzero(np.diff(counts.indptr))
  rows_of = distinct_rows(counts) if unique else full
  table = sp.csr_array(counts[rows_of])
  full_rows = sp.csr_array(counts[full])

  def encode(params, inputs):
    natural = from_scipy.encode_rows(config, params, inputs, full_rows)
    means = np.zeros((counts.shape[0], config.dim), np.float32)
    means[full] = np.asarray(natural.xi) / np.asarray(natural.precision)
    return means

  options: dict[str, Any] = {
    "epochs": epochs,
    "hyper": hyper,
    "batch_size": batch_size,
    "word_vectors": word_vectors,
  }
  if key.ndim == 0:
    fitted = fitting.fit(table, config, key, **options)
    return encode(fitted.params, fitted.inputs)
  many = fit_runs.fit_runs(table, config, key, mesh=mesh, **options)
  runs = [
    jax.tree.map(lambda x, i=i: x[i], many.params) for i in range(key.shape[0])
  ]
  return np.stack([encode(params, many.inputs) for params in runs])


def distinct_rows(counts: sp.csr_array) -> np.ndarray:
  """Rows that are not empty, the first of equal ones.

  Args:
    counts: CSR [n, V] with sorted columns.

  Returns:
    Their numbers, rising, int64 [k].
  """
  first: dict[bytes, int] = {}
  for row in np.flatnonzero(np.diff(counts.indptr)).tolist():
    part = slice(*counts.indptr[row : row + 2])
    key = counts.indices[part].tobytes() + counts.data[part].tobytes()
    first.setdefault(key, row)
  return np.asarray(list(first.values()), np.int64)

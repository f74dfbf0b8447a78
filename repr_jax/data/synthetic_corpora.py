"""Small worlds of entities and facts with known answers."""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from repr_jax import errors


class EntitySets(NamedTuple):
  """Entities in clusters, each cluster with features of its own.

  Attributes:
    counts: feature counts, scipy CSR float32 [e, f].
    cluster: the cluster of each entity, int32 [e].
    feature_cluster: the cluster of each feature, -1 for shared ones, [f].
  """

  counts: scipy.sparse.csr_array
  cluster: np.ndarray
  feature_cluster: np.ndarray


def entity_sets(
  rng: np.random.Generator,
  clusters: int = 5,
  members: int = 20,
  own_features: int = 30,
  shared_features: int = 100,
  tokens: int = 60,
  signal: float = 0.5,
) -> EntitySets:
  """Plants clusters for set expansion.

  Args:
    rng: the source of randomness.
    clusters: the number of clusters.
    members: entities in each.
    own_features: features that belong to each cluster.
    shared_features: features that all entities use.
    tokens: feature tokens of each entity.
    signal: the expected share of tokens from the cluster's own features.

  Returns:
    The entities; a query of some members should retrieve the others.
  """
  features = clusters * own_features + shared_features
  feature_cluster = np.repeat(np.arange(clusters), own_features)
  feature_cluster = np.append(feature_cluster, np.full(shared_features, -1))
  cluster = np.repeat(np.arange(clusters), members)
  shape = (len(cluster), tokens)
  own = cluster[:, None] * own_features + rng.integers(own_features, size=shape)
  start = clusters * own_features
  shared = start + rng.integers(max(shared_features, 1), size=shape)
  mask = rng.random(shape) < (signal if shared_features else 1.0)
  column = np.where(mask, own, shared).ravel()
  row = np.repeat(np.arange(len(cluster)), tokens)
  ones = np.ones(len(row), np.float32)
  counts = scipy.sparse.coo_array(
    (ones, (row, column)), (len(cluster), features)
  ).tocsr()
  return EntitySets(
    counts, cluster.astype(np.int32), feature_cluster.astype(np.int32)
  )


def entity_corpus(
  rng: np.random.Generator,
  entities: int = 77_845,
  features: int = 105_448,
  clusters: int = 400,
  nonzeros: float = 64.0,
  signal: float = 0.5,
) -> EntitySets:
  """Entities like those of a corpus of news, by default of the thesis' size.

  Frequencies of features follow Zipf's law, without the most frequent features,
  which pruning removes; clusters differ in size, and entities in their amount
  of text. Takes seconds for the default size.

  Args:
    features: the number of features; half of them belong to clusters.
    nonzeros: distinct features of an entity on average, about.
    signal: the expected share of tokens from the cluster's own features.

  Returns:
    The entities in random order.
  """
  own = features // (2 * clusters)
  if clusters < 1 or own < 1 or entities < 1:
    raise errors.InputError(
      f"{features} features are too few for {clusters} clusters"
    )
  start = clusters * own
  cluster = rng.choice(clusters, entities, p=_zipf(clusters, 20))
  # Some tokens repeat, so more tokens are drawn than features are wanted.
  spread = rng.lognormal(-0.5 * 0.8**2, 0.8, entities)
  tokens = np.maximum(np.rint(1.19 * nonzeros * spread), 1).astype(np.int64)
  row = np.repeat(np.arange(entities), tokens)
  mine = rng.random(len(row)) < signal
  column = np.empty(len(row), np.int64)
  count = int(mine.sum())
  own_place = _draw(rng, _zipf(own, 5), count)
  column[mine] = cluster[row[mine]] * own + own_place
  shared = _zipf(features - start, 100)
  column[~mine] = start + _draw(rng, shared, len(row) - count)
  counts = scipy.sparse.csr_array(
    (
      np.ones(len(row), np.float32),
      column.astype(np.int32),
      np.concatenate([[0], np.cumsum(tokens)]).astype(np.int32),
    ),
    shape=(entities, features),
  )
  counts.sum_duplicates()
  feature_cluster = np.full(features, -1)
  feature_cluster[:start] = np.repeat(np.arange(clusters), own)
  return EntitySets(
    counts, cluster.astype(np.int32), feature_cluster.astype(np.int32)
  )


def binary_tree(depth: int) -> np.ndarray:
  """The transitive closure of a complete binary tree (thesis 5.2).

  Args:
    depth: levels of vertices; vertex 0 is the root and the children of i are
      2 i + 1 and 2 i + 2.

  Returns:
    All (ancestor, descendant) pairs among the 2^depth - 1 vertices, int32
    [p, 2], sorted; p = (depth - 2) 2^depth + 2.
  """
  if not 1 <= depth <= 24:
    raise errors.InputError(f"depth must lie between 1 and 24, not {depth}")
  below = np.arange(2**depth - 1)
  above = below
  pairs = []
  for _ in range(depth - 1):
    alive = above > 0
    below, above = below[alive], (above[alive] - 1) // 2
    pairs.append(np.stack([above, below], axis=1))
  closure = np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int64)
  order = np.lexsort((closure[:, 1], closure[:, 0]))
  return closure[order].astype(np.int32)


def _zipf(count: int, shift: int) -> np.ndarray:
  """Probabilities that fall like 1 / (rank + shift)."""
  weight = 1 / (np.arange(count) + 1.0 + shift)
  return weight / weight.sum()


def _draw(
  rng: np.random.Generator, probability: np.ndarray, count: int
) -> np.ndarray:
  """Draws places by their probabilities."""
  bounds = np.cumsum(probability)
  bounds[-1] = np.inf  # By rounding the sum is not exactly 1.
  return np.searchsorted(bounds, rng.random(count), side="right")

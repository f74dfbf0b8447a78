"""Fitting of the two rankers of `rank_document` on packed documents; host."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from repr_jax.data.documents.evidence import Evidence, EvidenceGroup
from repr_jax.errors import InputError
from repr_jax.linking import candidate_graph, candidate_ranker
from repr_jax.linking.candidate_ranker import (
  Decision,
  RankerConfig,
  RankerParams,
)

_BATCH = 256  # mentions
_CELLS = 1 << 22  # numbers of the widest arrays in one call
_WIDTHS = (8, 24)  # candidates to pad to; longer lists: the longest


class Rankers(NamedTuple):
  """Weights of the two passes.

  Attributes:
    first: for a candidate's own features.
    second: for own and graph features.
  """

  first: RankerParams
  second: RankerParams


def fit_rankers(
  groups: Sequence[EvidenceGroup],
  key: jax.Array,
  *,
  members: int = 1,
  hidden: int = 48,
  epochs: int = 30,
  learning_rate: float = 2e-3,
  decay: float = 1e-3,
) -> list[Rankers]:
  """Fits the two rankers of `rank_document`, the second several times.

  The first is linear, so that its probabilities on its training documents are
  close to those on new documents; all members share it. The second has a hidden
  layer and starts from other weights for each member.

  >>> import jax, numpy as np
  >>> from repr_jax import linking
  >>> evidence = linking.Evidence(  # the larger feature is right
  ...   features=np.array([[[[0.0], [1]], [[1], [0]]]], np.float32),
  ...   nodes=np.array([[[0, 1], [2, 3]]]),
  ...   edges=np.array([[[1, 2]]]), groups=np.array([[0, 1]]),
  ...   shapes=np.array([[[0, 0], [0, 0]]]), degrees=np.ones((1, 4)),
  ...   gold=np.array([[1, 0]]),
  ... )
  >>> group = linking.EvidenceGroup(np.array([[0, 1]]), evidence)
  >>> (rankers,) = linking.fit_rankers([group], jax.random.key(0), hidden=4)
  >>> linking.decide(rankers, [group], 2).best.tolist()
  [1, 0]

  Args:
    groups: documents with gold candidates.
    key: random key.
    members: number of second rankers.
    hidden: width of the second ranker's hidden layer; 0 for a linear one.
    epochs: passes over the mentions; the learning rate falls to 0 by cosine.
    learning_rate: of AdamW for the second; ten times that for the first.
    decay: weight decay.

  Returns:
    The rankers of each member.
  """
  keys = jax.random.split(key, members + 1)
  own = [_mentions(g.evidence, g.evidence.features) for g in groups]
  linear = functools.partial(_fit, RankerConfig(0), epochs=epochs, decay=decay)
  first = linear(keys[0], own, learning_rate=10 * learning_rate)
  both = []
  for group in groups:
    features = np.concatenate(
      [group.evidence.features, _graph(first, group.evidence)], axis=-1
    )
    both.append(_mentions(group.evidence, features))
  return [
    Rankers(
      first,
      _fit(
        RankerConfig(hidden), one, both,
        epochs=epochs, decay=decay, learning_rate=learning_rate,
      ),
    )
    for one in keys[1:]
  ]  # fmt: skip


def decide(
  rankers: Rankers, groups: Sequence[EvidenceGroup], count: int
) -> Decision:
  """Ranks the candidates of documents with `count` mentions in all.

  >>> import jax.numpy as jnp, numpy as np
  >>> from repr_jax import linking
  >>> def weights(size, first):
  ...   zero, none = jnp.zeros(size), jnp.zeros((size, 0))
  ...   linear = zero.at[0].set(first)
  ...   return linking.RankerParams(
  ...     zero, zero + 1, linear, none, jnp.zeros(0), jnp.zeros(0)
  ...   )
  >>> evidence = linking.Evidence(
  ...   features=np.array([[[[0.0], [1]]]], np.float32),
  ...   nodes=np.array([[[0, 1]]]), edges=np.array([[[-1, -1]]]),
  ...   groups=np.array([[0]]), shapes=np.array([[[0, 0]]]),
  ...   degrees=np.ones((1, 2)), gold=np.array([[-1]]),
  ... )
  >>> rankers = linking.Rankers(weights(1, 1), weights(17, 1))
  >>> groups = [linking.EvidenceGroup(np.array([[1]]), evidence)]
  >>> linking.decide(rankers, groups, 2).best.tolist()  # mention 0 has none
  [-1, 1]

  Args:
    rankers: the weights.
    groups: the documents.
    count: mentions of all documents given to `pack_evidence`.

  Returns:
    The decision with mentions in the first axis; a mention without
    candidates has best -1.
  """
  if not groups:
    raise InputError("no mention has a candidate")
  top = groups[0].evidence.features.shape[2]
  depth = len(rankers.second.mean)
  made: list[Any] = [
    np.full(count, -1),
    np.zeros((count, top), np.float32),
    np.full((count, top), -np.inf, np.float32),
    np.zeros((count, top), np.float32),
    np.zeros((count, top, depth), np.float32),
  ]
  rank = functools.partial(_rank, *rankers)
  for group in groups:
    there = group.mentions >= 0
    answer = in_blocks(rank, group.evidence)
    for field, value in zip(made, answer):
      field[group.mentions[there]] = value[there]
  return Decision(*made)


_rank = jax.jit(jax.vmap(candidate_ranker.rank_document, (None, None, 0)))


@jax.jit
def _one_pass(first: RankerParams, evidence: Evidence) -> jax.Array:
  mask = jnp.asarray(evidence.nodes) >= 0
  scores = candidate_ranker.candidate_scores(
    first, jnp.asarray(evidence.features), mask
  )
  early = candidate_ranker.probabilities(scores, mask)
  return jax.vmap(candidate_graph.graph_features)(evidence, early)


def _graph(first: RankerParams, evidence: Evidence) -> np.ndarray:
  """Graph features by the probabilities of the first pass."""
  return in_blocks(functools.partial(_one_pass, first), evidence)


def in_blocks(
  call: Callable[..., Any], evidence: Evidence, *more: np.ndarray
) -> Any:
  """Calls a function on parts of many documents, which bounds the memory.

  Parts are padded to powers of two, so that few programs are compiled.

  Args:
    call: takes documents and further arrays; its results have documents in
      the first axis.
    evidence: arrays of n documents.
    *more: further arrays, [n, ...].

  Returns:
    The results for all documents, as numpy arrays.
  """
  n, width, top, depth = evidence.features.shape
  nodes, edges = evidence.degrees.shape[1], evidence.edges.shape[1]
  graph = len(candidate_graph.NAMES)
  cells = width * (nodes + 2 * edges + top * (depth + graph))
  size = 1 << (max(_CELLS // cells, 1).bit_length() - 1)
  parts = []
  for low in range(0, n, size):
    count = min(size, n - low)
    room = (1 << (count - 1).bit_length()) - count
    own = [
      np.pad(
        x[low : low + count], [(0, room)] + [(0, 0)] * (x.ndim - 1),
        constant_values=-1 if x.dtype.kind == "i" else 0,
      )
      for x in map(np.asarray, (*evidence, *more))
    ]  # fmt: skip
    fields = len(evidence)
    answer = call(Evidence(*own[:fields]), *own[fields:])
    parts.append(jax.tree.map(np.asarray, answer))
  return jax.tree.map(lambda *x: np.concatenate(x)[:n], *parts)


def _mentions(evidence: Evidence, features: np.ndarray):
  """Features, mask and gold of mentions with two candidates or more."""
  mask = evidence.nodes >= 0
  kept = (evidence.gold >= 0) & (mask.sum(axis=2) > 1)
  return features[kept], mask[kept], evidence.gold[kept]


def _fit(config, key, parts, *, epochs, learning_rate, decay) -> RankerParams:
  features, mask, gold = (np.concatenate(x) for x in zip(*parts))
  if not len(gold):
    raise InputError(
      "nothing to learn: no mention has two or more candidates with its own "
      "entity among them"
    )
  sizes = [x for x in _WIDTHS if x < mask.shape[1]] + [mask.shape[1]]
  longest = mask.sum(axis=1)
  table, low = [], 1
  for size in sizes:
    rows = (longest > low) & (longest <= size)
    low = size
    if rows.any():
      table.append((features[rows, :size], mask[rows, :size], gold[rows]))
  steps = epochs * sum(-(-len(x[2]) // _BATCH) for x in table)
  init, update = candidate_ranker.ranker(
    config,
    optax.adamw(
      optax.cosine_decay_schedule(learning_rate, steps), weight_decay=decay
    ),
  )
  first, second = jax.random.split(key)
  state = init(first, features, mask)
  rng = np.random.default_rng(jax.random.bits(second, (4,), "uint32").tolist())
  for _ in range(epochs):
    for part in [table[i] for i in rng.permutation(len(table))]:
      count = len(part[2])
      size = min(_BATCH, count)
      order = rng.permutation(count)
      order = np.append(order, order[: -count % size])
      for rows in order.reshape(-1, size):
        state, _ = update(state, *(field[rows] for field in part))
  return state.params

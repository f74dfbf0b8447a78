"""The ranking of `decoded` for many queries in one program.

A single query is fastest on the host, where a sparse product reads each
number once. Many at once share the reading: concepts, features and scores of
n queries are one program on the device, padded to one of few sizes, so that
no new size is compiled once all of them have run.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax.ops import sparse, topk
from repr_jax.setexp import expansion, feature_scores
from repr_jax.setexp.query import Query, best, exclude

SIZES = (8, 16, 32, 48, 64)
LEAST = 3  # Fewer queries are answered one by one.


class Batch(NamedTuple):
  """A model of `decoded` on the device.

  Attributes:
    model: the model.
    table: what each feature of an entity adds, sparse [X, F].
    means: of the entities' concepts, float32 [X, d].
    members: most members of a query, to which all are padded.
  """

  model: feature_scores.Model
  table: sparse.Sparse
  means: np.ndarray
  members: int


def prepare(model: feature_scores.Model, members: int = 128) -> Batch:
  """Puts a model on the device.

  Args:
    model: from `decoded.fit`.
    members: most members that a query has.

  Returns:
    What `expand_batch` needs.
  """
  xi, precision = (np.asarray(x).T for x in model.model.entities)
  table = sparse.from_scipy(model.table, name="features of the entities")
  means = np.ascontiguousarray(xi / precision)
  return Batch(model, table, means, members)


def expand_batch(
  batch: Batch, queries: Sequence[Query], k: int = 100
) -> list[expansion.Answer]:
  """The best entities of each query, as `decoded.score` ranks them.

  Args:
    batch: from `prepare`.
    queries: n queries; those of entities outside the table, or with more
      members than were prepared for, are answered one by one.
    k: entities for each, at most.

  Returns:
    The answers in order, without rationales; a query's members never return.
  """
  k = max(1, min(k, batch.table.shape[0]))
  fit = [i for i, query in enumerate(queries) if _fits(batch, query)]
  found: dict[int, expansion.Answer] = {}
  for start in range(0, len(fit), SIZES[-1]):
    block = fit[start : start + SIZES[-1]]
    if len(block) >= LEAST:
      answers = _together(batch, [queries[i] for i in block], k)
      found |= dict(zip(block, answers))
  return [
    found[i] if i in found else _alone(batch.model, query, k)
    for i, query in enumerate(queries)
  ]


def _fits(batch: Batch, query: Query) -> bool:
  return len(query.ids) <= batch.members and bool((query.ids >= 0).all())


def _alone(
  model: feature_scores.Model, query: Query, k: int
) -> expansion.Answer:
  scores = exclude(feature_scores.score(model, query), query)
  rows = best(scores, k)
  return _answer(rows.astype(np.int32), scores[rows])


def _together(
  batch: Batch, queries: Sequence[Query], k: int
) -> list[expansion.Answer]:
  model = batch.model
  size = next(n for n in SIZES if n >= len(queries))
  concepts = np.zeros((size, batch.means.shape[1]), np.float32)
  concepts[: len(queries)] = _concepts(batch, queries)
  members = np.full((size, batch.members), batch.table.shape[0], np.int32)
  own = np.zeros((batch.table.shape[1], size if model.own else 0), np.float32)
  for i, query in enumerate(queries):
    members[i, : len(query.ids)] = query.ids
    if model.own:
      columns, shares = _own(query)
      own[columns, i] = model.own * shares
  inner = model.model
  values, rows = _search(
    inner.config.decoder, model.power, model.own, k,
    batch.table, inner.params.decoder, concepts, own, members,
  )  # fmt: skip
  pairs = zip(np.asarray(rows)[: len(queries)], np.asarray(values))
  return [_answer(x[y > -np.inf], y[y > -np.inf]) for x, y in pairs]


def _answer(rows: np.ndarray, scores: np.ndarray) -> expansion.Answer:
  none = np.zeros(0, np.int32)
  return expansion.Answer(rows, scores, none, none.astype(np.float32))


def _concepts(batch: Batch, queries: Sequence[Query]) -> np.ndarray:
  """z_Q of each query as its pooling makes it, [n, d]."""
  inner = batch.model.model
  if batch.model.pooling == "merged":
    # Padded by rows without features, so that few sizes are compiled.
    totals = [sp.csr_array(np.maximum(q.weights @ q.rows, 0)) for q in queries]
    width = batch.table.shape[1]
    padding = sp.csr_array((SIZES[-1] - len(queries), width), dtype=np.float32)
    rows = sp.csr_array(
      sp.vstack([*(x.reshape(1, width) for x in totals), padding], "csr")
    )
    found = expansion.encode_rows(
      inner.config, inner.params, inner.inputs, rows
    )
    return np.asarray(found.xi / found.precision)[: len(queries)]
  concepts = []
  for query in queries:
    weights = query.weights
    if batch.model.pooling == "mean":
      share = weights / np.abs(weights).sum()
      concepts.append(share @ batch.means[query.ids])
    else:
      xi, precision = (np.asarray(x)[:, query.ids] for x in inner.entities)
      concepts.append((xi @ weights) / (precision @ np.abs(weights)))
  return np.stack(concepts)


def _own(query: Query) -> tuple[np.ndarray, np.ndarray]:
  """Columns of the members' features [m], and their shares, which sum to 1."""
  rows = query.rows
  weights = np.repeat(query.weights, np.diff(rows.indptr))
  columns, place = np.unique(rows.indices, return_inverse=True)
  counts = np.bincount(place, weights * rows.data, len(columns))
  having = np.bincount(place, np.maximum(weights, 0), len(columns))
  shares = np.maximum(counts, 0) * having
  return columns, shares / max(shares.sum(), 1e-30)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _search(kind, power, own_share, k, table, decoder, concepts, own, members):
  """Values and rows [n, k] of n queries; their own features are [F, n]."""
  logits = decoder[:, :-1] @ concepts.T + decoder[:, -1:]
  if kind == "multilabel":
    found = jax.nn.sigmoid(logits)
    if own_share:
      found = found / jnp.sum(found, axis=0)
  else:
    found = jax.nn.softmax(logits, axis=0)
  if own_share:
    found = (1 - own_share) * found + own
  weights = jnp.exp(power * jnp.log(found))
  scores = sparse.matmat(table, weights).T

  def top(scores, members):
    return topk.top_k(scores.at[members].set(-jnp.inf, mode="drop"), k)

  return jax.vmap(top)(scores, members)

"""Retrieval of coreferent mentions: search two fields, then rank again.

A query is the words of a mention, asked in both fields: weight 1 in the
mention field by default, w in the document field (thesis 6.1.1). BM25 scores
of both are known beforehand, so that a search is a product of the queries with
one sparse table. `search` does it by postings on the host, which touches few
numbers; `search_on_device` is the same for accelerators. The best are ranked
again by cosines of representations (`lsa`, `mvlsa`, `autoencoder`), or by an
ensemble, the mean of several scores on a common scale.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from repr_jax.data.documents import mentions
from repr_jax.errors import InputError
from repr_jax.linking import entity_vectors
from repr_jax.multiview import lsa as baselines
from repr_jax.multiview import mvlsa as mvlsa_lib
from repr_jax.ops import sparse, topk
from repr_jax.setexp import autoencoder as vae
from repr_jax.setexp import train
from repr_jax.setexp.baselines import bm25

_QUERIES = 256  # searched at a time

_HYPER = train.Hyper()


class Index(NamedTuple):
  """A collection of n mentions to search.

  Attributes:
    postings: what a unit of each word's weight adds to the score of each
      mention, words of the mention field first, float32 CSR [W, n].
    columns: the row of each word of the mention field in `postings`, and of
      each word of the document field.
  """

  postings: sp.csr_array
  columns: tuple[dict[str, int], dict[str, int]]


class Ranking(NamedTuple):
  """The best mentions of q queries.

  Attributes:
    ids: rows of the mentions, best first, int32 [q, k]; -1 for padding.
    scores: float32 [q, k]; -inf for padding.
  """

  ids: np.ndarray
  scores: np.ndarray


def build(
  fields: mentions.Fields, *, k1: float = 1.5, b: float = 0.75
) -> Index:
  """Indexes the words of both fields.

  Args:
    fields: of n mentions.
    k1: saturation of counts in BM25.
    b: discount of length in BM25.

  Returns:
    The index.
  """
  tables: list[sp.csr_array] = []
  columns: list[dict[str, int]] = []
  for field in fields:
    counts, words = mentions.word_part(field)
    found = bm25.fit(counts, k1=k1, b=b)
    shift = sum(table.shape[0] for table in tables)
    columns.append({word: i + shift for i, word in enumerate(words)})
    shape = (len(words), found.size)
    tables.append(
      sp.csr_array((found.values, found.entities, found.starts), shape)
    )
  postings = sp.csr_array(sp.vstack(tables, format="csr", dtype=np.float32))
  postings.eliminate_zeros()
  return Index(postings, (columns[0], columns[1]))


def make_queries(
  index: Index,
  words: Sequence[Sequence[str]],
  document_weight: float = 0.1,
  mention_weight: float = 1.0,
) -> sp.csr_array:
  """Mentions as queries in both fields.

  Args:
    index: the collection.
    words: tokens of each query's mention; unknown ones count nothing.
    document_weight: w, of the document field.
    mention_weight: of the mention field; not 0 where the other is.

  Returns:
    Weights, float32 CSR [q, W].
  """
  weights = (mention_weight, document_weight)
  if not (all(0 <= x < np.inf for x in weights) and any(weights)):
    raise InputError(
      "the weights of the fields must be finite, 0 or more, and not both 0: "
      f"mention {mention_weight}, document {document_weight}"
    )
  columns, data, ends = [], [], [0]
  for tokens in words:
    for word in dict.fromkeys(mentions.content_words(tokens)):
      for where, weight in zip(index.columns, weights):
        if word in where and weight:
          columns.append(where[word])
          data.append(weight)
    ends.append(len(columns))
  found = sp.csr_array(
    (np.array(data, np.float32), np.array(columns, np.int32), np.array(ends)),
    shape=(len(words), index.postings.shape[0]),
  )
  found.sort_indices()
  return found


def search(
  index: Index,
  queries: sp.csr_array,
  k: int = 100,
  exclude: np.ndarray | None = None,
) -> Ranking:
  """The best mentions of each query, by postings on the host.

  Args:
    index: the collection.
    queries: weights of words, [q, W].
    k: mentions for each query, at most; only those with a score above 0.
    exclude: row that must not come back, such as the query's own, int [q];
      -1 for none.

  Returns:
    The ranking; equal scores in the order of the collection.
  """
  _check_count(k)
  count = queries.shape[0]
  ids = np.full((count, k), -1, np.int32)
  scores = np.full((count, k), -np.inf, np.float32)
  own = np.full(count, -1) if exclude is None else np.asarray(exclude)
  for start in range(0, count, _QUERIES):
    found = queries[start : start + _QUERIES] @ index.postings
    ends = found.indptr.tolist()
    for i, (lo, hi) in enumerate(itertools.pairwise(ends), start):
      rows, values = found.indices[lo:hi], found.data[lo:hi]
      fine = (values > 0) & (rows != own[i])
      if hi - lo > k:
        # One more than k, as the query's own may be among them.
        least = np.partition(values, max(hi - lo - k - 1, 0))
        fine &= values >= least[max(hi - lo - k - 1, 0)]
      rows, values = rows[fine], values[fine]
      order = np.lexsort((rows, -values))[:k]
      ids[i, : len(order)] = rows[order]
      scores[i, : len(order)] = values[order]
  return Ranking(ids, scores)


@functools.partial(jax.jit, static_argnames="k")
def search_on_device(
  table: sparse.Sparse, queries: jax.Array, exclude: jax.Array, k: int = 100
) -> Ranking:
  """`search` as one product on the device.

  Args:
    table: `repr_jax.ops.sparse.from_scipy(index.postings.T.tocsr())`, [n, W].
    queries: weights of words, dense [q, W].
    exclude: row that must not come back, int [q]; -1 for none.
    k: mentions for each query, at most.

  Returns:
    The ranking, [q, k].
  """
  chex.assert_rank([queries, exclude], [2, 1])
  _check_count(k)
  scores = sparse.matmat(table, queries.T).T
  rows = jnp.arange(scores.shape[1])[None]
  fine = (scores > 0) & (rows != exclude[:, None])
  most = min(k, scores.shape[1])
  values, ids = jax.vmap(functools.partial(topk.top_k, k=most))(
    jnp.where(fine, scores, -jnp.inf)
  )
  fill = ((0, 0), (0, k - most))
  values = jnp.pad(values, fill, constant_values=-jnp.inf)
  ids = jnp.pad(ids, fill, constant_values=-1)
  found: Any = (jnp.where(values > -jnp.inf, ids, -1), values)
  return Ranking(*found)


def weigh(field: mentions.Field, min_mentions: int = 1) -> sp.csr_array:
  """The field as representations see it: words by BM25, the rest as they are.

  Args:
    field: the field of n mentions.
    min_mentions: features that fewer mentions have are left out.

  Returns:
    float32 CSR [n, F'].
  """
  having = np.bincount(field.counts.indices, minlength=len(field.features))
  counts, _ = mentions.word_part(field)
  words = bm25.weigh_rows(bm25.fit(counts), counts)
  kept = having[field.real] >= min_mentions
  rest = np.flatnonzero(~field.real & (having >= min_mentions))
  parts = [words[:, np.flatnonzero(kept)], field.counts[:, rest]]
  weighted = sp.csr_array(sp.hstack(parts, format="csr", dtype=np.float32))
  weighted.eliminate_zeros()
  weighted.sort_indices()
  return weighted


def lsa(
  fields: mentions.Fields, k: int, *, min_mentions: int = 2, seed: int = 0
) -> np.ndarray:
  """LSA of the concatenated fields.

  Args:
    fields: of n mentions.
    k: dimension.
    min_mentions: features that fewer mentions have are left out.
    seed: of the SVD.

  Returns:
    Vectors, float32 [n, k]; zero for a mention without features.
  """
  table = _concatenated(fields, min_mentions)
  return baselines.lsa(table, k, center=False, seed=seed)


def mvlsa(
  fields: mentions.Fields,
  k: int,
  m: int,
  *,
  min_mentions: int = 2,
  seed: int = 0,
) -> np.ndarray:
  """MVLSA with the two fields as views.

  Args:
    fields: of n mentions.
    k: dimension.
    m: rank of each view.
    min_mentions: features that fewer mentions have are left out.
    seed: of the SVDs.

  Returns:
    Vectors, float32 [n, k]; zero for a mention without features.
  """
  views = [weigh(field, min_mentions) for field in fields]
  found = mvlsa_lib.fit(views, k, m=m, projections=False, key=seed)
  return np.asarray(found.model.embedding)


def autoencoder(
  fields: mentions.Fields,
  config: vae.Config,
  *,
  key: jax.Array,
  epochs: int,
  hyper: train.Hyper = _HYPER,
  batch_size: int = 256,
  min_mentions: int = 2,
) -> np.ndarray:
  """Posterior means of an autoencoder of the concatenated fields.

  Args:
    fields: of n mentions.
    config: the autoencoder; its inputs are weighted already, so that "raw" is
      the weighting to choose.
    key: random key.
    epochs: passes over the mentions; 0 for a random encoder.
    hyper: learning rate of Adam, beta and smoothing.
    batch_size: mentions in a step.
    min_mentions: features that fewer mentions have are left out.

  Returns:
    Vectors, float32 [n, d]; zero for a mention without features.
  """
  return entity_vectors.posterior_means(
    _concatenated(fields, min_mentions),
    key=key,
    config=config,
    epochs=epochs,
    hyper=hyper,
    batch_size=batch_size,
  )


@jax.jit
def rerank(
  vectors: jax.Array, queries: jax.Array, candidates: jax.Array
) -> jax.Array:
  """Cosines of queries with their candidates.

  Args:
    vectors: of all mentions, any length, [n, d].
    queries: rows of the queries' own mentions, int [q].
    candidates: rows to score, int [q, k]; -1 for padding.

  Returns:
    Cosines, [q, k]; -inf for padding.
  """
  chex.assert_rank([vectors, queries, candidates], [2, 1, 2])
  vectors = entity_vectors.unit_rows(vectors)

  def one(item):
    query, rows = item
    cosines = vectors[rows] @ vectors[query]
    return jnp.where(rows >= 0, cosines, -jnp.inf)

  return lax.map(one, (queries, candidates), batch_size=64)


def ensemble(
  scores: Sequence[np.ndarray], weights: Sequence[float] | None = None
) -> np.ndarray:
  """Weighted mean of several scores of the same candidates.

  Scores are first put on one scale, for each query: 0 for its lowest and 1
  for its highest candidate.

  Args:
    scores: of each system, [q, k]; -inf for padding in all of them.
    weights: of each system; equal by default.

  Returns:
    Scores, [q, k]; -inf for padding.
  """
  weights = [1.0] * len(scores) if weights is None else list(weights)
  if len(weights) != len(scores) or not sum(weights) > 0 or min(weights) < 0:
    raise InputError("an ensemble needs a weight of 0 or more for each system")
  padding = np.isneginf(scores[0])
  total = np.zeros(scores[0].shape)
  for score, weight in zip(scores, weights):
    if (np.isneginf(score) != padding).any():
      raise InputError("systems of an ensemble must score the same candidates")
    if not np.isfinite(score[~padding]).all():
      raise InputError("a score of an ensemble's system is not finite")
    low = np.where(padding, np.inf, score).min(
      axis=1, keepdims=True, initial=np.inf
    )
    high = np.where(padding, -np.inf, score).max(
      axis=1, keepdims=True, initial=-np.inf
    )
    spread = np.where(high > low, high - low, 1.0)
    with np.errstate(invalid="ignore"):
      total += weight * np.where(padding, 0.0, (score - low) / spread)
  return np.where(padding, -np.inf, total / sum(weights)).astype(np.float32)


def _check_count(k: int) -> None:
  if k < 1:
    raise InputError(f"a search is for 1 mention or more, not {k}")


def _concatenated(fields: mentions.Fields, min_mentions: int) -> sp.csr_array:
  parts = [weigh(field, min_mentions) for field in fields]
  return sp.csr_array(sp.hstack(parts, format="csr", dtype=np.float32))

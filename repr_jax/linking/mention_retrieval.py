"""Retrieval of coreferent mentions: two-field BM25, then ranking again.

A query is the words of a mention, searched in both fields: weight 1 in the
mention field by default, w in the document field (thesis 6.1.1). BM25's scores
are computed beforehand. The index holds them by word, in chunks of equal
length; a search adds up the chunks of the query's words. The best mentions are
ranked again by cosines of vectors (`repr_jax.linking.mention_vectors`), or by
an ensemble of several scores.

`search`, `rerank` and `ensemble` are pure functions of one query.
`index_mentions` and `make_queries` prepare arrays on the host.
"""

import dataclasses
import functools
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
from repr_jax.ops import normalize, topk
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp.baselines import bm25

_CHUNK = 64  # postings side by side
_SIDE_BY_SIDE = 16  # queries whose scores of all mentions are held


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Index:
  """BM25 scores of n mentions by word, in c chunks.

  Attributes:
    rows: mentions, int32 [c, 64]; n for padding.
    values: score that a unit of the word's weight adds to each, [c, 64].
    size: n, static.
  """

  rows: jax.Array
  values: jax.Array
  size: int = dataclasses.field(metadata={"static": True})


class Words(NamedTuple):
  """Chunks of each word, on the host.

  Attributes:
    columns: id of each word of the mention field, and of the document field.
    starts: first chunk of each id, and the end, int64 [W + 1].
  """

  columns: tuple[dict[str, int], dict[str, int]]
  starts: np.ndarray


class Query(NamedTuple):
  """Chunks to add up.

  Attributes:
    chunks: rows of the index, int32 [p]; -1 for padding.
    weights: weight of each, [p].
  """

  chunks: jax.Array
  weights: jax.Array


class Ranking(NamedTuple):
  """The best mentions of a query.

  Attributes:
    ids: rows of the mentions, best first, int32 [k]; -1 for padding.
    scores: [k]; -inf for padding.
  """

  ids: jax.Array
  scores: jax.Array


def index_mentions(
  fields: mentions.Fields, *, k1: float = 1.5, b: float = 0.75
) -> tuple[Index, Words]:
  """Computes BM25 scores of the words of both fields, on the host.

  >>> from repr_jax import linking
  >>> from repr_jax.data.documents import mentions
  >>> from repr_jax.data.entities import sentence_from_text
  >>> texts = ["Bach wrote fugues", "Krebs wrote fugues", "Abel played"]
  >>> spans = [[(0, 4, "bach")], [(0, 5, "krebs")], [(0, 4, "abel")]]
  >>> stream = map(sentence_from_text, texts, spans)
  >>> fields = mentions.featurize(mentions.collect(stream))
  >>> index, words = linking.index_mentions(fields)
  >>> query = linking.make_queries(words, [["Bach"]])
  >>> linking.search(index, linking.Query(*(x[0] for x in query)), k=2).ids
  Array([ 0, -1], dtype=int32)

  Args:
    fields: fields of n mentions.
    k1: saturation of counts in BM25.
    b: discount of length in BM25.

  Returns:
    The index, and the chunks of each word.
  """
  tables: list[sp.csr_array] = []
  columns: list[dict[str, int]] = []
  for field in fields:
    counts, words = mentions.word_part(field)
    fitted = bm25.fit(counts, k1=k1, b=b).postings
    shift = sum(table.shape[0] for table in tables)
    columns.append({word: i + shift for i, word in enumerate(words)})
    shape = (len(words), fitted.width)
    arrays = (fitted.values, fitted.items, fitted.starts)
    tables.append(sp.csr_array(tuple(map(np.asarray, arrays)), shape))
  postings = sp.csr_array(sp.vstack(tables, format="csr", dtype=np.float32))
  postings.eliminate_zeros()
  index, starts = in_chunks(postings)
  return index, Words((columns[0], columns[1]), starts)


def make_queries(
  words: Words,
  tokens: Sequence[Sequence[str]],
  document_weight: float = 0.1,
  mention_weight: float = 1.0,
) -> Query:
  """Looks up the words of q mentions in both fields, on the host.

  >>> import numpy as np
  >>> from repr_jax import linking
  >>> words = linking.Words(({"bach": 0}, {"bach": 1}), np.array([0, 1, 2]))
  >>> linking.make_queries(words, [["Bach"], ["Krebs"]]).chunks
  array([[ 0,  1],
         [-1, -1]], dtype=int32)

  Args:
    words: chunks of each word.
    tokens: tokens of each query's mention; unknown ones are skipped.
    document_weight: w, weight of the document field.
    mention_weight: weight of the mention field.

  Returns:
    The queries, numpy fields [q, p], padded to the longest.

  Raises:
    InputError: a weight is negative or not finite, or both are 0.
  """
  weights = (mention_weight, document_weight)
  if not (all(0 <= x < np.inf for x in weights) and any(weights)):
    raise InputError(
      "the weights of the fields must be finite, 0 or more, and not both 0: "
      f"mention {mention_weight}, document {document_weight}"
    )
  parts: list[list[tuple[np.ndarray, float]]] = []
  for own in tokens:
    parts.append([])
    for word in dict.fromkeys(mentions.content_words(own)):
      for columns, weight in zip(words.columns, weights):
        if word in columns and weight:
          lo, hi = words.starts[columns[word] : columns[word] + 2]
          parts[-1].append((np.arange(lo, hi), weight))
  sizes = [sum(len(x) for x, _ in own) for own in parts]
  longest = max(sizes, default=0)
  chunks: Any = np.full((len(parts), longest), -1, np.int32)
  factors: Any = np.zeros((len(parts), longest), np.float32)
  for row, (listed, size) in enumerate(zip(parts, sizes)):
    if listed:
      ids, own_weights = zip(*listed)
      chunks[row, :size] = np.concatenate(ids)
      factors[row, :size] = np.repeat(own_weights, [len(x) for x in ids])
  return Query(chunks, factors)


def search(
  index: Index, query: Query, exclude: jax.Array | int = -1, *, k: int = 100
) -> Ranking:
  """Finds the best mentions of one query by two-field BM25.

  score(x) = sum over words w of weight(w) BM25(w, x). Equal scores are in the
  order of the collection. Example: `index_mentions`.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> rows, values = jnp.array([[0, 2], [1, 3]]), jnp.array([[1., 2], [1, 0]])
  >>> index = linking.Index(rows, values, size=3)  # 3 is padding
  >>> query = linking.Query(jnp.array([0, 1, -1]), jnp.array([1., 4, 0]))
  >>> linking.search(index, query, k=2)
  Ranking(ids=Array([1, 2], dtype=int32), scores=Array([4., 2.], dtype=float32))

  Args:
    index: the collection of n mentions.
    query: chunks of the query's words, fields [p]; -1 marks padding.
    exclude: row that must not come back, such as the query's own; -1 for
      none.
    k: mentions to return, static.

  Returns:
    The ranking, fields [k]; mentions without a score above 0 are left out.
  """
  chex.assert_rank([query.chunks, query.weights, exclude], [1, 1, 0])
  if k < 1:
    raise InputError(f"a search is for 1 mention or more, not {k}")
  chunks = jnp.asarray(query.chunks)
  known = chunks >= 0
  place = jnp.maximum(chunks, 0)
  weights = jnp.where(known, query.weights, 0).astype(index.values.dtype)
  rows = jnp.where(known[:, None], index.rows[place], index.size)
  scores = jnp.zeros(index.size, index.values.dtype)
  scores = scores.at[rows].add(
    index.values[place] * weights[:, None], mode="drop"
  )
  kept = (scores > 0) & (jnp.arange(index.size) != exclude)
  most = min(k, index.size)
  values, ids = topk.top_k(jnp.where(kept, scores, -jnp.inf), most)
  values = jnp.pad(values, (0, k - most), constant_values=-jnp.inf)
  ids = jnp.pad(ids, (0, k - most), constant_values=-1)
  return Ranking(jnp.where(values > -jnp.inf, ids, -1), values)


def search_batch(
  index: Index, queries: Query, exclude: np.ndarray, k: int = 100
) -> Ranking:
  """`search` of many queries, grouped by similar length.

  Args:
    queries: fields [q, p].
    exclude: row that must not come back for each, int [q]; -1 for none.
    k: mentions for each query.

  Returns:
    The ranking, numpy fields [q, k].
  """
  count = len(queries.chunks)
  best_ids: Any = np.full((count, k), -1, np.int32)
  best_scores: Any = np.zeros((count, k), np.float32)
  sizes = (np.asarray(queries.chunks) >= 0).sum(axis=1)
  # Few lengths, as each is compiled: powers of 4.
  lengths = 4 ** np.ceil(np.log2(np.maximum(sizes, 1)) / 2).astype(int)
  for length in np.unique(lengths):
    chosen = np.flatnonzero(lengths == length)
    part = [np.asarray(x)[chosen, :length] for x in queries]
    own = np.asarray(exclude)[chosen]
    best_ids[chosen], best_scores[chosen] = search_all(index, part, own, k)
  return Ranking(best_ids, best_scores)


@chosen_products
def rerank(
  vectors: jax.Array, query: jax.Array | int, candidates: jax.Array
) -> jax.Array:
  """Cosines of one query's mention with its candidates.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> vectors = jnp.array([[1., 0], [3, 4], [0, 2]])
  >>> linking.rerank(vectors, 1, jnp.array([0, 2, -1])).round(1)
  Array([ 0.6,  0.8, -inf], dtype=float32)

  Args:
    vectors: vectors of all mentions, of any length, [n, d].
    query: row of the query's own mention.
    candidates: rows to score, int [k]; -1 for padding.

  Returns:
    Cosines, [k]; -inf for padding.
  """
  chex.assert_rank([vectors, query, candidates], [2, 0, 1])
  vectors, candidates = jnp.asarray(vectors), jnp.asarray(candidates)
  known = candidates >= 0
  rows = vectors[jnp.maximum(candidates, 0)]
  cosines = normalize.unit_rows(rows) @ normalize.unit_rows(vectors[query])
  return jnp.where(known, cosines, -jnp.inf)


@jax.jit
def rerank_batch(
  vectors: jax.Array, queries: jax.Array, candidates: jax.Array
) -> jax.Array:
  """`rerank` of many queries, a few at a time.

  Args:
    vectors: [n, d].
    queries: rows of the queries' own mentions, int [q].
    candidates: rows to score, int [q, k]; -1 for padding.

  Returns:
    Cosines, [q, k]; -inf for padding.
  """

  def one(item):
    return rerank(vectors, *item)

  return lax.map(
    one, (jnp.asarray(queries), jnp.asarray(candidates)), batch_size=64
  )


@chosen_products
def ensemble(scores: jax.Array, weights: jax.Array) -> jax.Array:
  """Weighted mean of several systems' scores of one query's candidates.

  sum_s w_s (x_s - min x_s) / (max x_s - min x_s) / sum_s w_s: each system's
  scores are first put on one scale, from 0 to 1.

  >>> import jax.numpy as jnp
  >>> from repr_jax import linking
  >>> scores = jnp.array([[3., 1, -jnp.inf], [10, 30, -jnp.inf]])
  >>> linking.ensemble(scores, jnp.array([3., 1]))
  Array([0.75, 0.25, -inf], dtype=float32)

  Args:
    scores: of s systems, [s, k]; -inf for padding.
    weights: weight of each system, 0 or more, not all 0, [s].

  Returns:
    Scores, [k]; -inf for padding. A system that gives all candidates the same
    score has no effect.
  """
  chex.assert_rank([scores, weights], [2, 1])
  scores, weights = jnp.asarray(scores), jnp.asarray(weights)
  padding = jnp.isneginf(scores).any(axis=0)
  low = jnp.where(padding, jnp.inf, scores).min(axis=1, keepdims=True)
  high = jnp.where(padding, -jnp.inf, scores).max(axis=1, keepdims=True)
  spread = jnp.where(high > low, high - low, 1)
  scaled = jnp.where(padding, 0, scores - jnp.where(padding, 0, low)) / spread
  mean = weights.astype(scores.dtype) @ scaled / weights.sum()
  return jnp.where(padding, -jnp.inf, mean).astype(scores.dtype)


@functools.partial(jax.jit, static_argnames="k")
def search_all(
  index: Index, queries: Any, exclude: jax.Array, k: int
) -> Ranking:
  """`search` of many queries of one length, a few at a time.

  Args:
    queries: chunks and weights, both [q, p].
    exclude: row that must not come back for each, int [q]; -1 for none.
    k: mentions for each query (static).

  Returns:
    The ranking, fields [q, k].
  """

  def one(item):
    query, exclude = item
    return search(index, Query(*query), exclude, k=k)

  return lax.map(one, (queries, exclude), batch_size=_SIDE_BY_SIDE)


def in_chunks(postings: sp.csr_array) -> tuple[Index, np.ndarray]:
  """Cuts the postings of words into chunks of equal length, on the host.

  Args:
    postings: score that a unit of each word's weight adds to each of n
      mentions, [W, n].

  Returns:
    The index, and the first chunk of each word and the end, int64 [W + 1].
  """
  lengths = np.diff(postings.indptr)
  starts = np.concatenate([[0], np.cumsum(-(-lengths // _CHUNK))])
  shape = (max(int(starts[-1]), 1), _CHUNK)
  rows = np.full(shape, postings.shape[1], np.int32)
  values = np.zeros(shape, np.float32)
  word = np.repeat(np.arange(len(lengths)), lengths)
  inside = np.arange(postings.nnz) - postings.indptr[word]
  place = starts[word] + inside // _CHUNK, inside % _CHUNK
  rows[place], values[place] = postings.indices, postings.data
  index = Index(jnp.asarray(rows), jnp.asarray(values), postings.shape[1])
  return index, starts

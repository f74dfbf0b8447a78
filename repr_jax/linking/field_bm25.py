"""BM25F: fields are added before saturation.

Two-field BM25 (`mention_retrieval.index_mentions`) adds up the scores of the
fields, so that a word that is in both counts twice. BM25F (Robertson, Zaragoza
and Taylor 2004) adds up the weighted counts first:

    t = sum over fields f of w_f n_f / (1 - b + b |f| / mean |f|),
    score = sum over words of idf t (k1 + 1) / (k1 + t).

The weights are part of the index, not of the query.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from repr_jax.data.documents import mentions
from repr_jax.errors import InputError
from repr_jax.linking.mention_retrieval import Index, Words, in_chunks


def index_fields(
  fields: mentions.Fields,
  weights: Sequence[float] = (1.0, 0.1),
  *,
  k1: float = 1.5,
  b: float = 0.75,
) -> tuple[Index, Words]:
  """Computes BM25F scores of the words of both fields, on the host.

  idf = log((n - df + .5) / (df + .5)), at least 0, where df counts mentions
  that have the word in a field of positive weight.

  >>> from repr_jax import linking
  >>> from repr_jax.data.documents import mentions
  >>> from repr_jax.data.entities import sentence_from_text
  >>> texts = ["Bach wrote fugues", "Krebs wrote fugues", "Abel played"]
  >>> spans = [[(0, 4, "bach")], [(0, 5, "krebs")], [(0, 4, "abel")]]
  >>> stream = map(sentence_from_text, texts, spans)
  >>> fields = mentions.featurize(mentions.collect(stream))
  >>> index, words = linking.index_fields(fields, (1.0, 0.5))
  >>> query = linking.make_queries(words, [["Abel"]])
  >>> linking.search(index, linking.Query(*(x[0] for x in query)), k=2).ids
  Array([ 2, -1], dtype=int32)

  Args:
    fields: fields of n mentions.
    weights: weight of the mention field and of the document field.
    k1: saturation of the summed counts, above 0.
    b: discount of length in each field, 0 to 1.

  Returns:
    The index, and the chunks of each word. The second of `Words.columns` is
    empty, so `make_queries` looks each word up once.

  Raises:
    InputError: a weight is negative or not finite, all are 0, or k1 or b is
      outside its range.
  """
  if len(weights) != len(fields) or not (
    all(0 <= x < np.inf for x in weights) and any(weights)
  ):
    raise InputError(
      f"BM25F needs {len(fields)} weights of fields that are finite, 0 or "
      f"more, and not all 0: {tuple(weights)}"
    )
  if not 0 < k1 < np.inf or not 0 <= b <= 1:
    raise InputError(
      f"BM25F needs k1 above 0 and b from 0 to 1, not {k1} and {b}"
    )
  columns: dict[str, int] = {}
  tables = []
  for field, weight in zip(fields, weights):
    counts, words = mentions.word_part(field)
    if weight:
      numbers = [columns.setdefault(word, len(columns)) for word in words]
      tables.append((_discounted(counts, weight, b), np.asarray(numbers, int)))
  total = sp.csr_array((fields.mention.counts.shape[0], len(columns)))
  for counts, places in tables:
    table = counts.tocoo()
    total = total + sp.csr_array(
      (table.data, (table.row, places[table.col])), total.shape
    )
  postings = sp.csr_array(total.T)
  postings.eliminate_zeros()
  size = total.shape[0]
  frequency = np.diff(postings.indptr)
  idf = np.log((size - frequency + 0.5) / (frequency + 0.5))
  scale = np.repeat(np.maximum(idf, 0) * (k1 + 1), frequency)
  postings.data = scale * postings.data / (k1 + postings.data)
  postings = sp.csr_array(postings, dtype=np.float32)
  postings.eliminate_zeros()
  index, starts = in_chunks(postings)
  return index, Words((columns, {}), starts)


def _discounted(counts: sp.csr_array, weight: float, b: float) -> sp.csr_array:
  """One field's counts, weighted and normalized by length."""
  length = np.asarray(counts.sum(axis=1), np.float64).ravel()
  mean = length.mean() or 1.0
  factor = weight / (1 - b + b * length / mean)
  table = sp.csr_array(counts, dtype=np.float64)
  table.data = table.data * np.repeat(factor, np.diff(table.indptr))
  return table

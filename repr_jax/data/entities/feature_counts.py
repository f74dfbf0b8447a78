"""Counting features of entities, block by block in numpy.

Raw features have one numbering over the three blocks. `Columns` maps tokens
and documents to features, in this or in another numbering.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from repr_jax.data.entities import sentences as sentences_lib
from repr_jax.errors import InputError

_BLOCK = 1 << 16  # Sentences whose features are counted at a time.
# Features of fewer entities have a high IDF and too few counts to judge by.
_COMMON, _EVEN = 0.05, 0.8


class Columns(NamedTuple):
  """Columns in which tokens and documents are counted; -1 if they are not.

  Attributes:
    word: the column of each token of the vocabulary, int32 [v].
    document: the column of each document, int32 [d].
    link: the column of each token inside a linked mention, int32 [v].
  """

  word: np.ndarray
  document: np.ndarray
  link: np.ndarray


def totals(
  held: sentences_lib.Sentences,
  columns: Columns,
  width: int,
) -> np.ndarray:
  """The sum of each raw feature over all entities.

  Args:
    columns: the raw features of tokens and documents.

  Returns:
    The sums, int64 [width].
  """
  weight = np.bincount(held.entity_sentences, minlength=len(held.documents))
  each = np.repeat(weight, np.diff(held.starts))
  word, document, link = columns
  total = np.zeros(width + 1)
  has = held.documents >= 0
  for column, amount in (
    (word[held.tokens], each),
    (link[held.tokens[held.linked]], each[held.linked]),
    (document[held.documents[has]], weight[has]),
  ):
    # Column -1 is counted in a last place that is cut off.
    total += np.bincount(column % (width + 1), amount, width + 1)
  return total[:-1].astype(np.int64)


def prune(
  totals: np.ndarray, labels: list[str], drop: int, min_count: int
) -> np.ndarray:
  """Drops the most frequent and the rare features (thesis 4.7).

  Args:
    totals: the sum of each raw feature, int64 [width].
    drop: how many of the most frequent are dropped, equal counts by label.
    min_count: features with a smaller sum are dropped.

  Returns:
    The raw features that stay, ascending, int64 [F]; `InputError` if none
    stays.
  """
  if drop < 0 or min_count < 1:
    raise InputError(
      "drop_most_frequent must not be negative and min_count must be "
      f"positive, not {drop} and {min_count}"
    )
  seen = np.flatnonzero(totals)
  stop = np.zeros(0, np.int64)
  if drop and len(seen):
    # Names break ties among the features that reach the last dropped count.
    least = np.sort(totals[seen])[-min(drop, len(seen))]
    near = seen[totals[seen] >= least].tolist()
    near.sort(key=lambda i: (-totals[i], labels[i]))
    stop = np.array(near[:drop])
  kept = np.setdiff1d(seen[totals[seen] >= min_count], stop)
  if not len(kept):
    raise InputError(
      f"no feature is left: of {len(seen)}, the {drop} most frequent are "
      f"dropped and so are those seen fewer than {min_count} times; give more "
      "text, or lower drop_most_frequent and min_count"
    )
  return kept


def spread_evenly(counts: scipy.sparse.csr_array) -> np.ndarray:
  """Features that many entities have, and nearly as many as by chance.

  Function words of any language fall on entities in proportion to the length
  of their text. A feature that tells what an entity is occurs often in a few
  entities, so fewer entities have it than its total leads to expect:

      expected df(i) = sum_x 1 - exp(-total(i) length(x) / sum of lengths).

  Args:
    counts: [X, F].

  Returns:
    True for features of more than .05 + 1 / sqrt(X) of the entities and of
    more than .8 times the expected number, bool [F].
  """
  size, width = counts.shape
  having = np.bincount(counts.indices, minlength=width)
  common = np.flatnonzero(having > size * _COMMON + np.sqrt(size))
  totals = np.asarray(counts.sum(axis=0)).ravel()[common]
  share = np.asarray(counts.sum(axis=1)).ravel() / max(counts.sum(), 1)
  expected = [-np.expm1(-total * share).sum() for total in totals]
  even = np.zeros(width, bool)
  even[common] = having[common] > _EVEN * np.array(expected)
  return even


def entity_counts(
  held: sentences_lib.Sentences,
  columns: Columns,
  width: int,
) -> scipy.sparse.csr_array:
  """Sums the features of each entity's sentences.

  Args:
    columns: the features of tokens and documents.

  Returns:
    CSR float32 [X, width], sorted columns.
  """
  blocks = []
  starts = held.entity_starts
  first = 0
  while first < len(starts) - 1:
    # A block has whole entities: as many as fit, at least one.
    end = int(np.searchsorted(starts, starts[first] + _BLOCK, "right")) - 1
    end = max(end, first + 1)
    part = held.entity_sentences[starts[first] : starts[end]]
    rows = sentence_features(held, part, columns, width)
    # New row ends join the rows of an entity's sentences.
    joined = rows.indptr[starts[first : end + 1] - starts[first]]
    block = scipy.sparse.csr_array(
      (rows.data, rows.indices, joined), shape=(end - first, width)
    )
    block.sum_duplicates()
    blocks.append(block)
    first = end
  counts = scipy.sparse.vstack(blocks, format="csr", dtype=np.float32)
  counts.has_canonical_format = True
  return scipy.sparse.csr_array(counts)


def sentence_features(
  held: sentences_lib.Sentences,
  chosen: np.ndarray,
  columns: Columns,
  width: int,
) -> scipy.sparse.csr_array:
  """The features of some sentences, repeats not yet summed.

  Args:
    chosen: ids of sentences, int [s].
    columns: the features of tokens and documents.

  Returns:
    CSR float32 [s, width].
  """
  starts = np.asarray(held.starts)
  lengths = starts[chosen + 1] - starts[chosen]
  owner = np.repeat(np.arange(len(chosen)), lengths)
  within = np.arange(len(owner)) - (np.cumsum(lengths) - lengths)[owner]
  place = starts[chosen][owner] + within
  token = held.tokens[place]
  inside = np.asarray(held.linked[place])
  document = np.asarray(held.documents[chosen])
  has = document >= 0
  word, doc, link = columns
  row = np.concatenate([owner, owner[inside], np.flatnonzero(has)])
  column = np.concatenate(
    [word[token], link[token[inside]], doc[document[has]]]
  )
  kept = column >= 0
  row, column = row[kept], column[kept]
  order = np.argsort(row, kind="stable")
  ends = np.cumsum(np.bincount(row, minlength=len(chosen)))
  return scipy.sparse.csr_array(
    (
      np.ones(len(column), np.float32),
      column[order].astype(np.int32),
      np.concatenate([[0], ends]).astype(np.int32),
    ),
    shape=(len(chosen), width),
  )

"""Spelling of words as features: their character n-grams."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array as Csr

from repr_jax.errors import InputError


def ngram_features(
  words: Sequence[str],
  *,
  shortest: int = 3,
  longest: int = 6,
  min_words: int = 2,
) -> Csr:
  """Which character n-grams each word has, with marks at both ends.

  Args:
    shortest: fewest characters of an n-gram, the marks "<" and ">" counted.
    longest: most characters.
    min_words: n-grams of fewer words are left out; with 2, no n-gram stands
      for one word alone.

  Returns:
    Rows of length one, or zero for a word without such n-grams, float32
    [V, n-grams].
  """
  if not 1 <= shortest <= longest:
    raise InputError(
      f"n-grams of {shortest} to {longest} characters: need 1 <= shortest <= "
      "longest"
    )
  index: dict[str, int] = {}
  rows: list[int] = []
  columns: list[int] = []
  for row, word in enumerate(words):
    marked = f"<{word}>"
    distinct = {
      marked[start : start + size]
      for size in range(shortest, longest + 1)
      for start in range(len(marked) - size + 1)
    }
    rows += [row] * len(distinct)
    columns += [index.setdefault(gram, len(index)) for gram in sorted(distinct)]
  shared = np.bincount(columns, minlength=len(index)) >= min_words
  places, names = np.array(rows, int), np.array(columns, int)
  kept = shared[names] if len(names) else np.zeros(0, bool)
  places, names = places[kept], (np.cumsum(shared) - 1)[names[kept]]
  counts = np.bincount(places, minlength=len(words))
  values = (1 / np.sqrt(np.maximum(counts, 1)))[places].astype(np.float32)
  shape = (len(words), max(int(shared.sum()), 1))
  matrix = Csr((values, (places, names)), shape=shape)
  matrix.sort_indices()
  return matrix

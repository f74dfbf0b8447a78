"""Skip-grams: contexts of mentions, the features of SetExpan.

Shen et al. 2017 take the words around a mention as one feature, in windows of
several sizes: "is a __ of the".
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax.data.io import array_files, files
from repr_jax.errors import InputError

_WINDOWS = ((1, 1), (2, 1), (3, 1), (1, 3), (2, 2), (1, 2))


class Contexts(NamedTuple):
  """Counts of contexts.

  Attributes:
    counts: float32 [X, C].
    names: the contexts, sorted, C of them.
  """

  counts: sp.csr_array
  names: list[str]


def skip_grams(
  tokens: Sequence[str],
  start: int,
  end: int,
  windows: Iterable[tuple[int, int]] = _WINDOWS,
) -> Iterator[str]:
  """Contexts of one mention: words before and after, the mention left out.

  Args:
    start: first token of the mention.
    end: one past its last token.
    windows: words to the left and right of each context.

  Yields:
    Distinct contexts such as "is a __ of the". At the ends of the sentence a
    context is shorter.
  """
  if not 0 <= start <= end <= len(tokens):
    raise InputError(
      f"a mention of tokens {start} to {end} lies outside a sentence of "
      f"{len(tokens)} tokens"
    )
  if start == end:
    return  # a sentence about the entity that does not name it
  seen = set()
  for left, right in windows:
    before = tokens[max(start - left, 0) : start]
    after = tokens[end : end + right]
    text = " ".join([*before, "__", *after])
    if text != "__" and text not in seen:
      seen.add(text)
      yield text


def skip_gram_counts(
  mentions: Iterable[tuple[int, Sequence[str], int, int]], size: int
) -> Contexts:
  """Counts skip-grams of all mentions.

  Args:
    mentions: entity's row, tokens of the sentence, start and end of the
      mention in it.
    size: the number of entities X.

  Returns:
    Counts of the contexts that two entities or more share.
  """
  ids: dict[str, int] = {}
  rows, columns = [], []
  for entity, tokens, start, end in mentions:
    for text in skip_grams(tokens, start, end):
      rows.append(entity)
      columns.append(ids.setdefault(text, len(ids)))
  table = sp.coo_array(
    (np.ones(len(rows), np.float32), (rows, columns)), (size, len(ids))
  ).tocsc()
  texts = np.array(list(ids), dtype=object)
  kept = np.flatnonzero(np.diff(table.indptr) >= 2)
  order = kept[np.argsort(texts[kept])] if kept.size else kept
  counts = sp.csr_array(table[:, order])
  return Contexts(counts.sorted_indices(), texts[order].tolist())


def save(path: files.Path, contexts: Contexts) -> None:
  """Writes contexts to one .npz file."""
  counts = contexts.counts
  text = "\n".join(contexts.names).encode()
  array_files.write_npz(
    path,
    data=counts.data,
    indices=counts.indices,
    indptr=counts.indptr,
    names=np.frombuffer(text, np.uint8),
  )


def load(path: files.Path, size: int) -> Contexts:
  """Reads what `save` wrote.

  Args:
    size: the number of entities X that it must have.
  """
  arrays = array_files.read_npz(path, ("data", "indices", "indptr", "names"))
  text = arrays["names"].tobytes().decode()
  names = text.split("\n") if text else []
  try:
    counts = sp.csr_array(
      (arrays["data"], arrays["indices"], arrays["indptr"]), (size, len(names))
    )
  except ValueError as error:
    raise InputError(
      f"holds no contexts of {size:,} entities ({error}): delete it", path=path
    ) from error
  return Contexts(counts, names)

"""Contexts of mentions: the tokens right before and after a name.

The words of whole sentences tell an entity's topic. The tokens beside its name
tell its kind: "rivers such as the _", "_ was a German". Contexts are a fourth
block of features, "context:", beside those of `features`. In a context, "_"
stands for the name and "^" for the start of the sentence.
"""

import array
import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np
import scipy.sparse as sp

from repr_jax.data.entities.corpus import Sentence
from repr_jax.data.entities.features import FeatureTable

_SIDE = 3  # tokens on one side
_BOTH = 2  # tokens on each side, if both are there


def contexts_of(tokens: tuple[str, ...], start: int, end: int) -> list[str]:
  """The contexts of a mention, ten at most.

  >>> from repr_jax.data.entities import contexts
  >>> contexts.contexts_of(("the", "Elbe", "flows"), 1, 2)[:3]
  ['the _', '_ flows', 'the _ flows']

  Args:
    tokens: of the sentence, in small letters.
    start: first token of the mention.
    end: one past the last.

  Returns:
    Up to three tokens before, up to three after, and up to two on each side.
  """
  left = (*tokens[max(0, start - _SIDE) : start],) or ("^",)
  right = tokens[end : end + _SIDE]
  given = [" ".join((*left[-n:], "_")) for n in range(1, len(left) + 1)]
  given += [" ".join(("_", *right[:n])) for n in range(1, len(right) + 1)]
  given += [
    " ".join((*left[-n:], "_", *right[:m]))
    for n in range(1, min(_BOTH, len(left)) + 1)
    for m in range(1, min(_BOTH, len(right)) + 1)
  ]
  return given


class ContextCounter:
  """Counts contexts while another reader consumes the sentences."""

  def __init__(self) -> None:
    self._entities: dict[str, int] = {}
    self._contexts: dict[str, int] = {}
    self._pairs = array.array("i"), array.array("i")

  def watch(self, stream: Iterable[Sentence]) -> Iterator[Sentence]:
    """Yields the same sentences and counts their contexts."""
    for sentence in stream:
      lower = tuple(token.lower() for token in sentence.tokens)
      for start, end, entity in sentence.mentions:
        if end > start:
          row = self._entities.setdefault(entity, len(self._entities))
          for context in contexts_of(lower, start, end):
            column = self._contexts.setdefault(context, len(self._contexts))
            self._pairs[0].append(row)
            self._pairs[1].append(column)
      yield sentence

  def join(self, table: FeatureTable, min_entities: int = 3) -> FeatureTable:
    """A table with the contexts as further features.

    Args:
      table: of the same sentences.
      min_entities: contexts that fewer entities have are left out.

    Returns:
      The table, its other features first.
    """
    rows, columns = (np.frombuffer(x, np.int32) for x in self._pairs)
    places = np.array(
      [table.rows.get(entity, -1) for entity in self._entities], np.int64
    )
    kept = places[rows] >= 0
    size = len(self._contexts)
    counts = sp.coo_array(
      (np.ones(kept.sum(), np.float32), (places[rows[kept]], columns[kept])),
      (len(table.entities), size),
    ).tocsr()
    spread = np.bincount(counts.indices, minlength=size)
    names = list(self._contexts)
    chosen = np.flatnonzero(spread >= min_entities)
    chosen = np.array(
      sorted(chosen.tolist(), key=lambda i: (-spread[i], names[i])), np.int64
    )
    joined = sp.hstack([table.counts, counts[:, chosen]], "csr")
    return dataclasses.replace(
      table,
      counts=sp.csr_array(joined, dtype=np.float32).sorted_indices(),
      features=[*table.features, *(f"context:{names[i]}" for i in chosen)],
    )

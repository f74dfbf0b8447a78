"""Documents behind the sentences, as far as the model has them."""

from typing import Any

import numpy as np

from experiments.explorer.entities import Entities
from repr_jax.data.entities import features
from repr_jax.errors import InputError

_MOST = 500  # sentences of a document that are shown


class Documents:
  """The documents of a corpus by name."""

  def __init__(self, table: features.FeatureTable, entities: Entities):
    """Prepares the search.

    Args:
      entities: describes those that a document mentions.
    """
    self._held = table.sentences
    self._entities = entities
    self._numbers = {
      name: i for i, name in enumerate(self._held.document_names) if name
    }
    self._order = np.argsort(self._held.documents, kind="stable")
    self._sorted = np.asarray(self._held.documents)[self._order]
    # The entities of each sentence, from the sentences of each entity.
    sizes = np.diff(self._held.entity_starts)
    self._owner = np.repeat(np.arange(len(sizes)), sizes)

  def name(self, sentence: int) -> str:
    """The document of a sentence; "" where it is not known."""
    number = int(self._held.documents[sentence])
    return self._held.document_names[number] if number >= 0 else ""

  def describe(self, name: str) -> dict[str, Any]:
    """The sentences of a document in order, and the entities they mention."""
    number = self._numbers.get(name)
    if number is None:
      raise InputError(f"there is no document called {name[:100]!r}")
    start, end = np.searchsorted(self._sorted, [number, number + 1])
    chosen = np.sort(self._order[start:end])
    inside = np.isin(self._held.entity_sentences, chosen)
    rows = np.unique(self._owner[inside])
    return {
      "name": name,
      "texts": [self._held.text(int(x)) for x in chosen[:_MOST]],
      "more": max(0, len(chosen) - _MOST),
      "entities": [self._entities.describe(int(x)) for x in rows[:_MOST]],
    }

"""Features of entities: bags of what their sentences hold (thesis 4.3).

An entity is the multiset of the sentences that mention it, each counted once
however often it names the entity. Three blocks of counts are put side by
side: "word:" the tokens of these sentences, "doc:" the documents they stand
in, and "link:" those tokens that belong to a linked mention, the entity's own
or another's. Tokens are lower-cased, and marks without a letter or digit are
no features. The most frequent features and the rare ones are then dropped,
over all entities and all blocks (thesis 4.7).
"""

import collections
import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from repr_jax.data import entities as entities_lib
from repr_jax.data.entities import feature_counts
from repr_jax.data.entities import names as names_lib
from repr_jax.data.entities import sentences as sentences_lib
from repr_jax.data.io import arraystore, files
from repr_jax.errors import InputError

_KIND = "features of entities"


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureTable:
  """Entities and their features.

  Attributes:
    counts: float32 [X, F], sorted columns; an entity without features has an
      empty row.
    entities: ids, sorted, [X].
    names: display names, [X].
    features: "word:x", "doc:x" and "link:x", block after block, the most
      frequent first in each, [F].
    sentences: the text behind the counts.
  """

  counts: scipy.sparse.csr_array
  entities: list[str]
  names: list[str]
  features: list[str]
  sentences: sentences_lib.Sentences

  @functools.cached_property
  def columns(self) -> dict[str, int]:
    """The column of each feature."""
    return {feature: i for i, feature in enumerate(self.features)}

  @functools.cached_property
  def rows(self) -> dict[str, int]:
    """The row of each entity id."""
    return {entity: i for i, entity in enumerate(self.entities)}

  @functools.cached_property
  def name_index(self) -> names_lib.NameIndex:
    """The display names, to be searched."""
    return names_lib.NameIndex(self.names)

  @functools.cached_property
  def fingerprint(self) -> str:
    """Hash of the feature names; a model must have been trained on the same."""
    return fingerprint(self.features)

  def take(self, kept: np.ndarray) -> "FeatureTable":
    """The table with some of its features, numbered or as a mask."""
    kept = np.arange(len(self.features))[kept]
    return dataclasses.replace(
      self,
      counts=self.counts[:, kept].sorted_indices(),
      features=[self.features[i] for i in kept.tolist()],
    )

  @functools.cached_property
  def _columns_of(self) -> feature_counts.Columns:
    """Columns of words, documents and links; -1 if there is none."""
    held = self.sentences
    lower = [token.lower() for token in held.vocabulary]
    return feature_counts.Columns(
      self._look_up("word", lower),
      self._look_up("doc", held.document_names),
      self._look_up("link", lower),
    )

  def _look_up(self, block: str, names: Iterable[str]) -> np.ndarray:
    columns = (self.columns.get(f"{block}:{name}", -1) for name in names)
    return np.fromiter(columns, np.int32)


def fingerprint(features: Sequence[str]) -> str:
  """Identifies a list of features.

  Args:
    features: the features in order.

  Returns:
    A hexadecimal digest.
  """
  digest = hashlib.sha256()
  for feature in features:
    raw = feature.encode()
    digest.update(len(raw).to_bytes(8, "little") + raw)
  return digest.hexdigest()


def build(
  stream: Iterable[entities_lib.Sentence],
  names: Mapping[str, str] | None = None,
  *,
  drop_most_frequent: int | None = 100,
  min_count: int = 5,
  max_sentences: int | None = None,
) -> FeatureTable:
  """Counts the features of a corpus in one pass over it.

  Args:
    names: display names by entity id; the id where one is absent. Entities
      named here have a row even if no sentence mentions them. The mapping is
      read when the stream has ended, so a reader may fill it on the way.
    drop_most_frequent: how many of the most frequent features are dropped,
      equal counts by name; None for those that `feature_counts.spread_evenly`
      finds, whatever their number.
    min_count: features with a smaller sum over all entities are dropped.
    max_sentences: how many sentences of an entity count at most, the first
      ones; None for all.

  Returns:
    The table. A corpus of which no feature is left is an `InputError`.
  """
  names = {} if names is None else names
  held, ids = sentences_lib.collect(stream, names, max_sentences)
  if not len(held.documents):
    raise InputError("the corpus has no sentence that mentions an entity")
  lower = [token.lower() for token in held.vocabulary]
  index = {word: i for i, word in enumerate(dict.fromkeys(lower))}
  word = np.fromiter(map(index.__getitem__, lower), np.int32, len(lower))
  word[[not any(map(str.isalnum, token)) for token in lower]] = -1
  # Raw columns: words, then documents, then links.
  size, documents = len(index), len(held.document_names)
  link = np.where(word < 0, -1, word + (size + documents))
  raw = feature_counts.Columns(word, np.arange(size, size + documents), link)
  totals = feature_counts.totals(held, raw, 2 * size + documents)
  labels = [
    *(f"word:{x}" for x in index),
    *(f"doc:{x}" for x in held.document_names),
    *(f"link:{x}" for x in index),
  ]
  drop = drop_most_frequent or 0
  kept = feature_counts.prune(totals, labels, drop, min_count)
  block = np.searchsorted([size, size + documents], kept, side="right")
  order = sorted(
    range(len(kept)),
    key=lambda i: (block[i], -totals[kept[i]], labels[kept[i]]),
  )
  kept = kept[order]
  column = np.full(len(labels) + 1, -1, np.int32)  # The last is for -1.
  column[kept] = np.arange(len(kept))
  table = FeatureTable(
    feature_counts.entity_counts(
      held, feature_counts.Columns(*(column[x] for x in raw)), len(kept)
    ),
    ids,
    [names.get(entity, entity) for entity in ids],
    [labels[i] for i in kept.tolist()],
    held,
  )
  if drop_most_frequent is None:
    return table.take(~feature_counts.spread_evenly(table.counts))
  return table


def build_from_entities(
  pairs: Iterable[
    tuple[entities_lib.EntityInfo, Sequence[entities_lib.Sentence]]
  ],
  *,
  drop_most_frequent: int | None = 100,
  min_count: int = 5,
  max_sentences: int | None = None,
) -> FeatureTable:
  """Counts the features of entities that come with their sentences.

  Args:
    pairs: entities with sentences, as entity files and WordNet give them.
    drop_most_frequent: as for `build`.
    min_count: as for `build`.
    max_sentences: as for `build`.

  Returns:
    The table; entities without sentences have a row too.
  """
  names: dict[str, str] = {}

  def stream():
    for info, sentences in pairs:
      names[info.id] = info.name
      yield from sentences

  return build(
    stream(),
    names,
    drop_most_frequent=drop_most_frequent,
    min_count=min_count,
    max_sentences=max_sentences,
  )


def featurize(
  table: FeatureTable,
  sentences: Sequence[entities_lib.Sentence] | Sequence[str],
) -> scipy.sparse.csr_array:
  """The features of an entity from its sentences alone.

  Args:
    table: the table whose features count; others are passed over.
    sentences: the sentences that mention the entity, or their plain text,
      which has neither document nor links.

  Returns:
    The row that `build` gives an entity with these sentences, CSR float32
    [1, F].
  """
  if isinstance(sentences, str):
    raise InputError("expected a list of sentences, not one string")
  counts: collections.Counter[str] = collections.Counter()
  for sentence in sentences:
    if isinstance(sentence, str):
      sentence = entities_lib.Sentence("", entities_lib.tokenize(sentence))
    lower = [token.lower() for token in sentence.tokens]
    inside = {
      i
      for a, b, _ in sentence.mentions
      for i in range(max(a, 0), min(b, len(lower)))
    }
    counts.update(f"word:{x}" for x in lower)
    counts.update(f"link:{lower[i]}" for i in inside)
    if sentence.doc:
      counts[f"doc:{sentence.doc}"] += 1
  columns = table.columns
  pairs = sorted((columns[x], n) for x, n in counts.items() if x in columns)
  row = np.array(pairs, np.float64).reshape(-1, 2)
  return scipy.sparse.csr_array(
    (
      row[:, 1].astype(np.float32),
      row[:, 0].astype(np.int32),
      np.array([0, len(row)], np.int32),
    ),
    shape=(1, len(table.features)),
  )


def sentence_rows(
  table: FeatureTable, sentences: np.ndarray
) -> scipy.sparse.csr_array:
  """The features of stored sentences, each as the only one of an entity.

  Args:
    sentences: ids, int [s].

  Returns:
    CSR float32 [s, F], sorted columns.
  """
  features = feature_counts.sentence_features(
    table.sentences,
    np.asarray(sentences, np.int64),
    table._columns_of,
    len(table.features),
  )
  features.sum_duplicates()
  return features


def save(directory: files.Path, table: FeatureTable) -> None:
  """Stores a table in a directory, which appears when it is complete.

  Args:
    directory: where; a table that is there already is replaced.
  """
  held = table.sentences._asdict()
  arrays = {k: x for k, x in held.items() if isinstance(x, np.ndarray)}
  texts = {k: x for k, x in held.items() if k not in arrays}
  counts = table.counts
  arrays |= {
    "counts_data": counts.data.astype(np.float32, copy=False),
    "counts_indices": counts.indices.astype(np.int32, copy=False),
    "counts_indptr": counts.indptr.astype(np.int64, copy=False),
  }
  texts |= {
    "entities": table.entities,
    "names": table.names,
    "features": table.features,
  }
  store = arraystore.Store(arrays, texts, table.fingerprint)
  arraystore.write(directory, _KIND, store)


def load(directory: files.Path) -> FeatureTable:
  """Maps a stored table into memory.

  Args:
    directory: where `save` put it.

  Returns:
    The table; its arrays are read from the disk as they are used. A damaged
    one, or one whose features are not those it was made with, is an
    `InputError`.
  """
  arrays, texts, mark, _ = arraystore.read(directory, _KIND)
  try:
    if fingerprint(texts["features"]) != mark:
      raise arraystore.damaged(directory, "its features were changed")
    both: dict[str, Any] = arrays | texts
    held = sentences_lib.Sentences(
      *(both[name] for name in sentences_lib.Sentences._fields)
    )
    shape = len(texts["entities"]), len(texts["features"])
    if len(texts["names"]) != shape[0]:
      raise ValueError(f"it does not name {shape[0]} entities")
    sentences_lib.check(held, shape[0])
    counts = _mapped_counts(arrays, shape)
    return FeatureTable(
      counts, texts["entities"], texts["names"], texts["features"], held
    )
  except (IndexError, KeyError, TypeError, ValueError) as error:
    if isinstance(error, InputError):
      raise
    raise arraystore.damaged(directory, str(error)) from error


def _mapped_counts(
  arrays: Mapping[str, np.ndarray], shape: tuple[int, int]
) -> scipy.sparse.csr_array:
  """The matrix on mapped arrays; scipy's constructor would copy them."""
  data, indices, indptr = (
    np.asarray(arrays[f"counts_{name}"])
    for name in ("data", "indices", "indptr")
  )
  for part, kinds in ((data, "iuf"), (indices, "iu"), (indptr, "iu")):
    if part.ndim != 1 or part.dtype.kind not in kinds:
      raise ValueError("its counts have another form")
  if len(indptr) != shape[0] + 1 or not indptr[-1] == len(data) == len(indices):
    raise ValueError(f"its counts are not {shape[0]} rows")
  if indptr[0] or (np.diff(indptr) < 0).any():
    raise ValueError("its rows overlap")
  if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
    raise ValueError(f"its counts have more than {shape[1]} columns")
  counts = scipy.sparse.csr_array(shape, dtype=np.float32)
  small = len(indices) <= np.iinfo(np.int32).max
  counts.indptr = indptr.astype(np.int32) if small else indptr
  counts.data, counts.indices = data, indices
  counts.has_canonical_format = True
  return counts

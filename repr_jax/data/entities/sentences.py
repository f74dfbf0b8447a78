"""The sentences of a corpus as flat arrays, found by entity.

Every sentence is held once, however many entities it mentions, as ids of its
tokens; all arrays can be mapped from disk. Collecting a corpus runs Python
for each sentence and each mention, never for each pair of entity and token.
"""

import array
import collections
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from repr_jax.data import entities
from repr_jax.errors import InputError

_BEFORE = re.compile(r" (?=[,.;:!?)\]}%’']|'s\b)")
_AFTER = re.compile(r"(?<=[(\[{$]) ")


class Sentences(NamedTuple):
  """The sentences of X entities.

  Attributes:
    tokens: token ids one sentence after the other, int32 [T].
    starts: where each sentence begins, and the end, int64 [S + 1].
    linked: whether a token stands inside a linked mention, bool [T].
    documents: the document of each sentence, -1 for none, int32 [S].
    entity_starts: where each entity's part of `entity_sentences` begins, and
      the end, int64 [X + 1].
    entity_sentences: the sentences of each entity, rising, int32 [P].
    vocabulary: tokens by id, case kept.
    document_names: documents by id.
  """

  tokens: np.ndarray
  starts: np.ndarray
  linked: np.ndarray
  documents: np.ndarray
  entity_starts: np.ndarray
  entity_sentences: np.ndarray
  vocabulary: list[str]
  document_names: list[str]

  def of(self, entity: int) -> np.ndarray:
    """The sentences that mention an entity.

    Args:
      entity: its row.

    Returns:
      Sentence ids, int32 [n].
    """
    start, end = self.entity_starts[entity : entity + 2]
    return np.asarray(self.entity_sentences[start:end])

  def text(self, sentence: int) -> str:
    """A sentence to be read.

    Args:
      sentence: its id.

    Returns:
      Its tokens with blanks between, but none before punctuation.
    """
    start, end = self.starts[sentence : sentence + 2]
    ids = self.tokens[start:end].tolist()
    line = " ".join(map(self.vocabulary.__getitem__, ids))
    return _AFTER.sub("", _BEFORE.sub("", line))


def check(held: Sentences, entities: int) -> None:
  """Refuses arrays that do not fit one another, with a `ValueError`.

  Args:
    held: the sentences, as they were stored.
    entities: X.
  """
  for name, values in held._asdict().items():
    if not isinstance(values, np.ndarray):
      continue
    kinds = "b" if name == "linked" else "iu"
    if values.ndim != 1 or values.dtype.kind not in kinds:
      raise ValueError(f"{name} has another form")
  count = len(held.starts) - 1
  ids = (
    ("tokens", held.tokens, 0, len(held.vocabulary)),
    ("documents", held.documents, -1, len(held.document_names)),
    ("entity_sentences", held.entity_sentences, 0, count),
  )
  for name, values, least, most in ids:
    if len(values) and not least <= values.min() <= values.max() < most:
      raise ValueError(f"{name} points to what is not there")
  runs = (
    ("starts", held.starts, len(held.tokens)),
    ("entity_starts", held.entity_starts, len(held.entity_sentences)),
  )
  for name, starts, end in runs:
    if starts[0] or starts[-1] != end or (np.diff(starts) < 0).any():
      raise ValueError(f"{name} does not divide {end} entries")
  if (len(held.linked), len(held.documents), len(held.entity_starts)) != (
    len(held.tokens), count, entities + 1,
  ):  # fmt: skip
    raise ValueError("the sentences have arrays of other lengths")


def collect(
  stream: Iterable[entities.Sentence],
  known: Iterable[str] = (),
  max_sentences: int | None = None,
) -> tuple[Sentences, list[str]]:
  """Reads a corpus once.

  Args:
    stream: sentences; those without a mention are passed over.
    known: ids of entities that get a place even without a sentence; read
      after the stream has ended.
    max_sentences: how many sentences of an entity count, the first ones;
      None for all.

  Returns:
    The sentences, and the entities' ids in sorted order.
  """
  if max_sentences is not None and max_sentences < 1:
    raise InputError(f"max_sentences must be positive, not {max_sentences}")
  words, docs, ids = _Numbering(), _Numbering(), _Numbering()
  tokens, lengths, documents = (array.array("i") for _ in range(3))
  # Of each mention: entity, sentence, and its span within the sentence.
  owners, places, spans = (array.array("i") for _ in range(3))
  count = 0
  for sentence in stream:
    if not sentence.mentions:
      continue
    length = len(sentence.tokens)
    tokens.extend(map(words.__getitem__, sentence.tokens))
    lengths.append(length)
    documents.append(docs[sentence.doc] if sentence.doc else -1)
    for start, end, entity in sentence.mentions:
      if not 0 <= start <= end <= length:
        raise InputError(
          f"sentence {count + 1}: the mention of {entity!r} at {start} to "
          f"{end} lies outside its {length} tokens"
        )
      owners.append(ids[entity])
      places.append(count)
      spans.append(start)
      spans.append(end)
    count += 1
  for entity in known:
    ids[entity]
  starts = np.zeros(count + 1, np.int64)
  np.cumsum(np.frombuffer(lengths, np.int32), out=starts[1:])
  # Entities are numbered as they come; their rows follow the sorted ids.
  order = sorted(ids)
  row = np.empty(len(order), np.int64)
  row[[ids[entity] for entity in order]] = np.arange(len(order))
  place = np.frombuffer(places, np.int32)
  owner = row[np.frombuffer(owners, np.int32)]
  entity_starts, chosen = _by_entity(owner, place, len(order), max_sentences)
  collected = Sentences(
    np.array(tokens, np.int32),
    starts,
    _inside(starts, place, np.frombuffer(spans, np.int32).reshape(-1, 2)),
    np.array(documents, np.int32),
    entity_starts,
    chosen,
    list(words),
    list(docs),
  )
  return collected, order


class _Numbering(collections.defaultdict):
  """Numbers keys from 0 in the order in which they are first asked for."""

  def __init__(self) -> None:
    super().__init__()
    self.default_factory = self.__len__


def _by_entity(
  owner: np.ndarray, place: np.ndarray, count: int, most: int | None
) -> tuple[np.ndarray, np.ndarray]:
  """Groups distinct sentences by entity; at most `most` of each."""
  width = int(place[-1]) + 1 if len(place) else 1
  keys = np.unique(owner * width + place)
  owner, place = np.divmod(keys, width)
  starts = np.searchsorted(owner, np.arange(count + 1))
  if most is not None:
    kept = np.arange(len(owner)) - starts[owner] < most
    owner, place = owner[kept], place[kept]
    starts = np.searchsorted(owner, np.arange(count + 1))
  return starts.astype(np.int64), place.astype(np.int32)


def _inside(
  starts: np.ndarray, place: np.ndarray, spans: np.ndarray
) -> np.ndarray:
  """Marks the tokens that some span covers."""
  size = int(starts[-1])
  first = starts[place] + spans[:, 0]
  last = starts[place] + spans[:, 1]
  depth = np.bincount(first, minlength=size + 1)
  depth -= np.bincount(last, minlength=size + 1)
  return np.cumsum(depth[:size]) > 0

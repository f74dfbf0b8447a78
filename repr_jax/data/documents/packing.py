"""Documents as padded arrays in few shapes, for one call on many of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.data.documents import linked_documents
from repr_jax.data.documents.candidates import Candidates
from repr_jax.data.documents.linked_documents import LinkedDocument
from repr_jax.errors import InputError

_FLOOR = 1e-4  # a prior below this says no more than "rare"


class Packed(NamedTuple):
  """Documents of similar size; -1 marks absence in every array of ids.

  Attributes:
    candidates: rows of the entities' table, int32 [n, m, c].
    log_prior: log p(e|m), float32 [n, m, c].
    words: rows of the words' table around each mention, int32 [n, m, k].
    gold: place of the right candidate, int32 [n, m]; -1 where none is.
  """

  candidates: np.ndarray
  log_prior: np.ndarray
  words: np.ndarray
  gold: np.ndarray


class Group(NamedTuple):
  """Documents of one shape.

  Attributes:
    places: the index of each among the documents given, int64 [n].
    mentions: the number of each mention among those of all documents given,
      int64 [n, m]; -1 for padding.
    packed: their arrays.
  """

  places: np.ndarray
  mentions: np.ndarray
  packed: Packed


def pack(
  documents: Sequence[LinkedDocument],
  lists: Sequence[Sequence[Candidates]],
  entities: Mapping[str, int],
  words: Mapping[str, int],
  *,
  top: int = 30,
  context: int = 100,
  widths: Sequence[int] = (8, 16, 24, 32, 40, 48, 56, 64),
) -> list[Group]:
  """Pads documents to the smallest of a few widths that holds them.

  Args:
    lists: the candidates of each mention.
    entities: rows of the entities' table; candidates outside it are an
      `InputError`.
    words: rows of the words' table by word in lower case; unknown words are
      skipped.
    top: c, the most candidates of a mention.
    context: k, words around a mention, half on each side where there are
      as many.
    widths: numbers of mentions to pad to. A longer document is cut into
      independent parts of the last width.

  Returns:
    Groups by width. Mentions without candidates are omitted; evaluation must
    count them as errors.
  """
  if not widths or list(widths) != sorted(set(widths)) or widths[0] < 1:
    raise InputError(f"widths must rise from 1 or more: {tuple(widths)}")
  rows: dict[int, list[tuple[int, np.ndarray, Packed]]] = {}
  seen = 0
  for place, (document, listed) in enumerate(zip(documents, lists)):
    known = [i for i, own in enumerate(listed) if own]
    for low in range(0, len(known), widths[-1]):
      part = known[low : low + widths[-1]]
      width = next(w for w in widths if w >= len(part))
      shape = (width, top, context)
      one = _pack_one(document, listed, part, entities, words, shape)
      numbers = np.full(width, -1)
      numbers[: len(part)] = seen + np.asarray(part)
      rows.setdefault(width, []).append((place, numbers, one))
    seen += len(document.mentions)
  groups = []
  for width in sorted(rows):
    places, mentions, packed = zip(*rows[width])
    stacked = Packed(*(np.stack(field) for field in zip(*packed)))
    groups.append(Group(np.asarray(places), np.stack(mentions), stacked))
  return groups


def _pack_one(document, listed, part, entities, words, shape) -> Packed:
  width, top, context = shape
  packed = Packed(
    np.full((width, top), -1, np.int32),
    np.zeros((width, top), np.float32),
    np.full((width, context), -1, np.int32),
    np.full(width, -1, np.int32),
  )
  for row, place in enumerate(part):
    mention = document.mentions[place]
    for column, (entity, probability) in enumerate(listed[place][:top]):
      if entity not in entities:
        raise InputError(
          f"document {document.id!r}: the candidate {entity!r} of "
          f"{mention.surface!r} has no vector"
        )
      if not 0 <= probability < np.inf:
        raise InputError(
          f"document {document.id!r}: the candidate {entity!r} of "
          f"{mention.surface!r} has the probability {probability}"
        )
      packed.candidates[row, column] = entities[entity]
      packed.log_prior[row, column] = np.log(max(probability, _FLOOR))
      if entity == mention.entity:
        packed.gold[row] = column
    around = linked_documents.context(document, mention, context)
    known = [i for w in around if (i := words.get(w.lower(), -1)) >= 0]
    known = known[:context]
    packed.words[row, : len(known)] = known
  return packed


def batches(
  groups: Sequence[Group], cells: int, rng: np.random.Generator | None = None
) -> Iterator[tuple[np.ndarray, Packed]]:
  """Batches of one shape for each group, in random order.

  Args:
    cells: mentions in a batch, padding included; one document at least.
    rng: shuffles documents and batches; None keeps the order.

  Yields:
    The numbers of the mentions, int64 [b, m], and the arrays. Padding is -1;
    empty documents fill up the last batch of a group.
  """
  plan = []
  for number, group in enumerate(groups):
    count, width = group.packed.gold.shape
    size = min(max(1, cells // width), count)
    order = np.arange(count) if rng is None else rng.permutation(count)
    short = -count % size
    order = np.append(order, np.full(short, -1))
    plan += [(number, rows) for rows in order.reshape(-1, size)]
  if rng is not None:
    plan = [plan[i] for i in rng.permutation(len(plan))]
  for number, rows in plan:
    group, empty = groups[number], rows < 0
    taken = Packed(*(field[rows] for field in group.packed))
    for field in (taken.candidates, taken.words, taken.gold):
      field[empty] = -1
    yield np.where(empty[:, None], -1, group.mentions[rows]), taken

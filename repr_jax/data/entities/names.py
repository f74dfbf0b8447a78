"""Entities by what people call them, and the nearest names otherwise."""

import difflib
import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from repr_jax.errors import InputError

if TYPE_CHECKING:
  from repr_jax.data.entities.features import FeatureTable

_CLOSE = 100  # How many names are compared letter by letter.
_LEAST = 0.4  # Names that are less alike are not suggested.
_OF_WORD = 0.95  # A name counts more than a word of a longer one.
_OCCURRENCES = 5_000  # How many names that begin alike are put in order.
_SMALL = frozenset(["of", "the", "in", "at", "on", "for", "and", "de", "la"])
_CHOICES = 5  # Entities of similar names that a message distinguishes,
_SHOWN = 60  # by so many characters of a sentence.
_LONGEST = 100  # Characters of an unknown name that are looked at.


class NameIndex:
  """Names to be found in any case, and by likeness."""

  def __init__(self, names: Sequence[str]):
    """Makes an index, in well under a second for 80,000 names.

    Args:
      names: the names, [n].
    """
    # One pass over one text: a loop over the names takes ten times as long.
    text = "\n".join(names)
    if text.count("\n") > len(names) - 1:
      text = "\n".join(name.replace("\n", " ") for name in names)
    text = _key(text).replace(" \n", "\n").replace("\n ", "\n").strip(" ")
    self._keys = text.split("\n") if names else []
    self._text = f"\n{text}\n"
    lengths = np.fromiter(map(len, self._keys), np.int64, len(self._keys))
    self._lengths = lengths + 1
    self._ends = np.cumsum(self._lengths)

  def prepare(self) -> None:
    """Builds the index now, so that the first search is as fast as others."""
    _ = self._places, self._postings

  @functools.cached_property
  def _places(self) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, key in enumerate(self._keys):
      places.setdefault(key, []).append(place)
    return places

  @functools.cached_property
  def _postings(self) -> tuple[np.ndarray, np.ndarray]:
    """Trigrams in order, and the place of the name that each is in."""
    codes = _trigrams(self._text.replace("\n", " "))
    places = np.arange(len(self._keys), dtype=np.int32)
    owner = np.repeat(places, self._lengths)[: len(codes)]
    order = np.argsort(codes)
    return codes[order], owner[order]

  def find(self, name: str) -> list[int]:
    """Places of a name, whatever its case.

    Returns:
      All its places, rising.
    """
    return list(self._places.get(_key(name).strip(), ()))

  def with_word(self, text: str, last: bool = False) -> list[int]:
    """Longer names of which a text is a word, or words.

    Args:
      text: the words, whatever their case.
      last: whether they must be the last, after no small word: "Lincoln" is
        the last of "Abraham Lincoln", but not of "Battle of Lincoln".

    Returns:
      Places, rising.
    """
    key = _key(text).replace("\n", " ").strip()
    if not key:
      return []
    places = self._after(f" {key}\n")
    if last:
      before = (self._keys[x][: -len(key)].split()[-1:] for x in places)
      kept = [x for x, y in zip(places, before) if y and y[0] not in _SMALL]
      return sorted(set(map(int, kept)))
    return sorted(
      {
        int(x)
        for wanted in (f"\n{key} ", f" {key} ")
        for x in self._after(wanted)
      }
      | set(map(int, places))
    )

  def begin(self, text: str, count: int = 10) -> list[int]:
    """Names that begin with a text, then names with a later word that does.

    Args:
      text: what was typed so far.
      count: how many to give at most.

    Returns:
      Places; the shortest names first in both parts.
    """
    key = _key(text).replace("\n", " ").lstrip()
    if not key.strip():
      return []
    chosen: list[int] = []
    for before in ("\n", " ", "-"):
      more = np.setdiff1d(self._after(before + key), chosen)
      order = np.argsort(self._lengths[more], kind="stable")
      chosen += more[order[: count - len(chosen)]].tolist()
      if len(chosen) >= count:
        break
    return chosen

  def _after(self, wanted: str) -> np.ndarray:
    """Places of the names in which a text occurs, the first few thousand."""
    positions: list[int] = []
    at = self._text.find(wanted)
    while at >= 0 and len(positions) < _OCCURRENCES:
      positions.append(at)
      at = self._text.find(wanted, at + 1)
    return np.searchsorted(self._ends, positions, side="right")

  def suggest(self, name: str, count: int = 5) -> list[int]:
    """The names nearest to an unknown name.

    The names with most letter trigrams in common are ranked by `difflib`. Each
    is compared as it is and with its words sorted; the better value counts. One
    word is also compared with the words of longer names.

    Args:
      count: how many to give at most.

    Returns:
      Places, the nearest first; none where nothing is alike.
    """
    key = _key(name).strip()[:_LONGEST].replace("\n", " ")
    wanted = np.unique(_trigrams(f" {key} "))
    if not self._keys or not len(wanted):
      return []
    codes, owner = self._postings
    first = np.searchsorted(codes, wanted)
    last = np.searchsorted(codes, wanted, side="right")
    hits = [owner[a:b] for a, b in zip(first.tolist(), last.tolist())]
    shared = np.bincount(np.concatenate(hits), minlength=len(self._keys))
    lengths = self._lengths
    if " " not in key:  # it may be a word of a longer name
      lengths = np.minimum(lengths, 2 * len(wanted))
    alike = np.minimum(2 * shared / (lengths + len(wanted)), 1)
    near = np.argsort(-alike, kind="stable")[:_CLOSE]
    best = np.zeros(len(near))
    for order in (str, _sorted_words):  # "Obama Barack" is close too.
      matcher = difflib.SequenceMatcher(autojunk=False)
      matcher.set_seq2(order(key))
      for i, place in enumerate(near.tolist()):
        matcher.set_seq1(order(self._keys[place][:_LONGEST]))
        best[i] = max(best[i], matcher.ratio())
    if " " not in key:
      for i, place in enumerate(near.tolist()):
        for word in self._keys[place][:_LONGEST].split():
          matcher.set_seq1(word)
          best[i] = max(best[i], _OF_WORD * matcher.ratio())
    ranked = np.lexsort((near, -best))[:count]
    return [int(near[i]) for i in ranked if best[i] > _LEAST]


def choices(table: "FeatureTable", name: str) -> list[int]:
  """The entities that a name may mean: the one resolver of names.

  An id means its entity. A full name means the entity that has it, unless
  others have it as their last word and as many sentences ("Lincoln"). Else
  the name may be the last word of a name ("Mozart"), or some word of it.

  Args:
    name: an id, a name, or a part of one, in any case.

  Returns:
    Rows, those with most sentences first: one row if the name is unambiguous,
    none if no name has these words.
  """
  if name in table.rows:
    return [table.rows[name]]
  index = table.name_index
  sizes = np.diff(table.sentences.entity_starts)
  rows = index.find(name)
  longer = index.with_word(name, last=True)
  if rows:
    least = max(sizes[row] for row in rows)
    rows = rows + [row for row in longer if sizes[row] >= least]
  else:
    rows = longer or index.with_word(name)
  return sorted(dict.fromkeys(rows), key=lambda row: (-sizes[row], row))


def tell_apart(table: "FeatureTable", rows: Sequence[int]) -> str:
  """Entities of like names with ids and the beginning of a sentence."""
  shown = []
  for row in rows[:_CHOICES]:
    sentences = table.sentences.of(row)
    text = table.sentences.text(int(sentences[0])) if len(sentences) else ""
    text = text if len(text) <= _SHOWN else text[:_SHOWN].rstrip() + "..."
    shown.append(f"{table.names[row]!r} ({table.entities[row]}: {text})")
  more = f" and {len(rows) - _CHOICES} more" if len(rows) > _CHOICES else ""
  return ", ".join(shown) + more


def resolve_names(table: "FeatureTable", names: Sequence[str]) -> np.ndarray:
  """Finds entities by id or by name.

  Args:
    names: ids, or display names or words of them in any case, [n]; see
      `choices`. An id is taken as such even if it is also a name.

  Returns:
    Rows of the table, int32 [n]. A name that is unknown is an `InputError`
    with the nearest names, one that several entities may have is an
    `InputError` with their ids and what tells them apart. The error lists the
    first few such names.
  """
  meant = [choices(table, name) for name in names]
  wrong = [
    _explain(table, name, rows)
    for name, rows in zip(names, meant)
    if len(rows) != 1
  ]
  if wrong:
    raise InputError("; ".join(wrong[:_CHOICES]))
  return np.array([rows[0] for rows in meant], np.int32)


def _explain(table: "FeatureTable", name: str, rows: Sequence[int]) -> str:
  """Why a name means no entity, or several."""
  if rows:
    return (
      f"{len(rows)} entities may be called {name[:_LONGEST]!r}: "
      f"{tell_apart(table, rows)}; give one of these ids instead"
    )
  near = [
    f"{table.names[row]!r} ({table.entities[row]})"
    for row in table.name_index.suggest(name)
  ]
  hint = f"; the nearest are {', '.join(near)}" if near else ""
  return f"no entity is called {name[:_LONGEST]!r}{hint}"


def _key(text: str) -> str:
  """Case and the length of blanks do not count, underscores are blanks."""
  text = text.casefold().replace("_", " ")
  return re.sub(" {2,}", " ", text) if "  " in text else text


def _sorted_words(key: str) -> str:
  return " ".join(sorted(key.split()))


def _trigrams(text: str) -> np.ndarray:
  """Each run of three characters as one number, int64 [len(text) - 2]."""
  raw = text.encode("utf-32-le", "surrogatepass")
  points = np.frombuffer(raw, np.uint32).astype(np.int64)
  return (points[:-2] << 42) | (points[1:-1] << 21) | points[2:]

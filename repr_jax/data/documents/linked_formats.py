"""Public tables of linked documents: AIDA CoNLL-YAGO, Ganea and Hofmann.

AIDA has a token on each line; a mention's tokens have the columns B or I, the
mention, its YAGO entity or --NME--, and the address of the article:

    -DOCSTART- (1 EU)
    EU    B    EU    --NME--
    rejects
    German    B    German    Germany    http://en.wikipedia.org/wiki/Germany

Ganea and Hofmann have a mention on each line, with the words before and after
it, its candidates with p(e|m), and the gold one's place among them or -1:

    d1  d1  EU  left words  right words  CANDIDATES  9317,0.9,European Union
      ...  GT:  0,9317,0.9,European Union

AIDA's public file holds training, development and test documents: `aida_part`
tells them apart.
"""

import re
import urllib.parse
from collections.abc import Iterator

from repr_jax import errors
from repr_jax.data.documents import wikitext
from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)
from repr_jax.data.io import files

_START = "-DOCSTART-"
_NIL = "--NME--"
_ADDRESS = "/wiki/"
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_PART = re.compile(r"\d+(testa|testb)\b")

AIDA_PARTS = ("train", "testa", "testb")


def aida_part(name: str) -> str:
  """The part of AIDA that a document belongs to.

  Args:
    name: its id, as "1 EU", "947testa CRICKET" or "1163testb SOCCER".

  Returns:
    One of `AIDA_PARTS`.
  """
  match = _PART.match(name)
  return match.group(1) if match else "train"


def read_aida(path: files.Path) -> Iterator[LinkedDocument]:
  """Streams the documents of a file in the form of AIDA CoNLL-YAGO.

  Args:
    path: the file, whose columns are separated by tabs.

  Yields:
    The documents. An entity is the title in the article's address, or else
    the YAGO name with blanks and without escapes; --NME-- gives None. Text
    before the first -DOCSTART-, an I without a B and a missing column are
    `InputError`s.
  """
  builder: _Aida | None = None
  for line, text in files.numbered_lines(path):
    if text.startswith(_START):
      if builder is not None:
        yield builder.finish()
      builder = _Aida(text.removeprefix(_START).strip().strip("()"))
      continue
    try:  # Hot: `errors.placed` takes longer than a token.
      if builder is None:
        raise errors.InputError(f"a token stands before the first {_START}")
      builder.add(text.split("\t"))
    except errors.InputError as error:
      raise errors.InputError(str(error), path=path, line=line) from error
  if builder is None:
    raise errors.InputError(f"has no line {_START}: is it AIDA?", path=path)
  yield builder.finish()


class _Aida:
  """A document of AIDA that is being read."""

  def __init__(self, name: str):
    self._name = name
    self._tokens: list[str] = []
    self._mentions: list[LinkedMention] = []
    self._open = False

  def add(self, columns: list[str]) -> None:
    """Adds one line."""
    if not columns[0].strip():
      raise errors.InputError("the token is empty")
    self._tokens.append(columns[0])
    place = len(self._tokens)
    kind = columns[1].strip() if len(columns) > 1 else ""
    if not kind:
      self._open = False
      return
    if kind not in ("B", "I") or len(columns) < 4:
      raise errors.InputError(
        "expected four fields separated by tabs: token, B or I, mention, entity"
      )
    if kind == "B":
      new = LinkedMention(place - 1, place, columns[2], _aida_entity(columns))
      self._mentions.append(new)
    elif not self._open:
      raise errors.InputError(
        f"the mention {columns[2]!r} goes on with I, but none has begun with B"
      )
    else:
      self._mentions[-1] = self._mentions[-1]._replace(end=place)
    self._open = True

  def finish(self) -> LinkedDocument:
    """The whole document."""
    return LinkedDocument(
      self._name, tuple(self._tokens), tuple(self._mentions)
    )


def _aida_entity(columns: list[str]) -> str | None:
  name = columns[3].strip()
  if name == _NIL:
    return None
  name = _ESCAPES.sub(_unescape, name)
  if len(columns) > 4 and _ADDRESS in columns[4]:
    name = urllib.parse.unquote(columns[4].partition(_ADDRESS)[2])
  title = wikitext.normal_title(name)
  if not title:
    raise errors.InputError(f"the mention {columns[2]!r} has no entity")
  return title


def _unescape(match: re.Match[str]) -> str:
  """The text that UTF-16 escapes stand for, if it is printable."""
  units = bytes.fromhex(match.group().replace("\\u", ""))
  text = units.decode("utf-16-be", "replace")
  seen = text.isprintable() and "\ufffd" not in text
  return text if seen else match.group()


def read_ganea(path: files.Path) -> Iterator[LinkedDocument]:
  """Streams documents from the tables of Ganea and Hofmann (2017).

  Args:
    path: the file; the mentions of a document stand one after the other.

  Yields:
    The documents. Each mention has its own stretch of text as its context, and
    the file's candidates. Candidates with equal normalized titles are merged.
  """
  name, rows = None, []
  for line, text in files.numbered_lines(path):
    with errors.placed(path, line):
      document, row = _ganea_row(text.split("\t"))
    if name is not None and document != name:
      yield _stretches(name, rows)
      rows = []
    name = document
    rows.append(row)
  if name is None:
    raise errors.InputError("has no mentions", path=path)
  yield _stretches(name, rows)


_Row = tuple[list[str], LinkedMention, list[str]]


def _ganea_row(columns: list[str]) -> tuple[str, _Row]:
  """A line as its document, and the mention between its words."""
  while columns and not columns[-1].strip():
    columns = columns[:-1]  # Some writers end a line in a tab.
  if len(columns) < 9 or columns[5] != "CANDIDATES" or columns[-2] != "GT:":
    raise errors.InputError(
      "expected document twice, mention, left and right words, CANDIDATES, "
      "candidates, GT: and the gold one, separated by tabs"
    )
  surface = columns[2]
  left, right = ([] if x == "EMPTYCTXT" else x.split() for x in columns[3:5])
  listed = [] if columns[6] == "EMPTYCAND" else columns[6:-2]
  candidates: dict[str, float] = {}
  for title, probability in map(_ganea_candidate, listed):
    candidates[title] = min(1.0, candidates.get(title, 0) + probability)
  gold = columns[-1].split(",", 2 if columns[-1].startswith("-1") else 3)
  entity = None
  if gold[0] != "-1":
    if not _whole(gold[0]) or int(gold[0]) > len(listed):
      raise errors.InputError(
        f"{columns[-1]!r} is not the place of a candidate"
      )
    # Some writers count the candidates from 0, some from 1: the name decides.
    entity = gold[-1] if len(gold) == 4 else None
  elif len(gold) == 3:
    entity = gold[-1]
  if entity is not None:
    entity = wikitext.normal_title(entity)
    if not entity:
      raise errors.InputError(f"{columns[-1]!r} names no entity")
  start = len(left)
  mention = LinkedMention(
    start, start, surface, entity, tuple(candidates.items())
  )
  return columns[0], (left, mention, right)


def _ganea_candidate(item: str) -> tuple[str, float]:
  number, _, rest = item.partition(",")
  value, comma, title = rest.partition(",")
  try:
    probability = float(value)
  except ValueError:
    probability = -1.0
  title = wikitext.normal_title(title)
  if not comma or not title or not 0 <= probability <= 1:
    raise errors.InputError(
      f"{item[:60]!r} is not a candidate id,probability,title"
    )
  del number
  return title, probability


def _whole(number: str) -> bool:
  return number.isascii() and number.isdigit() and len(number) < 10


def _stretches(name: str, rows: list[_Row]) -> LinkedDocument:
  """A document of one stretch of text for each mention."""
  tokens: list[str] = []
  mentions, breaks = [], []
  for left, mention, right in rows:
    breaks.append(len(tokens))
    start = len(tokens) + len(left)
    own = mention.surface.split()
    tokens += [*left, *own, *right]
    mentions.append(mention._replace(start=start, end=start + len(own)))
  return LinkedDocument(name, tuple(tokens), tuple(mentions), tuple(breaks))

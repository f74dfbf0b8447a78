"""Corpora of entities: sentences in which entities are mentioned.

Two forms of file are read, one JSON object on each line, plain or compressed:

    {"doc": "d1", "text": "Bach wrote fugues.",
     "mentions": [{"start": 0, "end": 4, "entity": "bach"}]}
    {"id": "bach", "name": "J. S. Bach", "sentences": ["bach wrote fugues"]}

The offsets of a mention count characters of "text", or tokens where "tokens"
stands instead of "text". A mention of length 0 marks a sentence about the
entity that does not name it. See `wordnet.instances` and `wikipedia` for other
sources.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from repr_jax import errors
from repr_jax.data.io import files, json_files

Mention = tuple[int, int, str]

_TOKEN = re.compile(
  r"""(?:[^\W\d_]\.){2,}         # initials: U.S.
  | \d+(?:[.,]\d+)*[^\W\d_]*     # numbers: 1,200 and 19th
  | ['’]s\b                      # the genitive's ending
  | \w+(?:['’](?!s\b)\w+)*       # words: O'Keeffe
  | [^\w\s]                      # punctuation""",
  re.VERBOSE,
)


class Sentence(NamedTuple):
  """A sentence with its linked mentions.

  Attributes:
    doc: the document it stands in, "" where there is none.
    tokens: its tokens, case kept.
    mentions: (start, end, entity id) with the span in tokens, end exclusive;
      an empty span says that the sentence is about the entity.
  """

  doc: str
  tokens: tuple[str, ...]
  mentions: tuple[Mention, ...] = ()


class EntityInfo(NamedTuple):
  """An entity.

  Attributes:
    id: what mentions refer to.
    name: what people are shown.
  """

  id: str
  name: str


class NameFinder:
  """Finds names of several tokens in sentences, the longest first."""

  def __init__(self, names: Mapping[tuple[str, ...], str]):
    """Makes a finder.

    Args:
      names: entity ids by the tokens of the name, case kept.
    """
    self._names = {name: entity for name, entity in names.items() if name}
    lengths: dict[str, set[int]] = {}
    for name in self._names:
      lengths.setdefault(name[0], set()).add(len(name))
    self._lengths = {
      first: sorted(counts, reverse=True) for first, counts in lengths.items()
    }

  def may_find(self, text: str) -> bool:
    """Whether a text holds the first token of a name; quicker than `find`.

    Args:
      text: text that is not yet split into tokens.

    Returns:
      False where `find` would certainly find nothing.
    """
    return not self._lengths.keys().isdisjoint(_TOKEN.findall(text))

  def find(self, tokens: tuple[str, ...]) -> list[Mention]:
    """The names in a sentence, from left to right, none inside another."""
    mentions, at = [], 0
    while at < len(tokens):
      step = 1
      for length in self._lengths.get(tokens[at], ()):
        name = tokens[at : at + length]  # Shorter at the sentence's end.
        if name in self._names:
          step = len(name)
          mentions.append((at, at + step, self._names[name]))
          break
      at += step
    return mentions


def tokenize(text: str) -> tuple[str, ...]:
  """Splits text into words, numbers and single marks of punctuation.

  Args:
    text: any text; hyphens part words, apostrophes do not.

  Returns:
    The tokens, case kept.
  """
  return tuple(_TOKEN.findall(text))


def sentence_from_text(
  text: str, spans: Iterable[Mention] = (), doc: str = ""
) -> Sentence:
  """Tokenizes a sentence so that no token crosses the edge of a mention.

  Args:
    spans: (start, end, entity id) in characters, inside the text.
    doc: the document's id.
  """
  spans = tuple(spans)
  edges = {edge for start, end, _ in spans for edge in (start, end)}
  tokens: list[str] = []
  place = {}
  before = 0
  for edge in sorted(edges):
    tokens += _TOKEN.findall(text[before:edge])
    place[edge] = len(tokens)
    before = edge
  tokens += _TOKEN.findall(text[before:])
  mentions = tuple((place[start], place[end], e) for start, end, e in spans)
  return Sentence(doc, tuple(tokens), mentions)


def read_sentences(path: files.Path) -> Iterator[Sentence]:
  """Streams sentences with linked mentions.

  Args:
    path: a file of JSON lines with "tokens" or "text", "mentions" (each with
      "start", "end" and "entity") and possibly "doc"; other fields are passed
      over, and so are blank lines.

  Yields:
    The sentences. A line that cannot be used, or a file without any, is an
    `InputError`.
  """
  for line, record in json_files.read_objects(path, "lines to read"):
    with errors.placed(path, line):
      sentence = _sentence(record)
    yield sentence


def read_entity_file(
  path: files.Path,
) -> Iterator[tuple[EntityInfo, list[Sentence]]]:
  """Streams entities with the sentences that mention each.

  The entity's name is looked for in its sentences, whatever the case, and is
  the mention; where it is not found, the mention has no length.

  Args:
    path: a file of JSON lines with "id", "sentences" (texts, or objects as in
      `read_sentences`) and possibly "name", which is the id otherwise.

  Yields:
    Each entity with its sentences. A line that cannot be used, an id that
    occurs twice, or a file without entities is an `InputError`.
  """
  seen: dict[str, int] = {}
  for line, record in json_files.read_objects(path, "lines to read"):
    with errors.placed(path, line):
      info, sentences = _entity(record)
      if info.id in seen:
        raise errors.InputError(
          f"entity {info.id!r} was already on line {seen[info.id]}"
        )
    seen[info.id] = line
    yield info, sentences


def _sentence(record: dict[str, Any]) -> Sentence:
  """One record of the form that `read_sentences` describes."""
  doc = record.get("doc")
  doc = "" if doc is None else _string(doc, '"doc"')
  mentions = record.get("mentions", [])
  if not isinstance(mentions, list):
    raise errors.InputError('"mentions" is not a list')
  if ("tokens" in record) == ("text" in record):
    raise errors.InputError('expected either "tokens" or "text"')
  if "text" in record:
    text = _string(record["text"], '"text"')
    spans = [_mention(m, len(text), "characters") for m in mentions]
    return sentence_from_text(text, spans, doc)
  tokens = record["tokens"]
  if not isinstance(tokens, list) or not all(
    isinstance(token, str) for token in tokens
  ):
    raise errors.InputError('"tokens" is not a list of strings')
  spans = [_mention(m, len(tokens), "tokens") for m in mentions]
  return Sentence(doc, tuple(tokens), tuple(spans))


def _mention(record: Any, length: int, unit: str) -> Mention:
  """One mention, checked against the length of its sentence."""
  if not isinstance(record, dict) or "entity" not in record:
    raise errors.InputError(
      'a mention must be an object with "start", "end" and "entity"'
    )
  entity = _name(record["entity"], 'the "entity" of a mention')
  start, end = record.get("start"), record.get("end")
  # A bool is an int to Python, but no offset.
  if type(start) is not int or type(end) is not int:
    raise errors.InputError(
      f'the mention of {entity!r} needs whole numbers as "start" and "end"'
    )
  if not 0 <= start <= end <= length:
    raise errors.InputError(
      f"the mention of {entity!r} at {start} to {end} lies outside the "
      f"sentence, which has {length} {unit}"
    )
  return start, end, entity


def _entity(record: dict[str, Any]) -> tuple[EntityInfo, list[Sentence]]:
  """One record of the form that `read_entity_file` describes."""
  if "id" not in record or not isinstance(record.get("sentences"), list):
    raise errors.InputError('expected "id" and a list of "sentences"')
  entity = _name(record["id"], '"id"')
  name = record.get("name")
  name = entity if name is None else _name(name, '"name"')
  wanted = tuple(token.lower() for token in tokenize(name))
  finder = NameFinder({wanted: entity})
  sentences = []
  for item in record["sentences"]:
    if isinstance(item, str):
      sentence = Sentence("", tokenize(item))
    elif isinstance(item, dict):
      sentence = _sentence(item)
    else:
      raise errors.InputError(f"a sentence of {entity!r} is not a text")
    if all(mention[2] != entity for mention in sentence.mentions):
      lower = tuple(token.lower() for token in sentence.tokens)
      own = finder.find(lower) or [(0, 0, entity)]
      sentence = sentence._replace(mentions=(*sentence.mentions, *own))
    sentences.append(sentence)
  return EntityInfo(entity, name), sentences


def _string(value: Any, what: str) -> str:
  """A text or a whole number as text; ids are often numbers."""
  if type(value) is int:
    return str(value)
  if not isinstance(value, str):
    raise errors.InputError(f"{what} is not a string")
  return value


def _name(value: Any, what: str) -> str:
  """As `_string`, but not blank."""
  name = _string(value, what)
  if not name.strip():
    raise errors.InputError(f"{what} is empty")
  return name

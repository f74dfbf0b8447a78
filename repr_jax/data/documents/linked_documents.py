"""Documents whose mentions are linked to entities, in one form.

Read from JSON lines with offsets in characters,

    {"doc_id": "d1", "text": "Bach was born in Eisenach.",
     "mentions": [{"start": 0, "end": 4, "surface": "Bach",
                   "wikipedia_title": "Johann Sebastian Bach"}],
     "unlinked_mentions": [{"start": 17, "end": 25}]}

or, without "text", from lists of mentions in the order of a text that may not
be distributed; the text is then the mentions one after the other. See
`linked_formats` for the tables of AIDA CoNLL-YAGO and of Ganea and Hofmann.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from repr_jax import errors
from repr_jax.data import entities
from repr_jax.data.documents import wikitext
from repr_jax.data.io import files, json_files


class LinkedMention(NamedTuple):
  """A mention in a document.

  Attributes:
    start: its first token.
    end: the token after its last.
    surface: its text.
    entity: what it refers to; None where that is not in the knowledge base.
    candidates: (entity, p(entity | mention)) where the file itself has them,
      None where it does not.
  """

  start: int
  end: int
  surface: str
  entity: str | None
  candidates: tuple[tuple[str, float], ...] | None = None


class LinkedDocument(NamedTuple):
  """A document.

  Attributes:
    id: its name.
    tokens: its tokens, case kept.
    mentions: by their places; they may overlap.
    breaks: tokens before which a new stretch of text begins; contexts do not
      cross them.
  """

  id: str
  tokens: tuple[str, ...]
  mentions: tuple[LinkedMention, ...]
  breaks: tuple[int, ...] = ()


def context(
  document: LinkedDocument, mention: LinkedMention, window: int
) -> tuple[str, ...]:
  """The tokens around a mention, nearest first.

  Args:
    window: how many tokens to take on each side at most.

  Returns:
    Tokens from both sides in turn; the mention's own are left out.
  """
  low = max((b for b in document.breaks if b <= mention.start), default=0)
  high = min(
    (b for b in document.breaks if b >= max(mention.end, 1)),
    default=len(document.tokens),
  )
  left = document.tokens[max(low, mention.start - window) : mention.start]
  right = document.tokens[mention.end : min(high, mention.end + window)]
  words: list[str] = []
  for step in range(max(len(left), len(right))):
    words += left[len(left) - step - 1 : len(left) - step]
    words += right[step : step + 1]
  return tuple(words)


def read_documents(
  path: files.Path,
  titles: Mapping[str, str] | None = None,
  *,
  as_titles: bool = False,
) -> Iterator[LinkedDocument]:
  """Streams documents from JSON lines.

  Args:
    path: the file, plain or compressed. "mentions" have "start" and "end" in
      characters, perhaps "surface", and "wikipedia_title", "wikidata_id" or
      "entity". A mention whose title is null, or that is listed in
      "unlinked_mentions", has no entity.
      Titles are written as articles have them, see `wikitext.normal_title`;
      an "entity", which may be an id of another kind, has single blanks for
      underscores but keeps its case.
    titles: titles by Wikidata id for mentions that have only the latter; an
      id that is not there stands for itself.
    as_titles: whether an "entity" begins with a capital too, as the titles of
      articles and of a prior do.

  Yields:
    The documents. Offsets outside the text, a surface that does not stand
    there, one span with two entities and a line that is no such object are
    `InputError`s.
  """
  for line, record in json_files.read_objects(path, "documents"):
    with errors.placed(path, line):
      document = _document(record, titles or {}, as_titles)
    yield document


def read_titles(paths: Iterable[files.Path]) -> dict[str, str]:
  """Titles by Wikidata id, from mentions that have both.

  Args:
    paths: files as `read_documents` reads.

  Returns:
    For each id the title most often given; the first in the order of letters
    where two are given as often.
  """
  seen: dict[str, dict[str, int]] = {}
  for path in paths:
    for line, record in json_files.read_objects(path, "documents"):
      with errors.placed(path, line):
        for mention in mention_list(record, "mentions"):
          title = mention_name(mention, "wikipedia_title")
          name = mention_name(mention, "wikidata_id")
          if title and name:
            counts = seen.setdefault(name, {})
            counts[title] = counts.get(title, 0) + 1
  return {
    name: wikitext.normal_title(min(counts, key=lambda t: (-counts[t], t)))
    for name, counts in seen.items()
  }


def make_document(
  name: str,
  text: str,
  spans: Iterable[tuple[int, int, str | None]],
) -> LinkedDocument:
  """A document from text and spans in characters.

  Args:
    name: the document's id.
    spans: (start, end, entity or None), inside the text, not empty.

  Returns:
    The document; the same span given twice counts once.
  """
  known: dict[tuple[int, int], str | None] = {}
  for start, end, entity in spans:
    check_span(name, text, start, end)
    if known.setdefault((start, end), entity) != entity:
      raise errors.InputError(
        f"document {name!r}: the mention {text[start:end]!r} at {start} has "
        f"two entities, {known[start, end]!r} and {entity!r}"
      )
  ordered = sorted(known)
  numbered = [(a, b, str(i)) for i, (a, b) in enumerate(ordered)]
  sentence = entities.sentence_from_text(text, numbered, name)
  mentions = tuple(
    LinkedMention(start, end, text[slice(*span)], known[span])
    for (start, end, _), span in zip(sentence.mentions, ordered)
  )
  return LinkedDocument(name, sentence.tokens, mentions)


def check_span(name: str, text: str, start: int, end: int) -> None:
  """Refuses a mention that is empty or outside the text, by an `InputError`.

  Args:
    name: the document's id, for the message.
    text: its text.
    start: the mention's first character.
    end: the character after its last.
  """
  if not 0 <= start < end <= len(text):
    raise errors.InputError(
      f"document {name!r}: the mention at {start} to {end} lies outside the "
      f"text, which has {len(text)} characters, or is empty"
    )


def joined_mentions(
  name: str, mentions: Iterable[tuple[str, str | None]]
) -> LinkedDocument:
  """A document whose text is its mentions, one after the other.

  Args:
    name: the document's id.
    mentions: (surface, entity or None) in the order of the text.
  """
  tokens: list[str] = []
  joined = []
  for surface, entity in mentions:
    start = len(tokens)
    tokens += entities.tokenize(surface)
    joined.append(LinkedMention(start, len(tokens), surface, entity))
  return LinkedDocument(name, tuple(tokens), tuple(joined))


def _document(
  record: dict[str, Any], titles: Mapping[str, str], as_titles: bool
) -> LinkedDocument:
  """One line of `read_documents`."""
  name = record.get("doc_id", record.get("doc", ""))
  if type(name) not in (str, int):
    raise errors.InputError('"doc_id" is not a text')
  name = str(name)
  linked = mention_list(record, "mentions")
  unlinked = mention_list(record, "unlinked_mentions")
  if "text" not in record:
    return joined_mentions(
      name, [(_surface(m), _entity(m, titles, as_titles)) for m in linked]
    )
  text = record["text"]
  if not isinstance(text, str):
    raise errors.InputError('"text" is not a string')
  spans = [
    (*mention_span(m, text), _entity(m, titles, as_titles)) for m in linked
  ]
  spans += [(*mention_span(m, text), None) for m in unlinked]
  return make_document(name, text, spans)


def mention_list(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
  """Mentions of a document's record under a key; [] for nothing or null.

  Args:
    record: the record.
    key: the key. A value that is no list of objects is an `InputError`.
  """
  values = record.get(key) or []
  if not isinstance(values, list) or not all(
    isinstance(x, dict) for x in values
  ):
    raise errors.InputError(f'"{key}" is not a list of objects')
  return values


def _surface(mention: dict[str, Any]) -> str:
  if not isinstance(mention.get("surface"), str):
    raise errors.InputError('a mention without "text" needs a "surface"')
  return mention["surface"]


def mention_span(mention: dict[str, Any], text: str) -> tuple[int, int]:
  """A mention's offsets, which may lie outside the text.

  Args:
    mention: its record.
    text: the text. A "surface" that does not stand there is an `InputError`.
  """
  start, end = mention.get("start"), mention.get("end")
  # A bool is an int to Python, but no offset.
  if type(start) is not int or type(end) is not int:
    raise errors.InputError('a mention needs whole numbers as "start", "end"')
  surface = mention.get("surface")
  if 0 <= start < end <= len(text) and surface not in (None, text[start:end]):
    raise errors.InputError(
      f"the mention {surface!r} does not stand at {start} to {end}, where the "
      f"text has {text[start:end]!r}; offsets count characters"
    )
  return start, end


def _entity(
  mention: dict[str, Any], titles: Mapping[str, str], as_titles: bool
) -> str | None:
  value = mention_name(mention, "entity")
  if value is not None:
    value = " ".join(value.replace("_", " ").split())
    return value[:1].upper() + value[1:] if as_titles else value
  value = mention_name(mention, "wikipedia_title")
  if value is not None:
    return wikitext.normal_title(value)
  value = mention_name(mention, "wikidata_id")
  return None if value is None else titles.get(value, value)


def mention_name(mention: dict[str, Any], key: str) -> str | None:
  """The name of a mention's record under a key; None for nothing or null.

  Args:
    mention: the record.
    key: the key. A value that is no name is an `InputError`.
  """
  value = mention.get(key)
  if value is None:
    return None
  if not isinstance(value, str) or not wikitext.normal_title(value):
    raise errors.InputError(f'the "{key}" of a mention is not a name')
  return value

"""Documents with the candidates of their mentions and the candidates' links.

Two files of JSON lines. The first has documents as `linked_documents` reads
them. The second has a line for each linked mention:

    {"doc": "1", "mention": 0, "start": 11, "end": 17, "candidates": [
      {"id": 11867, "title": "Germany", "in_links": 91000, "out_links": 1200,
       "links": [21212]}]}

`mention` counts the entries of the document's "mentions" from 0; `links` are
the ids of other candidates of the document that the page links to.
"""

from typing import Any, NamedTuple, TypeGuard

from repr_jax import errors
from repr_jax.data.documents import linked_documents, wikitext
from repr_jax.data.io import files, json_files

MAX_LINKS = 10**15  # to or from an entity
# Errors of fields that are absent, of another type or not finite.
MISFITS = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


class Candidate(NamedTuple):
  """An entity that a mention may refer to.

  Attributes:
    id: its number; ties documents' candidates and their links together.
    title: its name.
    in_links: pages that link to it.
    out_links: pages that it links to.
    links: ids of candidates of the same document that it links to.
    aliases: other names.
    description: text about it.
  """

  id: int
  title: str
  in_links: int
  out_links: int
  links: tuple[int, ...]
  aliases: tuple[str, ...] = ()
  description: str = ""


class Mention(NamedTuple):
  """A mention with offsets in characters.

  Attributes:
    start: its first character.
    end: the character after its last.
    surface: its text.
    entity: its gold entity, None where unknown or not in the knowledge base.
    candidates: its candidates; () where there are none.
  """

  start: int
  end: int
  surface: str
  entity: str | None
  candidates: tuple[Candidate, ...]


class Document(NamedTuple):
  """A text with mentions.

  Attributes:
    id: its name.
    text: its text.
    mentions: by their places.
    unlinked: surfaces of further names in the text, without entity.
  """

  id: str
  text: str
  mentions: tuple[Mention, ...]
  unlinked: tuple[str, ...] = ()


def read_candidate_documents(
  path: files.Path, candidates_path: files.Path
) -> list[Document]:
  """Reads documents and the candidates of their linked mentions.

  Args:
    path: the documents, plain or compressed.

  Returns:
    The documents with their linked mentions; NIL mentions are in `unlinked`.
    A candidate line of another document, of a mention that is not there or
    with other offsets, and a candidate listed twice are `InputError`s.
  """
  records: dict[str, dict[str, Any]] = {}
  for line, record in json_files.read_objects(path, "documents"):
    with errors.placed(path, line):
      _add_document(records, record)
  for line, record in json_files.read_objects(candidates_path, "candidates"):
    with errors.placed(candidates_path, line):
      _add_candidates(records, record)
  return [_document(name, record) for name, record in records.items()]


def read_gold_documents(path: files.Path) -> list[Document]:
  """Reads documents without candidates, NIL mentions among their mentions.

  Args:
    path: the documents, plain or compressed.

  Returns:
    The documents; a mention without "wikipedia_title" has no entity.
  """
  records: dict[str, dict[str, Any]] = {}
  for line, record in json_files.read_objects(path, "documents"):
    with errors.placed(path, line):
      linked, unlinked = _mentions(record)
      every = {"mentions": linked + unlinked, "unlinked_mentions": []}
      record = {**record, **every}
      _add_document(records, record)
  return [_document(name, record) for name, record in records.items()]


def read_popularity(path: files.Path) -> dict[str, float]:
  """Reads lines `title<TAB>score`.

  Args:
    path: the file, plain or compressed.

  Returns:
    Scores by title. A line of another form is an `InputError`.
  """
  scores = {}
  for line, text in enumerate(files.open_text(path), 1):
    title, tab, number = text.rstrip("\r\n").rpartition("\t")
    try:
      scores[title] = float(number)
    except ValueError:
      tab = ""
    if not tab or not abs(scores[title]) < 1e18:
      raise errors.InputError(
        "expected title<TAB>score", path=path, line=line
      ) from None
  return scores


def _add_document(records: dict[str, Any], record: dict[str, Any]) -> None:
  name, text = record.get("doc_id", record.get("doc")), record.get("text")
  if not isinstance(name, str) or not isinstance(text, str):
    raise errors.InputError('expected "doc_id" and "text", both texts')
  if name in records:
    raise errors.InputError(f"the document {name!r} is there twice")
  mentions, unlinked = _mentions(record)
  spans = [linked_documents.mention_span(m, text) for m in mentions + unlinked]
  for span in spans:
    linked_documents.check_span(name, text, *span)
  if len(set(spans[: len(mentions)])) < len(mentions):
    raise errors.InputError(f"document {name!r}: a span is there twice")
  golds = [
    linked_documents.mention_name(
      m, "wikipedia_title" if "wikipedia_title" in m else "entity"
    )
    for m in mentions
  ]
  records[name] = {
    "text": text,
    "spans": spans[: len(mentions)],
    "golds": [None if g is None else wikitext.normal_title(g) for g in golds],
    "unlinked": tuple(text[a:b] for a, b in spans[len(mentions) :]),
    "candidates": [()] * len(mentions),
  }


def _mentions(record: dict[str, Any]) -> tuple[list[Any], list[Any]]:
  """Linked and further mentions of a record."""
  return (
    linked_documents.mention_list(record, "mentions"),
    linked_documents.mention_list(record, "unlinked_mentions"),
  )


def _add_candidates(records: dict[str, Any], record: dict[str, Any]) -> None:
  name, number = record.get("doc"), record.get("mention")
  if name not in records:
    raise errors.InputError(f"there is no document {name!r}")
  own = records[name]
  if not (_whole(number) and 0 <= number < len(own["spans"])):
    raise errors.InputError(f"document {name!r} has no mention {number!r}")
  if (record.get("start"), record.get("end")) != own["spans"][number]:
    raise errors.InputError(
      f"document {name!r}: mention {number} stands at "
      f"{own['spans'][number]}, not at "
      f"({record.get('start')}, {record.get('end')})"
    )
  try:
    listed = tuple(
      Candidate(
        int(x["id"]), wikitext.normal_title(x["title"]), int(x["in_links"]),
        int(x.get("out_links", 0)), tuple(map(int, x.get("links", ()))),
      )
      for x in record["candidates"]
    )  # fmt: skip
  except MISFITS as error:
    raise errors.InputError(
      'expected "candidates" with "id", "title", "in_links", "links"'
    ) from error
  if len({x.id for x in listed}) < len(listed):
    raise errors.InputError("a candidate of the mention is there twice")
  counts = [y for x in listed for y in (x.in_links, x.out_links)]
  if not all(0 <= x <= MAX_LINKS for x in counts):
    raise errors.InputError(
      f"a candidate has a number of links that is not from 0 to {MAX_LINKS:,}"
    )
  own["candidates"][number] = listed


def _document(name: str, record: dict[str, Any]) -> Document:
  text = record["text"]
  mentions = [
    Mention(a, b, text[a:b], gold, listed)
    for (a, b), gold, listed in zip(
      record["spans"], record["golds"], record["candidates"]
    )
  ]
  ordered = sorted(mentions, key=lambda m: (m.start, m.end))
  return Document(name, text, tuple(ordered), record["unlinked"])


def _whole(value: Any) -> TypeGuard[int]:
  return isinstance(value, int) and not isinstance(value, bool)

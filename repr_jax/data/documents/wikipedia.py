"""Wikipedia dumps: sentences whose hyperlinks are the mentions of entities.

A dump (pages-articles.xml, plain, .gz or .bz2) is streamed, one page at a
time. An entity is an article, known by its title; redirects are followed. They
are recognized by their tag or, in dumps without it, by a text that begins with
#REDIRECT [[X]]. A link counts as a mention of its target, and because an
article does not link to itself, its title counts as a mention wherever it
stands in its own text. `wikitext` has the cleaning of the markup.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

from repr_jax.data import entities
from repr_jax.data.documents import wikitext
from repr_jax.data.io import files
from repr_jax.errors import InputError

_MOST_HOPS = 8
_REDIRECT = re.compile(r"\s*#redirect\s*:?\s*\[\[([^\[\]|#\n]+)", re.I)
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_LONGEST = 16 << 20  # Bytes of a page; MediaWiki allows 2 MB of text.
_MOST_ELEMENTS = 100_000  # Of a page, which has about twenty.


class Page(NamedTuple):
  """A page of the dump.

  Attributes:
    title: its title.
    namespace: 0 for articles.
    redirect: the title it redirects to, or None.
    text: its markup, empty where the dump has none.
    id: number of the page, "" where the dump has none.
  """

  title: str
  namespace: int
  redirect: str | None
  text: str
  id: str = ""


def read_pages(path: files.Path) -> Iterator[Page]:
  """Streams the pages of a dump.

  Args:
    path: an XML export of MediaWiki; plain, .gz or .bz2.

  Yields:
    The pages in the order of the dump, of all namespaces. Damage is an
    `InputError` with the file and, where XML breaks, its line.
  """
  pages = 0
  with files.open_binary(path) as stream:
    counted = _Counted(stream, path)
    root = None
    try:
      for event, element in ET.iterparse(counted, events=("start", "end")):
        if event == "start":
          root = element if root is None else root
          counted.add_element()
        elif _local(element) == "page":
          pages += 1
          page = _page(element, path, pages)
          root.clear()  # type: ignore[union-attr]
          counted.size = counted.elements = 0
          yield page
    except (LookupError, ValueError) as error:
      if isinstance(error, InputError):
        raise
      raise InputError(
        f"is not the XML of a dump ({error}): dumps are in UTF-8",
        path=path,
        line=1,
      ) from error
    except ET.ParseError as error:
      raise InputError(
        f"is not the XML of a dump ({error.msg.partition(':')[0]}); "
        "it may be truncated or not in UTF-8",
        path=path,
        line=error.position[0],
      ) from error
  if not pages:
    raise InputError("has no page: is it a dump of pages-articles?", path=path)


class _Counted:
  """A file that raises an error if one page does not end."""

  def __init__(self, stream: IO[bytes], path: files.Path):
    self._stream, self._path = stream, path
    self.size = self.elements = 0  # Since the last page.

  def read(self, size: int = -1, /) -> bytes:
    block = self._stream.read(size)
    self.size += len(block)
    self._check()
    return block

  def add_element(self) -> None:
    self.elements += 1
    self._check()

  def _check(self) -> None:
    if self.size > _LONGEST or self.elements > _MOST_ELEMENTS:
      raise InputError(
        f"has {self.size} bytes and {self.elements} elements without the end "
        "of a page: is it a dump?",
        path=self._path,
      )


def read_redirects(path: files.Path) -> dict[str, str]:
  """Reads where the redirects of a dump lead.

  Returns:
    For the title of each redirect among articles, the title at the end of its
    chain. Redirects that go round in a circle are left out.
  """
  direct = {}
  for page in read_pages(path):
    if page.redirect is not None and page.namespace == 0:
      direct[page.title] = wikitext.normal_title(page.redirect)
  return {
    title: target
    for title in direct
    if (target := _follow(title, direct)) is not None
  }


def read_page_ids(path: files.Path) -> dict[str, str]:
  """Reads the numbers of articles, by which some data sets name entities.

  Returns:
    Titles of articles by number; redirects are no articles.
  """
  return {
    page.id: page.title
    for page in read_pages(path)
    if page.id and page.namespace == 0 and page.redirect is None
  }


def linked_sentences(
  path: files.Path,
  redirects: Mapping[str, str] | None = None,
  *,
  all_sentences: bool = False,
) -> Iterator[entities.Sentence]:
  """Streams the sentences of articles that mention an entity.

  Args:
    path: the dump.
    redirects: what `read_redirects` gave; None to read the dump once more,
      beforehand.
    all_sentences: also those without a mention.

  Yields:
    Sentences with at least one mention, or all; the document is the article's
    title and an entity's id is the title of its article, whether or not the
    dump has it.
  """
  if redirects is None:
    redirects = read_redirects(path)
  for page in read_pages(path):
    if page.namespace != 0 or page.redirect is not None:
      continue
    own = _own_name(page.title)
    for text, links in wikitext.sentences(page.text):
      spans = [(a, b, redirects.get(to, to)) for a, b, to in links]
      sentence = entities.sentence_from_text(text, spans, page.title)
      sentence = _add_own(sentence, own, page.title)
      if sentence.mentions or all_sentences:
        yield sentence


def _page(element: ET.Element, path: files.Path, number: int) -> Page:
  """Makes a `Page` of the XML element of page `number`."""
  fields: dict[str, Any] = {}
  for child in element.iter():
    name = _local(child)
    if name == "redirect":
      fields[name] = child.get("title")
    elif name in ("title", "ns", "text"):
      fields[name] = child.text or ""
    elif name == "id":
      fields.setdefault(name, child.text or "")  # Revisions come later.
  namespace = fields.get("ns", "0").strip()
  title = fields.get("title", "")
  if not title.strip() or not _NUMBER.fullmatch(namespace):
    raise InputError(
      f"page {title!r}, the {number:,}. of the file, lacks a title or a "
      "namespace number",
      path=path,
      line=_line_of(path, number),
    )
  text = fields.get("text", "")
  redirect = fields.get("redirect")
  if redirect is None and (told := _REDIRECT.match(text)):
    redirect = told.group(1).strip() or None
  return Page(
    title, int(namespace), redirect, text, fields.get("id", "").strip()
  )


def _line_of(path: files.Path, number: int) -> int | None:
  """The line on which page `number` begins, by counting tags."""
  with files.open_binary(path) as stream:
    line, rest = 1, b""
    while block := stream.read(1 << 16):
      parts = (rest + block).split(b"<page>")
      for part in parts[:-1]:
        line += part.count(b"\n")
        number -= 1
        if number == 0:
          return line
      kept = parts[-1][-len(b"<page") :]
      line += (parts[-1].count(b"\n")) - kept.count(b"\n")
      rest = kept
  return None


def _local(element: ET.Element) -> str:
  return element.tag.rpartition("}")[2]


def _follow(title: str, direct: Mapping[str, str]) -> str | None:
  """The end of a chain of redirects, None for a circle."""
  for _ in range(_MOST_HOPS):
    title = direct[title]
    if title not in direct:
      return title
  return None


def _own_name(title: str) -> entities.NameFinder:
  """Finds an article's title without the brackets after it."""
  name = title
  if title.endswith(")"):
    start = title.find("(", title.rfind(")", 0, -1) + 1)
    name = title[:start].rstrip() if start >= 0 else title
  return entities.NameFinder({entities.tokenize(name): title})


def _add_own(
  sentence: entities.Sentence, own: entities.NameFinder, title: str
) -> entities.Sentence:
  """Adds the mentions of the article itself that lie outside links."""
  taken = {i for a, b, _ in sentence.mentions for i in range(a, b)}
  new = [
    (a, b, title)
    for a, b, _ in own.find(sentence.tokens)
    if taken.isdisjoint(range(a, b))
  ]
  if not new:
    return sentence
  return sentence._replace(mentions=tuple(sorted([*sentence.mentions, *new])))

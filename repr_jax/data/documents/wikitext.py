"""The markup of Wikipedia as plain sentences with links.

Comments, references, tables, files, headings and templates are taken out,
nested or not; a few templates that only format a text keep the text. An
opening mark that is never closed is removed; the text after it stays. The
sections that hold references and lists of links are left out.
"""

import bisect
import html
import re
from collections.abc import Iterator

Link = tuple[int, int, str]

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_BLOCK = re.compile(
  r"<(ref|math|chem|gallery|table|pre|code|source|syntaxhighlight|timeline"
  r"|score|imagemap|graph|mapframe|hiero|templatedata)\b[^<>]*>",
  re.I,
)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_BREAK = re.compile(r"<(?:br|hr|p|li|div)\b[^<>]*>|</(?:p|li|div)>", re.I)
_BRACES = re.compile(r"\{\{|\}\}|\{\||\|\}(?!\})")
_BRACKETS = re.compile(r"\[\[|\]\]")
_DRESS = re.compile(
  r"\{\{\s*(?:lang|nowrap|nobr|nihongo|small|big|em|strong|transl|abbr)"
  r"\s*(?:\|[^{}|\[\]]*)?\|((?:\[\[[^{}\[\]]*\]\]|[^{}|=\[])*)\}\}",
  re.I,
)
_EXTERNAL = re.compile(r"\[(?:https?:|ftp:|mailto:)?//([^\[\]\n]*)\]")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://\S+")
_QUOTES = re.compile(r"'{2,}")
_SWITCH = re.compile(r"__[A-Z]+__")
_ITEM = re.compile(r"^[*#:;]+\s*")
_CELL = re.compile(r"^\s*(?:[|!]|\{\||\|\})")
_TRAIL = re.compile(r"[a-z]+")
_STRAY = re.compile(r"\[\[|\]\]|\{\{|\}\}")
_BLANKS = re.compile(r"\s+")
_END = re.compile(r"(?<![.!?])[.!?]+[\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9])")
_SHORT = re.compile(
  r"(?:^|[\s(\[\"“'])(?:[A-Z]|[A-Z](?:\.[A-Z])+|c|ca|cf|e\.g|i\.e|vs|v|no|No"
  r"|vol|pp?|ed|eds|et al|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|Gen|Col|Lt|Sgt|Capt|Rev"
  r"|Gov|Sen|Rep|Hon|Mt|Ft|Inc|Ltd|Co|Corp|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov"
  r"|Dec|fl|b|d|r)\.$"
)
_LISTS = re.compile(
  r"references|external links|further reading|see also|(?:foot)?notes"
  r"|bibliography|sources|citations|notes and references",
  re.I,
)
# Prefixes of links that lead to no article: other namespaces and projects.
_OTHER = re.compile(
  r"(?:media|special|talk|user|file|image|category|template|wikipedia|wp"
  r"|project|mediawiki|help|portal|book|draft|module|timedtext|wikt"
  r"|wiktionary|commons|wikisource|s|wikibooks|b|wikiquote|q|wikinews|n"
  r"|wikiversity|v|species|meta|m|mw|wikidata|d)(?:[ _]talk)?",
  re.I,
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?$")


def normal_title(title: str) -> str:
  """Writes the title of a link as the article has it.

  Args:
    title: a link's target, perhaps with underscores or a section.

  Returns:
    The title: blanks single, the first letter a capital, no section.
  """
  title = title.partition("#")[0].replace("_", " ").strip().lstrip(":")
  title = _BLANKS.sub(" ", title).strip()
  return title[:1].upper() + title[1:]


def strip_markup(text: str) -> str:
  """Takes out what is not text, links aside.

  Returns:
    Lines of text with their links still in double brackets, headings too.
  """
  text = _cut_blocks(_COMMENT.sub("", text))
  text = _BREAK.sub("\n", text)
  text = _TAG.sub("", text)
  text = _DRESS.sub(r"\1", text)
  text = _cut_braces(text)
  text = _QUOTES.sub("", _SWITCH.sub("", text))
  text = _EXTERNAL.sub(_shown, text)
  text = _ADDRESS.sub("", text)
  return html.unescape(text).replace("\xa0", " ")


def read_links(line: str) -> tuple[str, list[Link]]:
  """Replaces the links of a line by the text that a reader sees.

  Args:
    line: text with links as `[[Target]]` or `[[Target|anchor]]`.

  Returns:
    The text, blanks single, and its links as (start, end, title). Links to
    files, categories and other wikis are gone with all they hold.
  """
  pieces: list[str] = []
  links: list[Link] = []
  size = 0

  def add(text: str) -> None:
    nonlocal size
    text = _BLANKS.sub(" ", _STRAY.sub("", text))
    if text.startswith(" ") and (not pieces or pieces[-1].endswith(" ")):
      text = text[1:]
    if text:
      pieces.append(text)
      size += len(text)

  before = 0
  for start, end in _pairs(_BRACKETS, line):
    add(line[before:start])
    before = end
    inside = line[start + 2 : end - 2]
    target, bar, anchor = inside.partition("|")
    if not _is_article(target):
      continue
    anchor = anchor.rpartition("|")[2] if bar else target.lstrip(":")
    # Letters right after a link belong to it: [[bench]]es.
    trail = _TRAIL.match(line, end)
    if trail:
      anchor, before = anchor + trail.group(), trail.end()
    at = size
    add(anchor)
    title = normal_title(html.unescape(target))
    if title and size > at:
      links.append((at, size, title))
  add(line[before:])
  return "".join(pieces).rstrip(), links


def sentences(text: str) -> Iterator[tuple[str, list[Link]]]:
  """Splits the markup of an article into plain sentences.

  Args:
    text: the markup.

  Yields:
    Each sentence with its links (start, end, title) in characters.
  """
  skipped = 0  # The level of the section that is left out.
  for line in strip_markup(text).split("\n"):
    level, heading = _heading(line)
    if level:
      if not skipped or level <= skipped:
        skipped = level if _LISTS.fullmatch(heading) else 0
      continue
    if skipped or _CELL.match(line):
      continue
    plain, links = read_links(_ITEM.sub("", line))
    if plain:
      yield from _split(plain, links)


def _heading(line: str) -> tuple[int, str]:
  """Level and text of a heading such as `== Life ==`; level 0 for others."""
  line = line.strip()
  if not line.startswith("="):
    return 0, ""
  left = len(line) - len(line.lstrip("="))
  right = len(line) - len(line.rstrip("="))
  level = min(left, right, (len(line) - 1) // 2)
  return max(level, 0), line[level : len(line) - level].strip()


def _shown(match: re.Match[str]) -> str:
  """Text that a reader sees of a link to another site."""
  return (*_BLANKS.split(match.group(1), 1), "")[1]


def _split(text: str, links: list[Link]) -> Iterator[tuple[str, list[Link]]]:
  """Cuts a paragraph at the ends of sentences that no link crosses."""
  starts = [start for start, _, _ in links]  # Ascending: links do not nest.
  cuts = [0]
  for match in _END.finditer(text):
    end = match.end()
    if _SHORT.search(text[max(match.start() - 24, 0) : match.start() + 1]):
      continue
    before = bisect.bisect_left(starts, end)
    if not before or links[before - 1][1] <= end:
      cuts.append(end)
  for first, last in zip(cuts, [*cuts[1:], len(text)]):
    own = slice(*(bisect.bisect_left(starts, at) for at in (first, last)))
    inside = [(a - first, b - first, title) for a, b, title in links[own]]
    yield text[first:last].rstrip(), inside


def _is_article(target: str) -> bool:
  """Whether a link leads to an article; "[[:File:x]]" shows its target."""
  prefix, colon, _ = target.lstrip(":").partition(":")
  prefix = prefix.strip()
  if not colon:
    return True
  return not (_OTHER.fullmatch(prefix) or _LANGUAGE.match(prefix))


def _cut_blocks(text: str) -> str:
  """Drops elements with all they hold; one that is not closed stays."""
  pieces, before, unclosed = [], 0, set()
  opened = _BLOCK.search(text)
  while opened:
    name, after = opened.group(1).lower(), opened.end()
    if not opened.group().endswith("/>") and name not in unclosed:
      closed = re.compile(rf"</{name}\s*>", re.I).search(text, after)
      if closed:
        after = closed.end()
      else:
        unclosed.add(name)  # Not searched for again.
    if name not in unclosed or opened.group().endswith("/>"):
      pieces += [text[before : opened.start()], " "]
      before = after
    opened = _BLOCK.search(text, after)
  return "".join([*pieces, text[before:]])


def _cut_braces(text: str) -> str:
  """Drops templates and tables with all they hold."""
  pieces, before = [], 0
  for start, end in _pairs(_BRACES, text):
    pieces.append(text[before:start])
    before = end
  pieces.append(text[before:])
  return "".join(pieces)


def _pairs(marks: re.Pattern[str], text: str) -> list[tuple[int, int]]:
  """Outermost spans between an opening mark and the one that closes it."""
  closes = {"}}": "{{", "|}": "{|", "]]": "[["}
  opened: list[tuple[str, int]] = []
  waiting = dict.fromkeys(closes.values(), 0)  # Of each kind in `opened`.
  spans: list[tuple[int, int]] = []
  for match in marks.finditer(text):
    mark = match.group()
    if mark not in closes:
      opened.append((mark, match.start()))
      waiting[mark] += 1
      continue
    kind = closes[mark]
    while waiting[kind] and opened[-1][0] != kind:
      waiting[opened.pop()[0]] -= 1  # Never closed, inside one that is.
    if waiting[kind]:
      waiting[kind] -= 1
      start = opened.pop()[1]
      while spans and spans[-1][0] > start:
        spans.pop()
      spans.append((start, match.end()))
  return spans

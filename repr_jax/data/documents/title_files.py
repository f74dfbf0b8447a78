"""Further entities of a knowledge base, from files that name titles.

Lines `article<TAB>relation<TAB>article`, each of which is a link; JSON lines of
documents whose mentions have entities; or a dump of Wikipedia, whose links
name titles and whose redirects are aliases.
"""

import collections
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from repr_jax import errors
from repr_jax.data.documents import (
  candidate_features,
  candidate_files,
  wikipedia,
  wikitext,
)
from repr_jax.data.documents.candidate_features import Links
from repr_jax.data.documents.candidates import normalize
from repr_jax.data.documents.entity_base import Entity
from repr_jax.data.io import files


class Titles(NamedTuple):
  """Titles of a file.

  Attributes:
    entities: with their links in the file.
    links: counts of what mentions are linked to; empty for articles.
  """

  entities: list[Entity]
  links: Links


def read_titles(path: files.Path) -> Titles:
  """Reads the titles of a file.

  Args:
    path: the file, plain or compressed.

  Returns:
    Its entities and links. A line of another form and a file without titles
    are `InputError`s.
  """
  first = next((x for x in files.open_text(path) if x.strip()), "").lstrip()
  if first.startswith("<"):
    entities, links = _dump(path)
  elif first.startswith("{"):
    documents = candidate_files.read_gold_documents(path)
    links = candidate_features.count_links(documents)
    entities = [Entity(x, in_links=n) for x, n in links.entities.items()]
  else:
    entities, links = _articles(path), Links({}, {})
  if not entities:
    raise errors.InputError("names no title", path=path)
  return Titles(entities, links)


def _dump(path: files.Path) -> tuple[list[Entity], Links]:
  redirects = wikipedia.read_redirects(path)
  aliases: dict[str, list[str]] = collections.defaultdict(list)
  for name, title in redirects.items():
    aliases[title].append(name)
  mentions: dict[str, collections.Counter] = {}
  sources: collections.Counter = collections.Counter()
  counts: collections.Counter = collections.Counter()
  targets: dict[str, tuple[str, ...]] = {}
  for page in wikipedia.read_pages(path):
    if page.namespace != 0 or page.redirect is not None:
      continue
    own: set[str] = set()
    for text, spans in wikitext.sentences(page.text):
      for start, end, target in spans:
        title = redirects.get(target, target)
        key = normalize(text[start:end])
        mentions.setdefault(key, collections.Counter())[title] += 1
        counts[title] += 1
        own.add(title)
    own.discard(page.title)
    sources.update(own)
    targets[page.title] = tuple(sorted(own))
  entities = [
    Entity(
      x, tuple(aliases.get(x, ())), "", sources[x], len(targets.get(x, ())),
      targets.get(x, ()),
    )
    for x in sorted({*targets, *counts})
  ]  # fmt: skip
  return entities, Links(mentions, counts)


def _articles(path: files.Path) -> list[Entity]:
  sources: dict[str, set[str]] = collections.defaultdict(set)
  targets: dict[str, set[str]] = collections.defaultdict(set)
  for line, text in files.numbered_lines(path):
    cells = text.rstrip("\r\n").split("\t")
    if len(cells) != 3 or not cells[0].strip() or not cells[2].strip():
      raise errors.InputError(
        "expected article<TAB>relation<TAB>article, or JSON lines of documents",
        path=path, line=line,
      )  # fmt: skip
    start, end = (wikitext.normal_title(x) for x in cells[::2])
    targets[start].add(end)
    sources[end].add(start)
  names = sorted({*targets, *sources})
  return [
    Entity(
      x, in_links=len(sources[x]), out_links=len(targets[x]),
      links=tuple(sorted(targets[x])),
    )
    for x in names
  ]  # fmt: skip


def join_entities(known: Iterable[Entity], more: Titles) -> list[Entity]:
  """Adds entities that are new.

  Args:
    known: entities, which stay as they are but for further aliases.
    more: further titles; their counts of links have another scale.

  Returns:
    All entities. In- and out-links of new ones are multiplied by the median
    ratio of those of the titles that both have.
  """
  listed = list(known)
  titles = {x.name: x for x in listed}
  shared = [(titles[x.name], x) for x in more.entities if x.name in titles]

  def scale(field: str) -> float:
    pairs = [(getattr(a, field), getattr(b, field)) for a, b in shared]
    ratios = [a / b for a, b in pairs if b > 0]
    return max(float(np.median(ratios)), 1.0) if ratios else 1.0

  inward, outward = scale("in_links"), scale("out_links")
  names = {x.name: x.aliases for x in more.entities if x.aliases}
  listed = [
    x._replace(aliases=tuple(dict.fromkeys((*x.aliases, *names[x.name]))))
    if x.name in names
    else x
    for x in listed
  ]
  return listed + [
    x._replace(
      in_links=round(inward * x.in_links),
      out_links=round(outward * x.out_links),
    )
    for x in more.entities
    if x.name not in titles
  ]


def join_links(first: Links, second: Links) -> Links:
  """Sums of counts of links."""
  mentions = {m: collections.Counter(own) for m, own in first.mentions.items()}
  for mention, own in second.mentions.items():
    mentions.setdefault(mention, collections.Counter()).update(own)
  entities = collections.Counter(first.entities)
  entities.update(second.entities)
  return Links(mentions, entities)

"""Features of candidates: links, names and words of the document.

`NAMES` lists the features and `GROUPS` tells the kind of each: "prior" (how
often the candidate is meant), "name" (title against the mention's text) and
"document" (title against the rest of the text). Features that need the other
mentions' candidates are computed by `linking.graph_features`. `BY_LINKS` are
the places of those that count training links.
"""

import collections
import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from repr_jax.data.documents.candidate_files import Document, Mention
from repr_jax.data.documents.candidates import normalize

_BRACKET = re.compile(r"\s*\(([^)]*)\)$")
WORD = re.compile(r"\w+")
_COMMON = frozenset(
  ["of", "the", "and", "in", "a", "an", "for", "to", "on", "at", "by"]
)

_FEATURES = (
  ("prior", "log in-links"),
  ("prior", "log share of in-links"),
  ("prior", "log in-links against the most"),
  ("prior", "log out-links"),
  ("prior", "popularity"),
  ("prior", "popularity against the most"),
  ("prior", "most in-links"),
  ("prior", "log p(e|m) of training links"),
  ("prior", "log training links of mention and entity"),
  ("prior", "log training links of mention and others"),
  ("prior", "log training links of entity"),
  ("prior", "mention not in training"),
  ("name", "title is the mention"),
  ("name", "title without brackets is the mention"),
  ("name", "title up to the comma is the mention"),
  ("name", "title begins with the mention"),
  ("name", "title contains the mention"),
  ("name", "mention contains the title"),
  ("name", "similarity of letters"),
  ("name", "share of words in common"),
  ("name", "share of the mention's words in the title"),
  ("name", "initials"),
  ("name", "has brackets"),
  ("name", "has a comma"),
  ("name", "words more than the mention"),
  ("name", "mention in capitals"),
  ("name", "one candidate"),
  ("name", "log candidates"),
  ("document", "other words of the title in the text"),
  ("document", "their share"),
  ("document", "number of other words"),
  ("document", "all of them in the text"),
  ("document", "words in brackets in the text"),
  ("document", "words after the comma in the text"),
  ("document", "a longer mention is the title"),
  ("document", "another mention is the title"),
  ("document", "there is a longer mention"),
)
GROUPS = tuple(group for group, _ in _FEATURES)
NAMES = tuple(name for _, name in _FEATURES)
BY_LINKS = tuple(i for i, name in enumerate(NAMES) if "training" in name)


class Links(NamedTuple):
  """Counts of training links.

  Attributes:
    mentions: for each normalized mention, counts by entity.
    entities: counts by entity.
  """

  mentions: Mapping[str, Mapping[str, int]]
  entities: Mapping[str, int]


def count_links(documents: Iterable[Document]) -> Links:
  """Counts what the mentions of documents are linked to."""
  mentions: dict[str, collections.Counter] = {}
  entities: collections.Counter = collections.Counter()
  for document in documents:
    for mention in document.mentions:
      if mention.entity is not None:
        own = mentions.setdefault(
          normalize(mention.surface), collections.Counter()
        )
        own[mention.entity] += 1
        entities[mention.entity] += 1
  return Links(mentions, entities)


def document_features(
  document: Document,
  links: Links,
  popularity: Mapping[str, float],
  without: Links | None = None,
) -> list[np.ndarray]:
  """Features of the candidates of each mention.

  Args:
    document: the document; its entities are not read.
    links: counts of training links.
    popularity: scores by title; 0 for others.
    without: counts to subtract from `links`, such as those of the document
      itself and its neighbors when a model is trained on it.

  Returns:
    For each mention an array [candidates, features] in the order of `NAMES`.
  """
  own = without or Links({}, {})
  counts = collections.Counter(WORD.findall(document.text.casefold()))
  keys = {normalize(m.surface) for m in document.mentions}
  keys |= {normalize(surface) for surface in document.unlinked}
  return [
    _mention_features(mention, links, own, popularity, counts, keys)
    for mention in document.mentions
  ]


def _mention_features(
  mention: Mention,
  links: Links,
  own: Links,
  popularity: Mapping[str, float],
  counts: Mapping[str, int],
  keys: set[str],
) -> np.ndarray:
  listed = mention.candidates
  table = np.zeros((len(listed), len(NAMES)), np.float32)
  if not listed:
    return table
  key = normalize(mention.surface)
  longer = {x for x in keys if x != key and f" {key} " in f" {x} "}
  in_links = np.asarray([x.in_links for x in listed], float)
  share = (in_links + 1) / (in_links + 1).sum()
  popular = np.asarray([popularity.get(x.title, 0.0) for x in listed])
  seen = links.mentions.get(key, {})
  less = own.mentions.get(key, {})
  total = sum(seen.values()) - sum(less.values())
  for row, candidate in enumerate(listed):
    title = candidate.title
    count = seen.get(title, 0) - less.get(title, 0)
    entity = links.entities.get(title, 0) - own.entities.get(title, 0)
    prior = [
      np.log1p(in_links[row]),
      np.log(share[row]),
      np.log1p(in_links[row]) - np.log1p(in_links.max()),
      np.log1p(candidate.out_links),
      popular[row],
      popular[row] - popular.max(),
      in_links[row] == in_links.max(),
      np.log((count + share[row]) / (total + 1)),
      np.log1p(count),
      np.log1p(total - count),
      np.log1p(entity),
      total == 0,
    ]
    name = list(
      max(
        (_name_features(key, x) for x in (title, *candidate.aliases)), key=sum
      )
    )
    name += [mention.surface.isupper(), len(listed) == 1, np.log(len(listed))]
    around = _text_features(key, title, candidate.description, counts)
    bare = normalize(_BRACKET.sub("", title))
    around += [bare in longer, bare in keys and bare != key, bool(longer)]
    table[row] = [*prior, *name, *around]
  return table


@functools.lru_cache(1 << 17)  # a text says the same names again and again
def _name_features(key: str, title: str) -> tuple[float, ...]:
  """The title against the mention."""
  bare = _BRACKET.sub("", title)
  name, first = normalize(bare), normalize(bare.partition(", ")[0])
  mine, theirs = set(key.split()), set(name.split())
  common = len(mine & theirs)
  initials = "".join(w[0] for w in name.split() if w not in _COMMON)
  return (
    normalize(title) == key,
    name == key,
    first == key,
    name.startswith(key),
    key in name,
    name in key,
    difflib.SequenceMatcher(None, name, key).ratio(),
    common / max(len(mine | theirs), 1),
    common / max(len(mine), 1),
    initials == key.replace(" ", ""),
    bare != title,
    ", " in bare,
    len(name.split()) - len(key.split()),
  )


def other_words(key: str, title: str, description: str) -> list[str]:
  """Words of a candidate's title and description without the mention's.

  Args:
    key: the normalized mention.
  """
  skipped = _COMMON | set(key.split())
  words = [w for w in WORD.findall(title.casefold()) if w not in skipped]
  more = dict.fromkeys(WORD.findall(description.casefold()))
  return words + [w for w in more if len(w) > 3 and w not in skipped]


def _text_features(
  key: str, title: str, description: str, counts: Mapping[str, int]
) -> list[float]:
  """The title's other words against the text."""
  words = other_words(key, title, description)
  known = sum(w in counts for w in words)
  bracket = _BRACKET.search(title)
  inside = WORD.findall(bracket.group(1).casefold()) if bracket else []
  after = WORD.findall(_BRACKET.sub("", title).partition(", ")[2].casefold())
  # Descriptions have more words than titles, of which 5 tell enough.
  return [
    min(known, 5),
    known / max(min(len(words), 5), 1) if known < 5 else 1.0,
    min(len(words), 10),
    bool(words) and known == len(words),
    sum(w in counts for w in inside),
    bool(after) and all(w in counts for w in after),
  ]


def title_shape(surface: str, title: str) -> str:
  """The title with the mention replaced: "* national football team".

  Args:
    surface: the mention's text.
    title: the candidate's title.

  Returns:
    The normalized title, in which the normalized mention is a star.
  """
  key = f" {normalize(surface)} "
  return f" {normalize(title)} ".replace(key, " * ").strip()

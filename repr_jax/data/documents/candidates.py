"""Candidates of mentions: the entities that they may refer to (thesis 6.3).

A mention is looked up as written. With lower weights it is also looked up
without case, possessive, hyphens and dots, and among the titles of entities. A
mention without candidates takes those of a longer mention of the same document
that contains it ("Nardelli" those of "Bob Nardelli").
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from repr_jax.data.documents.linked_documents import LinkedDocument
from repr_jax.data.documents.priors import Prior
from repr_jax.errors import InputError

Candidates = list[tuple[str, float]]

_FOLDED = 0.1  # weight of a link whose mention differs in its form
_NAMED = 0.1  # weight of a title
_POSSESSIVE = re.compile(r"['’`](?:s\b)?")
_BLANK = re.compile(r"[\s_‐‑–—-]+")
_DROPPED = re.compile(r"[.,;:!?\"“”]")
_BRACKET = re.compile(r"\s*\([^)]*\)$")


class Index(NamedTuple):
  """Tables in which candidates are looked up.

  Attributes:
    exact: counts by mention.
    folded: counts by normalized mention.
    named: entities by their normalized title.
  """

  exact: Prior
  folded: Prior
  named: Prior


class Own(NamedTuple):
  """Links of one document, to be left out of the prior.

  Attributes:
    exact: counts by entity for each mention.
    folded: the same for each normalized mention.
  """

  exact: dict[str, dict[str, float]]
  folded: dict[str, dict[str, float]]


class Recall(NamedTuple):
  """Coverage of the candidates.

  Attributes:
    mentions: mentions with an entity.
    without: those without any candidate.
    covered: those whose entity is among the candidates.
  """

  mentions: int
  without: int
  covered: int

  @property
  def share(self) -> float:
    """The share of mentions whose entity is among the candidates."""
    return self.covered / max(self.mentions, 1)


def normalize(surface: str) -> str:
  """A mention without case, possessive, hyphens, dots and leading "the".

  Returns:
    The normalized text; the text in lower case if nothing else is left.
  """
  text = _DROPPED.sub("", _POSSESSIVE.sub("", surface.casefold()))
  text = _BLANK.sub(" ", text).strip().removeprefix("the ")
  return text or surface.casefold()


def build_index(prior: Prior, names: Iterable[str] = ()) -> Index:
  """Makes an index.

  Args:
    prior: counts of links.
    names: further entities, known by their titles; those of `prior` are
      known anyhow.
  """
  folded: dict[str, dict[str, float]] = {}
  entities = dict.fromkeys(names)
  for mention, counts in prior.counts.items():
    own = folded.setdefault(normalize(mention), {})
    for entity, count in counts.items():
      own[entity] = own.get(entity, 0) + count
      entities[entity] = None
  named: dict[str, dict[str, float]] = {}
  for entity in entities:
    whole = _BRACKET.sub("", entity)
    # "Paris, Texas" is called Paris, but less often than Paris is.
    for name, weight in ((whole, 1.0), (whole.partition(", ")[0], 0.5)):
      named.setdefault(normalize(name), {}).setdefault(entity, weight)
  return Index(prior, Prior(folded), Prior(named))


def candidates(
  index: Index, surface: str, top: int = 30, without: Own | None = None
) -> Candidates:
  """The likeliest entities of a mention.

  Args:
    index: where to look.
    top: how many at most.
    without: links to leave out, see `own_counts`.

  Returns:
    (entity, p(entity | mention)), the likeliest first, ties by name; p sums
    to one over them.
  """
  if top < 1:
    raise InputError(f"top must be 1 or more, not {top}")
  key = normalize(surface)
  own = without or Own({}, {})
  weights: dict[str, float] = {}
  for counted, form, weight, left_out in (
    (index.exact, surface, 1.0, own.exact),
    (index.folded, key, _FOLDED, own.folded),
    (index.named, key, _NAMED, {}),
  ):
    reduced = left_out.get(form, {})
    for entity, count in counted.counts.get(form, {}).items():
      count -= reduced.get(entity, 0)
      if count > 0:
        weights[entity] = weights.get(entity, 0) + weight * count
  ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:top]
  total = sum(weight for _, weight in ordered)
  return [(entity, weight / total) for entity, weight in ordered]


def own_counts(document: LinkedDocument) -> Own:
  """Links of a document, to be left out of the prior."""
  own = Own({}, {})
  for mention in document.mentions:
    if mention.entity is None:
      continue
    forms = mention.surface, normalize(mention.surface)
    for counts, form in zip(own, forms):
      links = counts.setdefault(form, {})
      links[mention.entity] = links.get(mention.entity, 0) + 1
  return own


def document_candidates(
  index: Index, document: LinkedDocument, top: int = 30, leave_out: bool = False
) -> list[Candidates]:
  """Candidates of each mention of a document.

  Args:
    index: where to look; candidates that the file itself gives come first. The
      probabilities of one that it gives twice are added.
    top: how many for each mention at most.
    leave_out: whether to subtract the document's own links from the prior, as
      for training documents.

  Returns:
    A list for each mention, empty where nothing is known.
  """
  own = own_counts(document) if leave_out else None
  listed: list[Candidates] = []
  for mention in document.mentions:
    if mention.candidates is not None:
      merged: dict[str, float] = {}
      for entity, p in mention.candidates:
        merged[entity] = merged.get(entity, 0) + p
      given = sorted(merged.items(), key=lambda item: (-item[1], item[0]))
      listed.append(given[:top])
      continue
    listed.append(candidates(index, mention.surface, top, own))
  words = [normalize(m.surface).split() for m in document.mentions]
  return [
    here or _from_longer(i, words, listed) for i, here in enumerate(listed)
  ]


def _from_longer(
  place: int, words: Sequence[list[str]], lists: Sequence[Candidates]
) -> Candidates:
  """Candidates of the first longer mention that contains this one."""
  short = words[place]
  for other, longer in enumerate(words):
    if len(longer) > len(short) and lists[other]:
      starts = range(len(longer) - len(short) + 1)
      if any(longer[a : a + len(short)] == short for a in starts):
        return lists[other]
  return []


def recall(
  documents: Iterable[tuple[LinkedDocument, Sequence[Candidates]]],
) -> Recall:
  """Counts mentions whose entity is among their candidates.

  Args:
    documents: documents with the candidates of their mentions.
  """
  mentions = without = correct = 0
  for document, lists in documents:
    for mention, listed in zip(document.mentions, lists):
      if mention.entity is not None:
        mentions += 1
        without += not listed
        correct += any(entity == mention.entity for entity, _ in listed)
  return Recall(mentions, without, correct)

"""Kinds of titles and contexts of mentions, for `linking.kind_scores`.

A title is described relative to the mention: "Italy national football team"
for the mention "Italy" has the shape "* national football team", the kind
"begins with the mention" and the words "national", "football", "team". A
context is described by the words beside the mention, its place in the text and
the words before " - " in the first line. Neither names an entity, so that
learned weights apply to entities that are absent from training documents.
"""

import collections
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.data.documents import candidate_features
from repr_jax.data.documents.candidate_files import Document
from repr_jax.data.documents.candidates import normalize

_DIGIT = re.compile(r"\d")
_NONE = "(none)"
_CONTEXTS = 24  # features of a context, at most
_KINDS = 6  # features of a title, at most
_WORDS = 5  # words of a title that become features, at most


class Vocabulary(NamedTuple):
  """Numbers of the features.

  Attributes:
    contexts: features of contexts.
    kinds: features of titles.
  """

  contexts: Mapping[str, int]
  kinds: Mapping[str, int]


class KindArrays(NamedTuple):
  """Contexts and candidates of n mentions; the id -1 marks padding.

  Attributes:
    contexts: features of each mention's context, int32 [n, k].
    kinds: features of each candidate's title, int32 [n, c, t].
    log_links: log of 1 and the candidate's in-links, float32 [n, c].
    mask: which candidates are not padding, bool [n, c].
    gold: place of the right one, int32 [n]; -1 if it is no candidate.
  """

  contexts: np.ndarray
  kinds: np.ndarray
  log_links: np.ndarray
  mask: np.ndarray
  gold: np.ndarray


def context_features(text: str, start: int, end: int) -> list[str]:
  """Features of the context of a mention.

  Args:
    start: the mention's first character.
    end: the character after its last.

  Returns:
    Descriptions such as "next word: )"; digits are 0.
  """
  low = text.rfind("\n", 0, start) + 1
  high = text.find("\n", end)
  before = _words(text[low:start])
  after = _words(text[end : high if high >= 0 else len(text)])
  row = ("first line", "second line", "later line")[
    min(text.count("\n", 0, start), 2)
  ]
  topic = _topic(text)
  last, first = _at(before, -1), _at(after, 0)
  made = [
    f"word before: {last}",
    f"second word before: {_at(before, -2)}",
    f"words before: {_at(before, -2)} {last}",
    f"next word: {first}",
    f"second next word: {_at(after, 1)}",
    f"next words: {first} {_at(after, 1)}",
    row,
    f"words of the line: {min((len(before) + len(after)) // 4, 6) * 4} or more",
  ]
  if any("0" in word for word in after):
    made.append("digits after it in the line")
  if any("0" in word for word in before):
    made.append("digits before it in the line")
  if text[start:end].isupper():
    made.append("in capitals")
  made += [f"topic: {word}" for word in topic] or ["no topic"]
  main = topic[0] if topic else _NONE
  made += [
    f"topic and word before: {main}, {last}",
    f"topic and next word: {main}, {first}",
    f"topic and line: {main}, {row}",
  ]
  return made


def title_kinds(surface: str, title: str) -> list[str]:
  """Features of a candidate's title, given the mention.

  Returns:
    Its shape, its kind and its further words.
  """
  shape = candidate_features.title_shape(surface, title)
  words = candidate_features.other_words(normalize(surface), title, "")
  count = min(len(words), 3)
  if shape == "*":
    kind = "is the mention"
  elif title.endswith(")") and " (" in title:
    kind = "has brackets"
  elif ", " in title:
    kind = "has a comma"
  elif shape.startswith("* "):
    kind = f"begins with the mention, {count} more"
  elif shape.endswith(" *"):
    kind = f"ends with the mention, {count} more"
  else:
    kind = "contains the mention" if "*" in shape else "lacks the mention"
  listed = [f"word: {word}" for word in dict.fromkeys(words)]
  return [f"shape: {shape}", f"kind: {kind}", *listed[:_WORDS]]


def build_vocabulary(
  documents: Iterable[Document], min_contexts: int = 4, min_names: int = 4
) -> Vocabulary:
  """Numbers the features of training documents.

  Args:
    documents: the documents; their entities are not read.
    min_contexts: mentions that must have a feature of contexts.
    min_names: distinct mentions whose candidates must have a feature of
      titles, so that it describes a kind and not one entity.
  """
  contexts: collections.Counter[str] = collections.Counter()
  names: dict[str, set[str]] = {}
  for document in documents:
    for mention in document.mentions:
      contexts.update(
        set(context_features(document.text, mention.start, mention.end))
      )
      key = normalize(mention.surface)
      for candidate in mention.candidates:
        for kind in title_kinds(mention.surface, candidate.title):
          names.setdefault(kind, set()).add(key)
  kept = sorted(x for x, count in contexts.items() if count >= min_contexts)
  kinds = sorted(x for x, own in names.items() if len(own) >= min_names)
  return Vocabulary(_numbers(kept), _numbers(kinds))


def encode_kinds(
  documents: Iterable[Document], vocabulary: Vocabulary, top: int = 50
) -> KindArrays:
  """Contexts and candidates of all mentions as arrays.

  Args:
    documents: the documents with n mentions in all.
    vocabulary: numbers of the features; others are passed over.
    top: c, the most candidates of a mention; the first are kept.
  """
  listed = [(d, m) for d in documents for m in d.mentions]
  count = len(listed)
  made = KindArrays(
    np.full((count, _CONTEXTS), -1, np.int32),
    np.full((count, top, _KINDS), -1, np.int32),
    np.zeros((count, top), np.float32),
    np.zeros((count, top), bool),
    np.full(count, -1, np.int32),
  )
  for row, (document, mention) in enumerate(listed):
    own = context_features(document.text, mention.start, mention.end)
    ids = known(own, vocabulary.contexts)
    made.contexts[row, : len(ids)] = ids[:_CONTEXTS]
    for place, candidate in enumerate(mention.candidates[:top]):
      own = title_kinds(mention.surface, candidate.title)
      ids = known(own, vocabulary.kinds)[:_KINDS]
      made.kinds[row, place, : len(ids)] = ids
      made.log_links[row, place] = np.log1p(candidate.in_links)
      made.mask[row, place] = True
      if candidate.title == mention.entity:
        made.gold[row] = place
  return made


def known(features: Sequence[str], numbers: Mapping[str, int]) -> list[int]:
  """Numbers of the features that are in the vocabulary."""
  return [numbers[x] for x in features if x in numbers]


def _numbers(names: Sequence[str]) -> dict[str, int]:
  return {name: number for number, name in enumerate(names)}


def _words(text: str) -> list[str]:
  return _DIGIT.sub("0", text.lower()).split()


def _at(words: Sequence[str], place: int) -> str:
  return words[place] if -len(words) <= place < len(words) else _NONE


def _topic(text: str) -> list[str]:
  """Words before " - " in the first line."""
  head, dash, _ = text.partition("\n")[0].lower().partition(" - ")
  return head.split()[:6] if dash else []

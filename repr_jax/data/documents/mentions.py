"""Features of mentions in two fields, for retrieval (thesis 6.1.1).

A mention is a span of words in a sentence. Its "mention" field has its words,
and as binary features its whole string, its type, the trigrams of its string
and the acronym of its initials. Its "document" field has the words of its
sentence, the words of its document that score highest there, and the words of
its coreference chain. Words are lower-cased; English stop words, the
genitive's ending and marks are left out.

The thesis' chains come from a coreference system; `read_chains` reads such
ones. Otherwise a chain has the mentions in the same document that share a word
with the mention, which uses no link; sentences without a document have neither
chain nor document words.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax.data import entities
from repr_jax.data.io import files
from repr_jax.errors import InputError

# Of Lucene's StandardAnalyzer, which the thesis used.
_STOP = frozenset((
  "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in",
  "into", "is", "it", "no", "not", "of", "on", "or", "such", "that", "the",
  "their", "then", "there", "these", "they", "this", "to", "was", "will",
  "with", "'s", "’s",
))  # fmt: skip


class Mention(NamedTuple):
  """One mention in its sentence.

  Attributes:
    id: unique, without blanks.
    entity: the entity that it refers to; no feature.
    words: the mention as it is written; none where a sentence is about the
      entity without naming it.
    sentence: all tokens of the sentence.
    doc: the document, "" where there is none.
    kind: type of the mention, such as "PER"; "" where there is none.
  """

  id: str
  entity: str
  words: tuple[str, ...]
  sentence: tuple[str, ...]
  doc: str = ""
  kind: str = ""


class Field(NamedTuple):
  """One field of n mentions.

  Attributes:
    counts: float32 CSR [n, F], sorted columns.
    features: "word:x", and in the mention field "string:x", "type:x",
      "trigram:x" and "acronym:x", [F].
    real: which are counted words rather than binary, bool [F].
  """

  counts: sp.csr_array
  features: list[str]
  real: np.ndarray


class Fields(NamedTuple):
  """Both fields of n mentions."""

  mention: Field
  document: Field


def content_words(tokens: Iterable[str]) -> list[str]:
  """Lower-cased words without stop words and marks.

  Args:
    tokens: of a sentence or mention.

  Returns:
    The words, in order.
  """
  lower = (token.lower() for token in tokens)
  return [
    word for word in lower if word not in _STOP and any(map(str.isalnum, word))
  ]


def collect(
  stream: Iterable[entities.Sentence],
  kinds: Mapping[str, str] | None = None,
) -> list[Mention]:
  """The mentions of a corpus.

  Args:
    kinds: type of the mentions of each entity, where it is known.

  Returns:
    One mention for each sentence and entity, in order, with ids "m0", "m1"
    and so on; where a sentence mentions an entity twice, the longer mention.
  """
  kinds = kinds or {}
  mentions: list[Mention] = []
  for sentence in stream:
    spans: dict[str, tuple[int, int]] = {}
    for start, end, entity in sentence.mentions:
      old = spans.get(entity, (0, -1))
      if end - start > old[1] - old[0]:
        spans[entity] = start, end
    for entity, (start, end) in spans.items():
      words = sentence.tokens[start:end]
      kind = kinds.get(entity, "")
      name = f"m{len(mentions)}"
      mentions.append(
        Mention(name, entity, words, sentence.tokens, sentence.doc, kind)
      )
  if not mentions:
    raise InputError("the corpus has no sentence that mentions an entity")
  return mentions


def locate(name: Sequence[str], tokens: Sequence[str]) -> tuple[int, int]:
  """Where a sentence calls an entity by a part of its name.

  Args:
    name: tokens of the entity's full name.

  Returns:
    The longest run of words of the name, the first of equal ones, as (start,
    end); (0, 0) where there is none. Words of one or two characters and stop
    words do not count.
  """
  wanted = {word for word in content_words(name) if len(word) > 2}
  best, start = (0, 0), 0
  for end in range(1, len(tokens) + 1):
    if tokens[end - 1].lower() not in wanted:
      start = end
    elif end - start > best[1] - best[0]:
      best = start, end
  return best


def mention_features(mention: Mention) -> tuple[list[str], set[str]]:
  """The mention field of one mention.

  Returns:
    Words, with repeats, and binary features.
  """
  words = content_words(mention.words)
  binary = {f"type:{mention.kind}"} if mention.kind else set()
  if words:
    text = " ".join(words)
    binary.add(f"string:{text}")
    binary.update(f"trigram:{text[i : i + 3]}" for i in range(len(text) - 2))
  initials = [next(filter(str.isalpha, word), "") for word in words]
  if len(words) > 1 and any(initials):
    binary.add(f"acronym:{''.join(initials)}")
  elif len(words) == 1 and (letters := _acronym(mention.words)):
    binary.add(f"acronym:{letters}")
  return [f"word:{word}" for word in words], binary


def _acronym(tokens: Iterable[str]) -> str:
  """The letters of "U.S." or "NATO" in lower case; "" for other names."""
  text = "".join(tokens).replace(".", "")
  return text.lower() if text.isupper() and 2 <= len(text) <= 6 else ""


def read_chains(path: files.Path, mentions: Sequence[Mention]) -> np.ndarray:
  """Reads coreference chains, one a line: "m0 m4 m7".

  Args:
    path: ids of the mentions of each chain, with blanks between them.
    mentions: of the whole collection.

  Returns:
    The chain of each mention, int64 [n]; -1 for mentions in none.

  Raises:
    InputError: an id is unknown or twice in the file, a chain has mentions of
      two documents or of none, or there is no chain.
  """
  rows = {mention.id: i for i, mention in enumerate(mentions)}
  chains = np.full(len(mentions), -1)
  count = 0
  for line, text in enumerate(files.open_text(path), 1):
    names = text.split()
    for name in names:
      if name not in rows:
        raise InputError(
          f"there is no mention {name!r}; mentions are named m0, m1, ... in "
          "the order of the corpus",
          path=path, line=line,
        )  # fmt: skip
      if chains[rows[name]] >= 0:
        raise InputError(f"{name!r} is listed twice", path=path, line=line)
      own, first = mentions[rows[name]].doc, mentions[rows[names[0]]].doc
      if not own or own != first:
        raise InputError(
          f"{names[0]!r} and {name!r} are in the documents {first!r} and "
          f"{own!r}; a chain belongs to one document",
          path=path, line=line,
        )  # fmt: skip
      chains[rows[name]] = count
    count += bool(names)
  if not count:
    raise InputError("has no chain", path=path)
  return chains


def read_types(path: files.Path, mentions: Sequence[Mention]) -> list[Mention]:
  """Gives mentions the types of a file of lines `m0<TAB>PER`.

  Args:
    path: the file, plain or compressed.
    mentions: of the whole collection.

  Returns:
    The mentions; those that the file does not list keep their type. A line
    of another form, a name that is no mention's, and a mention that is there
    twice are `InputError`s.
  """
  kinds: dict[str, str] = {}
  names = {mention.id for mention in mentions}
  for line, text in files.numbered_lines(path):
    name, _, kind = (x.strip() for x in text.partition("\t"))
    if not name or not kind:
      message = "expected mention<TAB>type"
    elif name not in names:
      message = f"there is no mention {name!r} in the collection"
    elif name in kinds:
      message = f"mention {name!r} is listed twice"
    else:
      kinds[name] = kind
      continue
    raise InputError(message, path=path, line=line)
  return [m._replace(kind=kinds.get(m.id, m.kind)) for m in mentions]


def featurize(
  mentions: Sequence[Mention],
  *,
  document_words: int = 10,
  chains: np.ndarray | None = None,
) -> Fields:
  """Both fields of all mentions.

  Args:
    mentions: of the whole collection, as chains and frequencies need it.
    document_words: how many of the best words of the document each mention
      gets: by their count there times their inverse document frequency.
    chains: the coreference chain of each mention, int [n], -1 for none; by
      default mentions of a document that share a word are one.

  Returns:
    The fields, n rows each.
  """
  around = _document_words(mentions, document_words)
  together = _chains(mentions) if chains is None else _given(mentions, chains)
  first, second = _Rows(), _Rows()
  sentences: dict[tuple[str, ...], list[str]] = {}
  for i, mention in enumerate(mentions):
    first.add(*mention_features(mention))
    if mention.sentence not in sentences:
      words = content_words(mention.sentence)
      sentences[mention.sentence] = [f"word:{word}" for word in words]
    second.add(
      [*sentences[mention.sentence], *around.get(mention.doc, ()), *together[i]]
    )
  return Fields(first.field(), second.field())


def word_part(field: Field) -> tuple[sp.csr_array, list[str]]:
  """The counted words of a field alone.

  Args:
    field: the field of n mentions.

  Returns:
    Counts, CSR [n, W], and the words without their prefix, [W].
  """
  columns = np.flatnonzero(field.real)
  words = [field.features[i].partition(":")[2] for i in columns.tolist()]
  return sp.csr_array(field.counts[:, columns]), words


class _Rows:
  """Rows of named features that become a matrix."""

  def __init__(self) -> None:
    self._index: dict[str, int] = {}
    self._real: list[bool] = []
    self._columns: list[int] = []
    self._ends = [0]

  def add(self, words: Iterable[str], binary: Iterable[str] = ()) -> None:
    for features, real in ((words, True), (sorted(binary), False)):
      for feature in features:
        column = self._index.setdefault(feature, len(self._index))
        if column == len(self._real):
          self._real.append(real)
        self._columns.append(column)
    self._ends.append(len(self._columns))

  def field(self) -> Field:
    columns = np.array(self._columns, np.int32)
    shape = (len(self._ends) - 1, len(self._index))
    counts = sp.csr_array(
      (np.ones(len(columns), np.float32), columns, np.array(self._ends)), shape
    )
    counts.sum_duplicates()
    return Field(counts, list(self._index), np.array(self._real, bool))


def _document_words(
  mentions: Sequence[Mention], most: int
) -> dict[str, list[str]]:
  """The best words of each document; a sentence counts there once."""
  texts: dict[str, set[tuple[str, ...]]] = {}
  for mention in mentions:
    if mention.doc:
      texts.setdefault(mention.doc, set()).add(mention.sentence)
  counts = {
    doc: collections.Counter(
      w for text in sentences for w in content_words(text)
    )
    for doc, sentences in texts.items()
  }
  having = collections.Counter(
    word for count in counts.values() for word in count
  )
  best = {}
  for doc, count in counts.items():
    scored = {w: c * np.log(len(counts) / having[w]) for w, c in count.items()}
    order = sorted(scored, key=lambda w: (-scored[w], w))[:most]
    best[doc] = [f"word:{word}" for word in order]
  return best


def _chains(mentions: Sequence[Mention]) -> list[list[str]]:
  """Words of the mentions of a document that share a word with each one."""
  own = [frozenset(content_words(mention.words)) for mention in mentions]
  by_document: dict[str, dict[str, set[str]]] = {}
  for mention, words in zip(mentions, own):
    if mention.doc:
      together = by_document.setdefault(mention.doc, {})
      for word in words:
        together.setdefault(word, set()).update(words)
  chains = []
  for mention, words in zip(mentions, own):
    together = by_document.get(mention.doc, {})
    chain = set().union(*(together.get(word, ()) for word in words))
    chains.append([f"word:{word}" for word in sorted(chain)])
  return chains


def _given(mentions: Sequence[Mention], chains: np.ndarray) -> list[list[str]]:
  """Words of each mention's chain, or of the mention alone."""
  own = [set(content_words(mention.words)) for mention in mentions]
  words: dict[int, set[str]] = {}
  for number, mine in zip(chains.tolist(), own):
    words.setdefault(number, set()).update(mine)
  return [
    [f"word:{x}" for x in sorted(words[number] if number >= 0 else mine)]
    for number, mine in zip(chains.tolist(), own)
  ]

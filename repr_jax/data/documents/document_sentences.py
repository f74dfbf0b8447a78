"""Splits linked documents into sentences.

Documents are tokenized already, so punctuation and capitals mark sentence
ends. No cut lies inside a mention, after an abbreviation or before a
lower-case letter.
"""

from collections.abc import Iterator

from repr_jax.data import entities
from repr_jax.data.documents.linked_documents import LinkedDocument

_ENDS = frozenset(".!?")
_CLOSING = frozenset("”’)]")
_OPENING = frozenset("“‘([")
_QUOTE = '"'
_SHORT = frozenset((
  "Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Sr", "Jr", "Gen", "Col", "Lt", "Sgt",
  "Capt", "Rev", "Gov", "Sen", "Rep", "Hon", "Mt", "Ft", "Inc", "Ltd", "Co",
  "Corp", "vs", "v", "ca", "cf", "pp", "p", "ed", "eds", "al",
  "Jan", "Feb", "Mar", "Apr", "Aug", "Sep", "Sept", "Oct", "Nov", "Dec",
))  # fmt: skip


def split(document: LinkedDocument) -> Iterator[entities.Sentence]:
  """Cuts a document into sentences.

  Args:
    document: the document; a mention without an entity is left out.

  Yields:
    Its sentences in order, also those without a mention; the document's id is
    their document. A document whose text is a list of mentions gives one
    sentence.
  """
  tokens = document.tokens
  linked = [
    (mention.start, mention.end, mention.entity)
    for mention in sorted(document.mentions, key=lambda m: (m.start, m.end))
    if mention.entity is not None
  ]
  inside = {
    place for start, end, _ in linked for place in range(start + 1, end)
  }
  cuts = {*_ends(tokens), *document.breaks} - inside - {0, len(tokens)}
  low, at = 0, 0
  for high in (*sorted(cuts), len(tokens)):
    own = []
    # Trailing tokens without a word belong to the last sentence.
    while at < len(linked) and (linked[at][0] < high or high == len(tokens)):
      start, end, entity = linked[at]
      own.append((start - low, end - low, entity))
      at += 1
    if high > low:
      yield entities.Sentence(document.id, tokens[low:high], tuple(own))
    low = high


def _ends(tokens: tuple[str, ...]) -> Iterator[int]:
  """Places before which a new sentence begins."""
  quoted, at = False, 0
  while at < len(tokens):
    token, before = tokens[at], tokens[at - 1] if at else ""
    at += 1
    quoted ^= token == _QUOTE
    if token not in _ENDS:
      continue
    while at < len(tokens) and _closes(tokens[at], quoted):
      quoted ^= tokens[at] == _QUOTE
      at += 1
    short = before in _SHORT or (len(before) == 1 and before.isupper())
    if (token != "." or not short) and _begins(tokens[at : at + 2]):
      yield at


def _closes(token: str, quoted: bool) -> bool:
  return token in _ENDS or token in _CLOSING or (quoted and token == _QUOTE)


def _begins(tokens: tuple[str, ...]) -> bool:
  """Whether a sentence may begin with these two tokens."""
  if tokens and (tokens[0] in _OPENING or tokens[0] == _QUOTE):
    tokens = tokens[1:]
  return bool(tokens) and (tokens[0][0].isupper() or tokens[0][0].isdigit())

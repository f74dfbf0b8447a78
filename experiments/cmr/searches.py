"""Further searches beside two-field BM25: other weights, and BM25F.

A specification is bm25 or bm25f with weights, such as
`bm25:document_weight=0.01`.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from experiments import thesis
from repr_jax.data.documents import mentions
from repr_jax.errors import InputError
from repr_jax.linking import field_bm25, mention_retrieval

KINDS = ("bm25", "bm25f")
_WEIGHTS = ("document_weight", "mention_weight")


@dataclasses.dataclass(frozen=True)
class Search:
  """One search.

  Attributes:
    name: its specification.
    kind: one of `KINDS`.
    document_weight: weight of the document field; None for the run's.
    mention_weight: weight of the mention field; None for the run's.
  """

  name: str
  kind: str
  document_weight: float | None = None
  mention_weight: float | None = None


def parse(text: str) -> Search:
  """Reads a specification.

  Args:
    text: kind and weights, joined by colons.

  Returns:
    The search; InputError where it cannot be.
  """
  kind, *settings = text.split(":")
  if kind not in KINDS:
    raise InputError(f"--searches: {text!r} is none of {', '.join(KINDS)}")
  if text == "bm25":
    raise InputError("--searches: bm25 itself is always there; give a weight")
  values: dict[str, float] = {}
  for setting in settings:
    name, _, value = setting.partition("=")
    if name not in _WEIGHTS:
      raise InputError(
        f"--searches: {text!r} has no setting {name!r}; there are "
        f"{', '.join(_WEIGHTS)}"
      )
    try:
      values[name] = float(value)
    except ValueError:
      raise InputError(f"--searches: {setting!r} is not a number") from None
    if not 0 <= values[name] <= 1e6:
      raise InputError(f"--searches: {setting!r} must be from 0 to 1e6")
  if values and not any(values.get(name, 1) for name in _WEIGHTS):
    raise InputError(f"--searches: {text!r}: not both weights may be 0")
  return Search(text, kind, **values)


def run(
  search: Search,
  fields: mentions.Fields,
  tokens: Sequence[Sequence[str]],
  exclude: np.ndarray,
  weights: tuple[float, float],
  top: int,
) -> mention_retrieval.Ranking:
  """Searches for all queries.

  Args:
    fields: fields of n mentions.
    tokens: tokens of each query's mention.
    exclude: row of each query's mention, int [q].
    weights: the run's weights of the document and the mention field.
    top: mentions for each query.

  Returns:
    The ranking, numpy fields [q, top].
  """
  document, mention = (
    own if given is None else given
    for own, given in zip(
      weights, (search.document_weight, search.mention_weight)
    )
  )
  if search.kind == "bm25f":
    index, known = field_bm25.index_fields(fields, (mention, document))
    queries = mention_retrieval.make_queries(known, tokens, 0.0, 1.0)
  else:
    index, known = mention_retrieval.index_mentions(fields)
    queries = mention_retrieval.make_queries(known, tokens, document, mention)
  return mention_retrieval.search_batch(index, queries, exclude, top)


def published(search: Search) -> float | None:
  """The thesis' infAP of a search, where it has one."""
  return thesis.CMR_SEARCHES.get(search.name)

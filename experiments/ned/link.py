"""Links plain text: one line for each mention, with reasons."""

import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from experiments.ned import link_model
from experiments.ned.config import Config
from experiments.ned.link_model import GROUPS, Linked, LinkModel
from repr_jax import linking
from repr_jax.data.documents import (
  candidate_features,
  candidate_files,
  entity_base,
  mention_finder,
)
from repr_jax.data.documents.candidate_files import Document
from repr_jax.data.documents.candidates import normalize
from repr_jax.data.io import files
from repr_jax.errors import InputError

_FIELDS = (
  "doc", "start", "end", "surface", "entity", "probability", "runner_up",
  "runner_up_probability", "nil",
)  # fmt: skip
_SHOWN = 5  # reasons of a kind
_REST = "(others)"
_messages = jax.jit(jax.vmap(linking.messages))
_parts = jax.jit(jax.vmap(linking.kind_parts, (None, 0, 0)))


def documents(
  model: LinkModel, config: Config, paths: Sequence[str]
) -> list[Document]:
  """Reads texts, finds their mentions and looks candidates up.

  Args:
    config: the configuration; --mentions gives documents with mentions.
    paths: files of plain text, one document each.

  Returns:
    The documents, named like their files. An unreadable or empty file and
    one that is given twice are `InputError`s.
  """
  if bool(paths) == bool(config.mentions):
    raise InputError(
      "--mode=link needs FILE... of plain text, or --mentions=FILE with "
      "documents and mentions; not both"
    )
  made = []
  if config.mentions:
    for document in candidate_files.read_gold_documents(config.mentions):
      spans = [(m.start, m.end, m.entity) for m in document.mentions]
      made.append((document.id, document.text, spans))
  given = [
    entity_base.base_document(model.base, *one, top=link_model.TOP)
    for one in made
  ]
  names = [pathlib.Path(path).name for path in paths]
  for path, name in zip(paths, names):
    if paths.count(path) > 1:
      raise InputError("is given twice", path=path)
    text = "\n".join(line.rstrip("\r\n") for line in files.open_text(path))
    if not text.strip():
      raise InputError("is empty", path=path)
    name = name if names.count(name) == 1 else path
    given.append(from_text(model, name, text))
  link_model.warn(given)
  return given


def from_text(model: LinkModel, name: str, text: str) -> Document:
  """Makes a document of plain text: names in it become mentions.

  Args:
    name: the document's id.
  """
  names = mention_finder.find_mentions(text, gazetteer=model.small)
  spans = [(x.start, x.end, None) for x in names]
  return entity_base.base_document(
    model.base, name, text, spans, link_model.TOP
  )


def records(model: LinkModel, linked: Linked) -> Iterator[dict[str, Any]]:
  """One record for each mention, in the order of the documents.

  Yields:
    Fields of the table and "why": the parts of the score by kind, which add
    up to it; features of the context with their parts, which add up to the
    score of the title's kind; words of the answer's title and description
    that are in the text; the mentions that support it, whose shares add up to
    1; the answer's in-links; and the probability that the entity is a
    candidate at all, with parts that add up to its log odds. "probability" is
    that times the probability of the answer among the candidates.
  """
  support, around = _support(linked), _around(model, linked)
  odds = np.zeros((len(linked.best), len(link_model.KNOWN_GROUPS)))
  if model.known is not None:
    odds = link_model.known_parts(model.known, linked.inputs)
  number = 0
  for document in linked.documents:
    words = set(candidate_features.WORD.findall(document.text.casefold()))
    for mention in document.mentions:
      known, best = float(linked.known[number]), int(linked.best[number])
      chances = known * linked.probabilities[number]
      record: dict[str, Any] = {
        "doc": document.id, "start": mention.start, "end": mention.end,
        "surface": mention.surface, "entity": None, "probability": 0.0,
        "runner_up": None, "runner_up_probability": 0.0, "nil": True,
      }  # fmt: skip
      if best >= 0:
        answer = mention.candidates[best]
        p = float(chances[best])
        record |= {
          "entity": answer.title,
          "probability": round(p, 4),
          "nil": p < model.threshold,
        }
        if len(mention.candidates) > 1:
          second = int(np.argsort(-chances)[1])
          record["runner_up"] = mention.candidates[second].title
          record["runner_up_probability"] = round(float(chances[second]), 4)
        parts = linked.parts[number, best]
        other = candidate_features.other_words(
          normalize(mention.surface), answer.title, answer.description
        )
        record["why"] = {
          "score": round(float(linked.scores[number, best]), 4),
          "parts": {k: round(float(x), 4) for k, x in zip(GROUPS, parts)},
          "context_score": round(sum(x for _, x in around[number]), 4),
          "context": _told(around[number]),
          "words": [w for w in other if w in words],
          "mentions": [
            {"surface": surface, "share": round(share, 3)}
            for surface, share in support[number]
          ],
          "in_links": answer.in_links,
          "known": round(known, 4),
          "log_odds": round(float(odds[number].sum()), 4),
          "log_odds_parts": {
            k: round(float(x), 4)
            for k, x in zip(link_model.KNOWN_GROUPS, odds[number])
          },
        }
      yield record
      number += 1


def _support(linked: Linked) -> dict[int, list[tuple[str, float]]]:
  """Mentions that support each answer, with their shares, which add up."""
  surfaces = [m.surface for d in linked.documents for m in d.mentions]
  made: dict[int, list[tuple[str, float]]] = {
    number: [] for number in range(len(surfaces))
  }
  for group in linked.groups:
    there = np.maximum(group.mentions, 0)
    table = linking.fit_ranker.in_blocks(
      _messages, group.evidence, linked.probabilities[there].astype(np.float32)
    )
    for numbers, messages in zip(group.mentions, table):
      for row, number in enumerate(numbers.tolist()):
        if number < 0:
          continue
        given = messages[row, :, linked.best[number]]
        total = given.sum()
        merged: dict[str, float] = {}
        for place in np.flatnonzero(given > 1e-6).tolist():
          surface = surfaces[numbers[place]]
          merged[surface] = merged.get(surface, 0.0) + given[place] / total
        ordered = sorted(merged.items(), key=lambda x: (-x[1], x[0]))
        made[number] = [(s, float(x)) for s, x in ordered[:_SHOWN]]
        if ordered[_SHOWN:]:
          rest = sum(float(x) for _, x in ordered[_SHOWN:])
          made[number].append((_REST, rest))
  return made


def _around(model: LinkModel, linked: Linked) -> list[list[tuple[str, float]]]:
  """Parts of each answer's kind score by features of the context."""
  names = list(model.contexts.vocabulary.contexts)
  arrays, best = linked.arrays, np.maximum(linked.best, 0)
  if not len(best):
    return []
  kinds = np.take_along_axis(arrays.kinds, best[:, None, None], axis=1)
  table = np.asarray(_parts(model.contexts.params, arrays.contexts, kinds))
  return [
    [(names[i], float(x)) for i, x in zip(ids.tolist(), own) if i >= 0]
    + [("the title alone", float(own[-1]))]
    for ids, own in zip(arrays.contexts, table[..., 0])
  ]


def _told(parts: list[tuple[str, float]]) -> list[dict[str, Any]]:
  """The largest parts and the rest; they add up to the whole."""
  ordered = sorted(parts, key=lambda x: (-abs(x[1]), x[0]))
  shown, rest = ordered[:_SHOWN], ordered[_SHOWN:]
  if rest:
    shown = [*shown, (_REST, sum(x for _, x in rest))]
  total = sum(abs(x) for _, x in parts) or 1.0
  return [
    {"feature": name, "part": round(x, 4), "share": round(abs(x) / total, 3)}
    for name, x in shown
  ]


def lines(
  given: Sequence[Document], made: Iterable[dict[str, Any]], form: str
) -> Iterator[str]:
  """The records as text.

  Args:
    given: the documents.
    made: their records, of `records`.
    form: "tsv" with a header; "json", a line for each mention with reasons;
      "standoff", a line for each document, as readers of linked documents and
      of sentences with entities read it; NIL mentions are unlinked there.

  Yields:
    Lines without their ends.
  """
  if form == "tsv":
    yield "\t".join(_FIELDS)
    for record in made:
      cells = ("" if record[x] is None else record[x] for x in _FIELDS)
      yield "\t".join(" ".join(str(x).split()) for x in cells)
  elif form == "json":
    for record in made:
      yield json.dumps(record, ensure_ascii=False)
  else:
    rest = iter(made)
    for document in given:
      spans: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
      for record in itertools.islice(rest, len(document.mentions)):
        span = {"start": record["start"], "end": record["end"]}
        linked = {} if record["nil"] else {"entity": record["entity"]}
        spans[record["nil"]].append(span | linked)
      whole = {
        "doc": document.id, "text": document.text,
        "mentions": spans[False], "unlinked_mentions": spans[True],
      }  # fmt: skip
      yield json.dumps(whole, ensure_ascii=False)

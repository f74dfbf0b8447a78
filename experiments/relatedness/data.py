"""Readers of text and queries for vectors of entities."""

import itertools
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np

from repr_jax.data import entities, relatedness, wordnet
from repr_jax.data.documents import corpus_files, wikipedia
from repr_jax.data.documents.linked_documents import LinkedDocument
from repr_jax.data.wordnet import instances
from repr_jax.errors import InputError


def stream(
  corpus: list[str], form: str, wordnet_path: str | None
) -> Iterator[entities.Sentence]:
  """Sentences of all sources, also those without a mention.

  Args:
    corpus: sources as --corpus names them.
    wordnet_path: folder of WordNet, None to look where `wordnet.load` does.

  Yields:
    Sentences. The document of a sentence about an entity is the entity's id.
  """
  for source in corpus:
    if source == "wordnet":
      opened = wordnet.load(wordnet_path)
      pairs = instances.wordnet_instances(opened, "instances", True)
      yield from itertools.chain.from_iterable(
        sentences for _, sentences in pairs
      )
      continue
    path = _located(source)
    kind = corpus_files.form_of(path, form)
    if kind == "wikipedia":
      yield from wikipedia.linked_sentences(path, all_sentences=True)
    elif kind == "entities":
      for info, sentences in entities.read_entity_file(path):
        yield from (sentence._replace(doc=info.id) for sentence in sentences)
    elif kind == "documents":
      yield from map(_as_sentence, corpus_files.read_documents(path))
    else:
      yield from entities.read_sentences(path)


def class_queries(
  opened: wordnet.WordNet, seed: int, count: int = 400
) -> list[relatedness.RelatednessQuery]:
  """Queries from WordNet's classes: five of the seed's class, twenty others.

  Args:
    count: queries, at most.
  """
  sets = instances.wordnet_instance_sets(opened, min_members=6)
  everyone = sorted({name for members in sets.values() for name in members})
  rng = np.random.default_rng(seed)
  queries = []
  for number in range(count):
    kind = list(sets)[int(rng.integers(len(sets)))]
    own = rng.choice(sets[kind], 6, replace=False).tolist()
    inside = {
      x for members in sets.values() if own[0] in members for x in members
    }
    others = rng.choice(everyone, 60, replace=False).tolist()
    others = [x for x in others if x not in inside][:20]
    gold = (*[1.0] * 5, *[0.0] * len(others))
    queries.append(
      relatedness.RelatednessQuery(
        f"{number}-{kind}", own[0], (*own[1:], *others), gold
      )
    )
  return queries


def query_names(paths: Sequence[str]) -> dict[str, str]:
  """Distinct names of files of queries.

  Returns:
    Paths by name: a file's own name, with as many folders before it as make
    it distinct. A repeated file is an `InputError`.
  """
  parts = [pathlib.PurePath(path).parts for path in paths]
  named = {}
  for path, own in zip(paths, parts):
    if parts.count(own) > 1:
      raise InputError("--queries has this file twice", path=path)
    ends = (own[-n:] for n in range(1, len(own)))
    unique = (x for x in ends if sum(y[-len(x) :] == x for y in parts) == 1)
    named[str(pathlib.PurePath(*next(unique, own)))] = path
  return named


def rename(
  queries: Sequence[relatedness.RelatednessQuery],
  corpus: list[str],
  known: set[str],
) -> list[relatedness.RelatednessQuery]:
  """Names the entities of queries as the corpus does.

  Args:
    corpus: where page numbers of queries are looked up.
    known: ids of the corpus' entities.
  """
  names = {x for query in queries for x in (query.seed, *query.candidates)}
  titles: dict[str, str] = {}
  if all(name.isdecimal() for name in names) and not names & known:
    for source in corpus:
      if source == "wordnet":
        continue
      place = _located(source)
      if corpus_files.form_of(place) == "wikipedia":
        titles |= wikipedia.read_page_ids(place)

  def title(name: str) -> str:
    name = titles.get(name, name)
    return name if name in known else name.replace("_", " ")

  return [
    query._replace(
      seed=title(query.seed), candidates=tuple(map(title, query.candidates))
    )
    for query in queries
  ]


def _located(source: str) -> str:
  """The path of a source that is not WordNet."""
  return corpus_files.gensim_dump() if source == "wikipedia" else source


def _as_sentence(document: LinkedDocument) -> entities.Sentence:
  """A linked document as one long sentence, named as its article is."""
  mentions = tuple(
    (m.start, m.end, m.entity.replace("_", " "))
    for m in document.mentions
    if m.entity is not None
  )
  name = document.id.replace("_", " ")
  return entities.Sentence(name, document.tokens, mentions)

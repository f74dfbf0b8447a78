"""Views from text, bitext, dependency trees and WordNet.

Each function gives a `Source`, whose views come as blocks of rows, so that a
view may be larger than memory.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array as Csr

from repr_jax.data import wordnet
from repr_jax.data.io import files
from repr_jax.data.views import (
  bitext,
  counting,
  counts,
  dependencies,
  text,
  vocab,
  wordnet_views,
)
from repr_jax.data.views.source import OPEN, Gather, Made, Notes, Source, stem
from repr_jax.data.wordnet import tables
from repr_jax.errors import InputError

LIMIT = 1 << 27  # counts that are held in memory at most

# From word ids of sentences and translations to links (sentence, source
# place, target place) [k, 3] and how many were left out.
Aligner: TypeAlias = Callable[
  [list[np.ndarray], list[np.ndarray]], tuple[np.ndarray, int]
]


def text_source(
  paths: Sequence[files.Path],
  *,
  offsets: int = 15,
  ahead: int = 0,
  columns: int = 200_000,
  limit: int = LIMIT,
) -> Source:
  """Word-order views of a corpus (thesis 3.4), see `count_offsets`.

  Args:
    paths: files of tokenized text, one sentence on a line.
    offsets: how many words behind, one view each.
    ahead: how many words ahead, one view each.
    columns: how many of the most frequent words are columns.
    limit: the most counts to hold in memory.
  """
  each = [*range(1, offsets + 1), *range(-1, -ahead - 1, -1)]

  def make(words: vocab.Vocab, notes: Notes) -> Iterator[Made]:
    def chunks():
      for chunk in text.token_chunks(paths, words):
        notes["tokens outside the vocabulary"] += int((chunk.ids < 0).sum())
        yield chunk

    width = min(columns, len(words))
    with counting.count_offsets(
      chunks(), len(words), width, each, limit=limit
    ) as tally:
      for offset in each:
        side = "behind" if offset > 0 else "ahead"
        name = f"text_{side}_{abs(offset):02d}"
        yield Made(name, tally.blocks(offset), words.words[:width], {})

  return Source("text", make, paths, {"offsets": each, "columns": columns})


def document_source(paths: Sequence[files.Path], *, lines: int = 30) -> Source:
  """How often each word stood in each document of a corpus.

  Args:
    paths: files of tokenized text, one sentence on a line.
    lines: sentences of a document; a corpus without marks between its documents
      is cut into runs of this many.
  """

  def make(words: vocab.Vocab, notes: Notes) -> Iterator[Made]:
    shape, before = (len(words), OPEN), 0
    with counting.Tally(["documents"], shape, LIMIT) as tally:
      for chunk in text.token_chunks(paths, words):
        known = chunk.ids >= 0
        notes["tokens outside the vocabulary"] += int((~known).sum())
        document = (before + chunk.sentence[known]) // lines
        ones = np.ones(len(document), np.int32)
        counted = Csr((ones, (chunk.ids[known], document)), shape=shape)
        counted.sum_duplicates()
        tally.reserve(counted.nnz)
        tally.add("documents", counted)
        before += len(chunk.starts) - 1
      width = -(-before // lines)
      cut = (
        Csr((b.data, b.indices, b.indptr), shape=(b.shape[0], width))
        for b in tally.blocks("documents")
      )
      names = [f"document_{d}" for d in range(width)]
      yield Made(f"text_documents_{lines}", cut, names, {})

  return Source("documents", make, paths, {"lines": lines})


def bitext_source(
  paths: Sequence[files.Path],
  *,
  align: Aligner | None = None,
  aligner: Sequence[Any] = (),
) -> Source:
  """How often each word was aligned to each foreign word.

  Args:
    paths: files of sentences, of their translations and, if there is a third,
      of alignments.
    align: aligns a bitext that has none; see
      `repr_jax.multiview.alignment.align`.
    aligner: JSON values that identify the aligner.
  """
  if len(paths) not in (2, 3):
    raise InputError(
      "a bitext is source:target or source:target:alignments, not "
      + ":".join(map(str, paths))
    )
  if len(paths) == 2 and align is None:
    raise InputError(
      f"{paths[0]}:{paths[1]} has no alignments; name a file of them or an "
      "aligner"
    )

  def make(words: vocab.Vocab, notes: Notes) -> Iterator[Made]:
    pairs: Iterable[bitext.Pair] = bitext.read_bitext(*paths)
    if len(paths) == 2:
      assert align is not None
      pairs = _aligned(list(pairs), align, notes)
    foreign: dict[str, int] = {}
    with Gather(words, ["links"], OPEN, LIMIT) as gather:
      for pair in pairs:
        assert pair.links is not None
        ids = words.ids(pair.source)
        notes["words outside the vocabulary"] += int((ids < 0).sum())
        for i, j in pair.links.tolist():
          if ids[i] >= 0:
            column = foreign.setdefault(pair.target[j], len(foreign))
            gather.add("links", ids[i], column)
      blocks = gather.blocks("links", len(foreign))
      yield Made(f"bitext_{stem(paths[1])}", blocks, list(foreign), {})

  options = {"aligner": list(aligner) if len(paths) == 2 else []}
  return Source(f"bitext_{stem(paths[1])}", make, paths, options)


def _aligned(
  pairs: list[bitext.Pair], align: Aligner, notes: Notes
) -> Iterator[bitext.Pair]:
  """Aligns a bitext."""
  sides = []
  for side in ([p.source for p in pairs], [p.target for p in pairs]):
    index: dict[str, int] = {}
    sides.append(
      [
        np.array([index.setdefault(w, len(index)) for w in line], np.int32)
        for line in side
      ]
    )
  links, skipped = align(*sides)
  notes["sentences too long or empty to align"] += skipped
  ends = np.searchsorted(links[:, 0], np.arange(len(pairs) + 1))
  for k, pair in enumerate(pairs):
    part = links[ends[k] : ends[k + 1], 1:]
    yield bitext.Pair(pair.source, pair.target, part, pair.line)


def dependency_source(
  paths: Sequence[files.Path],
  *,
  relations: Sequence[str] = dependencies.RELATIONS,
  columns: int = 200_000,
  layout: str = "conllu",
) -> Source:
  """How often each word stood under each governor, by relation.

  Args:
    paths: CoNLL files.
    relations: each gives one view, named dep_RELATION.
    columns: how many of the most frequent words may be governors.
    layout: of the files, see `read_conll`. Without relations in the file, the
      one view is called dep_any.
  """
  options = {
    "relations": list(relations), "layout": layout, "collapse": True,
    "columns": columns,
  }  # fmt: skip
  listed = ("any",) if layout == "word-tag-head" else relations

  def make(words: vocab.Vocab, notes: Notes) -> Iterator[Made]:
    wanted, width = set(listed), min(columns, len(words))
    with Gather(words, listed, width, LIMIT) as gather:
      for path in paths:
        for tree in dependencies.read_conll(path, layout, unlabeled="any"):
          ids = words.ids(tree.words).tolist()
          for i, head, relation in dependencies.arcs(tree):
            if relation not in wanted:
              notes["arcs of other relations"] += 1
            elif ids[i] < 0 or not 0 <= ids[head] < width:
              notes["arcs with a word outside the vocabulary"] += 1
            else:
              gather.add(relation, ids[i], ids[head])
      names = words.words[:width]
      for relation in listed:
        name = f"dep_{re.sub(r'[^A-Za-z0-9._-]', '-', relation)}"
        blocks = gather.blocks(relation, width)
        yield Made(name, blocks, names, {"relation": relation})

  return Source("dependencies", make, paths, options)


def wordnet_source(
  groups: Sequence[str],
  folder: str | None = None,
) -> Source:
  """Views of WordNet, see `wordnet_views`.

  Args:
    groups: of `wordnet_views.GROUPS`.
    folder: of WordNet; None to look where `wordnet.load` does.
  """
  place = tables.find_folder(folder)
  details = wordnet_views.Config()

  def make(words: vocab.Vocab, notes: Notes) -> Iterator[Made]:
    database = wordnet.load(place)
    for view in wordnet_views.views(database, words.words, groups, details):
      yield Made(view.name, [view.matrix], view.columns, dict(view.meta))
    known = counts.observed(wordnet_views.senses(database, words.words))
    notes["words that WordNet does not have"] += int((~known).sum())

  return Source(
    "wordnet",
    make,
    [place / "data.noun", place / "data.verb", place / "data.adj"],
    {"groups": sorted(groups), **dataclasses.asdict(details)},
  )

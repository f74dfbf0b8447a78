"""Collecting views: count what is asked for, reuse what was counted before.

    spec = Specification(text=("wiki.txt.gz",), wordnet_groups=("synset",))
    for view in collect(vocabulary, spec, "views"):
      ...view.matrix...

Each input is a source with a fingerprint of its files, its options and the
vocabulary. Its views are stored under one directory, with a list of them that
is written last; a later call with the same fingerprint maps them again.
"""

import dataclasses
import functools
import json
import pathlib
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from repr_jax.data import wordnet
from repr_jax.data.io import files, json_files
from repr_jax.data.views import sources, store, vocab, wordnet_views
from repr_jax.data.views.dependencies import RELATIONS
from repr_jax.data.wordnet import tables
from repr_jax.errors import InputError
from repr_jax.multiview import weighting

View = store.View


@dataclasses.dataclass(frozen=True)
class Specification:
  """Which views to make; each field can be a flag.

  Attributes:
    text: files of tokenized text for word-order views.
    offsets: how many words behind, one view each.
    ahead: how many words ahead, one view each.
    columns: the most frequent words that are columns of text and dependency
      views.
    bitext: `source:target` or `source:target:alignments` for each bitext.
    align_iterations: steps of EM where a bitext has no alignments.
    symmetry: how the two directions are joined: intersection, union, forward.
    dependencies: CoNLL files.
    relations: dependency relations, one view each.
    layout: of the CoNLL files, "conllu" or "word-tag-head".
    collapse: whether prepositions are folded into relations.
    wordnet_groups: groups of WordNet views, of `wordnet_views.GROUPS`.
    wordnet_path: folder of WordNet; None to look in the usual places.
    wordnet_options: details of the WordNet views.
    counts: files of `word<TAB>feature<TAB>count`.
    matrices: `matrix.npz:rows.txt` for each scipy matrix.
    vectors: files of other systems' vectors.
    limit: the most counts to hold in memory while counting.
  """

  text: Sequence[str] = ()
  offsets: int = 15
  ahead: int = 0
  columns: int = 200_000
  bitext: Sequence[str] = ()
  align_iterations: int = 5
  symmetry: str = "intersection"
  dependencies: Sequence[str] = ()
  relations: Sequence[str] = RELATIONS
  layout: str = "conllu"
  collapse: bool = True
  wordnet_groups: Sequence[str] = ()
  wordnet_path: str | None = None
  wordnet_options: wordnet_views.Options = dataclasses.field(
    default_factory=wordnet_views.Options
  )
  counts: Sequence[str] = ()
  matrices: Sequence[str] = ()
  vectors: Sequence[str] = ()
  limit: int = 1 << 27


def collect(
  words: vocab.Vocab, specification: Specification, directory: files.Path
) -> list[View]:
  """Makes or finds every view of a specification.

  Args:
    words: the vocabulary: rows of every view, in this order.
    specification: which views.
    directory: where views are stored and found again.

  Returns:
    The views, mapped from the disk. What was left out is counted in a
    warning for each source. A source with no row in common with the
    vocabulary is an `InputError`.
  """
  if not len(words):
    raise InputError("the vocabulary is empty")
  root = pathlib.Path(directory)
  found: list[View] = []
  listed = list(_sources(words, specification))
  names = [source.name for source in listed]
  twice = {name for name in names if names.count(name) > 1}
  if twice:
    raise InputError(
      f"two inputs would both be called {', '.join(sorted(twice))}; "
      "rename one of the files"
    )
  if not listed:
    raise InputError("no input for any view was named")
  for source in listed:
    mark = store.fingerprint(source.options, source.paths, words.words)
    views = _reuse(root, source, mark)
    if views is None:
      views = _make(root, source, mark)
    found += views
  return found


class _Source(NamedTuple):
  """One input: its name, what fingerprints it, and how to make its views."""

  name: str
  options: dict[str, Any]
  paths: Sequence[files.Path]
  make: Callable[[sources.Notes], Iterator[sources.Made]]


def _sources(words: vocab.Vocab, spec: Specification) -> Iterator[_Source]:
  """Lists the inputs of a specification."""
  partial = functools.partial
  if spec.text:
    offsets = [*range(1, spec.offsets + 1), *range(-1, -spec.ahead - 1, -1)]
    yield _Source(
      "text",
      {"offsets": offsets, "columns": spec.columns},
      spec.text,
      partial(
        sources.from_text,
        words,
        spec.text,
        offsets,
        spec.columns,
        limit=spec.limit,
      ),
    )
  for entry in spec.bitext:
    yield _bitext(words, spec, entry.split(":"))
  if spec.dependencies:
    yield _dependencies(words, spec)
  if spec.wordnet_groups:
    yield _wordnet(words, spec)
  yield from _tables(words, spec)


def _bitext(words, spec: Specification, paths: list[str]) -> _Source:
  """A bitext; only one that is aligned here depends on how."""
  options = [spec.align_iterations, spec.symmetry] if len(paths) == 2 else []
  return _Source(
    f"bitext_{sources.stem(paths[-1] if len(paths) < 2 else paths[1])}",
    {"aligner": options},
    paths,
    functools.partial(
      sources.from_bitext,
      words,
      paths,
      limit=spec.limit,
      iterations=spec.align_iterations,
      symmetry=spec.symmetry,
    ),
  )


def _dependencies(words, spec: Specification) -> _Source:
  return _Source(
    "dependencies",
    {
      "relations": list(spec.relations),
      "layout": spec.layout,
      "collapse": spec.collapse,
      "columns": spec.columns,
    },
    spec.dependencies,
    functools.partial(
      sources.from_dependencies,
      words,
      spec.dependencies,
      spec.relations,
      spec.columns,
      limit=spec.limit,
      layout=spec.layout,
      collapse=spec.collapse,
    ),
  )


def _wordnet(words, spec: Specification) -> _Source:
  folder = tables.find_folder(spec.wordnet_path)

  def make(notes: sources.Notes) -> Iterator[sources.Made]:
    database = wordnet.load(folder)
    groups, options = spec.wordnet_groups, spec.wordnet_options
    for view in wordnet_views.views(database, words.words, groups, options):
      yield sources.Made(
        view.name, [view.matrix], view.columns, dict(view.meta)
      )
    known = wordnet_views.senses(database, words.words)
    missing = ~weighting.observed(known)
    notes["words that WordNet does not have"] += int(missing.sum())

  options = dataclasses.asdict(spec.wordnet_options)
  return _Source(
    "wordnet",
    {"groups": sorted(spec.wordnet_groups), **options},
    [folder / "data.noun", folder / "data.verb", folder / "data.adj"],
    make,
  )


def _tables(words: vocab.Vocab, spec: Specification) -> Iterator[_Source]:
  """Inputs that are tables already."""
  partial = functools.partial
  for path in spec.counts:
    make = partial(sources.from_counts, words, path, limit=spec.limit)
    yield _Source(f"counts_{sources.stem(path)}", {}, [path], make)
  for entry in spec.matrices:
    paths = entry.split(":")
    make = partial(sources.from_matrix, words, paths)
    yield _Source(f"matrix_{sources.stem(paths[0])}", {}, paths, make)
  for path in spec.vectors:
    make = partial(sources.from_vectors, words, path)
    yield _Source(f"vectors_{sources.stem(path)}", {}, [path], make)


def _make(root: pathlib.Path, source: _Source, mark: str) -> list[View]:
  """Makes, stores and lists the views of a source."""
  notes: sources.Notes = sources.Notes()
  views, empty = [], []
  for made in source.make(notes):
    view = store.write(
      root, made.name, made.blocks, made.columns, mark=mark, meta=made.meta
    )
    if _is_empty(view):
      shutil.rmtree(root / made.name)
      empty.append(made.name)
    else:
      views.append(view)
  if not views:
    raise InputError(
      f"{', '.join(map(str, source.paths))}: has no row in common with the "
      "vocabulary; check case, language and tokenization"
    )
  texts = [
    f"{count:,} {what}" for what, count in sorted(notes.items()) if count
  ]
  texts += [f"view {name} has no entry" for name in empty]
  listing = {
    "fingerprint": mark,
    "views": [view.name for view in views],
    "left_out": texts,
  }
  with files.atomic_write(root / f"{source.name}.json") as stream:
    stream.write(json.dumps(listing, indent=1) + "\n")
  _warn(source, texts)
  return views


def _reuse(root: pathlib.Path, source: _Source, mark: str) -> list[View] | None:
  """The views of a source as stored before; None if it must be counted."""
  path = root / f"{source.name}.json"
  if not path.exists():
    return None
  try:
    listing = json_files.read_json(path)
    names, texts = list(listing["views"]), list(listing["left_out"])
    same = listing["fingerprint"] == mark
  except (ValueError, KeyError, TypeError) as error:
    raise InputError(
      f"is damaged ({error}); delete it to count again", path=path
    ) from error
  if not same:
    return None
  views = []
  for name in names:
    view = store.find(root, name, mark)
    if view is None:
      return None
    views.append(view)
  _warn(source, texts)
  return views


def _warn(source: _Source, texts: list[str]) -> None:
  if texts:
    message = f"{source.name}: left out {'; '.join(texts)}"
    warnings.warn(message, stacklevel=4)


def _is_empty(view: View) -> bool:
  return not weighting.observed(view.matrix).any()

"""Collecting views: count what is asked for, reuse what was counted before.

    sources = [text_source(["wiki.txt.gz"]), wordnet_source(["synset"])]
    for view in collect(vocabulary, sources, "views"):
      ...view.matrix...

Each source has a fingerprint of its files, its options and the vocabulary.
Its views are stored under one directory, with a list of them that is written
last; a later call with the same fingerprint maps them again.
"""

import json
import pathlib
import shutil
import warnings
from collections.abc import Sequence

from repr_jax.data.io import files, json_files
from repr_jax.data.views import counts, store, vocab
from repr_jax.data.views.source import Notes, Source
from repr_jax.errors import InputError

View = store.View


def collect(
  words: vocab.Vocab,
  sources: Sequence[Source],
  directory: files.Path,
  check: bool = True,
) -> list[View]:
  """Counts every view of some sources, or finds it in the store.

  Args:
    words: the vocabulary: rows of every view, in this order.
    sources: the sources of the views.
    directory: where views are stored and found again.
    check: as in `store.load`.

  Returns:
    The views, mapped from the disk. What was left out is counted in a
    warning for each source. A source with no row in common with the
    vocabulary is an `InputError`.
  """
  if not len(words):
    raise InputError("the vocabulary is empty")
  root = pathlib.Path(directory)
  names = [source.name for source in sources]
  twice = {name for name in names if names.count(name) > 1}
  if twice:
    raise InputError(
      f"two inputs would both be called {', '.join(sorted(twice))}; "
      "rename one of the files"
    )
  if not sources:
    raise InputError("no input for any view was named")
  collected: list[View] = []
  for source in sources:
    options = dict(source.options)
    mark = store.fingerprint(options, source.paths, words.words)
    views = _reuse(root, source, mark, check)
    if views is None:
      views = _make(root, source, mark, words)
    collected += views
  return collected


def _make(
  root: pathlib.Path, source: Source, mark: str, words: vocab.Vocab
) -> list[View]:
  """Makes, stores and lists the views of a source."""
  notes: Notes = Notes()
  views, empty = [], []
  for made in source.make(words, notes):
    view = store.write(
      root, made.name, made.blocks, made.columns, mark=mark, meta=made.meta
    )
    if _is_empty(view):
      shutil.rmtree(root / made.name)
      empty.append(made.name)
    else:
      views.append(view)
  if not views:
    named = ", ".join(map(str, source.paths)) or source.name
    raise InputError(
      f"{named}: has no row in common with the vocabulary; check case, "
      "language and tokenization. Of a text, only contexts in the vocabulary "
      "are counted"
    )
  texts = [
    f"{count:,} {what}" for what, count in sorted(notes.items()) if count
  ]
  texts += [f"view {name}, which has no entry" for name in empty]
  listing = {
    "fingerprint": mark,
    "views": [view.name for view in views],
    "left_out": texts,
  }
  with files.atomic_write(root / f"{source.name}.json") as stream:
    stream.write(json.dumps(listing, indent=1) + "\n")
  _warn(source, texts)
  return views


def _reuse(
  root: pathlib.Path, source: Source, mark: str, check: bool
) -> list[View] | None:
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
    view = store.find(root, name, mark, check)
    if view is None:
      return None
    views.append(view)
  _warn(source, texts)
  return views


def _warn(source: Source, texts: list[str]) -> None:
  if texts:
    message = f"{source.name}: left out {'; '.join(texts)}"
    warnings.warn(message, stacklevel=4)


def _is_empty(view: View) -> bool:
  return not counts.observed(view.matrix).any()

"""From flags to a vocabulary and its views, counted once and reused."""

import functools
import pathlib
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.mvlsa import corpus
from experiments.mvlsa.config import Config
from experiments.run import extension
from repr_jax.data import wordnet
from repr_jax.data.views import collection, counts, derived, store, vocab
from repr_jax.data.views.collection import View
from repr_jax.data.views.source import Source
from repr_jax.data.views.sources import (
  bitext_source,
  dependency_source,
  document_source,
  text_source,
  wordnet_source,
)
from repr_jax.data.views.table_sources import (
  counts_source,
  matrix_source,
  vectors_source,
)
from repr_jax.data.wordnet import tables
from repr_jax.errors import InputError
from repr_jax.multiview import alignment, host_views, sharding
from repr_jax.ops import mesh as meshes
from repr_jax.ops import sharded

# Groups by the beginnings of view names; the first that fits counts.
_GROUPS = (
  ("text_window", "window"),
  ("text_documents", "document"),
  ("text_", "text"),
  ("bitext_", "bitext"),
  ("dep_", "dependency"),
  ("wordnet_gloss", "gloss"),
  ("wordnet_hypernym", "hypernym"),
  ("wordnet_walks", "walks"),
  ("wordnet_synset_domain", "relation"),
  ("wordnet_synset", "synset"),
  ("wordnet_lexname", "lexname"),
  ("wordnet_frame", "frame"),
  ("wordnet_derivation", "derivation"),
  ("wordnet_inflection", "inflection"),
  ("wordnet_ending", "inflection"),
  ("wordnet_", "relation"),
  ("counts_framenet", "frame"),
  ("counts_", "counts"),
  ("matrix_", "matrix"),
  ("vectors_", "vectors"),
)

_NO_VIEW = (
  "no view is left; give --windows, --offsets or --documents, or another "
  "source of views"
)


class Data(NamedTuple):
  """Vocabulary and views of a run.

  Attributes:
    words: the vocabulary.
    text: paths of tokenized text.
    counted: every view that was counted.
    views: those of the fit.
  """

  words: vocab.Vocab
  text: Sequence[str]
  counted: Sequence[View]
  views: Sequence[View]


def group(name: str) -> str:
  """The group of a view, for ablations and weights.

  A view of another source is in the group of its name up to the first "_".
  """
  for start, known in _GROUPS:
    if name.startswith(start):
      return known
  return name.partition("_")[0]


def source(name: str) -> str:
  """The source of a view: views of one source share their noise."""
  start = name.partition("_")[0]
  return name if start in ("counts", "matrix", "vectors") else start


def prepare_text(config: Config) -> list[str]:
  """The paths of the text as it is counted: tokenized copies if asked."""
  if config.text and config.tokenize:
    return corpus.tokenized(config.text, pathlib.Path(config.store) / "text")
  return list(config.text)


def vocabulary(config: Config, text: Sequence[str]) -> vocab.Vocab:
  """The vocabulary: of a file, or of the text, the vectors or WordNet.

  Args:
    config: what was asked for.
    text: tokenized text.
  """
  if config.vocabulary:
    return vocab.read_vocab(config.vocabulary)
  size = config.vocabulary_size
  if text:
    words = corpus.text_vocabulary(text, size, config.min_count)
    if not len(words):
      raise InputError(
        f"no word of {', '.join(config.text)} occurs {config.min_count} "
        "times; check the files, or lower --min_count"
      )
    return words
  if config.vectors:
    return corpus.vectors_vocabulary(config.vectors[0], size)
  if config.wordnet or config.walks:
    return corpus.wordnet_vocabulary(config.wordnet_path, size)
  raise InputError(
    "no vocabulary: give --text, --vectors or --wordnet, or --vocabulary with "
    "a file of word<TAB>count lines"
  )


def sources(config: Config, text: Sequence[str]) -> list[Source]:
  """The sources of views that were asked for.

  Args:
    config: what was asked for.
    text: tokenized text.
  """
  made: list[Source] = []
  if text:
    behind = max([config.offsets, *config.windows])
    ahead = max([config.ahead, *config.windows])
    if behind or ahead:
      made.append(
        text_source(text, offsets=behind, ahead=ahead, columns=config.columns)
      )
    if config.documents:
      made.append(document_source(text, lines=config.documents))
  symmetry = "intersection"
  align = functools.partial(
    alignment.align, iterations=config.align_iterations, symmetry=symmetry
  )
  for entry in config.bitext:
    aligner = [config.align_iterations, symmetry]
    made.append(bitext_source(entry.split(":"), align=align, aligner=aligner))
  if config.dependencies:
    made.append(
      dependency_source(
        config.dependencies, relations=config.relations,
        columns=config.columns, layout=config.layout,
      )
    )  # fmt: skip
  if config.wordnet:
    made.append(wordnet_source(config.wordnet, config.wordnet_path))
  made += [counts_source(path) for path in config.counts]
  made += [matrix_source(entry.split(":")) for entry in config.matrices]
  made += [vectors_source(path) for path in config.vectors]
  made += [extension.load(x, Source, "sources") for x in config.sources]
  return made


def load(config: Config, words: vocab.Vocab, text: Sequence[str]) -> Data:
  """Every view that was asked for, mapped from the store.

  Args:
    config: what was asked for.
    words: the vocabulary.
    text: tokenized text.
  """
  root = pathlib.Path(config.store) / "views"
  counted: list[View] = []
  named = sources(config, text)
  part = own_part(config, len(words))
  check = part is None
  if named:
    counted = collection.collect(words, named, root, check)
  elif not config.walks:
    raise InputError(_NO_VIEW)
  for width in config.windows if text else ():
    counted.append(_window(root, counted, width, check))
  if config.walks:
    counted.append(_walks(root, config, words, check))
  return Data(words, text, counted, choose(config, counted, part))


def own_part(config: Config, words: int) -> sharded.Part | None:
  """Rows of each view that this process reads; None for all."""
  return sharded.own_part(words, meshes.make_mesh(config.mesh, sharding.AXES))


def choose(
  config: Config, counted: Sequence[View], part: sharded.Part | None = None
) -> list[View]:
  """The views of the fit: all but those that are dropped or too small.

  Some offsets are counted only because windows need them; these are dropped.

  Args:
    config: what was asked for.
    counted: every view.
    part: rows that this process reads; None for all.
  """
  kept = _without(counted, config.drop_views)
  sides = (("text_behind_", config.offsets), ("text_ahead_", config.ahead))
  far = {
    view.name
    for name, most in sides
    for view in kept
    if view.name.startswith(name) and int(view.name[len(name) :]) > most
  }
  kept = [view for view in kept if view.name not in far]
  if not kept:
    raise InputError(_NO_VIEW)
  seen = {
    view.name: host_views.of_rows(counts.observed, view.matrix, part)
    for view in kept
  }
  large = [v for v in kept if seen[v.name].sum() >= config.min_rows]
  if not large:
    most = max(int(rows.sum()) for rows in seen.values())
    raise InputError(
      f"no view observes {config.min_rows} words; the largest {most}:"
      " lower --min_rows"
    )
  return _fitting(large, seen, part)


def _is_constant(
  matrix: Any, seen: np.ndarray, part: sharded.Part | None
) -> bool:
  """Whether all observed rows of a view are equal."""
  if part is None:
    return counts.is_constant(matrix)
  # Each process compares its rows with the first row of all.
  own = matrix[np.append(part.rows, np.argmax(seen))]
  alike = meshes.from_processes(np.array([counts.is_constant(own)]))
  return bool(alike.all())


def _fitting(
  views: Sequence[View],
  seen_in: Mapping[str, np.ndarray],
  part: sharded.Part | None,
) -> list[View]:
  """The views that are not constant and share words with another view."""
  constant = [
    v.name for v in views if _is_constant(v.matrix, seen_in[v.name], part)
  ]
  if constant:
    warnings.warn(
      f"all words are alike in {', '.join(constant)}: left out", stacklevel=2
    )
  kept = [view for view in views if view.name not in constant]
  if not kept:
    raise InputError("in every view all words are alike; nothing can be fitted")
  seen = np.stack([seen_in[view.name] for view in kept])
  alone = ~(seen & (seen.sum(axis=0) > 1)).any(axis=1)
  if len(kept) > 1 and alone.any():
    name = kept[int(np.argmax(alone))].name
    raise InputError(
      f"{name} has no word in common with any other view; check its words, or "
      f"leave it out: --drop_views={name}"
    )
  return kept


def _without(counted: Sequence[View], dropped: Sequence[str]) -> list[View]:
  """The views that are neither named nor in a named group."""
  known = {view.name for view in counted} | {group(v.name) for v in counted}
  unknown = sorted(set(dropped) - known)
  if unknown:
    raise InputError(
      f"--drop_views: there is no view or group {', '.join(unknown)}; there "
      f"are {', '.join(sorted({group(v.name) for v in counted}))}"
    )
  kept = [
    view
    for view in counted
    if view.name not in dropped and group(view.name) not in dropped
  ]
  if not kept:
    raise InputError("--drop_views leaves no view")
  return kept


def _stored(
  root, name: str, mark: str, make: Callable[[], View], check: bool
) -> View:
  """A derived view, made once."""
  view = store.find(root, name, mark, check)
  if view is None:
    shutil.rmtree(root / name, ignore_errors=True)
    view = store.save(root, make(), mark)
  return view


def _window(
  root: pathlib.Path, counted: Sequence[View], width: int, check: bool
) -> View:
  headers = [
    view.path / "header.json"
    for view in counted
    if view.path is not None and group(view.name) == "text"
  ]
  mark = store.fingerprint({"window": width}, headers)
  return _stored(
    root,
    f"text_window_{width:02d}",
    mark,
    lambda: derived.window(counted, width),
    check,
  )


def _walks(
  root: pathlib.Path, config: Config, words: vocab.Vocab, check: bool
) -> View:
  folder = tables.find_folder(config.wordnet_path)
  paths = [folder / "data.noun", folder / "data.verb", folder / "data.adj"]
  mark = store.fingerprint({"walks": 1}, paths, words.words)

  def make() -> View:
    return derived.walks(wordnet.load(folder), words.words)

  return _stored(root, "wordnet_walks", mark, make, check)

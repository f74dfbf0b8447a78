"""From flags to a vocabulary and its views, counted once and reused."""

import pathlib
import shutil
from collections.abc import Callable, Sequence

from experiments.mvlsa import corpus
from experiments.mvlsa.config import Options
from repr_jax.data import wordnet
from repr_jax.data.views import collection, derived, store, vocab
from repr_jax.data.views.collection import View
from repr_jax.data.wordnet import tables
from repr_jax.errors import InputError
from repr_jax.multiview import weighting

# Groups by the beginnings of view names; the first that fits counts.
_GROUPS = (
  ("text_window", "window"),
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
  ("counts_", "counts"),
  ("matrix_", "matrix"),
  ("vectors_", "vectors"),
)


def group(name: str) -> str:
  """The group of a view, for ablations and weights."""
  for start, found in _GROUPS:
    if name.startswith(start):
      return found
  return "other"


def prepare_text(options: Options) -> list[str]:
  """The paths of the text as it is counted: tokenized copies if asked."""
  if options.text and options.tokenize:
    return corpus.tokenized(options.text, pathlib.Path(options.store) / "text")
  return list(options.text)


def vocabulary(options: Options, text: Sequence[str]) -> vocab.Vocab:
  """The vocabulary: of a file, of the text or, without text, of WordNet.

  Args:
    options: what was asked for.
    text: tokenized text.
  """
  if options.vocabulary:
    return vocab.read_vocab(options.vocabulary)
  size = options.vocabulary_size
  if text:
    return corpus.text_vocabulary(text, size, options.min_count)
  if options.wordnet or options.walks:
    return corpus.wordnet_vocabulary(options.wordnet_path, size)
  raise InputError(
    "no vocabulary: give --text or --wordnet, or --vocabulary with a file of "
    "word<TAB>count lines"
  )


def collect(
  options: Options, words: vocab.Vocab, text: Sequence[str]
) -> list[View]:
  """Every view that was asked for, mapped from the store.

  Args:
    options: what was asked for.
    words: the vocabulary.
    text: tokenized text.
  """
  root = pathlib.Path(options.store) / "views"
  found: list[View] = []
  specification = collection.Specification(
    text=text,
    offsets=options.offsets,
    ahead=options.ahead,
    columns=options.columns,
    bitext=options.bitext,
    align_iterations=options.align_iterations,
    dependencies=options.dependencies,
    relations=options.relations,
    layout=options.layout,
    wordnet_groups=options.wordnet,
    wordnet_path=options.wordnet_path,
    counts=options.counts,
    matrices=options.matrices,
    vectors=options.vectors,
  )
  if any(
    (text, options.bitext, options.dependencies, options.wordnet,
     options.counts, options.matrices, options.vectors)
  ) or not options.walks:  # fmt: skip
    found = collection.collect(words, specification, root)
  for width in options.windows:
    found.append(_window(root, found, width))
  if options.walks:
    found.append(_walks(root, options, words))
  return found


def choose(options: Options, found: Sequence[View]) -> list[View]:
  """The views of the fit: all but those that are dropped or too small.

  Args:
    options: what was asked for.
    found: every view.
  """
  kept = _without(found, options.drop_views)
  known = [int(weighting.observed(view.matrix).sum()) for view in kept]
  large = [v for v, rows in zip(kept, known) if rows >= options.min_rows]
  if not large:
    raise InputError(
      f"no view knows {options.min_rows} words; the largest knows {max(known)}:"
      " lower --min_rows"
    )
  return large


def _without(found: Sequence[View], dropped: Sequence[str]) -> list[View]:
  """The views that are neither named nor in a named group."""
  known = {view.name for view in found} | {group(v.name) for v in found}
  unknown = sorted(set(dropped) - known)
  if unknown:
    raise InputError(
      f"--drop_views: there is no view or group {', '.join(unknown)}; there "
      f"are {', '.join(sorted({group(v.name) for v in found}))}"
    )
  kept = [
    view
    for view in found
    if view.name not in dropped and group(view.name) not in dropped
  ]
  if not kept:
    raise InputError("--drop_views leaves no view")
  return kept


def _stored(root, name: str, mark: str, make: Callable[[], View]) -> View:
  """A derived view, made once."""
  view = store.find(root, name, mark)
  if view is None:
    shutil.rmtree(root / name, ignore_errors=True)
    view = store.save(root, make(), mark)
  return view


def _window(root: pathlib.Path, found: Sequence[View], width: int) -> View:
  headers = [
    view.path / "header.json"
    for view in found
    if view.path is not None and group(view.name) == "text"
  ]
  mark = store.fingerprint({"window": width}, headers)
  return _stored(
    root, f"text_window_{width:02d}", mark, lambda: derived.window(found, width)
  )


def _walks(root: pathlib.Path, options: Options, words: vocab.Vocab) -> View:
  folder = tables.find_folder(options.wordnet_path)
  paths = [folder / "data.noun", folder / "data.verb", folder / "data.adj"]
  mark = store.fingerprint({"walks": 1}, paths, words.words)

  def make() -> View:
    return derived.walks(wordnet.load(folder), words.words)

  return _stored(root, "wordnet_walks", mark, make)

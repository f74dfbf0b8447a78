"""Corpora of entities: which reader, and features that are counted once."""

import collections
import hashlib
import itertools
import math
import os
import pathlib
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from experiments.nvse.config import Config
from experiments.run import expander
from repr_jax import setexp
from repr_jax.data import entities, synthetic_corpora, wordnet
from repr_jax.data.documents import corpus_files, ner, plain_text
from repr_jax.data.entities import (
  contexts,
  duplicates,
  features,
  sentences,
  skip_grams,
)
from repr_jax.data.io import files, json_files
from repr_jax.data.wordnet import instances
from repr_jax.errors import InputError
from repr_jax.setexp import from_scipy

_COMMON = 12  # names that are shown
_OF_WORDNET = 30  # most frequent features of WordNet that are dropped
_NAMED = ("wordnet", "synthetic")
_STORE = "runs/nvse-features"  # of configurations that name none


def open_table(
  config: Config, say: Callable[[str], None] = lambda text: None
) -> features.FeatureTable:
  """The features of the corpus, from the store if they are there."""
  folder = table_folder(config)
  if folder.is_dir():
    table = features.load(folder)
    say(f"features of {len(table.entities):,} entities from {folder}")
    return table
  if config.corpus == ("synthetic",):
    table = _synthetic(config.seed)
  else:
    table = _build(config)
    _check(table, config)
    table = _shared(table, config.min_entities)
    table = _heaviest(table, config.max_features)
  features.save(folder, table)
  say(
    f"{len(table.entities):,} entities, {len(table.features):,} features, "
    f"{len(table.sentences.documents):,} sentences; kept in {folder}"
  )
  if any(map(plain_text.is_text, config.corpus)):
    counts = np.diff(table.sentences.entity_starts)
    common = np.argsort(-counts, kind="stable")[:_COMMON]
    named = (f"{table.names[i]} ({counts[i]:,})" for i in common)
    say(f"names in most sentences: {', '.join(named)}")
  return table


def table_folder(config: Config) -> pathlib.Path:
  """The folder of the store that holds the features of a corpus."""
  return pathlib.Path(config.store or _STORE) / _key(config)


def skip_gram_contexts(
  config: Config, table: features.FeatureTable
) -> skip_grams.Contexts | None:
  """Skip-grams around the mentions; counted once, kept beside the features.

  Returns:
    The contexts; None with --setexpan_contexts=features, for entities without
    text, and with auto where most entities have no context.
  """
  if config.setexpan_contexts == "features" or config.corpus == ("synthetic",):
    return None
  forced = config.setexpan_contexts == "skip_grams"
  folder, size = table_folder(config), len(table.entities)
  known = expander.load_contexts(folder, size)
  if known is None or (forced and not known.names):
    known = skip_grams.skip_gram_counts(_mentions(config, table), size)
    few = 2 * np.count_nonzero(np.diff(known.counts.indptr)) <= size
    if few and not forced:  # Stored empty, so that the explorer skips it too.
      known = skip_grams.skip_gram_counts([], size)
    skip_grams.save(expander.contexts_of(folder), known)
  if forced and not known.names:
    raise InputError(
      "--setexpan_contexts=skip_grams: no two entities are mentioned in one "
      "context; give features, or a corpus that marks mentions"
    )
  return known if known.names else None


def _mentions(
  config: Config, table: features.FeatureTable
) -> Iterator[tuple[int, list[str], int, int]]:
  """Mentions of the table's entities, tokens in lower case."""
  sentences_of: collections.Counter[int] = collections.Counter()
  for sentence in _sentences(config, {}):
    tokens = [token.lower() for token in sentence.tokens]
    rows = {table.rows[x] for _, _, x in sentence.mentions if x in table.rows}
    sentences_of.update(rows)
    for start, end, entity in sentence.mentions:
      row = table.rows.get(entity, -1)
      late = sentences_of[row] > (config.max_sentences or math.inf)
      if row >= 0 and not late:
        yield row, tokens, start, end


def gold_sets(config: Config, path: str | None) -> dict[str, list[str]]:
  """The sets that protocol (a) draws its queries from.

  Args:
    path: a JSON object with the entity ids of each class; by default the
      classes of WordNet's instances.

  Returns:
    Entity ids by class.
  """
  if path is None:
    if "wordnet" not in config.corpus:
      raise InputError(
        "--gold: gold sets are known for --corpus=wordnet only; give a JSON "
        'file {"class": ["entity id", ...]}, or --judged with judged queries'
      )
    opened = wordnet.load(config.wordnet_path)
    return instances.wordnet_instance_sets(opened)
  sets = json_files.read_json(path)
  if not isinstance(sets, dict) or not all(
    isinstance(ids, list) and all(isinstance(x, str) for x in ids)
    for ids in sets.values()
  ):
    raise InputError("expected an object of lists of entity ids", path=path)
  return sets


def _build(config: Config) -> features.FeatureTable:
  names: dict[str, str] = {}
  stream = _sentences(config, names)
  counter = contexts.ContextCounter()
  table = features.build(
    counter.watch(stream) if config.contexts else stream,
    names,
    drop_most_frequent=_dropped(config),
    min_count=config.min_count,
    max_sentences=config.max_sentences or None,
  )
  return counter.join(table) if config.contexts else table


def _sentences(
  config: Config, names: dict[str, str]
) -> Iterator[entities.Sentence]:
  """Sentences of all sources, with duplicates as one entity."""
  streams = [_stream(source, config, names) for source in config.corpus]
  stream = itertools.chain.from_iterable(streams)
  if config.same is None:
    return stream
  kept = duplicates.read_duplicates(config.same)
  return duplicates.merge_duplicates(stream, kept, config.same)


def _stream(
  source: str, config: Config, names: dict[str, str]
) -> Iterator[entities.Sentence]:
  """Sentences of one source; display names are filled in on the way."""
  if source == "wordnet":
    opened = wordnet.load(config.wordnet_path)
    pairs = instances.wordnet_instances(opened, config.link, config.with_name)
  elif config.form == "auto" and plain_text.is_text(source):
    names_known = (
      plain_text.read_gazetteer(config.gazetteer) if config.gazetteer else []
    )
    yield from plain_text.read_sentences(
      source,
      gazetteer=names_known,
      min_mentions=config.min_mentions,
      tagger=None if config.ner is None else ner.load_tagger(config.ner),
    )
    return
  else:
    form = corpus_files.form_of(source, config.form)
    if form != "entities":
      yield from corpus_files.read_linked(source, form)
      return
    pairs = entities.read_entity_file(source)
  for info, own in pairs:
    names[info.id] = info.name
    yield from own


def _dropped(config: Config) -> int | None:
  """Most frequent features to drop; None for those that are spread evenly."""
  if config.drop_most_frequent is None and "wordnet" in config.corpus:
    return _OF_WORDNET
  return config.drop_most_frequent


def _check(table: features.FeatureTable, config: Config) -> None:
  """Refuses a corpus that cannot relate any two entities."""
  shared = np.bincount(table.counts.indices, minlength=len(table.features)) > 1
  if len(table.entities) < 2 or not shared.any():
    raise InputError(
      f"--corpus={','.join(config.corpus)}: no two of its "
      f"{len(table.entities):,} entities share a feature, so that there is "
      "nothing to learn; give more text, or lower --min_count and "
      "--drop_most_frequent"
    )


def _shared(table: features.FeatureTable, least: int) -> features.FeatureTable:
  """The table without features that fewer entities have.

  What one entity has alone, such as the document about it, tells nothing
  about others and takes room in the model.
  """
  having = np.bincount(table.counts.indices, minlength=len(table.features))
  kept = np.flatnonzero(having >= least)
  return table if len(kept) == len(table.features) else table.take(kept)


def _heaviest(table: features.FeatureTable, most: int) -> features.FeatureTable:
  """The table with the features of greatest BM25 weight over all entities.

  Rows count alike: their weights are scaled to length 1 first.
  """
  if not most or most >= len(table.features):
    return table
  plain = setexp.Config(weighting="bm25", unit_inputs=True)
  counts = sp.csr_array(table.counts, dtype=np.float32)
  inputs = setexp.statistics_from_scipy(plain, counts).inputs
  mass = from_scipy.encoder_rows(plain, inputs, counts).sum(axis=0)
  # Contexts are many, so each kind has its own quota.
  beside = np.array([x.startswith("context:") for x in table.features], bool)
  heaviest = np.argsort(-mass, kind="stable")
  kept = np.sort(
    np.concatenate([heaviest[beside[heaviest] == x][:most] for x in (0, 1)])
  )
  return table.take(kept)


def _synthetic(seed: int) -> features.FeatureTable:
  """The thesis' size, without any text."""
  made = synthetic_corpora.entity_corpus(np.random.default_rng(seed))
  size, width = made.counts.shape
  ids = [f"e{i:06d}" for i in range(size)]
  none = np.zeros(0, np.int32)
  held = sentences.Sentences(
    none, np.zeros(1, np.int64), np.zeros(0, bool), none,
    np.zeros(size + 1, np.int64), none, [], [],
  )  # fmt: skip
  named = [f"word:f{i}" for i in range(width)]
  return features.FeatureTable(made.counts, ids, ids, named, held)


def _key(config: Config) -> str:
  """A name for the table; it changes with sources, contents and pruning."""
  parts: list = [
    config.form,
    _dropped(config),
    config.min_count,
    config.min_entities,
    config.max_sentences,
    config.max_features,
    *(["contexts"] if config.contexts else []),
  ]
  for source in config.corpus:
    if source in _NAMED:
      extra = (config.wordnet_path, config.link, config.with_name)
      parts.append((source, extra if source == "wordnet" else config.seed))
    else:
      parts += map(_mark, plain_text.text_files(source))
  if any(map(plain_text.is_text, config.corpus)):
    known = None if config.gazetteer is None else _mark(config.gazetteer)
    parts.append((config.min_mentions, known, config.ner))
  if config.same is not None:
    parts.append(("same", *_mark(config.same)))
  label = pathlib.Path(config.corpus[0]).name.partition(".")[0]
  digest = hashlib.sha256(repr(parts).encode()).hexdigest()
  return f"{label}-{digest[:12]}"


def _mark(path: str) -> tuple[str, int, int]:
  """A file with its size and time, which change with its contents."""
  try:
    status = os.stat(path)
  except OSError as error:
    raise InputError(files.explain(error), path=path) from error
  return os.path.abspath(path), status.st_size, status.st_mtime_ns

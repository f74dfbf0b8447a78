"""Documents to learn from and to be tested on, and their candidates."""

import itertools
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from experiments.ned import inputs
from experiments.ned.config import Config
from repr_jax.data.documents import candidates as candidates_lib
from repr_jax.data.documents import (
  corpus_files,
  linked_documents,
  priors,
  wikipedia,
)
from repr_jax.data.documents.candidates import Candidates, Index
from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)
from repr_jax.data.io import files
from repr_jax.errors import InputError

_MENTIONS = 12  # of a part of an article, about
_HELD = {8: "validation", 9: "test"}
Say = Callable[[str], None]


class Set(NamedTuple):
  """Documents with the candidates of their mentions.

  Attributes:
    documents: the documents.
    lists: for each document, for each mention, its candidates.
  """

  documents: list[LinkedDocument]
  lists: list[list[Candidates]]

  @property
  def recall(self) -> candidates_lib.Recall:
    """How many gold entities are among the candidates."""
    return candidates_lib.recall(zip(self.documents, self.lists))


class Corpus(NamedTuple):
  """Documents, candidates and entities of a run.

  Attributes:
    train: documents that the model is trained on; their own links do not
      count in the prior of their mentions.
    validation: documents that decide when to stop.
    tests: documents to be tested on, by name.
    lookup: where candidates come from.
    entities: rows of the entities' table by name.
    dump: a dump whose articles have more text and links, or None.
    parted: whether the tests are parts of that dump's articles.
  """

  train: Set
  validation: Set
  tests: dict[str, Set]
  lookup: Index
  entities: dict[str, int]
  dump: str | None
  parted: bool = False

  def stream(self) -> Iterator[LinkedDocument]:
    """All that may be learned from: training documents, then the dump's."""
    own = {document.id for document in self.train.documents}
    yield from self.train.documents
    if self.dump is not None:
      for document in dump_documents(self.dump):
        if document.id not in own and not self._held(document):
          yield document

  def _held(self, document: LinkedDocument) -> bool:
    # A page without a link tests nothing.
    tested = self.parted and bool(document.mentions)
    return tested and held_out(document.id) != "train"


def held_out(name: str) -> str:
  """Whether a part of an article is for "train", "validation" or "test"."""
  return _HELD.get(zlib.crc32(name.encode()) % 10, "train")


def dump_documents(path: str) -> Iterator[LinkedDocument]:
  """Streams the articles of a dump in parts of about 12 mentions.

  Args:
    path: the dump.

  Yields:
    The parts of each article in order, named `TITLE#NUMBER`; together they
    have all its text. Sentences without a mention belong to the part before
    them. An article without mentions is one document.
  """
  sentences = wikipedia.linked_sentences(path, all_sentences=True)
  for name, own in itertools.groupby(sentences, lambda s: s.doc):
    tokens: list[str] = []
    mentions: list[LinkedMention] = []
    number = 0
    for sentence in own:
      if sentence.mentions and len(mentions) >= _MENTIONS:
        yield LinkedDocument(f"{name}#{number}", tuple(tokens), tuple(mentions))
        tokens, mentions, number = [], [], number + 1
      base = len(tokens)
      tokens += sentence.tokens
      for start, end, entity in sentence.mentions:
        surface = " ".join(sentence.tokens[start:end])
        if surface:
          mentions.append(
            LinkedMention(base + start, base + end, surface, entity)
          )
    if tokens:
      yield LinkedDocument(f"{name}#{number}", tuple(tokens), tuple(mentions))


def open_corpus(config: Config, say: Say = lambda text: None) -> Corpus:
  """Reads the documents, counts the prior and looks candidates up.

  Args:
    config: the configuration of the run.
    say: is told what was read.

  Returns:
    The corpus. Without --data and --train, the small dump that comes with
    gensim is split into training, validation and test documents. An empty
    training or validation set is an `InputError`.
  """
  train, validation, tests, dump = _documents(config)
  corpus = Corpus(
    Set(train, []),
    Set(validation, []),
    {name: Set(documents, []) for name, documents in tests.items()},
    Index(*(priors.Prior({}) for _ in range(3))),
    {},
    dump,
    config.data is None and not config.train,
  )
  if config.prior is not None:
    prior = priors.read_prior(config.prior, config.top)
  else:
    prior = priors.count_links(_links(corpus.stream()))
  if not prior.counts:
    raise InputError("the training documents have no linked mention")
  index = candidates_lib.build_index(prior)
  corpus = corpus._replace(
    lookup=index,
    train=_look_up(index, train, config.top, config.prior is None),
    validation=_look_up(index, validation, config.top),
    tests={n: _look_up(index, t, config.top) for n, t in tests.items()},
  )
  corpus = corpus._replace(entities=_universe(corpus))
  say(
    f"{len(train):,} training documents, {len(prior.counts):,} mentions with "
    f"a prior, {len(corpus.entities):,} entities among the candidates"
  )
  for name, tested in corpus.tests.items():
    part = tested.recall
    say(
      f"{name}: {part.mentions:,} linked mentions, entity among {config.top} "
      f"candidates {part.share:.1%}, no candidates {part.without:,}"
    )
  _check(corpus, config)
  return corpus


def _check(corpus: Corpus, config: Config) -> None:
  """Refuses documents that nothing can be trained or validated with."""
  more = "a larger --dump" if corpus.parted else "more documents by --train"
  if not any(
    any(entity == mention.entity for entity, _ in listed[: config.train_top])
    for document, lists in zip(corpus.train.documents, corpus.train.lists)
    for mention, listed in zip(document.mentions, lists)
    if len(listed[: config.train_top]) > 1
  ):
    raise InputError(
      "nothing to learn: no mention of the training documents has two "
      f"candidates or more with its entity among the first {config.train_top}; "
      f"give {more}, a --prior that knows more, or a larger --train_top"
    )
  if not corpus.validation.recall.covered:
    documents = len(corpus.validation.documents)
    other = "" if corpus.parted else "; or name others by --validation"
    raise InputError(
      f"early stopping needs a validation mention with its entity among its "
      f"candidates; the {documents} documents for validation have none: give "
      f"{more}, of which one in ten is kept for validation{other}"
    )


def known_entities(corpus: Corpus, tested: Set) -> float:
  """The share of gold entities that the prior knows under that name."""
  names = {e for own in corpus.lookup.exact.counts.values() for e in own}
  golds = [
    mention.entity
    for document in tested.documents
    for mention in document.mentions
    if mention.entity is not None
  ]
  return sum(gold in names for gold in golds) / max(len(golds), 1)


def _links(documents: Iterator[LinkedDocument]) -> Iterator[priors.Link]:
  for document in documents:
    for mention in document.mentions:
      if mention.entity is not None:
        yield mention.surface, mention.entity


def _look_up(
  index: Index,
  documents: list[LinkedDocument],
  top: int,
  leave_out: bool = False,
) -> Set:
  find = candidates_lib.document_candidates
  return Set(documents, [find(index, d, top, leave_out) for d in documents])


def _universe(corpus: Corpus) -> dict[str, int]:
  names: dict[str, None] = {}
  for part in (corpus.train, corpus.validation, *corpus.tests.values()):
    for lists in part.lists:
      for listed in lists:
        names.update((entity, None) for entity, _ in listed)
  return {name: row for row, name in enumerate(sorted(names))}


def _documents(config: Config):
  """Training, validation and test documents, and the dump."""
  if config.data is None and not config.train:
    dump = str(config.dump or corpus_files.gensim_dump())
    parts = _from_dump(dump, config.max_documents)
    _tested(parts[2]["dump"], dump)
    return parts
  places = inputs.find(config)
  json = [x.path for listed in places for x in listed if x.is_json]
  titles = linked_documents.read_titles(json)
  train = list(inputs.read_train(places.train, titles))
  train = train[: config.max_documents]
  tests = {
    source.name: _tested(list(source.read(titles)), source.path)
    for source in places.tests
  }
  validation = [d for x in places.validation for d in x.read(titles)]
  if not validation:
    # One document in ten is kept back where no others are named.
    validation = [d for d in train if held_out(d.id) == "test"]
    train = [d for d in train if held_out(d.id) != "test"]
  return train, validation, tests, config.dump


def _from_dump(path: str, most: int):
  parts: dict[str, list[LinkedDocument]] = {"train": [], "validation": []}
  parts["test"] = []
  whole = True
  for document in dump_documents(path):
    own = parts[held_out(document.id)]
    # A page without a link is text, but nothing to be trained or tested on.
    if document.mentions and len(own) < most:
      own.append(document)
    else:
      whole = False
  # A dump of which nothing is left over need not be read again.
  rest = None if whole else path
  tests = {"dump": parts["test"]}
  return parts["train"], parts["validation"], tests, rest


def _tested(
  documents: list[LinkedDocument], path: files.Path
) -> list[LinkedDocument]:
  """The documents; at least one mention must have an entity."""
  if all(m.entity is None for d in documents for m in d.mentions):
    raise InputError(
      f"none of the {len(documents)} test documents has a mention with an "
      "entity, so accuracy cannot be measured",
      path=path,
    )
  return documents


def describe(corpus: Corpus) -> list[str]:
  """A line for each test set: coverage of entities and of candidates."""
  return [
    f"{name}: {known_entities(corpus, corpus.tests[name]):.1%} of the entities "
    f"known, {corpus.tests[name].recall.share:.1%} among the candidates"
    for name in corpus.tests
  ]

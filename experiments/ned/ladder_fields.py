"""The local and the global model of the thesis as rows of the ladder's table.

Entity vectors come from AIDA's training documents and from further texts. An
entity's contexts are the words around its mentions; in plain text each title
counts as a mention. Documents are padded to a few widths and trained on in
batches.
"""

import collections
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from experiments.ned import ladder, train
from experiments.ned.config import Config
from experiments.ned.ladder import Ladder, Split
from experiments.run import progress, runlib, word_vectors
from repr_jax.data import entities as entities_lib
from repr_jax.data.documents import corpus_files, linked_documents, packing
from repr_jax.data.documents.linked_documents import (
  LinkedDocument,
  LinkedMention,
)
from repr_jax.data.entities import bags as bags_lib
from repr_jax.data.io import files
from repr_jax.errors import InputError
from repr_jax.linking import Tables, context_kinds, fold_vectors

_PRIOR = "log p(e|m) of training links"
_LONGEST = 5  # words of a title in plain text
_NAMES = {"max_margin": "max-margin", "vae": "VAE", "null": "null"}


def check(config: Config) -> None:
  """Refuses texts that are not there, before anything is learned."""
  for path in config.texts:
    if not pathlib.Path(path).exists():
      raise InputError("--texts: there is no such file", path=path)


def add_fields(run: runlib.Run, config: Config, answered: Ladder) -> Ladder:
  """Trains the local and global models and adds their answers.

  Args:
    run: logs the trainings.
    config: the configuration of the run; `fields` are the objectives.

  Returns:
    The ladder with answers of the local model and of the global one for each
    objective, and of the global one that starts from kinds of titles and
    PageRank instead of p(e|m); each trained with --seeds seeds.
  """
  inner = Config(
    seed=config.seed, epochs=config.field_epochs, dim=config.field_dim
  )
  documents = {
    name: [_linked(d) for d in split.documents]
    for name, split in answered.splits.items()
  }
  titles = sorted(
    {
      candidate.title
      for split in answered.splits.values()
      for document in split.documents
      for mention in document.mentions
      for candidate in mention.candidates
    }
  )
  rows = {title: row for row, title in enumerate(titles)}

  def stream() -> Iterator[LinkedDocument]:
    yield from documents["train"]
    for path in config.texts:
      yield from read_text(path, rows)

  known = word_vectors.fit(stream(), inner.words(), run.directory / "words")
  bags = bags_lib.from_documents(
    stream(), titles, known.telling, window=inner.window, most=inner.bag,
    folds=inner.folds,
  )  # fmt: skip
  context_words = np.diff(bags.context_offsets)
  progress.say(
    f"ned: {len(known.vocabulary):,} words; {(context_words > 0).sum():,} of "
    f"{len(titles):,} entities have contexts, {bags.without_words:,} no known "
    "word at all"
  )
  plain, graph = (
    _packs(answered, documents, rows, known, inner, by_graph)
    for by_graph in (False, True)
  )
  answers = dict(answered.answers)
  first = 0
  for objective in config.fields:
    vectors = fold_vectors.fit_vectors(
      objective, bags, known.vectors, known.vocabulary.counts,
      inner.vectors("u2"), jax.random.key(config.seed),
    )  # fmt: skip
    label = _NAMES[objective]
    systems = [(f"global field, {label} vectors", True, plain)]
    if objective == config.fields[0]:
      systems.insert(0, (f"local attention, {label} vectors", False, plain))
      name = f"global field, {label} vectors, on kinds and PageRank"
      systems.append((name, True, graph))
    for name, coherence, (packs, orders) in systems:
      for seed in range(config.seed, config.seed + config.seeds):
        system = f"{name}, seed {seed}"
        figures, params = train.train(
          run, system, first, None, coherence, vectors, packs, inner,
          inner.threshold, seed,
        )  # fmt: skip
        first += inner.epochs
        progress.say(f"ned: {system}: {figures['validation']:.2%} of testa")
        answers[system] = _answers(
          inner, inner.model_config(coherence), params, vectors, packs, orders
        )
  return answered._replace(answers=answers)


def _answers(inner, model, params, vectors, packs, orders):
  """Places of a model's answers in testa and testb; -1 for none."""
  tables = Tables(jnp.asarray(vectors.last), jnp.asarray(vectors.words))
  answers = {}
  for split, own in orders.items():
    if split == "train":
      continue
    groups = packs.validation if split == "testa" else packs.tests[split]
    got = train.ask(
      model, params, tables, groups, len(own), inner.batch_size
    ).predicted.tolist()
    answers[split] = np.asarray(
      [order[place] if place >= 0 else -1 for order, place in zip(own, got)]
    )
  return answers


def read_text(path: str, titles: Mapping[str, int]) -> Iterator[LinkedDocument]:
  """Sentences of a file as documents.

  Args:
    path: JSON lines of sentences with mentions, or plain text with a sentence
      on a line.
    titles: entities that plain text may name.

  Yields:
    A document for each sentence. Sentences of a page have its name as their
    id, those of plain text have none.
  """
  line = next((x for x in files.open_text(path) if x.strip()), "")
  if line.lstrip().startswith("{"):
    form = corpus_files.form_of(path)
    if form == "documents":
      yield from corpus_files.read_documents(path)
      return
    for sentence in corpus_files.read_linked(path, form):
      mentions = tuple(
        LinkedMention(a, b, " ".join(sentence.tokens[a:b]), entity)
        for a, b, entity in sentence.mentions
        if b > a
      )
      yield LinkedDocument(sentence.doc, sentence.tokens, mentions)
    return
  starts = collections.defaultdict(set)
  for title in titles:
    words = tuple(entities_lib.tokenize(title))
    if "(" not in title and 0 < len(words) <= _LONGEST:
      starts[words[0]].add((words, title))
  listed = {
    word: sorted(own, key=lambda x: (-len(x[0]), x))
    for word, own in starts.items()
  }
  for line in files.open_text(path):
    tokens = tuple(entities_lib.tokenize(line))
    yield LinkedDocument("", tokens, tuple(_named(tokens, listed)))


def _named(tokens: tuple[str, ...], listed) -> Iterator[LinkedMention]:
  """The longest titles in a sentence, except its first word alone."""
  place = 0
  while place < len(tokens):
    size = 1
    for words, title in listed.get(tokens[place], ()):
      size = len(words)
      if tokens[place : place + size] == words and (place or size > 1):
        yield LinkedMention(place, place + size, title, title)
        break
      size = 1
    place += size


def _linked(document) -> LinkedDocument:
  spans = [(m.start, m.end, m.entity) for m in document.mentions]
  made = linked_documents.make_document(document.id, document.text, spans)
  if len(made.mentions) != len(spans):
    raise InputError(f"document {document.id!r} has the same mention twice")
  return made


def _packs(answered, documents, rows, known, inner, by_graph):
  """Arrays of all documents, and places of the sorted candidates."""
  lists, orders = {}, {}
  for name, split in answered.splits.items():
    tables = _graph_prior(answered, split) if by_graph else _link_prior(split)
    lists[name], orders[name] = _candidates(split, tables)

  def pack(name: str, top: int) -> list[packing.Group]:
    return packing.pack(
      documents[name], lists[name], rows, known.telling, top=top,
      context=inner.context, widths=inner.widths,
    )  # fmt: skip

  folds = [bags_lib.fold_of(d.id, inner.folds) for d in documents["train"]]
  telling = [train.telling(x) for x in pack("train", inner.train_top)]
  packs = train.Packs(
    [x for x in telling if len(x.places)],
    np.asarray(folds),
    pack("testa", inner.top),
    {"testb": pack("testb", inner.top)},
  )
  return packs, orders


def _link_prior(split: Split) -> list[np.ndarray]:
  place = ladder.NAMES.index(_PRIOR)
  return [group.evidence.features[..., place] for group in split.groups]


def _graph_prior(answered: Ladder, split: Split) -> list[np.ndarray]:
  """Log probability by kind of title, and PageRank with its chosen weight."""
  place = ladder.NAMES.index(context_kinds.NAMES[-1])
  weight = answered.weights[ladder.KIND_GRAPH]
  parts = ladder.graph_parts(split, place, ladder.pagerank)
  return [prior + weight * graph for prior, graph in parts]


def _candidates(split: Split, tables: Sequence[np.ndarray]):
  """Candidates of each mention with probabilities, the best first."""
  mentions = [m for d in split.documents for m in d.mentions]
  flat: list[list[tuple[str, float]]] = [[] for _ in mentions]
  orders: list[list[int]] = [[] for _ in mentions]
  for group, scores in zip(split.groups, tables):
    mask = group.evidence.nodes >= 0
    for numbers, own, there in zip(group.mentions, scores, mask):
      for number, row, known in zip(numbers.tolist(), own, there):
        if number < 0:
          continue
        count = int(known.sum())
        shares = np.exp(row[:count] - row[:count].max())
        shares = shares / shares.sum()
        order = np.argsort(-shares, kind="stable").tolist()
        titles = [x.title for x in mentions[number].candidates]
        flat[number] = [(titles[i], float(shares[i])) for i in order]
        orders[number] = order
  lists, low = [], 0
  for document in split.documents:
    lists.append(flat[low : low + len(document.mentions)])
    low += len(document.mentions)
  return lists, orders

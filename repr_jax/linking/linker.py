"""A linker from linked documents in one call, and its answers with reasons."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from repr_jax.data.documents import (
  candidates,
  linked_documents,
  packing,
  priors,
)
from repr_jax.data.documents.linked_documents import LinkedDocument
from repr_jax.data.entities import bags as bags_lib
from repr_jax.data.vectors import Vectors
from repr_jax.errors import InputError
from repr_jax.linking import disambiguation, fold_vectors, train
from repr_jax.linking.disambiguation import Config, Params, Tables
from repr_jax.ops import inputs, normalize

_CONFIG = Config(field_prior=True, join_context=True)
_SETTINGS = fold_vectors.Settings()
_WIDTHS = (4, 16, 64)  # mentions that documents are padded to
_contributions = jax.jit(disambiguation.contributions, static_argnums=0)


class Link(NamedTuple):
  """One candidate of a mention.

  Attributes:
    entity: the candidate.
    score: its final score, the sum of the three parts.
    prior: part of log p(entity | mention).
    context: part of the words around the mention.
    coherence: part of the document's other mentions.
  """

  entity: str
  score: float
  prior: float
  context: float
  coherence: float


@dataclasses.dataclass(frozen=True)
class Linker:
  """A trained model with its tables.

  Attributes:
    config: the model.
    params: its weights.
    tables: vectors of entities and words.
    index: where candidates of a mention come from.
    entities: rows of the entities' vectors by name.
    words: rows of the words' vectors by word in lower case.
    top: candidates of a mention, at most.
    context: words around a mention.
  """

  config: Config
  params: Params
  tables: Tables
  index: candidates.Index
  entities: Mapping[str, int]
  words: Mapping[str, int]
  top: int
  context: int

  def link(
    self, document: LinkedDocument | str, spans: Iterable[tuple[int, int]] = ()
  ) -> list[list[Link]]:
    """Ranks the candidates of each mention, with reasons.

    Args:
      document: a document with mentions, whose entities are not read, or a
        text.
      spans: mentions of a text as (start, end) in characters.

    Returns:
      For each mention, in the order of the document or of the text, its
      candidates, best first; empty where the mention is unknown.
    """
    if isinstance(document, str):
      document = linked_documents.make_document(
        "text", document, ((a, b, None) for a, b in spans)
      )
    inputs.check_types(document=(document, LinkedDocument))
    lists = candidates.document_candidates(self.index, document, self.top)
    lists = [[x for x in own if x[0] in self.entities] for own in lists]
    groups = packing.pack(
      [document], [lists], self.entities, self.words, top=self.top,
      context=self.context, widths=_WIDTHS,
    )  # fmt: skip
    links: list[list[Link]] = [[] for _ in document.mentions]
    for group in groups:
      for numbers, *arrays in zip(group.mentions, *group.packed):
        parts = _contributions(
          self.config, self.params, self.tables, packing.Packed(*arrays)
        )
        table = np.stack(parts, axis=-1)
        for row, number in enumerate(numbers.tolist()):
          if number >= 0:
            links[number] = _ranked(lists[number], table[row])
    return links


def fit(
  documents: Sequence[LinkedDocument],
  word_vectors: Vectors,
  *,
  key: jax.Array | int = 0,
  config: Config = _CONFIG,
  optimizer: optax.GradientTransformation | None = None,
  epochs: int = 10,
  margin: float = 0.01,
  top: int = 30,
  train_top: int = 4,
  context: int = 100,
  settings: fold_vectors.Settings = _SETTINGS,
) -> Linker:
  """Learns to link mentions from documents with links (thesis 6.3).

  Priors p(e|m) are counted from the documents' links; entity vectors are
  max-margin vectors of their names, pages and contexts; the model of
  `disambiguate` is trained on the documents' mentions. A document counts
  neither in the prior of its own mentions nor in the vectors that it is
  trained with.

  >>> import jax, numpy as np
  >>> from repr_jax import data, linking
  >>> from repr_jax.data.documents.linked_documents import make_document
  >>> texts = {
  ...   "Paris": "Paris capital of France by the Seine",
  ...   "Paris, Texas": "Paris county seat in Texas by Dallas",
  ... }
  >>> documents = [
  ...   make_document(f"{name}#{i}", text, [(0, 5, name)])
  ...   for i in range(6) for name, text in texts.items()
  ... ]
  >>> words = sorted({w.lower() for t in texts.values() for w in t.split()})
  >>> vectors = data.Vectors(words, np.eye(len(words), dtype=np.float32))
  >>> linker = linking.fit(documents, vectors, key=jax.random.key(0))
  >>> ((best, other),) = linker.link("Paris near Dallas", [(0, 5)])
  >>> best.entity
  'Paris, Texas'
  >>> bool(np.isclose(best.prior + best.context + best.coherence, best.score))
  True

  Args:
    documents: documents with linked mentions.
    word_vectors: vectors of words in lower case, [v, d].
    key: random key, or a seed.
    config: the model.
    optimizer: any optimizer of optax; Adam with 1e-3 by default.
    epochs: passes over the documents.
    margin: gamma of the loss.
    top: candidates of a mention, at most.
    train_top: candidates of a mention in training, the likeliest.
    context: words around a mention.
    settings: how entity vectors are learned.

  Returns:
    The linker.
  """
  key = inputs.as_key(key)
  optimizer = optax.adam(1e-3) if optimizer is None else optimizer
  inputs.check_whole(0, epochs=epochs, context=context)
  inputs.check_whole(1, top=top, train_top=train_top)
  if not 0 <= margin < np.inf:
    raise InputError(f"margin must be finite and not negative, not {margin}")
  documents = list(documents)
  inputs.check_types(
    word_vectors=(word_vectors, Vectors),
    config=(config, Config),
    optimizer=(optimizer, optax.GradientTransformation),
    **{f"document {i}": (x, LinkedDocument) for i, x in enumerate(documents)},
  )
  links = [
    (mention.surface, mention.entity)
    for document in documents
    for mention in document.mentions
    if mention.entity is not None
  ]
  if not links:
    raise InputError("the documents have no linked mention to learn from")
  index = candidates.build_index(priors.count_links(links))
  names = sorted({entity for _, entity in links})
  entities = {name: row for row, name in enumerate(names)}
  words = {word: row for row, word in enumerate(word_vectors.words)}
  bags = bags_lib.from_documents(documents, names, words, folds=settings.folds)
  array = normalize.unit_rows(np.asarray(word_vectors.array, np.float32))
  counts = np.bincount(
    [
      words[token.lower()]
      for document in documents
      for token in document.tokens
      if token.lower() in words
    ],
    minlength=len(words),
  )
  if not counts.any():
    raise InputError(
      "no word of the documents has a vector; words of vectors are lower case"
    )
  first, second, third = jax.random.split(key, 3)
  vectors = fold_vectors.fit_vectors(
    "max_margin", bags, array, counts, settings, first
  )
  lists = [
    [
      [x for x in own if x[0] in entities]
      for own in candidates.document_candidates(index, d, train_top, True)
    ]
    for d in documents
  ]
  groups = packing.pack(
    documents, lists, entities, words, top=train_top, context=context,
    widths=_WIDTHS,
  )  # fmt: skip
  if vectors.blocks > 1:
    folds = [bags_lib.fold_of(x.id, settings.folds) for x in documents]
    groups = fold_vectors.shift(groups, np.asarray(folds), len(names))
  table = jnp.asarray(vectors.words)
  tables = Tables(jnp.asarray(vectors.entities), table)
  init, update = train.disambiguator(config, optimizer)
  state = init(second, tables)
  rng = np.random.default_rng(jax.random.bits(third, (4,), "uint32").tolist())
  for _ in range(epochs):
    for _, batch in packing.batches(groups, 256, rng):
      state, _ = update(state, tables, batch, margin)
  if not all(np.isfinite(x).all() for x in jax.tree.leaves(state.average)):
    raise InputError("the weights are not finite: lower the learning rate")
  tables = Tables(jnp.asarray(vectors.last), table)
  return Linker(
    config, state.average, tables, index, entities, words, top, context
  )


def _ranked(listed: candidates.Candidates, parts: np.ndarray) -> list[Link]:
  """The candidates of a mention, [(entity, p)], with parts [c, 3]."""
  rows = [
    Link(entity, float(part.sum()), *map(float, part))
    for (entity, _), part in zip(listed, parts)
  ]
  return sorted(rows, key=lambda link: -link.score)

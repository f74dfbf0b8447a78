"""Vectors of entities by three objectives, from pages and from mentions.

U1 are the words of an entity's title and of its page, where a training
document bears its title; U2 the words around its mentions. The model must not
be trained on vectors that have seen the very mentions it is trained on, so
training documents are in folds, and those of a fold get vectors of U2 without
it: a table [(folds + 1) n, d] with the vectors of everything last.
"""

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from experiments.ned import data as corpus_lib
from experiments.ned.config import Options
from experiments.ned.data import Corpus
from experiments.ned.words import Words
from repr_jax.data.documents import linked_documents
from repr_jax.data.entities import tokenize
from repr_jax.linking import entity_vectors
from repr_jax.setexp import autoencoder, fitting, from_scipy, train

_PAGE = -1


class Bags(NamedTuple):
  """Words of entities, in the order that they were seen.

  Attributes:
    entity: row of the entity, int32 [t].
    word: row of the word, int32 [t].
    fold: fold of the mention's document, int32 [t]; -1 for U1.
  """

  entity: np.ndarray
  word: np.ndarray
  fold: np.ndarray

  def select(
    self, count: int, chosen: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """Bags of some of the words.

    Args:
      count: the number of entities n.
      chosen: which, bool [t].

    Returns:
      Where each bag begins, int64 [n + 1], and its words, int32.
    """
    entity, word = self.entity[chosen], self.word[chosen]
    order = np.argsort(entity, kind="stable")
    sizes = np.bincount(entity, minlength=count)
    return np.concatenate([[0], np.cumsum(sizes)]), word[order]


class Vectors(NamedTuple):
  """What the model looks entities and words up in.

  Attributes:
    entities: blocks of n rows, one for each fold and the last of all, or
      that one alone, float32 [b n, d].
    words: float32 [v, d].
    blocks: b.
  """

  entities: np.ndarray
  words: np.ndarray
  blocks: int


def collect(
  corpus: Corpus,
  documents: Iterable[linked_documents.LinkedDocument],
  words: Words,
  options: Options,
) -> Bags:
  """Gathers the words of entities in one pass over the text.

  Args:
    corpus: has the entities that matter; others are passed over.
    documents: the training text.
    words: the vocabulary.
    options: of the run; no entity gets more than `bag` words of a kind.
  """
  entity, word, fold = array("i"), array("i"), array("i")
  rows = corpus.entities
  left = np.full((2, len(rows)), options.bag, np.int64)

  def add(row: int, tokens: Iterable[str], kind: int) -> None:
    room = left[int(kind != _PAGE)]
    ids = words.ids(tokens)[: room[row]]
    room[row] -= len(ids)
    word.extend(ids)
    entity.extend([row] * len(ids))
    fold.extend([kind] * len(ids))

  for name, row in rows.items():
    add(row, tokenize(name), _PAGE)
  for document in documents:
    kind = corpus_lib.fold(document.id, options.folds)
    page = rows.get(corpus_lib.title(document))
    if page is not None:
      add(page, document.tokens, _PAGE)
    for mention in document.mentions:
      if mention.entity in rows:
        around = linked_documents.context(
          document, mention, options.window // 2
        )
        add(rows[mention.entity], around, kind)
  return Bags(*(np.frombuffer(x, np.int32) for x in (entity, word, fold)))


def fit(
  objective: str,
  contexts: str,
  bags: Bags,
  count: int,
  words: Words,
  options: Options,
) -> Vectors:
  """Vectors of all entities by one objective.

  Args:
    objective: "max_margin", "vae" or "null".
    contexts: "u1" for pages alone, "u2" for mentions too.
    bags: words of the entities.
    count: the number of entities n.
    words: the vocabulary with its vectors.
    options: of the run.
  """
  if objective == "max_margin":
    return _max_margin(contexts, bags, count, words, options)
  return _encoded(objective, contexts, bags, count, words, options)


def _max_margin(contexts, bags, count, words, options) -> Vectors:
  keys = jax.random.split(jax.random.key(options.seed), options.folds + 2)

  def run(chosen, key, start=None):
    offsets, own = bags.select(count, chosen)
    found = entity_vectors.fit_max_margin(
      words.vectors,
      offsets,
      own,
      words.vocabulary.counts,
      key=key,
      steps=options.vector_steps,
      start=start,
    )
    return np.asarray(found)

  page = run(bags.fold == _PAGE, keys[0])
  if contexts == "u1":
    return Vectors(page, words.vectors, 1)
  blocks = []
  for fold in [*range(options.folds), None]:
    chosen = (bags.fold != _PAGE) & (bags.fold != fold)
    key = keys[-1] if fold is None else keys[fold + 1]
    blocks.append(run(chosen, key, page))
  return Vectors(np.concatenate(blocks), words.vectors, len(blocks))


def _encoded(objective, contexts, bags, count, words, options) -> Vectors:
  """Posterior means of entities, and of words as bags of one word."""
  size, width = words.vectors.shape

  def rows(chosen) -> sp.csr_array:
    offsets, own = bags.select(count, chosen)
    return entity_vectors.bag_counts(offsets, own, size)

  page = bags.fold == _PAGE
  whole = rows(page if contexts == "u1" else np.ones_like(page))
  config = autoencoder.Config(
    dim=width, hidden=(max(width // 2, 1),), weighting="bm25"
  )
  full = sp.csr_array(whole[np.flatnonzero(np.diff(whole.indptr))])
  epochs = options.vae_epochs if objective == "vae" else 0
  key = jax.random.key(options.seed)
  model = fitting.fit(
    full, config, key, epochs=epochs, hyper=train.Hyper(beta=0.1),
    batch_size=256,
  )  # fmt: skip

  def encode(counts: sp.csr_array) -> np.ndarray:
    found = from_scipy.encode_rows(config, model.params, model.inputs, counts)
    means = np.asarray(found.xi) / np.asarray(found.precision)
    means[np.diff(counts.indptr) == 0] = 0
    return np.asarray(entity_vectors.unit_rows(means))

  table = encode(sp.csr_array(sp.identity(size, np.float32, "csr")))
  if contexts == "u1":
    return Vectors(encode(whole), table, 1)
  folds = range(options.folds)
  blocks = [encode(rows(bags.fold != fold)) for fold in folds]
  return Vectors(
    np.concatenate([*blocks, encode(whole)]), table, len(blocks) + 1
  )

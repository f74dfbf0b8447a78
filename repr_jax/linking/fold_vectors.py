"""Vectors of entities by three objectives, for documents in folds.

The model must not be trained on vectors that have seen the very mentions it
is trained on. So training documents are divided into folds
(`repr_jax.data.entities.bags`), and documents of a fold use U2 vectors that
are learned without it. The table [(folds + 1) n, d] holds the vectors without
each fold, then those of all documents.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from repr_jax.data.documents import packing
from repr_jax.data.entities.bags import Bags, Ragged
from repr_jax.linking import entity_vectors, posterior_means
from repr_jax.ops import mesh as meshes
from repr_jax.ops import normalize
from repr_jax.setexp import autoencoder, fitting, from_scipy, train

OBJECTIVES = ("max_margin", "vae", "null")


@dataclasses.dataclass(frozen=True)
class Settings:
  """How vectors are learned.

  Attributes:
    contexts: whether to use contexts of mentions (U2), not only pages (U1).
    folds: number of folds.
    steps: steps of max-margin vectors, on U1 and on U2 each.
    epochs: passes of the autoencoder over the entities.
    beta: weight of the autoencoder's KL term.
    hidden: width of its hidden layer; None for half of the dimension.
    lower_bounded_variance: whether its variances lie in [1, e].
    word_start: whether its first layer starts from the principal components
      of the words' vectors instead of random weights.
    learning_rate: of Adam, for the autoencoder.
    batch_size: entities in a step of the autoencoder.
    activation: of its hidden layer, "tanh", "relu" or "linear".
    anneal: whether the weight of its KL term falls to 0 over the epochs.
  """

  contexts: bool = True
  folds: int = 2
  steps: int = 400
  epochs: int = 10
  beta: float = 0.1
  hidden: int | None = None
  lower_bounded_variance: bool = False
  word_start: bool = False
  learning_rate: float = 1e-3
  batch_size: int = 256
  activation: str = "tanh"
  anneal: bool = False


class Vectors(NamedTuple):
  """Vectors of entities and words.

  Attributes:
    entities: blocks of n rows: one without each fold, then one of all
      documents; or the latter alone, float32 [b n, d].
    words: float32 [v, d].
    blocks: b.
  """

  entities: np.ndarray
  words: np.ndarray
  blocks: int

  @property
  def last(self) -> np.ndarray:
    """The block that has seen everything, [n, d]."""
    return self.entities[-(len(self.entities) // self.blocks) :]


def fit_vectors(
  objective: str,
  bags: Bags,
  words: np.ndarray,
  counts: np.ndarray,
  settings: Settings,
  key: jax.Array,
) -> Vectors:
  """Learns vectors of all entities by one objective.

  Args:
    objective: "max_margin", "vae" or "null".
    bags: words of n entities.
    words: vectors of the words, [v, d].
    counts: counts of the words in the whole text, [v].

  Returns:
    The vectors; words of "vae" and "null" are encoded as bags of one word.
  """
  if objective == "max_margin":
    return _max_margin(bags, words, counts, settings, key)
  epochs = settings.epochs if objective == "vae" else 0
  return _encoded(bags, words, settings, epochs, key)


def shift(
  groups: list[packing.Group], folds: np.ndarray, count: int
) -> list[packing.Group]:
  """Points training documents at the vectors that have not seen them.

  Args:
    folds: the fold of each document, int [documents].
    count: entities in a block of the table.
  """
  shifted = []
  for group in groups:
    ids = group.packed.candidates
    base = (folds[group.places] * count)[:, None, None].astype(np.int32)
    moved = np.where(ids >= 0, ids + base, ids)
    shifted.append(
      group._replace(packed=group.packed._replace(candidates=moved))
    )
  return shifted


def components(words: np.ndarray, size: int) -> np.ndarray:
  """Coordinates of the words on their first principal components.

  Args:
    words: vectors of the words, [v, d].
    size: h, number of components.

  Returns:
    Coordinates [v, h]; those beyond d are 0.
  """
  centered = words - words.mean(axis=0)
  _, axes = np.linalg.eigh(centered.T @ centered)
  kept = centered @ axes[:, ::-1][:, :size]
  return np.pad(kept, ((0, 0), (0, size - kept.shape[1]))).astype(np.float32)


def _max_margin(bags, words, counts, settings, key) -> Vectors:
  keys = jax.random.split(key, settings.folds + 2)

  def run(bag: Ragged, key, start=None):
    offsets, own = bag
    return np.asarray(
      entity_vectors.fit_max_margin(
        words,
        offsets,
        own,
        counts,
        key=key,
        steps=settings.steps,
        start=start,
        mesh=meshes.own_devices(),
      )
    )

  page = run(bags.pages(), keys[0])
  if not settings.contexts:
    return Vectors(page, words, 1)
  blocks = [
    run(bags.contexts(fold), own, page)
    for fold, own in zip([*range(settings.folds), None], keys[1:])
  ]
  return Vectors(np.concatenate(blocks), words, len(blocks))


def _encoded(bags, words, settings, epochs, key) -> Vectors:
  """Posterior means of entities, and of words as bags of one word."""
  size, width = words.shape

  def rows(bag: Ragged) -> sp.csr_array:
    offsets, own = bag
    return posterior_means.bag_counts(offsets, own, size)

  whole = rows(bags.both() if settings.contexts else bags.pages())
  hidden = settings.hidden or max(width // 2, 1)
  config = autoencoder.Config(
    dim=width, hidden=(hidden,), weighting="bm25",
    lower_bounded_variance=settings.lower_bounded_variance,
    activation=settings.activation,
  )  # fmt: skip
  full = sp.csr_array(whole[np.flatnonzero(np.diff(whole.indptr))])
  model = fitting.fit(
    full, config, key, epochs=epochs,
    hyper=train.Hyper(settings.learning_rate, settings.beta),
    batch_size=settings.batch_size,
    word_vectors=components(words, hidden) if settings.word_start else None,
    anneal=settings.anneal,
  )  # fmt: skip

  def encode(counts: sp.csr_array) -> np.ndarray:
    natural = from_scipy.encode_rows(config, model.params, model.inputs, counts)
    means = np.asarray(natural.xi) / np.asarray(natural.precision)
    means[np.diff(counts.indptr) == 0] = 0
    return normalize.unit_rows(means)

  table = encode(sp.csr_array(sp.identity(size, np.float32, "csr")))
  if not settings.contexts:
    return Vectors(encode(whole), table, 1)
  blocks = [encode(rows(bags.both(fold))) for fold in range(settings.folds)]
  return Vectors(
    np.concatenate([*blocks, encode(whole)]), table, len(blocks) + 1
  )

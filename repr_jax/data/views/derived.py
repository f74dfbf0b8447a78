"""Views made from others: windows of text, and walks on WordNet's graph.

A window sums the views of several offsets, since a single offset is sparse on
a small corpus. A random walk follows WordNet's relations and glosses from the
senses of a word. It reaches synsets that are several steps away.
"""

import re
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array as Csr

from repr_jax.data import wordnet
from repr_jax.data.views import vocab
from repr_jax.data.views.store import View
from repr_jax.data.wordnet import tables
from repr_jax.errors import InputError

_OFFSET = re.compile(r"text_(behind|ahead)_(\d+)")
_TOKEN = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")
_BLOCK = 2048  # words that walk at a time
_RARE_STEP = 4e-3  # less likely steps are never taken


def window(views: Sequence[View], width: int) -> View:
  """Sums the word-order views of up to some distance.

  Args:
    views: stored or fresh views, those of text offsets among them.

  Returns:
    The window's counts, [V, d].
  """
  near = []
  for view in views:
    match = _OFFSET.fullmatch(view.name)
    if match and int(match[2]) <= width:
      near.append(view)
  if not near:
    raise InputError(f"no offset view for a window of {width}: name a text")
  total = near[0].matrix
  for view in near[1:]:
    total = total + view.matrix
  meta = {"offsets": [view.name for view in near]}
  return View(f"text_window_{width:02d}", Csr(total), near[0].columns, meta)


def sense_weights(wn: wordnet.WordNet, words: Sequence[str]) -> Csr:
  """How likely each sense of a word is, by the order of its senses.

  Args:
    wn: the database.
    words: the vocabulary, in lower case.

  Returns:
    Rows that sum to one, or to zero for an unknown word, float32
    [V, synsets]. A sense of rank i within its part of speech has the weight
    1 / i; a word without senses has those of its base forms.
  """
  rows: list[int] = []
  columns: list[int] = []
  values: list[float] = []
  for i, word in enumerate(words):
    for part in tables.PARTS:
      senses = wn.senses(word, part)
      if not senses:
        bases = wn.morphy(word, part)
        senses = tuple(s for base in bases for s in wn.senses(base, part))
      rows += [i] * len(senses)
      columns += senses
      values += [1 / rank for rank in range(1, len(senses) + 1)]
  shape = (len(words), len(wn))
  entries = (np.array(values, np.float32), (rows, columns))
  return _normalized(Csr(entries, shape=shape))


def walks(
  wn: wordnet.WordNet,
  words: Sequence[str],
  *,
  steps: int = 3,
  damping: float = 0.85,
  glosses: float = 0.5,
  keep: float = 1e-3,
) -> View:
  """Visit weights of a random walk from each word's senses.

  A step goes along a relation of the synset, or with probability `glosses`
  to a sense of a word of its gloss (rare words more often) or to a synset
  whose gloss has one of its words. The entry (i, c) is the sum over the
  number of steps t of damping^t times the probability to be at c.

  Args:
    wn: the database.
    words: the vocabulary, in lower case.
    steps: number of steps.
    damping: weight of each further step.
    glosses: probability of a step through a gloss; 0 for relations alone.
    keep: smaller probabilities are dropped after each step, which bounds the
      entries of a row by 1 / keep.

  Returns:
    The view, columns are synsets, [V, n].
  """
  if steps < 0 or not 0 < damping <= 1 or not 0 <= glosses <= 1:
    raise InputError(
      f"a walk needs steps >= 0, damping in (0, 1] and glosses in [0, 1]; "
      f"got {steps}, {damping}, {glosses}"
    )
  start = sense_weights(wn, words)
  move = (1 - glosses) * _relations(wn)
  if glosses:
    move = Csr(move + glosses * _glosses(wn))
  # Rare steps out of a hub are pruned.
  move = _normalized(_pruned(Csr(move), _RARE_STEP))
  blocks = []
  for first in range(0, len(words), _BLOCK):
    here = total = Csr(start[first : first + _BLOCK])
    for step in range(1, steps + 1):
      here = _pruned(Csr(here @ move), keep)
      total = total + damping**step * here
    blocks.append(total)
  matrix = _stack(blocks, len(wn))
  meta = {"steps": steps, "damping": damping, "glosses": glosses}
  return View("wordnet_walks", matrix, wn.names, meta)


def _relations(wn: wordnet.WordNet) -> Csr:
  """Every pointer in both directions; rows sum to one, [n, n]."""
  edges = wn.edges(*tables.SYMBOLS.values())
  ones = np.ones(len(edges), np.float32)
  table = Csr((ones, (edges[:, 0], edges[:, 1])), shape=(len(wn), len(wn)))
  return _normalized(Csr(table + table.T))


def _glosses(wn: wordnet.WordNet) -> Csr:
  """From a synset to the senses of its gloss' words and back, [n, n]."""
  tokens = [_TOKEN.findall(gloss.lower()) for gloss in wn.tables.gloss]
  distinct = tuple(sorted({token for gloss in tokens for token in gloss}))
  index = vocab.Vocab(distinct, np.zeros(len(distinct)))
  lengths = [len(gloss) for gloss in tokens]
  synset = np.repeat(np.arange(len(wn)), lengths)
  ids = index.ids(token for gloss in tokens for token in gloss)
  ones = np.ones(len(ids), np.float32)
  bag = Csr((ones, (synset, ids)), shape=(len(wn), len(distinct)))
  bag.sum_duplicates()
  rare = np.log(len(wn) / np.bincount(bag.indices, minlength=len(distinct)))
  bag.data = np.minimum(bag.data, 1) * rare[bag.indices].astype(np.float32)
  # Words in very many glosses tell little and would fill the matrix.
  bag.data[rare[bag.indices] < np.log(len(wn) / 2000 + 1)] = 0
  bag.eliminate_zeros()
  senses = _pruned(sense_weights(wn, distinct), 0.1)
  there = _normalized(Csr(_normalized(bag) @ senses))
  return _normalized(Csr(there + there.T))


def _normalized(matrix: Csr) -> Csr:
  """Rows that sum to one; empty rows stay empty."""
  totals = np.asarray(matrix.sum(axis=1)).ravel()
  scale = np.where(totals > 0, 1 / np.where(totals > 0, totals, 1), 0)
  data = matrix.data * np.repeat(scale, np.diff(matrix.indptr))
  parts = (data.astype(np.float32), matrix.indices, matrix.indptr)
  return Csr(parts, shape=matrix.shape)


def _pruned(matrix: Csr, least: float) -> Csr:
  """The matrix without its small entries."""
  matrix = matrix.copy()
  matrix.data[matrix.data < least] = 0
  matrix.eliminate_zeros()
  return matrix


def _stack(blocks: Sequence[Csr], width: int) -> Csr:
  """Blocks of rows one under the other."""
  counts = np.concatenate([np.diff(block.indptr) for block in blocks])
  indptr = np.concatenate([[0], np.cumsum(counts)])
  data = np.concatenate([block.data for block in blocks]).astype(np.float32)
  indices = np.concatenate([block.indices for block in blocks])
  matrix = Csr((data, indices, indptr), shape=(len(counts), width))
  matrix.sort_indices()
  return matrix

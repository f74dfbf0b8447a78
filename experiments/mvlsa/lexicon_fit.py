"""Lexicons of synonyms and antonyms that finished vectors are fitted to."""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.mvlsa.config import Config
from repr_jax import multiview, ops
from repr_jax.data import lexicons
from repr_jax.errors import InputError

_NONE = np.zeros((0, 2), np.int32)


class Pairs(NamedTuple):
  """Pairs of words of the vocabulary, each in both directions.

  Attributes:
    synonyms: rows of related words, int [p, 2].
    antonyms: rows of opposites, int [q, 2].
    notes: a remark on the cover of each of the two.
  """

  synonyms: np.ndarray = _NONE
  antonyms: np.ndarray = _NONE
  notes: tuple[str, ...] = ()


def read(config: Config, index: Mapping[str, int]) -> Pairs:
  """The lexicons of a run.

  Args:
    index: row of each word.
  """
  one, first = _joined(config.synonyms, index)
  two, second = _joined(config.antonyms, index)
  return Pairs(one, two, tuple(note for note in (first, second) if note))


def fitted(vectors: np.ndarray, pairs: Pairs, steps: int) -> np.ndarray:
  """Unit vectors [n, d], synonyms nearer and antonyms further apart.

  Args:
    vectors: of the vocabulary, [n, d].
  """
  moved = multiview.counterfit(
    np.asarray(vectors, np.float32), pairs.synonyms, pairs.antonyms, _NONE,
    iterations=steps,
  )  # fmt: skip
  return np.asarray(moved)


def variants(
  vectors: np.ndarray, pairs: Pairs, steps: int
) -> Iterator[tuple[str, np.ndarray]]:
  """Vectors [n, d] retrofitted and counter-fitted to lexicons.

  Args:
    pairs: of the lexicons; without antonyms nothing is counter-fitted.

  Yields:
    The name of the change, and the vectors [n, d].
  """
  unit = ops.unit_rows(vectors.astype(np.float32))
  ones = np.ones(len(pairs.synonyms), np.float32)
  moved = multiview.retrofit(unit, pairs.synonyms, ones)
  yield "retrofitted", np.asarray(moved)
  if len(pairs.antonyms):
    yield "counter-fitted", fitted(unit, pairs, steps)


def _joined(
  paths: Sequence[str], index: Mapping[str, int]
) -> tuple[np.ndarray, str]:
  """The pairs of some lexicons, each once, and a remark on their cover."""
  if not paths:
    return _NONE, ""
  read = [lexicons.read_lexicon(path, index) for path in paths]
  pairs = np.unique(np.concatenate([one for one, _ in read]), axis=0)
  missed = sum(unknown for _, unknown in read)
  if not len(pairs):
    raise InputError(
      f"no pair of {', '.join(paths)} is in the vocabulary; check case and "
      "language"
    )
  names = ", ".join(pathlib.Path(path).name for path in paths)
  return pairs, f"{names}: {len(pairs):,} pairs, {missed:,} of other words."

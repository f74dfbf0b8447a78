"""Word vectors against human judgment: similarity sets and choices.

Figures are times 100, as in the thesis' tables. Results also give the share of
the set that was scored.
"""

import dataclasses
import warnings
from collections.abc import Iterable, Mapping

import jax
import numpy as np

from repr_jax import errors
from repr_jax.data import testsets
from repr_jax.ops import normalize

Array = np.ndarray | jax.Array


@dataclasses.dataclass(frozen=True)
class Result:
  """The figure of one system on one set.

  Attributes:
    name: of the set.
    value: correlation or accuracy times 100; NaN if nothing was scored.
    scored: items that count in the value.
    total: items in the set.
    zero: scored items that needed a zero vector.
    scores: for each item of the set its score, [total], NaN if it has none:
      similarities for a similarity set, right (1) or wrong (0) otherwise.
  """

  name: str
  value: float
  scored: int
  total: int
  zero: int
  scores: np.ndarray

  @property
  def coverage(self) -> float:
    """Share of the set that was scored; 0 for a set without items."""
    return self.scored / self.total if self.total else 0.0


def index_words(words: Iterable[str]) -> dict[str, int]:
  """The row of each word; the first where a word occurs twice."""
  index: dict[str, int] = {}
  for row, word in enumerate(words):
    index.setdefault(word, row)
  return index


def spearman(x: np.ndarray, y: np.ndarray) -> float:
  """Spearman's correlation; tied values get the average of their ranks.

  Args:
    x: [n], finite, n at least 2.
    y: [n].

  Returns:
    The correlation; 0 if one side is constant.
  """
  x, y = np.asarray(x), np.asarray(y)
  if x.ndim != 1 or x.shape != y.shape or x.size < 2:
    raise ValueError(
      f"two rows of equal length of 2 or more are needed, "
      f"not {x.shape} and {y.shape}"
    )
  if not (np.isfinite(x).all() and np.isfinite(y).all()):
    raise ValueError("cannot rank values that are not finite")
  x, y = _centered_ranks(x), _centered_ranks(y)
  scale = np.sqrt((x @ x) * (y @ y))
  return float(np.clip(x @ y / scale, -1, 1)) if scale > 0 else 0.0


def evaluate_similarity(
  array: Array,
  index: Mapping[str, int],
  test_set: testsets.SimilaritySet,
  *,
  missing: str = "skip",
  empty: str = "error",
) -> Result:
  """Spearman's correlation of cosine similarity and human scores.

  Args:
    array: vectors, [n, d].
    index: row of each word.
    test_set: pairs and their scores.
    missing: "skip" leaves out pairs with an unknown word, "zero" scores them
      with similarity 0.
    empty: "error" refuses a set of which fewer than two pairs can be scored,
      "warn" returns a NaN value with a warning.

  Returns:
    The result; a zero vector has similarity 0 to every word.

  Raises:
    InputError: if `empty` refuses the set, or for vectors that are not finite.
  """
  _check(missing, ("skip", "zero"), "missing")
  left = _rows(index, (a for a, _ in test_set.pairs))
  right = _rows(index, (b for _, b in test_set.pairs))
  known = (left >= 0) & (right >= 0)
  scores = np.full(len(known), np.nan)
  similarity, zero = _cosine(array, left[known], right[known])
  scores[known] = similarity
  if missing == "zero":
    scores[~known] = 0.0
  scored = ~np.isnan(scores)
  value = float("nan")
  if known.sum() < 2:
    _nothing(test_set.name, int(known.sum()), len(known), empty)
  else:
    value = 100 * spearman(scores[scored], test_set.scores[scored])
  return Result(
    test_set.name, value, int(scored.sum()), len(known), int(zero.sum()), scores
  )


def evaluate_choices(
  array: Array,
  index: Mapping[str, int],
  test_set: testsets.ChoiceSet,
  *,
  missing: str = "skip",
  empty: str = "error",
) -> Result:
  """Accuracy of choosing the candidate with the largest cosine similarity.

  An unknown candidate is never chosen. Of m candidates that tie for the
  first place each is chosen with probability 1/m: the score is 1/m.

  Args:
    array: vectors, [n, d].
    index: row of each word.
    test_set: questions with their candidates.
    missing: "skip" leaves out a question whose word, or all of whose
      candidates, are unknown; "wrong" counts it as wrong.
    empty: "error" or "warn", for a set with no question left.

  Returns:
    The result.

  Raises:
    InputError: if `empty` refuses the set, or for vectors that are not finite.
  """
  scores = np.full(len(test_set.questions), np.nan)
  zero = 0
  for i, word in enumerate(test_set.questions):
    row, choices = _rows(index, [word]), _rows(index, test_set.choices[i])
    known = choices >= 0
    if row[0] < 0 or not known.any():
      continue
    similarity = np.full(len(choices), -np.inf)
    similarity[known], blank = _cosine(
      array, np.repeat(row, known.sum()), choices[known]
    )
    zero += bool(blank.any())
    best = similarity == similarity.max()
    scores[i] = best[test_set.answers[i]] / best.sum()
  return accuracy_result(
    test_set.name, scores, zero=zero, missing=missing, empty=empty
  )


def system_correlation(a: Result, b: Result) -> float:
  """Spearman's correlation between two systems on one set: MRDS's r.

  Args:
    a: result of one system on a similarity set.
    b: result of the other on the same set.

  Returns:
    The correlation over pairs that both scored, as a fraction.
  """
  if a.name != b.name or a.total != b.total:
    raise ValueError(f"results on different sets: {a.name} and {b.name}")
  both = ~(np.isnan(a.scores) | np.isnan(b.scores))
  return spearman(a.scores[both], b.scores[both])


def accuracy_result(
  name: str, scores: np.ndarray, *, zero: int, missing: str, empty: str
) -> Result:
  """The accuracy of answers; `missing` says how to count unanswered ones.

  Args:
    scores: 1 right, 0 wrong, between for ties, NaN unanswered, [n].
    zero: answered questions that needed a zero vector.
    missing: "skip" leaves unanswered questions out, "wrong" counts them.
    empty: "error" or "warn", for a set without an answered question.

  Raises:
    InputError: if `empty` refuses the set.
  """
  _check(missing, ("skip", "wrong"), "missing")
  answered = ~np.isnan(scores)
  value = float("nan")
  if missing == "wrong":
    scores = np.where(answered, scores, 0.0)
  scored = scores[~np.isnan(scores)]
  if answered.any():
    value = float(100 * scored.mean())
  else:
    _nothing(name, 0, len(scores), empty)
  return Result(name, value, len(scored), len(scores), zero, scores)


def check_rows(rows: np.ndarray, size: int) -> None:
  """Refuses row numbers [...] outside the vectors.

  Args:
    rows: of words, int; negative for an unknown one.
    size: how many vectors there are.

  Raises:
    InputError: names the largest row number.
  """
  if rows.max(initial=-1) >= size:
    raise errors.InputError(
      f"the index gives a word row {rows.max()}, but there are {size} vectors; "
      "give the index of these vectors"
    )


def _centered_ranks(x: np.ndarray) -> np.ndarray:
  _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
  ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
  return ranks - (x.size + 1) / 2


def _rows(index: Mapping[str, int], words: Iterable[str]) -> np.ndarray:
  return np.array([index.get(word, -1) for word in words], np.int64)


def _cosine(
  array: Array, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Cosines of paired rows, and which pairs have a zero vector."""
  check_rows(np.concatenate([left, right]), len(array))
  a, b = (np.asarray(array[rows], np.float64) for rows in (left, right))
  if not (np.isfinite(a).all() and np.isfinite(b).all()):
    raise errors.InputError("the vectors hold values that are not finite")
  a, b = normalize.unit_rows(a), normalize.unit_rows(b)
  zero = np.logical_not(a.any(axis=1) & b.any(axis=1))
  return (a * b).sum(axis=1), zero


def _nothing(name: str, known: int, total: int, empty: str) -> None:
  _check(empty, ("error", "warn"), "empty")
  message = (
    f"{name}: only {known} of {total} items have known words; check the case "
    "and the language of the vocabulary"
  )
  if empty == "error":
    raise errors.InputError(message)
  warnings.warn(message, stacklevel=3)


def _check(value: str, allowed: tuple[str, ...], name: str) -> None:
  if value not in allowed:
    raise ValueError(f"{name} must be one of {allowed}, not {value!r}")

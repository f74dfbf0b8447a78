"""Quality of entity disambiguation: micro F1, and where the errors are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.evaluation.significance import Difference

_SAMPLES = 2000  # of the bootstrap


class LinkingResult(NamedTuple):
  """How a system linked the mentions of a test set.

  Attributes:
    f1: micro F1 over all linked mentions. Every mention is answered, and one
      without candidates counts as answered wrongly, so that precision, recall
      and F1 are one figure.
    in_candidates: micro F1 over mentions whose entity is a candidate.
    recall: the share of mentions whose entity is a candidate.
    mentions: number of mentions that count.
    correct: which were right, bool [mentions].
  """

  f1: float
  in_candidates: float
  recall: float
  mentions: int
  correct: np.ndarray


class Part(NamedTuple):
  """Accuracy on some of the mentions.

  Attributes:
    label: name of the part.
    mentions: number of mentions in the part.
    accuracy: the share that is right; NaN without mentions.
  """

  label: str
  mentions: int
  accuracy: float


def evaluate_linking(
  predicted: np.ndarray, gold: np.ndarray, linked: np.ndarray
) -> LinkingResult:
  """Micro F1 of predicted candidates.

  Args:
    predicted: places among the candidates, int [n]; -1 for no answer.
    gold: the right place, int [n]; -1 where the entity is no candidate.
    linked: which mentions have an entity, bool [n]; others do not count.

  Returns:
    The figures.
  """
  predicted, gold = (
    np.asarray(x)[np.asarray(linked)] for x in (predicted, gold)
  )
  correct = (predicted == gold) & (gold >= 0)
  count, in_range = len(gold), int((gold >= 0).sum())
  right = int(correct.sum())
  return LinkingResult(
    right / max(count, 1),
    right / max(in_range, 1),
    in_range / max(count, 1),
    count,
    correct,
  )


def accuracy_by(
  values: np.ndarray, correct: np.ndarray, edges: Sequence[int]
) -> list[Part]:
  """Accuracy by ranges of a whole number, such as rank or frequency.

  Args:
    values: of each mention, int [n].
    correct: which are right, bool [n].
    edges: where ranges begin, rising; values below the first are left out.

  Returns:
    A part for each range, the last without an end.
  """
  values, correct = np.asarray(values), np.asarray(correct)
  parts = []
  for low, high in zip(edges, [*edges[1:], None]):
    inside = values >= low
    label = f"{low}+"
    if high is not None:
      inside &= values < high
      label = str(low) if high == low + 1 else f"{low}-{high - 1}"
    count = int(inside.sum())
    right = float(correct[inside].mean()) if count else float("nan")
    parts.append(Part(label, count, right))
  return parts


def paired_documents(
  first: np.ndarray,
  second: np.ndarray,
  documents: np.ndarray,
  rng: np.random.Generator,
) -> Difference:
  """Difference of micro accuracy, with whole documents resampled.

  Mentions of one document are not independent, so that resampling mentions
  would make intervals too narrow.

  Args:
    first: which mentions one system has right, bool [n].
    second: which mentions the other system has right, bool [n].
    documents: number of each mention's document, int [n].

  Returns:
    Accuracy of the second less that of the first, its 95 % interval, and the
    two-sided p-value.
  """
  gain = np.asarray(second, float) - np.asarray(first, float)
  _, numbers = np.unique(documents, return_inverse=True)
  sums, sizes = np.bincount(numbers, gain), np.bincount(numbers)
  count = len(sums)
  drawn = rng.multinomial(count, np.full(count, 1 / count), _SAMPLES)
  values = (drawn @ sums) / (drawn @ sizes)
  lower, upper = np.quantile(values, [0.025, 0.975])
  tail = min((values <= 0).mean(), (values >= 0).mean())
  p = min(1.0, 2 * (tail * _SAMPLES + 1) / (_SAMPLES + 1))
  return Difference(float(gain.mean()), float(lower), float(upper), float(p))

"""How many members a set has, and the chance of each result.

Chances are fitted on the queries of the first half and reported on the
second: F1 of the cut beside that of the best cut of each query and that of
one number of results for all queries, and the calibration error.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.nvse.figures import Task, by_unit
from repr_jax import setexp
from repr_jax.evaluation import calibration, significance
from repr_jax.setexp.systems import System

_BLOCK = 64
_SHOWN = 100  # results of a query whose chances are compared with answers


class Cuts(NamedTuple):
  """The outcome on the second half.

  Attributes:
    weights: of the evidence, [5].
    fixed: the one number of results that was best on the first half.
    f1: mean F1 over units, by how lists are cut: "cut" by chances, "fixed" at
      `fixed`, "best" at the best place of each query.
    gain: F1 of the cut less that of the fixed number, paired over units.
    size: mean of |log(results kept / size of the set)|.
    error: expected calibration error of the first results.
    base: the same if every chance were the share of relevant results.
    rows: mean chance, share relevant and number of results in each bin.
  """

  weights: np.ndarray
  fixed: int
  f1: dict[str, float]
  gain: significance.Difference
  size: float
  error: float
  base: float
  rows: list[tuple[float, float, int]]


def fit(system: System, tasks: Sequence[Task]) -> np.ndarray:
  """Weights of the evidence, [5], from queries with known answers."""
  scores, members, relevant = _arrays(system, tasks)
  return np.asarray(setexp.fit_chances(scores, members, relevant))


def evaluate(
  system: System, first: Sequence[Task], second: Sequence[Task], seed: int = 0
) -> Cuts:
  """Fits chances on some queries and cuts the results of others."""
  weights = fit(system, first)
  curves = np.stack([x.f1 for x in _cut_all(system, first, weights)])
  fixed = 1 + int(np.argmax(curves.mean(axis=0)))
  answers = _cut_all(system, second, weights)
  by_way = {
    "cut": np.array([x.f1[x.kept - 1] for x in answers]),
    "fixed": np.array([x.f1[fixed - 1] for x in answers]),
    "best": np.array([x.f1.max() for x in answers]),
  }
  units = {name: by_unit(second, x) for name, x in by_way.items()}
  chances = np.concatenate([x.chances[:_SHOWN] for x in answers])
  right = np.concatenate([x.right[:_SHOWN] for x in answers])
  reliable = calibration.reliability(chances, right)
  sizes = [
    abs(np.log(x.kept / len(task.relevant))) for x, task in zip(answers, second)
  ]
  return Cuts(
    weights,
    fixed,
    {name: float(x.mean()) for name, x in units.items()},
    significance.paired_bootstrap(
      units["fixed"], units["cut"], np.random.default_rng(seed)
    ),
    float(np.mean(sizes)),
    reliable.error,
    calibration.reliability(np.full(len(right), right.mean()), right).error,
    [(float(x), float(y), int(n)) for x, y, n in zip(*reliable[:3]) if n],
  )


def to_text(cuts: Cuts) -> list[str]:
  """Lines for the tables of an evaluation."""
  shown = ", ".join(f"{x:.2f} {y:.2f} ({n:,})" for x, y, n in cuts.rows)
  f1, gain = cuts.f1, cuts.gain
  return [
    f"cut by chances: F1 {f1['cut']:.3f}; {cuts.fixed} results of every query "
    f"{f1['fixed']:.3f} (p {gain.p_value:.2g}); the best cut of each query "
    f"{f1['best']:.3f}; size off by a factor of {np.exp(cuts.size):.2f}",
    f"chances of the first {_SHOWN} results: calibration error "
    f"{cuts.error:.3f}",
    f"chance, share relevant, results: {shown}",
  ]


class _Answer(NamedTuple):
  """One query's ranking: F1 of each cut, chances, hits, and the cut."""

  f1: np.ndarray
  chances: np.ndarray
  right: np.ndarray
  kept: int


def _cut_all(system, tasks, weights) -> list[_Answer]:
  """Answers to all queries, f1 [X], chances [X] and right [X] by place."""
  answers = []
  for scores, members, relevant in zip(*_arrays(system, tasks)):
    chances = np.asarray(setexp.chances(weights, scores, members))
    order = np.argsort(-np.where(members == 0, scores, -np.inf), kind="stable")
    right = relevant[order]
    n = np.arange(1, len(order) + 1)
    f1 = 2 * np.cumsum(right) / (n + max(right.sum(), 1))
    kept = int(setexp.expected_cut(chances))
    answers.append(_Answer(f1, chances[order], right, kept))
  return answers


def _arrays(system, tasks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Scores, members' weights and answers of queries, each [n, X]."""
  blocks = [
    np.asarray(
      system.score_batch([x.query for x in tasks[i : i + _BLOCK]]), np.float32
    )
    for i in range(0, len(tasks), _BLOCK)
  ]
  scores = np.concatenate(blocks)
  members = np.zeros_like(scores)
  relevant = np.zeros(scores.shape, bool)
  for row, task in enumerate(tasks):
    members[row, task.hidden] = 1.0
    own = task.query.ids >= 0
    members[row, task.query.ids[own]] = task.query.weights[own]
    relevant[row, task.relevant] = True
  return scores, members, relevant

"""Figures of systems over many queries, and which differences are real.

Configurations are chosen on one half of the queries and reported on the
other; a hash of the query's id says which half it is in, so that it is the
same for every system and every run.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.evaluation import retrieval, significance
from repr_jax.setexp import systems
from repr_jax.setexp.query import Query

_BLOCK = 64
_CURVE = 50


class Task(NamedTuple):
  """A query and the entities that it should return.

  Attributes:
    id: unique.
    unit: what a bootstrap draws: tasks of one unit are averaged.
    stratum: class of its members' numbers of sentences.
    query: the query.
    relevant: rows that should come first.
    hidden: rows that are not ranked, the query's own among them.
  """

  id: str
  unit: str
  stratum: str
  query: Query
  relevant: np.ndarray
  hidden: np.ndarray


class Figures(NamedTuple):
  """Figures of one system.

  Attributes:
    values: of each measure, one for each task, [n].
    curve: precision at 1, 2, ... averaged over the tasks.
    runs: best entities and scores of each task, if they were kept.
  """

  values: dict[str, np.ndarray]
  curve: np.ndarray
  runs: list[tuple[np.ndarray, np.ndarray]]


class Line(NamedTuple):
  """One system in one table.

  Attributes:
    system: its name.
    means: value, lower and upper end of the interval by measure.
    against: reference system minus this system, by measure.
  """

  system: str
  means: dict[str, tuple[float, float, float]]
  against: dict[str, significance.Difference]


def in_first_half(unit: str) -> bool:
  """Whether a query belongs to the half that configurations are chosen on."""
  return hashlib.sha256(unit.encode()).digest()[0] % 2 == 0


def halves(tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
  """Tasks to choose on and tasks to report."""
  first = [task for task in tasks if in_first_half(task.unit)]
  return first, [task for task in tasks if not in_first_half(task.unit)]


def measure(
  system: systems.System,
  tasks: Sequence[Task],
  measures: Sequence[str],
  keep: int = 0,
) -> Figures:
  """Asks a system all queries.

  Args:
    tasks: n of them.
    measures: as `retrieval.evaluate_run` names them.
    keep: best entities of each task to remember.
  """
  values: dict[str, list[float]] = {name: [] for name in measures}
  curve, runs = np.zeros(_CURVE), []
  for start in range(0, len(tasks), _BLOCK):
    block = tasks[start : start + _BLOCK]
    scores = np.array(system.score_batch([task.query for task in block]))
    for task, row in zip(block, scores):
      row[task.hidden] = -np.inf
      order = np.argsort(-row, kind="stable")[: len(row) - len(task.hidden)]
      ranked = np.isin(order, task.relevant)
      judged = np.ones(len(task.relevant))
      for name in measures:
        values[name].append(retrieval.measure(name, ranked, judged))
      hits = np.cumsum(ranked[:_CURVE])
      hits = np.pad(hits, (0, _CURVE - len(hits)), "edge")
      curve += hits / np.arange(1, _CURVE + 1)
      if keep:
        runs.append((order[:keep], row[order[:keep]]))
  arrays = {name: np.array(x) for name, x in values.items()}
  return Figures(arrays, curve / max(len(tasks), 1), runs)


def by_unit(tasks: Sequence[Task], values: np.ndarray) -> np.ndarray:
  """Means over the tasks of each unit, in the order of first appearance."""
  units = {
    unit: i for i, unit in enumerate(dict.fromkeys(t.unit for t in tasks))
  }
  place = np.array([units[task.unit] for task in tasks], np.int64)
  return np.bincount(place, values) / np.bincount(place)


def choose(
  candidates: Mapping[str, Callable[[], systems.System]],
  tasks: Sequence[Task],
  name: str,
) -> tuple[str, dict[str, float]]:
  """The candidate with the best mean of a measure.

  Args:
    candidates: systems by label, made when they are asked.
    tasks: of the first half.

  Returns:
    The best one's label, and the means of all.
  """
  means = {}
  for label, make in candidates.items():
    result = measure(make(), tasks, [name]).values[name]
    means[label] = float(by_unit(tasks, result).mean())
  return max(means, key=lambda label: means[label]), means


def compare(
  tasks: Sequence[Task],
  figures: Mapping[str, Figures],
  reference: str,
  seed: int = 0,
  samples: int = 10_000,
) -> list[Line]:
  """A table: means with intervals, and differences by paired bootstrap.

  Args:
    tasks: that the figures belong to.
    figures: by system.
    reference: the system that the others are compared with.
    seed: of the resamples.
    samples: how many resamples.

  Returns:
    One line for each system, in the order given.
  """
  rng = np.random.default_rng(seed)
  lines = []
  for system, result in figures.items():
    means, against = {}, {}
    for name, values in result.values.items():
      own = by_unit(tasks, values)
      alone = significance.paired_bootstrap(
        np.zeros_like(own), own, rng, samples=samples
      )
      means[name] = alone.value, alone.lower, alone.upper
      if system != reference:
        other = by_unit(tasks, figures[reference].values[name])
        against[name] = significance.paired_bootstrap(
          own, other, rng, samples=samples
        )
    lines.append(Line(system, means, against))
  return lines


def detectable(difference: significance.Difference) -> float:
  """The smallest true difference that a comparison of this size detects.

  With power .8 at the level .05 it is (1.96 + .84) standard errors; the 95 %
  interval of the bootstrap is 2 x 1.96 of them wide.
  """
  return (difference.upper - difference.lower) * (1.96 + 0.84) / (2 * 1.96)


def rows_of(
  lines: Sequence[Line], measures: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
  """Header and cells of a table for people.

  Args:
    lines: from `compare`.
    measures: the columns; the first two also show the difference, its p and
      the smallest difference that would be found.
  """
  header = ["system", *measures]
  header += [f"difference in {name} (p; detectable)" for name in measures[:2]]
  rows = []
  for line in lines:
    cells = [line.system]
    for name in measures:
      value, lower, upper = line.means[name]
      cells.append(f"{value:.3f} [{lower:.3f}, {upper:.3f}]")
    for name in measures[:2]:
      result = line.against.get(name)
      if result is None:
        cells.append("")
        continue
      shown = f"{result.p_value:.4f}; {detectable(result):.3f}"
      if np.isnan(result.p_value):
        shown = "one query, no p"
      cells.append(f"{result.value:+.3f} ({shown})")
    rows.append(cells)
  return header, rows

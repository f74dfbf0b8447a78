"""Negative seeds: members of another set that must stay out.

Two gold sets that share an entity are easily confused. A query has members of
the wanted set with weight 1 and members of the unwanted set with a weight
below 0. The rest of the wanted set should rank high, the unwanted set low. The
negative weight is chosen on the first half of the wanted sets.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.nvse.figures import Task, by_unit, halves, measure
from repr_jax.data.entities import features
from repr_jax.evaluation import significance
from repr_jax.setexp.query import make_query
from repr_jax.setexp.systems import System

WEIGHTS = (-0.1, -0.2, -0.35, -0.5, -0.75, -1.0)
_FIRST = 20  # results among which unwanted ones are counted
_LEAST = 3  # wanted entities that must be left to find
_MEMBERS = 3  # of the wanted and of the unwanted set
_PER_PAIR = 2  # queries of two sets that overlap


class Seeds(NamedTuple):
  """A query with unwanted entities.

  Attributes:
    id: unique.
    unit: the wanted set.
    wanted: rows of the members.
    unwanted: rows of the negative seeds.
    relevant: rows that should rank high.
    outside: rows that should rank low.
  """

  id: str
  unit: str
  wanted: np.ndarray
  unwanted: np.ndarray
  relevant: np.ndarray
  outside: np.ndarray


class Negatives(NamedTuple):
  """The outcome on the second half.

  Attributes:
    weight: of the negative seeds, chosen by MAP on the first half.
    tried: MAP and unwanted entities on the first half by weight; 0 is a query
      without negative seeds.
    queries: of the second half.
    map: MAP without and with negative seeds.
    gain: in MAP, paired over wanted sets.
    unwanted: entities of the other set among the first 20, without and with.
    fewer: paired change of that number over wanted sets.
  """

  weight: float
  tried: dict[float, tuple[float, float]]
  queries: int
  map: tuple[float, float]
  gain: significance.Difference
  unwanted: tuple[float, float]
  fewer: significance.Difference


def pairs(
  table: features.FeatureTable, sets: Mapping[str, Sequence[str]], seed: int = 0
) -> list[Seeds]:
  """Queries from all ordered pairs of sets that share an entity.

  Args:
    sets: entity ids by class.

  Returns:
    The queries; none if no two sets overlap.
  """
  usable = np.diff(table.counts.indptr) > 0
  rows = {
    name: {
      table.rows[x] for x in ids if x in table.rows and usable[table.rows[x]]
    }
    for name, ids in sets.items()
  }
  rng = np.random.default_rng(seed)
  drawn = []
  for one, inside in rows.items():
    for other, out in rows.items():
      if one == other or not inside & out:
        continue
      own = np.array(sorted(inside - out))
      foreign = np.array(sorted(out - inside))
      if len(own) < _MEMBERS + _LEAST or len(foreign) <= _MEMBERS:
        continue
      for i in range(_PER_PAIR):
        wanted = np.sort(rng.choice(own, _MEMBERS, replace=False))
        unwanted = np.sort(rng.choice(foreign, _MEMBERS, replace=False))
        drawn.append(
          Seeds(
            f"{one}/without {other}/{i}",
            one,
            wanted,
            unwanted,
            np.setdiff1d(own, wanted),
            np.setdiff1d(np.array(sorted(out)), unwanted),
          )
        )
  return drawn


def evaluate(
  system: System,
  table: features.FeatureTable,
  seeds: Sequence[Seeds],
  weights: Sequence[float] = WEIGHTS,
) -> Negatives | None:
  """Chooses the weight of negative seeds and reports what it changes.

  Args:
    seeds: from `pairs`.
    weights: to choose from, below 0.

  Returns:
    The outcome; None where a half of the wanted sets has no query.
  """
  first, second = halves(_tasks(table, seeds, 0.0))
  if not first or not second:
    return None
  tried, halved = {}, {}
  for weight in (0.0, *weights):
    measured = _measure(system, halves(_tasks(table, seeds, weight))[0], seeds)
    tried[weight] = float(measured[0].mean()), float(measured[1].mean())
  chosen = max(weights, key=lambda weight: tried[weight][0])
  for weight in (0.0, chosen):
    tasks = halves(_tasks(table, seeds, weight))[1]
    halved[weight] = _measure(system, tasks, seeds)
  scored, entered = zip(halved[0.0], halved[chosen])
  rng = np.random.default_rng(0)
  return Negatives(
    chosen,
    tried,
    len(second),
    (float(scored[0].mean()), float(scored[1].mean())),
    significance.paired_bootstrap(scored[0], scored[1], rng),
    (float(entered[0].mean()), float(entered[1].mean())),
    significance.paired_bootstrap(entered[0], entered[1], rng),
  )


def to_text(system: str, outcome: Negatives) -> list[str]:
  """Lines for the tables of an evaluation."""
  (before, after), (more, less) = outcome.map, outcome.unwanted
  tried = ", ".join(
    f"{weight:g}: {score:.3f} {number:.2f}"
    for weight, (score, number) in outcome.tried.items()
  )
  return [
    f"negative seeds, {outcome.queries} queries of overlapping sets, {system}: "
    f"weight {outcome.weight:g}; MAP {before:.3f} without and {after:.3f} with "
    f"them (p {outcome.gain.p_value:.2g}); unwanted among the first "
    f"{_FIRST} {more:.2f} and {less:.2f} (p {outcome.fewer.p_value:.2g})",
    f"  first half, MAP and unwanted by weight: {tried}",
  ]


def _measure(
  system: System, tasks: Sequence[Task], seeds: Sequence[Seeds]
) -> tuple[np.ndarray, np.ndarray]:
  """MAP and unwanted entities among the first, a mean for each wanted set."""
  by_id = {x.id: x for x in seeds}
  result = measure(system, tasks, ("map",), keep=_FIRST)
  numbers = [
    float(np.isin(order, by_id[task.id].outside).sum())
    for task, (order, _) in zip(tasks, result.runs)
  ]
  return (
    by_unit(tasks, result.values["map"]),
    by_unit(tasks, np.array(numbers)),
  )


def _tasks(
  table: features.FeatureTable, seeds: Sequence[Seeds], weight: float
) -> list[Task]:
  """Tasks with weighted negative seeds; no seed is ranked."""
  tasks = []
  for item in seeds:
    both = np.concatenate([item.wanted, item.unwanted])
    values = [1.0] * len(item.wanted) + [weight] * len(item.unwanted)
    if not weight:
      both, values = item.wanted, [1.0] * len(item.wanted)
    query = make_query(table.counts, both, values)
    hidden = np.concatenate([item.wanted, item.unwanted])
    tasks.append(Task(item.id, item.unit, "any", query, item.relevant, hidden))
  return tasks

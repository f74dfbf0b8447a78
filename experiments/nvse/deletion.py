"""A test of reasons: without them, the entity must lose rank.

For each query the first result loses k of its features: those that its
contributions name, those that the decoder's list names (or a baseline's
weights of features), or k at random. Deleting the true reasons costs the entity
more score and more places than deleting other features. The share of the scores
that the printed features account for is measured on queries and on random sets.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from experiments.nvse.figures import Task
from repr_jax.setexp.query import Query, best, exclude, make_query
from repr_jax.setexp.systems import System

LISTS = ("contributions", "decoder", "random")
_RESULTS = 10  # of a query, whose parts are added up


class Deletion(NamedTuple):
  """Means over queries.

  Attributes:
    lost: score that the first result lost, over its lead on the median
      entity.
    place: its median place after the deletion.
  """

  lost: float
  place: float


def deletion(
  system: System,
  counts: sp.csr_array,
  tasks: Sequence[Task],
  *,
  k: int = 10,
  most: int = 50,
  seed: int = 0,
) -> dict[str, Deletion]:
  """Deletes features of the first results.

  Args:
    counts: features of the entities, [X, F].
    k: features to delete.
    most: queries at most, drawn at random.
  """
  rng = np.random.default_rng(seed)
  if len(tasks) > most:
    tasks = [tasks[i] for i in sorted(rng.permutation(len(tasks))[:most])]
  lost: dict[str, list[float]] = {name: [] for name in LISTS}
  places: dict[str, list[int]] = {name: [] for name in LISTS}
  for task in tasks:
    scores = np.array(system.score_batch([task.query])[0], np.float64)
    scores[task.hidden] = -np.inf
    first = int(np.argmax(scores))
    row = sp.csr_array(counts[[first]])
    chosen = _lists(system, task.query, first, row, k, rng)
    less = [_without(row, chosen[name]) for name in LISTS]
    after = system.score_rows(task.query, sp.csr_array(sp.vstack(less)))
    others = np.delete(scores, first)
    lead = scores[first] - np.median(others[np.isfinite(others)])
    for name, score in zip(LISTS, after):
      lost[name].append((scores[first] - score) / (lead or 1.0))
      places[name].append(1 + int(np.sum(others > score)))
  return {
    name: Deletion(float(np.mean(lost[name])), float(np.median(places[name])))
    for name in LISTS
  }


class Shares(NamedTuple):
  """How much of the first results' scores the printed features account for.

  Attributes:
    whole: the list above the results, over the sum of their scores.
    each: the list of each result, over its score; the mean.
  """

  whole: float
  each: float


def printed_shares(
  system: System, counts: sp.csr_array, queries: Sequence[Query], *, k: int = 10
) -> Shares:
  """Sums the parts of the features that an answer prints.

  Args:
    counts: features of the entities, [X, F].
    queries: the queries; those whose results score 0 are left out.
    k: features that a list names.

  Returns:
    Means over queries.
  """
  whole, each = [], []
  for query in queries:
    scores = exclude(np.asarray(system.score_batch([query])[0]), query)
    rows = best(scores, _RESULTS)
    total = scores[rows].astype(np.float64)
    parts = np.stack(
      [
        x.by_feature(counts.shape[1])
        for x in system.contributions(query, rows.tolist())
      ]
    )
    if not np.all(total):
      continue
    together = parts.sum(axis=0)
    whole.append(np.sort(together)[-k:].sum() / total.sum())
    each.append(np.mean(np.sort(parts, axis=1)[:, -k:].sum(axis=1) / total))
  return Shares(float(np.mean(whole)), float(np.mean(each)))


def random_queries(counts: sp.csr_array, number: int) -> list[Query]:
  """Queries of entities with features, drawn at random."""
  usable = np.flatnonzero(np.diff(counts.indptr) > 0)
  rng = np.random.default_rng(0)
  return [
    make_query(counts, rng.choice(usable, min(3, len(usable)), False))
    for _ in range(number)
  ]


def _lists(
  system: System,
  query: Query,
  entity: int,
  row: sp.csr_array,
  k: int,
  rng: np.random.Generator,
) -> dict[str, np.ndarray]:
  """k features by each list; the entity may lack some of the decoder's."""
  parts = system.contributions(query, [entity])[0].by_feature(row.shape[1])
  expected = system.rationale(query)
  return {
    "contributions": np.argsort(-parts, kind="stable")[:k],
    "decoder": np.argsort(-expected, kind="stable")[:k],
    "random": rng.permutation(row.indices)[:k],
  }


def _without(row: sp.csr_array, features: np.ndarray) -> sp.csr_array:
  kept = ~np.isin(row.indices, features)
  return sp.csr_array(
    (row.data[kept], row.indices[kept], [0, int(kept.sum())]), row.shape
  )

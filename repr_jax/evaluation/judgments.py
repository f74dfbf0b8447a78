"""Judged queries of set expansion, for any scorer (thesis 4.7).

A scorer is a function from a query to the scores of all entities. Leave one
out: hide each member of a query in turn, and rank it by the others
(`leave_one_out`, `held_out_ranks`, `rank_summary`). Human judgments: ranks that
judges gave to published systems (`place_counts`, `first_places`), and how often
a scorer orders their lists as the judges did (`pair_agreement`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax.data.entities.judged import JudgedQuery, Member
from repr_jax.errors import InputError
from repr_jax.evaluation.expansion import checked_scores
from repr_jax.setexp.query import Query, make_query

Scorer = Callable[[Query], np.ndarray]
Featurize = Callable[[str], sp.csr_array]


class HeldOut(NamedTuple):
  """A query without one of its members.

  Attributes:
    qid: id of the original query.
    stratum: of that query.
    members: the members that remain.
    hidden: the member to find; it has candidate ids.
  """

  qid: str
  stratum: str
  members: tuple[Member, ...]
  hidden: Member


class Agreement(NamedTuple):
  """Agreement of a scorer with judges, one entry per judged pair of lists.

  Attributes:
    agrees: 1 if the scorer prefers the same list, 1/2 if neither, else 0, [n].
    query: number of the judged query, int64 [n].
  """

  agrees: np.ndarray
  query: np.ndarray

  @property
  def share(self) -> float:
    """Share of pairs ordered as the judges did."""
    return float(self.agrees.mean())


def leave_one_out(queries: Iterable[JudgedQuery]) -> list[HeldOut]:
  """Hides each member that has candidate ids, one after another.

  Args:
    queries: judged queries; one that was judged in several groups counts
      once.

  Returns:
    Queries of the other members.
  """
  tasks, seen = [], set()
  for query in queries:
    if query.qid in seen or len(query.members) < 2:
      continue
    seen.add(query.qid)
    for i, hidden in enumerate(query.members):
      rest = query.members[:i] + query.members[i + 1 :]
      if hidden.candidate_ids:
        tasks.append(HeldOut(query.qid, query.stratum, rest, hidden))
  return tasks


def build_query(
  members: Iterable[Member],
  rows: Mapping[str, int],
  counts: sp.csr_array,
  featurize: Featurize,
) -> Query | None:
  """A query of named members.

  A member has weight 1. If several entities have its name, they share that
  weight equally. If no entity has it, the member is a new entity with the
  features of its abstract. Members without features are left out.

  Args:
    members: the members.
    rows: row of each entity id.
    counts: feature counts, [X, F].
    featurize: features [1, F] of a text.

  Returns:
    The query, or None where no member has any feature.
  """
  weights: dict[int, float] = {}
  texts = []
  for member in members:
    known = [rows[x] for x in member.candidate_ids if x in rows]
    known = [x for x in known if counts.indptr[x + 1] > counts.indptr[x]]
    for row in known:
      weights[row] = weights.get(row, 0.0) + 1 / len(known)
    if not known and member.abstract:
      features = featurize(member.abstract)
      if features.count_nonzero():
        texts.append(features)
  if not weights and not texts:
    return None
  values = [*weights.values(), *[1.0] * len(texts)]
  new = sp.csr_array(sp.vstack(texts)) if texts else None
  return make_query(counts, list(weights), values, new)


def held_out_ranks(
  score_fn: Scorer,
  held: Sequence[HeldOut],
  rows: Mapping[str, int],
  counts: sp.csr_array,
  featurize: Featurize,
) -> np.ndarray:
  """Rank of each hidden member among all entities, ties counted half.

  The query's members are not ranked. If the hidden member has several
  candidate ids, the best of them counts and the others are not ranked.

  Args:
    score_fn: scores [X] of all entities for a query.
    held: from `leave_one_out`.
    rows: row of each entity id.
    counts: feature counts, [X, F].
    featurize: features [1, F] of a text.

  Returns:
    Ranks from 1, float64 [n]; (X + 1) / 2, the mean of a random order, where
    no member has features; NaN where no candidate is in the table, or all
    candidates are members of the query.
  """
  ranks = np.full(len(held), np.nan)
  for i, item in enumerate(held):
    query = build_query(item.members, rows, counts, featurize)
    own = set() if query is None else set(query.ids.tolist())
    names = item.hidden.candidate_ids
    targets = [rows[x] for x in names if x in rows and rows[x] not in own]
    if not targets:
      continue
    if query is None:
      ranks[i] = (counts.shape[0] + 1) / 2
      continue
    scores = checked_scores(score_fn(query))
    best = scores[targets].max()
    left = np.ones(len(scores), bool)
    left[targets] = False
    left[query.ids[query.ids >= 0]] = False
    others = scores[left]
    ranks[i] = 1 + (others > best).sum() + (others == best).sum() / 2
  return ranks


def rank_summary(ranks: np.ndarray) -> dict[str, float]:
  """Mean reciprocal rank and recall at 10 and 100.

  Args:
    ranks: from `held_out_ranks`, [n]; NaN is left out.

  Returns:
    "mrr", "recall_10", "recall_100" and "queries", how many ranks there are.
  """
  ranks = ranks[~np.isnan(ranks)]
  if not ranks.size:
    raise InputError(
      "no hidden member is in the table: are the queries of this corpus?"
    )
  return {
    "mrr": float((1 / ranks).mean()),
    "recall_10": float((ranks <= 10).mean()),
    "recall_100": float((ranks <= 100).mean()),
    "queries": float(ranks.size),
  }


class Cell(NamedTuple):
  """Queries that a table of places counts together.

  Attributes:
    group: which systems were compared.
    size: members of a query.
    stratum: how often the members are mentioned.
  """

  group: str
  size: int
  stratum: str


def place_counts(
  queries: Iterable[JudgedQuery],
) -> dict[Cell, dict[str, tuple[int, ...]]]:
  """How often judges put each system first, second and third.

  Args:
    queries: judged queries; ties count for both systems.

  Returns:
    Counts of the places by system, by group, query size and stratum, in
    rising order.
  """
  table: dict[Cell, dict[str, list[int]]] = {}
  for query in queries:
    cell = Cell(query.group, len(query.members), query.stratum)
    row = table.setdefault(cell, {})
    for system, place in query.places.items():
      counts = row.setdefault(system, [0] * 3)
      if place is not None and place <= 3:
        counts[place - 1] += 1
  return {
    cell: {system: tuple(x) for system, x in table[cell].items()}
    for cell in sorted(table)
  }


def first_places(queries: Iterable[JudgedQuery]) -> dict[str, dict[str, int]]:
  """How often judges put each system first, by group; ties count for both."""
  table: dict[str, dict[str, int]] = {}
  for cell, row in place_counts(queries).items():
    total = table.setdefault(cell.group, {})
    for system, counts in row.items():
      total[system] = total.get(system, 0) + counts[0]
  return table


def pair_agreement(
  score_fn: Scorer,
  queries: Sequence[JudgedQuery],
  rows: Mapping[str, int],
  counts: sp.csr_array,
  featurize: Featurize,
  *,
  depth: int = 4,
) -> Agreement:
  """Whether a scorer prefers the lists that judges preferred.

  The value of a list is the mean percentile of its first `depth` entities in
  the scorer's ranking: the share of entities that score lower, ties counted
  half. An empty list has the value 0. Pairs that judges tied or left open, and
  queries without features, are not counted.

  Args:
    score_fn: scores [X] of all entities for a query.
    queries: judged queries.
    rows: row of each entity id.
    counts: feature counts, [X, F].
    featurize: features [1, F] of a text.
    depth: entities of a list that count; judges were shown 4.

  Returns:
    One entry for each judged pair of lists.
  """
  agrees, numbers = [], []
  for number, judged in enumerate(queries):
    query = build_query(judged.members, rows, counts, featurize)
    if query is None:
      continue
    scores = checked_scores(score_fn(query))
    ordered = np.sort(scores)
    worth = {
      system: _worth(
        [rows[x] for x in ids if x in rows][:depth], scores, ordered
      )
      for system, ids in judged.systems.items()
    }
    for one, other in _judged_pairs(judged):
      difference = worth[one] - worth[other]
      agrees.append(0.5 + 0.5 * np.sign(difference))
      numbers.append(number)
  if not agrees:
    raise InputError("no pair of lists was judged: nothing to compare with")
  return Agreement(np.array(agrees), np.array(numbers))


def _judged_pairs(judged: JudgedQuery) -> list[tuple[str, str]]:
  """Pairs of systems, the one that judges preferred first."""
  places = {x: p for x, p in judged.places.items() if p is not None}
  return [
    (one, other)
    for one, place in places.items()
    for other, second in places.items()
    if place < second
  ]


def _worth(ids: list[int], scores: np.ndarray, ordered: np.ndarray) -> float:
  if not ids:
    return 0.0
  lower = np.searchsorted(ordered, scores[ids], "left")
  upper = np.searchsorted(ordered, scores[ids], "right")
  return float(((lower + upper) / 2 / len(ordered)).mean())

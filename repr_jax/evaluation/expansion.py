"""Evaluation of set expansion on gold sets (thesis 4.7).

Some members of a set are the query, and the rest must come first.
`judgments` has the protocols for queries that people judged.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.errors import InputError
from repr_jax.evaluation import retrieval

STRATA = {"1": (1, 1), "2-10": (2, 10), "11-100": (11, 100)}


class GoldQuery(NamedTuple):
  """Members of a gold set as a query.

  Attributes:
    name: of the set.
    stratum: name of the range of the members' numbers of sentences.
    members: rows, int64 [size].
    relevant: rows of the rest of the set, int64 [r].
  """

  name: str
  stratum: str
  members: np.ndarray
  relevant: np.ndarray


def gold_queries(
  sets: Mapping[str, Sequence[int]],
  sentence_counts: np.ndarray,
  size: int,
  rng: np.random.Generator,
  *,
  per_set: int = 1,
  min_relevant: int = 1,
  strata: Mapping[str, tuple[int, int]] = STRATA,
) -> list[GoldQuery]:
  """Samples queries from gold sets, by the members' number of sentences.

  Args:
    sets: rows of the members by name of the set.
    sentence_counts: sentences of each entity, [X].
    size: members in a query (3 and 5 in the thesis).
    rng: source of randomness.
    per_set: queries from each set in each stratum.
    min_relevant: members that must be left to find.
    strata: least and greatest number of sentences, by name of the stratum.

  Returns:
    Queries whose members are all of one stratum (1, 2-10 or 11-100 sentences
    by default); all other members of the set count as relevant, whatever
    their stratum.
  """
  queries = []
  counts = np.asarray(sentence_counts)
  for name in sorted(sets):
    rows = np.unique(np.asarray(sets[name], np.int64))
    for stratum, (low, high) in strata.items():
      inside = rows[(counts[rows] >= low) & (counts[rows] <= high)]
      if len(inside) < size or len(rows) - size < min_relevant:
        continue
      for _ in range(per_set):
        members = np.sort(rng.choice(inside, size, replace=False))
        rest = np.setdiff1d(rows, members)
        queries.append(GoldQuery(name, stratum, members, rest))
  return queries


def evaluate_expansion(
  score_fn: Callable[[np.ndarray], np.ndarray],
  queries: Sequence[np.ndarray],
  relevants: Sequence[np.ndarray],
) -> dict[str, np.ndarray]:
  """Measures of each query; its members are left out of the ranking.

  Args:
    score_fn: scores [X] of all entities for members [size].
    queries: rows of the members, n arrays.
    relevants: rows that should come first, n arrays.

  Returns:
    "map", "recip_rank", "Rprec" and "ndcg" of each query, each [n]. Entities
    with equal scores are ranked by row number.
  """
  rows = []
  for members, relevant in zip(queries, relevants, strict=True):
    scores = checked_scores(score_fn(members))
    wanted = np.zeros(len(scores), int)
    wanted[relevant] = 1
    order = np.argsort(-scores, kind="stable")
    own = np.zeros(len(scores), bool)
    own[members] = True
    ranked = wanted[order[~own[order]]]
    count = int(ranked.sum())
    rows.append(
      (
        retrieval.average_precision(ranked, count),
        retrieval.reciprocal_rank(ranked),
        retrieval.r_precision(ranked, count),
        retrieval.ndcg(ranked, ranked),
      )
    )
  names = ("map", "recip_rank", "Rprec", "ndcg")
  return dict(zip(names, np.reshape(rows, (len(rows), 4)).T))


def checked_scores(scores: np.ndarray) -> np.ndarray:
  """Returns scores [X] unchanged; raises InputError if one is NaN."""
  scores = np.asarray(scores)
  if np.isnan(scores).any():
    raise InputError("the scorer returned a score that is not a number")
  return scores

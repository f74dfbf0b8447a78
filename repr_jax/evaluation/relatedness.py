"""Entity relatedness: candidates ranked by their cosine with a seed.

Queries with binary labels get NDCG@k and MAP (thesis 6.2.3). Queries with a
gold ranking (KORE) get Spearman's correlation. NDCG here has the discount
1 / log2(max(2, rank)) of Järvelin and Kekäläinen, as the published figures
have; its first two ranks count the same. `retrieval.ndcg` has trec_eval's.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from repr_jax.data.relatedness import RelatednessQuery
from repr_jax.errors import InputError
from repr_jax.evaluation import retrieval, similarity
from repr_jax.ops import normalize

CUTS = (1, 5, 10)


class Relatedness(NamedTuple):
  """Figures of a set of queries.

  Attributes:
    means: over the queries, of "NDCG@1", "NDCG@5", "NDCG@10" and "MAP", or of
      "Spearman".
    queries: these figures for each query that was scored.
    skipped: queries that were not scored: the seed has no vector, fewer than
      two candidates have a vector, or (for NDCG) no ranked candidate is
      related.
    coverage: share of candidates that have a vector, as has their seed.
  """

  means: dict[str, float]
  queries: dict[str, dict[str, float]]
  skipped: list[str]
  coverage: float


def evaluate_relatedness(
  queries: Sequence[RelatednessQuery],
  vectors: np.ndarray,
  rows: Mapping[str, int],
  *,
  missing: str = "last",
) -> Relatedness:
  """Ranks the candidates of each query by cosine.

  Args:
    queries: the queries; all labeled or all ranked.
    vectors: of the entities, any length, [n, d]; zero for one without.
    rows: the row of each entity.
    missing: "last" ranks candidates without a vector below all others,
      "skip" leaves them out of the query.

  Returns:
    The figures.
  """
  if missing not in ("last", "skip"):
    raise ValueError(f'missing must be "last" or "skip", not {missing!r}')
  if not np.isfinite(vectors).all():
    raise InputError("the vectors hold values that are not finite")
  known = np.any(np.asarray(vectors) != 0, axis=1)
  measures: dict[str, dict[str, float]] = {}
  skipped, covered, total = [], 0, 0
  for query in queries:
    scores = _cosines(query, vectors, rows, known)
    has = np.isfinite(scores)
    covered, total = covered + int(has.sum()), total + len(scores)
    gold = np.array(query.gold)
    if missing == "skip":
      scores, gold = scores[has], gold[has]
    labeled = gold.min(initial=0) >= 0
    fine = has.sum() >= 2 and (not labeled or gold.max(initial=0) > 0)
    if not fine:
      skipped.append(query.name)
    elif labeled:
      measures[query.name] = _labeled(scores, gold)
    else:
      finite = np.where(np.isfinite(scores), scores, -2.0)
      measures[query.name] = {"Spearman": similarity.spearman(finite, gold)}
  names = list(next(iter(measures.values()), {}))
  means = {
    name: float(np.mean([row[name] for row in measures.values()]))
    for name in names
  }
  return Relatedness(means, measures, skipped, covered / max(total, 1))


def ndcg(ranked: np.ndarray, k: int) -> float:
  """NDCG@k with the discount 1 / log2(max(2, rank)).

  Args:
    ranked: relevance of all candidates in rank order, [n].
    k: cut-off.

  Returns:
    NDCG@k; 0 if nothing is relevant.
  """
  ranked = np.asarray(ranked, float)
  ranks = np.arange(1, len(ranked) + 1)
  discount = np.where(ranks <= k, 1 / np.log2(np.maximum(2, ranks)), 0.0)
  ideal = float(np.sort(ranked)[::-1] @ discount)
  return float(ranked @ discount) / ideal if ideal > 0 else 0.0


def _labeled(scores: np.ndarray, gold: np.ndarray) -> dict[str, float]:
  ranked = gold[np.argsort(-scores, kind="stable")]
  row = {f"NDCG@{k}": ndcg(ranked, k) for k in CUTS}
  row["MAP"] = retrieval.average_precision(ranked, int((gold > 0).sum()))
  return row


def _cosines(
  query: RelatednessQuery,
  vectors: np.ndarray,
  rows: Mapping[str, int],
  known: np.ndarray,
) -> np.ndarray:
  """Cosines with the seed, -inf for a candidate without a vector."""
  scores = np.full(len(query.candidates), -np.inf)
  seed = rows.get(query.seed, -1)
  if seed < 0 or not known[seed]:
    return scores
  place = np.array([rows.get(name, -1) for name in query.candidates])
  has = place >= 0
  has[has] = known[place[has]]
  chosen = np.asarray(vectors[place[has]], float)
  own = np.asarray(vectors[seed], float)
  scores[has] = normalize.unit_rows(chosen) @ normalize.unit_rows(own)
  return scores

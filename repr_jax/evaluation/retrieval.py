"""Measures of ranked lists, with the semantics of trec_eval.

Functions on arrays take the relevance of one query's documents in rank order
and, where a measure needs it, the relevance of all judged documents.
`evaluate_run` applies them to whole runs by name. A document counts as
relevant from relevance 1. Thesis 6.1 (slip there: average precision divides
by the number of relevant documents, not by the length of the list).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from repr_jax.errors import InputError

UNPOOLED = -2
UNJUDGED = -1

_EPSILON = 1e-5
_DEFAULT = (
  "map",
  "infAP",
  "ndcg",
  "ndcg_cut_10",
  "recip_rank",
  "P_10",
  "Rprec",
  "success_10",
  "recall_100",
)


def average_precision(ranked: np.ndarray, num_relevant: int) -> float:
  """Mean over the relevant documents of the precision at their ranks.

  Args:
    ranked: relevance in rank order, [n].
    num_relevant: relevant documents that exist, found or not.

  Returns:
    Average precision; 0 if nothing is relevant.
  """
  relevant = _finite(ranked) > 0
  ranks = np.flatnonzero(relevant) + 1
  return _ratio((np.arange(1, ranks.size + 1) / ranks).sum(), num_relevant)


def inferred_ap(ranked: np.ndarray, num_relevant: int) -> float:
  """Average precision inferred from incomplete judgments.

  At a relevant rank k the expected precision is 1/k + (k-1)/k times the
  share of documents above k that are in the pool times the (smoothed) share
  of the judged among them that are relevant (Yilmaz and Aslam 2006).

  Args:
    ranked: relevance in rank order, [n]; `UNJUDGED` for a document of the
      pool without judgment, `UNPOOLED` for one outside the pool.
    num_relevant: documents judged relevant.

  Returns:
    infAP; 0 if nothing is relevant.
  """
  ranked = _finite(ranked)
  relevant, irrelevant = ranked > 0, ranked == 0
  ranks = np.flatnonzero(relevant) + 1.0
  above = [
    (np.cumsum(kind) - kind)[relevant]
    for kind in (relevant, irrelevant, ranked >= UNJUDGED)
  ]
  relevant_above, irrelevant_above, pooled_above = above
  share = (relevant_above + _EPSILON) / (
    relevant_above + irrelevant_above + 2 * _EPSILON
  )
  # (k-1)/k * pooled/(k-1): the k - 1 cancels, and rank 1 needs no exception.
  expected = 1 / ranks + pooled_above / ranks * share
  return _ratio(expected.sum(), num_relevant)


def ndcg(ranked: np.ndarray, judged: np.ndarray, k: int | None = None) -> float:
  """Discounted cumulative gain over that of the ideal ranking.

  Gains are the relevance itself, discounts 1 / log2(rank + 1).

  Args:
    ranked: relevance in rank order, [n].
    judged: relevance of all judged documents, in any order, [m].
    k: cut-off, for the ideal ranking too; none by default.

  Returns:
    NDCG@k; 0 if nothing is relevant.
  """
  ideal = np.sort(np.maximum(_finite(judged).astype(float), 0))[::-1]
  return _ratio(_dcg(ranked, k), _dcg(ideal, k))


def reciprocal_rank(ranked: np.ndarray) -> float:
  """One over the rank of the first relevant document; 0 if there is none.

  Args:
    ranked: relevance in rank order, [n].
  """
  ranks = np.flatnonzero(_finite(ranked) > 0)
  return float(1 / (ranks[0] + 1)) if ranks.size else 0.0


def precision(ranked: np.ndarray, k: int) -> float:
  """Relevant documents among the first k, over k even if the list is shorter.

  Args:
    ranked: relevance in rank order, [n].
    k: cut-off, at least 1.
  """
  return _ratio(_found(ranked, k), k)


def r_precision(ranked: np.ndarray, num_relevant: int) -> float:
  """Precision at the number of relevant documents.

  Args:
    ranked: relevance in rank order, [n].
    num_relevant: relevant documents that exist.
  """
  if num_relevant == 0:
    return 0.0
  return precision(ranked, num_relevant)


def recall(ranked: np.ndarray, num_relevant: int, k: int) -> float:
  """Share of the relevant documents that are among the first k.

  Args:
    ranked: relevance in rank order, [n].
    num_relevant: relevant documents that exist.
    k: cut-off, at least 1.
  """
  return _ratio(_found(ranked, k), num_relevant)


def hits(ranked: np.ndarray, k: int) -> float:
  """1 if a relevant document is among the first k, else 0 (success@k).

  Args:
    ranked: relevance in rank order, [n].
    k: cut-off, at least 1.
  """
  return float(_found(ranked, k) > 0)


def rank_documents(scores: Mapping[str, float]) -> list[str]:
  """Documents in trec_eval's order: falling score, then falling name.

  As in trec_eval, scores are compared in single precision and names as bytes.

  Args:
    scores: score of each document.

  Returns:
    The documents, best first.
  """
  names = sorted(scores, key=str.encode, reverse=True)
  values = np.array([scores[name] for name in names], np.float32)
  if not np.isfinite(values).all():
    raise ValueError("a score is not finite in single precision")
  return [names[i] for i in np.argsort(-values, kind="stable")]


def evaluate_run(
  run: Mapping[str, Mapping[str, float]],
  judgments: Mapping[str, Mapping[str, int]],
  measures: Sequence[str] = _DEFAULT,
  *,
  complete: bool = False,
) -> dict[str, dict[str, float]]:
  """Each measure for each query, by trec_eval's names.

  Args:
    run: scores by query and document.
    judgments: relevance by query and document; negative for documents of
      the pool that were not judged.
    measures: of map, infAP, ndcg, recip_rank, Rprec, and with a cut-off
      ndcg_cut_K, P_K, success_K (HITS@K), recall_K.
    complete: whether judged queries that the run lacks count, with 0
      everywhere (the option -c of trec_eval), or are left out.

  Returns:
    Values by query and measure, for queries with judgments.
  """
  results = {}
  for query, relevance in judgments.items():
    if not relevance or (query not in run and not complete):
      continue
    judged = _finite(np.array(list(relevance.values()))).astype(int)
    order = rank_documents(run.get(query, {}))
    ranked = np.array(
      [_pooled(relevance.get(d, UNPOOLED), d in relevance) for d in order], int
    )
    results[query] = {name: measure(name, ranked, judged) for name in measures}
  return results


def mean_measures(
  results: Mapping[str, Mapping[str, float]],
) -> dict[str, float]:
  """Mean of each measure over queries (mean average precision and so on).

  Args:
    results: what `evaluate_run` returned, at least one query.

  Returns:
    Means by measure.
  """
  if not results:
    raise ValueError("no query of the run has judgments")
  rows = list(results.values())
  return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _pooled(relevance: int, judged: bool) -> int:
  return max(relevance, UNJUDGED) if judged else UNPOOLED


def measure(name: str, ranked: np.ndarray, judged: np.ndarray) -> float:
  """A measure of one list by its name in trec_eval.

  Args:
    name: such as "map" or "recall_10".
    ranked: relevance of each document of the list, int or bool [n].
    judged: relevance of all judged documents, [m].
  """
  num_relevant = int((judged > 0).sum())
  stem, _, cut = name.rpartition("_")
  if cut.isdecimal() and int(cut) > 0:
    k = int(cut)
    if stem == "ndcg_cut":
      return ndcg(ranked, judged, k)
    if stem == "P":
      return precision(ranked, k)
    if stem == "success":
      return hits(ranked, k)
    if stem == "recall":
      return recall(ranked, num_relevant, k)
  if name == "map":
    return average_precision(ranked, num_relevant)
  if name == "infAP":
    return inferred_ap(ranked, num_relevant)
  if name == "ndcg":
    return ndcg(ranked, judged)
  if name == "recip_rank":
    return reciprocal_rank(ranked)
  if name == "Rprec":
    return r_precision(ranked, num_relevant)
  raise ValueError(f"unknown measure {name!r}")


def _found(ranked: np.ndarray, k: int) -> int:
  if k < 1:
    raise ValueError(f"the cut-off must be 1 or more, not {k}")
  return int((_finite(ranked)[:k] > 0).sum())


def _dcg(ranked: np.ndarray, k: int | None) -> float:
  if k is not None and k < 1:
    raise ValueError(f"the cut-off must be 1 or more, not {k}")
  gains = np.maximum(_finite(ranked).astype(float)[:k], 0)
  return float((gains / np.log2(np.arange(2, gains.size + 2))).sum())


def _finite(relevance: np.ndarray) -> np.ndarray:
  """Returns relevance [n]; refuses NaN, which would count as not relevant."""
  relevance = np.asarray(relevance)
  if relevance.dtype.kind == "f" and not np.isfinite(relevance).all():
    raise InputError("relevance must be finite; leave out what is not judged")
  return relevance


def _ratio(numerator: float, denominator: float) -> float:
  return float(numerator / denominator) if denominator else 0.0

"""Evaluation measures and significance tests.

| content | functions |
|---|---|
| word similarity | `evaluate_similarity`, `evaluate_choices`, `spearman` |
| analogies | `evaluate_analogies`, `solve_analogies` |
| retrieval | `evaluate_run`, `average_precision`, `inferred_ap`, `ndcg`, \
`precision`, `recall`, `r_precision`, `reciprocal_rank`, `hits` |
| set expansion | `gold_queries`, `evaluate_expansion`, `leave_one_out`, \
`held_out_ranks`, `first_places`, `pair_agreement` |
| entities | `evaluate_linking`, `evaluate_relatedness` |
| significance | `paired_bootstrap`, `paired_permutation`, `williams_test`, \
`williams_pairs`, `mrds_accuracy`, `mrds_correlation`, `beta_inferiority`, \
`spearman_interval`, `pooled_gain` |
| tables | `compare`, `grid` |
"""

from repr_jax.evaluation.analogy import (
  AnalogyResult,
  evaluate_analogies,
  solve_analogies,
)
from repr_jax.evaluation.expansion import (
  GoldQuery,
  evaluate_expansion,
  gold_queries,
)
from repr_jax.evaluation.judgments import (
  first_places,
  held_out_ranks,
  leave_one_out,
  pair_agreement,
  rank_summary,
)
from repr_jax.evaluation.linking import accuracy_by, evaluate_linking
from repr_jax.evaluation.pooled import ScoredSet, pooled_gain
from repr_jax.evaluation.relatedness import evaluate_relatedness
from repr_jax.evaluation.retrieval import (
  average_precision,
  evaluate_run,
  hits,
  inferred_ap,
  mean_measures,
  ndcg,
  precision,
  r_precision,
  rank_documents,
  recall,
  reciprocal_rank,
)
from repr_jax.evaluation.significance import (
  Difference,
  beta_inferiority,
  mrds_accuracy,
  mrds_correlation,
  paired_bootstrap,
  paired_permutation,
  spearman_interval,
  williams_pairs,
  williams_test,
)
from repr_jax.evaluation.similarity import (
  Result,
  evaluate_choices,
  evaluate_similarity,
  index_words,
  spearman,
  system_correlation,
)
from repr_jax.evaluation.tables import Gain, Row, compare, grid

__all__ = [
  "AnalogyResult",
  "Difference",
  "Gain",
  "GoldQuery",
  "Result",
  "Row",
  "ScoredSet",
  "accuracy_by",
  "average_precision",
  "beta_inferiority",
  "compare",
  "evaluate_analogies",
  "evaluate_choices",
  "evaluate_expansion",
  "evaluate_linking",
  "evaluate_relatedness",
  "evaluate_run",
  "evaluate_similarity",
  "first_places",
  "gold_queries",
  "grid",
  "held_out_ranks",
  "hits",
  "index_words",
  "inferred_ap",
  "leave_one_out",
  "mean_measures",
  "mrds_accuracy",
  "mrds_correlation",
  "ndcg",
  "pair_agreement",
  "paired_bootstrap",
  "paired_permutation",
  "pooled_gain",
  "precision",
  "r_precision",
  "rank_documents",
  "rank_summary",
  "recall",
  "reciprocal_rank",
  "solve_analogies",
  "spearman",
  "spearman_interval",
  "system_correlation",
  "williams_pairs",
  "williams_test",
]

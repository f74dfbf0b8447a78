"""Measures of quality, and whether a difference between two is real."""

from repr_jax.evaluation.analogy import AnalogyResult as AnalogyResult
from repr_jax.evaluation.analogy import evaluate_analogies as evaluate_analogies
from repr_jax.evaluation.analogy import solve_analogies as solve_analogies
from repr_jax.evaluation.expansion import GoldQuery as GoldQuery
from repr_jax.evaluation.expansion import (
  evaluate_expansion as evaluate_expansion,
)
from repr_jax.evaluation.expansion import gold_queries as gold_queries
from repr_jax.evaluation.judgments import first_places as first_places
from repr_jax.evaluation.judgments import held_out_ranks as held_out_ranks
from repr_jax.evaluation.judgments import leave_one_out as leave_one_out
from repr_jax.evaluation.judgments import pair_agreement as pair_agreement
from repr_jax.evaluation.judgments import rank_summary as rank_summary
from repr_jax.evaluation.linking import accuracy_by as accuracy_by
from repr_jax.evaluation.linking import evaluate_linking as evaluate_linking
from repr_jax.evaluation.relatedness import (
  evaluate_relatedness as evaluate_relatedness,
)
from repr_jax.evaluation.retrieval import average_precision as average_precision
from repr_jax.evaluation.retrieval import evaluate_run as evaluate_run
from repr_jax.evaluation.retrieval import hits as hits
from repr_jax.evaluation.retrieval import inferred_ap as inferred_ap
from repr_jax.evaluation.retrieval import mean_measures as mean_measures
from repr_jax.evaluation.retrieval import ndcg as ndcg
from repr_jax.evaluation.retrieval import precision as precision
from repr_jax.evaluation.retrieval import r_precision as r_precision
from repr_jax.evaluation.retrieval import rank_documents as rank_documents
from repr_jax.evaluation.retrieval import recall as recall
from repr_jax.evaluation.retrieval import reciprocal_rank as reciprocal_rank
from repr_jax.evaluation.significance import Difference as Difference
from repr_jax.evaluation.significance import (
  beta_inferiority as beta_inferiority,
)
from repr_jax.evaluation.significance import mrds_accuracy as mrds_accuracy
from repr_jax.evaluation.significance import (
  mrds_correlation as mrds_correlation,
)
from repr_jax.evaluation.significance import (
  paired_bootstrap as paired_bootstrap,
)
from repr_jax.evaluation.significance import (
  paired_permutation as paired_permutation,
)
from repr_jax.evaluation.significance import (
  spearman_interval as spearman_interval,
)
from repr_jax.evaluation.significance import williams_test as williams_test
from repr_jax.evaluation.similarity import Result as Result
from repr_jax.evaluation.similarity import evaluate_choices as evaluate_choices
from repr_jax.evaluation.similarity import (
  evaluate_similarity as evaluate_similarity,
)
from repr_jax.evaluation.similarity import index_words as index_words
from repr_jax.evaluation.similarity import spearman as spearman
from repr_jax.evaluation.similarity import (
  system_correlation as system_correlation,
)
from repr_jax.evaluation.tables import Gain as Gain
from repr_jax.evaluation.tables import Row as Row
from repr_jax.evaluation.tables import compare as compare
from repr_jax.evaluation.tables import to_markdown as to_markdown
from repr_jax.evaluation.tables import to_text as to_text

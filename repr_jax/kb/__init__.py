"""Knowledge bases: embeddings under logical rules, and RESCAL (chapter 5).

| function | what it does |
|---|---|
| `fit` | triples and rules by name in, predictions by name out |
| `score`, `score_all_heads`, `score_all_tails` | scores of facts |
| `init_params` | random tables |
| `reciprocal` | a model with rows of its own for the inverse relations |
| `order_block` | a model whose one-way rules order only some numbers |
| `compile_rules` | rules to arrays, on the host |
| `project`, `violation` | project tables onto the rules; measure violations |
| `certify` | proofs that rules hold for all pairs, in exact arithmetic |
| `checked_start`, `check_rules` | starts that meet rules; measured violations |
| `projected_sgd` | thesis algorithm 2 as (init, update) |
| `candidate_softmax` | any optax optimizer as (init, update) |
| `group_queries` | facts by the questions they answer, for full softmax |
| `known_facts`, `is_known`, `draw_pairs` | negative sampling |
| `scorers`, `rank`, `summary`, `per_relation` | link prediction |
| `sureness`, `choice_features`, `better` | which of two systems is right |
| `fit_logistic`, `merge_ranks` | the choice between them |
| `rescal`, `make_slices` | RESCAL as (init, update) |
| `violating_triple` | three vectors on which a matrix is not transitive |

`MODELS` and `RULE_KINDS` have the built-in score models and kinds of rules.
Functions also take a `ScoreModel` or `RuleKind` of your own. Jitted functions
propagate NaN; they cannot raise. Host functions raise `InputError` on NaN.
"""

import jax

from repr_jax.data.rule_kinds import KINDS as RULE_KINDS
from repr_jax.data.rule_kinds import RuleKind
from repr_jax.data.rules import Rule
from repr_jax.kb import (
  combine,
  negatives,
  pair_training,
  rule_projection,
  scores,
)
from repr_jax.kb.candidate_loss import CandidateBatch, CandidateConfig
from repr_jax.kb.candidate_training import CandidateState, candidate_softmax
from repr_jax.kb.certificates import Certificate, certify
from repr_jax.kb.combine import better, choice_features, merge_ranks, sureness
from repr_jax.kb.condition_forms import Conditions, RuleConfig
from repr_jax.kb.fitted import Fitted, Prediction, fit
from repr_jax.kb.link_prediction import (
  Ranks,
  per_relation,
  rank,
  scorers,
  summary,
)
from repr_jax.kb.negatives import Known, known_facts
from repr_jax.kb.pair_training import Pairs, SGDConfig, SGDState, projected_sgd
from repr_jax.kb.query_loss import QueryBatch, group_queries
from repr_jax.kb.rescal_als import (
  RescalConfig,
  RescalModel,
  RescalState,
  Ridge,
  rescal,
)
from repr_jax.kb.rule_check import RuleCheck, check_rules
from repr_jax.kb.rule_compiler import Constraints, compile_rules
from repr_jax.kb.rule_start import checked_start
from repr_jax.kb.score_model import Query, ScoreModel
from repr_jax.kb.score_models import (
  BLOCKS,
  COMPLEX,
  DISTMULT,
  MODELS,
  T_L1,
  T_L2,
  A,
  B,
  C,
  D,
  R,
  T,
  order_block,
  reciprocal,
)
from repr_jax.kb.scores import Params
from repr_jax.kb.slices import Slices, make_slices
from repr_jax.kb.transitivity import Violation, violating_triple

score = jax.jit(scores.score, static_argnames="model")
score_all_heads = jax.jit(scores.score_all_heads, static_argnames="model")
score_all_tails = jax.jit(scores.score_all_tails, static_argnames="model")
init_params = jax.jit(
  scores.init_params,
  static_argnames=("model", "num_entities", "num_relations", "dim", "dtype"),
)
project = jax.jit(rule_projection.project)
violation = jax.jit(rule_projection.violation)
is_known = jax.jit(negatives.is_known)
draw_pairs = jax.jit(pair_training.draw_pairs, static_argnames="kind")
fit_logistic = jax.jit(combine.fit_logistic, static_argnames="steps")

__all__ = [
  "BLOCKS",
  "COMPLEX",
  "DISTMULT",
  "MODELS",
  "RULE_KINDS",
  "T_L1",
  "T_L2",
  "A",
  "B",
  "C",
  "CandidateBatch",
  "CandidateConfig",
  "CandidateState",
  "Certificate",
  "Conditions",
  "Constraints",
  "D",
  "Fitted",
  "Known",
  "Pairs",
  "Params",
  "Prediction",
  "Query",
  "QueryBatch",
  "R",
  "Ranks",
  "RescalConfig",
  "RescalModel",
  "RescalState",
  "Ridge",
  "Rule",
  "RuleCheck",
  "RuleConfig",
  "RuleKind",
  "SGDConfig",
  "SGDState",
  "ScoreModel",
  "Slices",
  "T",
  "Violation",
  "better",
  "candidate_softmax",
  "certify",
  "check_rules",
  "checked_start",
  "choice_features",
  "compile_rules",
  "draw_pairs",
  "fit",
  "fit_logistic",
  "group_queries",
  "init_params",
  "is_known",
  "known_facts",
  "make_slices",
  "merge_ranks",
  "order_block",
  "per_relation",
  "project",
  "projected_sgd",
  "rank",
  "reciprocal",
  "rescal",
  "score",
  "score_all_heads",
  "score_all_tails",
  "scorers",
  "summary",
  "sureness",
  "violating_triple",
  "violation",
]

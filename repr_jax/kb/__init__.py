"""Knowledge bases: RESCAL, and embeddings under logical constraints."""

from repr_jax.kb.combine import fit_logistic as fit_logistic
from repr_jax.kb.combine import merge_ranks as merge_ranks
from repr_jax.kb.link_prediction import Ranks as Ranks
from repr_jax.kb.link_prediction import per_relation as per_relation
from repr_jax.kb.link_prediction import rank as rank
from repr_jax.kb.link_prediction import scorers as scorers
from repr_jax.kb.link_prediction import summary as summary
from repr_jax.kb.negatives import known_facts as known_facts
from repr_jax.kb.rule_check import check_rules as check_rules
from repr_jax.kb.rule_compiler import Constraints as Constraints
from repr_jax.kb.rule_compiler import compile_rules as compile_rules
from repr_jax.kb.rule_kinds import Settings as Settings
from repr_jax.kb.rule_projection import checked_start as checked_start
from repr_jax.kb.rule_projection import project_relations as project_relations
from repr_jax.kb.rule_projection import project_tables as project_tables
from repr_jax.kb.scores import SCORES as SCORES
from repr_jax.kb.scores import Params as Params
from repr_jax.kb.scores import init_params as init_params
from repr_jax.kb.scores import score as score
from repr_jax.kb.scores import score_all_heads as score_all_heads
from repr_jax.kb.scores import score_all_tails as score_all_tails
from repr_jax.kb.transitivity import violating_triple as violating_triple

"""Knowledge bases: RESCAL, and embeddings under logical constraints."""

from repr_jax.kb.link_prediction import Ranks as Ranks
from repr_jax.kb.link_prediction import per_relation as per_relation
from repr_jax.kb.link_prediction import rank as rank
from repr_jax.kb.link_prediction import scorers as scorers
from repr_jax.kb.link_prediction import summary as summary
from repr_jax.kb.transitivity import violating_triple as violating_triple

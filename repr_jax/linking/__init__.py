"""Linking of mentions to entities: retrieval, vectors, disambiguation.

| function | content |
|---|---|
| `fit` -> `Linker.link` | documents with links in, a linker out; host |
| `max_margin` | (init, update) of one entity's max-margin vector |
| `posterior_mean` | vector of one entity by an autoencoder |
| `unigram_noise` | distribution of negatives; host |
| `init_params` | weights of the disambiguation model |
| `local_scores` | candidates of one mention by its context |
| `disambiguate` | candidates of one document by prior, context, coherence |
| `contributions` | parts of those scores |
| `disambiguator` | (init, update) of the weights, any optax optimizer |
| `graph_features` | features of one document's candidates by their links |
| `pagerank`, `coherence`, `messages` | the graph alone, and its parts |
| `ranker` | (init, update) of a ranker of candidates by features |
| `candidate_scores`, `score_parts` | its scores, and their parts |
| `rank_document` | candidates of one document in two passes |
| `fit_rankers`, `decide` | weights of both passes, and answers; host |
| `index_mentions`, `make_queries` | arrays of two-field BM25; host |
| `search` | the best mentions of one query by two-field BM25 |
| `rerank` | cosines of one query with its candidates |
| `ensemble` | weighted mean of several systems' scores |

Functions not marked host are jitted and take one example. Use `vmap` for
padded batches; the id -1 marks padding. The modules hold the same functions
without `jit`.
"""

import jax

from repr_jax.data.documents.evidence import Evidence, EvidenceGroup
from repr_jax.data.documents.packing import Packed
from repr_jax.linking import (
  candidate_graph,
  candidate_ranker,
  disambiguation,
  mention_retrieval,
  posterior_means,
)
from repr_jax.linking.candidate_ranker import (
  Decision,
  RankerConfig,
  RankerParams,
  RankerState,
  ranker,
)
from repr_jax.linking.disambiguation import (
  Answer,
  Config,
  Contributions,
  Params,
  Tables,
)
from repr_jax.linking.entity_vectors import (
  Bag,
  MarginConfig,
  MarginState,
  Noise,
  max_margin,
  unigram_noise,
)
from repr_jax.linking.fit_ranker import Rankers, decide, fit_rankers
from repr_jax.linking.linker import Link, Linker, fit
from repr_jax.linking.mention_retrieval import (
  Index,
  Query,
  Ranking,
  Words,
  index_mentions,
  make_queries,
)
from repr_jax.linking.train import Info, State, disambiguator

__all__ = [
  "Answer",
  "Bag",
  "Config",
  "Contributions",
  "Decision",
  "Evidence",
  "EvidenceGroup",
  "Index",
  "Info",
  "Link",
  "Linker",
  "MarginConfig",
  "MarginState",
  "Noise",
  "Packed",
  "Params",
  "Query",
  "RankerConfig",
  "RankerParams",
  "RankerState",
  "Rankers",
  "Ranking",
  "State",
  "Tables",
  "Words",
  "candidate_scores",
  "coherence",
  "contributions",
  "decide",
  "disambiguate",
  "disambiguator",
  "ensemble",
  "fit",
  "fit_rankers",
  "graph_features",
  "index_mentions",
  "init_params",
  "local_scores",
  "make_queries",
  "max_margin",
  "messages",
  "pagerank",
  "posterior_mean",
  "rank_document",
  "ranker",
  "rerank",
  "score_parts",
  "search",
  "unigram_noise",
]

posterior_mean = jax.jit(posterior_means.posterior_mean, static_argnums=0)
init_params = jax.jit(disambiguation.init_params, static_argnums=(0, 1))
local_scores = jax.jit(disambiguation.local_scores, static_argnums=0)
disambiguate = jax.jit(disambiguation.disambiguate, static_argnums=0)
contributions = jax.jit(disambiguation.contributions, static_argnums=0)
search = jax.jit(mention_retrieval.search, static_argnames="k")
rerank = jax.jit(mention_retrieval.rerank)
ensemble = jax.jit(mention_retrieval.ensemble)
graph_features = jax.jit(candidate_graph.graph_features)
pagerank = jax.jit(candidate_graph.pagerank)
coherence = jax.jit(candidate_graph.coherence)
messages = jax.jit(candidate_graph.messages)
candidate_scores = jax.jit(candidate_ranker.candidate_scores)
rank_document = jax.jit(candidate_ranker.rank_document)
score_parts = jax.jit(
  candidate_ranker.score_parts, static_argnames="num_groups"
)

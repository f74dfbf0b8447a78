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
| `best_pagerank` | PageRank from the best candidate of each mention |
| `pagerank`, `coherence`, `messages` | the graph alone, and its parts |
| `ranker` | (init, update) of a ranker of candidates by features |
| `candidate_scores`, `score_parts` | its scores, and their parts |
| `kind_scores`, `kind_parts`, `kind_features` | candidates by kind of title |
| `kind_ranker` | (init, update) of their weights |
| `fit_kinds`, `cross_kinds`, `apply_kinds` | the same for documents; host |
| `rank_document` | candidates of one document in two passes |
| `fit_rankers`, `decide` | weights of both passes, and answers; host |
| `index_mentions`, `make_queries` | arrays of two-field BM25; host |
| `index_fields` | the same with both fields in one saturation (BM25F); host |
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
from repr_jax.data.documents.title_kinds import KindArrays, Vocabulary
from repr_jax.linking import (
  candidate_graph,
  candidate_ranker,
  constrained_pagerank,
  context_kinds,
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
from repr_jax.linking.context_kinds import (
  KindConfig,
  KindParams,
  KindState,
  kind_ranker,
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
from repr_jax.linking.field_bm25 import index_fields
from repr_jax.linking.fit_ranker import Rankers, decide, fit_rankers
from repr_jax.linking.kind_fitting import apply_kinds, cross_kinds, fit_kinds
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
  "KindArrays",
  "KindConfig",
  "KindParams",
  "KindState",
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
  "Vocabulary",
  "Words",
  "apply_kinds",
  "best_pagerank",
  "candidate_scores",
  "coherence",
  "contributions",
  "cross_kinds",
  "decide",
  "disambiguate",
  "disambiguator",
  "ensemble",
  "fit",
  "fit_kinds",
  "fit_rankers",
  "graph_features",
  "index_fields",
  "index_mentions",
  "init_params",
  "kind_features",
  "kind_parts",
  "kind_ranker",
  "kind_scores",
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
best_pagerank = jax.jit(constrained_pagerank.best_pagerank)
coherence = jax.jit(candidate_graph.coherence)
messages = jax.jit(candidate_graph.messages)
kind_features = jax.jit(context_kinds.kind_features)
kind_parts = jax.jit(context_kinds.kind_parts)
kind_scores = jax.jit(context_kinds.kind_scores)
candidate_scores = jax.jit(candidate_ranker.candidate_scores)
rank_document = jax.jit(candidate_ranker.rank_document)
score_parts = jax.jit(
  candidate_ranker.score_parts, static_argnames="num_groups"
)

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
| `index_mentions`, `make_queries` | arrays of two-field BM25; host |
| `search` | the best mentions of one query by two-field BM25 |
| `rerank` | cosines of one query with its candidates |
| `ensemble` | weighted mean of several systems' scores |

Functions not marked host are jitted and take one example. Use `vmap` for
padded batches; the id -1 marks padding. The modules hold the same functions
without `jit`.
"""

import jax

from repr_jax.data.documents.packing import Packed
from repr_jax.linking import (
  disambiguation,
  mention_retrieval,
  posterior_means,
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
  "Ranking",
  "State",
  "Tables",
  "Words",
  "contributions",
  "disambiguate",
  "disambiguator",
  "ensemble",
  "fit",
  "index_mentions",
  "init_params",
  "local_scores",
  "make_queries",
  "max_margin",
  "posterior_mean",
  "rerank",
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

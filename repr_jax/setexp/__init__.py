"""Set expansion: from a few entities to the rest of their set, and why.

| function | what it does |
|---|---|
| `fit` | train on counts, then `.expand(names)` with reasons |
| `vae` | the autoencoder's training as a pair (init, update) |
| `init`, `encode`, `elbo` | parameters, q(z given x), the ELBO |
| `make_model`, `model_from_scipy` | all entities encoded, ready for queries |
| `query_posterior` | the product of a query's experts |
| `fit_cosine`, `crowding` | cosine score corrected for noise and hubs |
| `score_entities`, `expand` | scores of all entities; the best ones |
| `place_model`, `expand_sharded` | the same over the devices of a mesh |
| `contributions` | what each part added to the score that ranked |
| `bm25_fit`, `bm25_score`, `bm25_contributions` | a baseline's functions |
| `bayesian_sets_*`, `lsa_*`, `word2vecf_*`, `setexpan_*` | more baselines |
| `decoder_rationale` | the decoder at the query's concept (thesis 4.4) |
| `fit_chances`, `chances` | calibrated chance of each result |
| `expected_cut` | how many members the set has |

Functions take one entity or one query; `expand` takes a batch. Jitted
functions propagate NaN; constructors on the host refuse it.
"""

import jax

from repr_jax.setexp import autoencoder, expansion, models, rationale, train
from repr_jax.setexp.autoencoder import (
  Config,
  Elbo,
  Inputs,
  Params,
  Posterior,
  Statistics,
  statistics_from_scipy,
)
from repr_jax.setexp.baselines import (
  bayesian_sets,
  bm25,
  lsa,
  setexpan,
  word2vecf,
)
from repr_jax.setexp.baselines.baseline import Baseline
from repr_jax.setexp.baselines.bayesian_sets import fit as bayesian_sets_fit
from repr_jax.setexp.baselines.bm25 import fit as bm25_fit
from repr_jax.setexp.baselines.lsa import fit as lsa_fit
from repr_jax.setexp.baselines.setexpan import fit as setexpan_fit
from repr_jax.setexp.baselines.word2vecf import Model as Word2vecf
from repr_jax.setexp.baselines.word2vecf import fit as word2vecf_fit
from repr_jax.setexp.batches import Batch
from repr_jax.setexp.batches import dense_batch as _dense_batch
from repr_jax.setexp.calibration import chances as _chances
from repr_jax.setexp.calibration import expected_cut as _expected_cut
from repr_jax.setexp.calibration import fit_chances as _fit_chances
from repr_jax.setexp.expansion import (
  SCORES,
  Expansion,
  Model,
  PaddedQuery,
  Ranking,
  make_ranking,
)
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.feature_scores import POOLINGS, Entries
from repr_jax.setexp.from_scipy import model_from_scipy, pad_queries
from repr_jax.setexp.high_level import Answer, SetExpander, fit
from repr_jax.setexp.hubness import crowding as _crowding
from repr_jax.setexp.query import Query, make_query
from repr_jax.setexp.rows import Rows, rows_from_scipy
from repr_jax.setexp.rows import rows_from_dense as _rows_from_dense
from repr_jax.setexp.sharded_expansion import expand_sharded as _expand_sharded
from repr_jax.setexp.sharded_expansion import place_model
from repr_jax.setexp.systems import RankingConfig
from repr_jax.setexp.train import VAE, Hyper, Info, State, vae

__all__ = [
  "POOLINGS",
  "SCORES",
  "VAE",
  "Answer",
  "Baseline",
  "Batch",
  "Config",
  "Contributions",
  "Elbo",
  "Entries",
  "Expansion",
  "Hyper",
  "Info",
  "Inputs",
  "Model",
  "PaddedQuery",
  "Params",
  "Posterior",
  "Query",
  "Ranking",
  "RankingConfig",
  "Rows",
  "SetExpander",
  "State",
  "Statistics",
  "Word2vecf",
  "bayesian_sets_contributions",
  "bayesian_sets_fit",
  "bayesian_sets_score",
  "bm25_contributions",
  "bm25_fit",
  "bm25_score",
  "chances",
  "contributions",
  "crowding",
  "decoder_rationale",
  "dense_batch",
  "elbo",
  "encode",
  "expand",
  "expand_sharded",
  "expected_cut",
  "fit",
  "fit_chances",
  "fit_cosine",
  "init",
  "lsa_contributions",
  "lsa_fit",
  "lsa_score",
  "make_model",
  "make_query",
  "make_ranking",
  "model_from_scipy",
  "pad_queries",
  "parameters",
  "place_model",
  "query_of_rows",
  "query_posterior",
  "rows_from_dense",
  "rows_from_scipy",
  "score_entities",
  "score_rows",
  "setexpan_contributions",
  "setexpan_fit",
  "setexpan_score",
  "statistics",
  "statistics_from_scipy",
  "vae",
  "word2vecf_contributions",
  "word2vecf_fit",
  "word2vecf_score",
]

init = jax.jit(autoencoder.init, static_argnames="config")
encode = jax.jit(autoencoder.encode, static_argnames="config")
elbo = jax.jit(train.elbo, static_argnames="config")
statistics = jax.jit(autoencoder.statistics, static_argnames="config")
parameters = jax.jit(train.parameters, static_argnames="config")
rows_from_dense = jax.jit(_rows_from_dense)
dense_batch = jax.jit(_dense_batch)
make_model = jax.jit(models.make_model, static_argnames="config")
query_of_rows = jax.jit(models.query_of_rows)
query_posterior = jax.jit(expansion.query_posterior)
fit_cosine = jax.jit(models.fit_cosine)
crowding = jax.jit(_crowding)
score_entities = jax.jit(expansion.score_entities)
score_rows = jax.jit(expansion.score_rows)
expand = jax.jit(expansion.expand, static_argnames="k")
expand_sharded = jax.jit(_expand_sharded, static_argnames=("mesh", "k"))
contributions = jax.jit(expansion.contributions)
decoder_rationale = jax.jit(rationale.decoder_rationale)
chances = jax.jit(_chances)
fit_chances = jax.jit(_fit_chances)
expected_cut = jax.jit(_expected_cut)
bm25_score = jax.jit(bm25.score)
bm25_contributions = jax.jit(bm25.contributions)
bayesian_sets_score = jax.jit(bayesian_sets.score)
bayesian_sets_contributions = jax.jit(bayesian_sets.contributions)
lsa_score = jax.jit(lsa.score)
lsa_contributions = jax.jit(lsa.contributions)
word2vecf_score = jax.jit(word2vecf.score)
word2vecf_contributions = jax.jit(word2vecf.contributions)
setexpan_score = jax.jit(setexpan.score)
setexpan_contributions = jax.jit(setexpan.contributions)

"""Word vectors from many views at once: CCA, GCCA and multiview LSA.

| function | what it computes |
|---|---|
| `fit` | vectors of words from many views, sparse or dense |
| `cca_fit`, `cca_transform` | canonical correlations of two views |
| `gcca_exact` | generalized CCA of complete dense views |
| `factor_view` | rank-m SVD of one weighted, centered view |
| `combine`, `view_products` | common space of factored views |
| `support_scale`, `view_block` | a view's block for a streamed combination |
| `stream_init`, `stream_update`, `stream_remove` | one view at a time |
| `gcca_transform` | embeddings of unseen rows |
| `predict_view` | rows of one view from the others |
| `view_agreement`, `direction_agreement` | how far the views agree |
| `agreement_weights` | weights of views from their agreement |
| `energy_weights` | weights that make up for a view's number of directions |
| `heldout_weights` | weights by which views predict other sources' views |
| `label_weights` | weights fitted to scores of pairs of words |
| `permuted_factors` | factors under the null hypothesis: rows shuffled |
| `retrofit`, `counterfit` | finished vectors moved toward a lexicon |
| `predict_from_features` | vectors that features of words predict |
| `explained_shares` | how much each view explains of the embedding |
| `log_counts`, `power_counts`, `ppmi` | weighting of counts |
| `row_weights`, `observed_rows` | weighting of rows |

The functions here are jitted, except `fit`. The modules hold the same
functions without `jit`. Jitted functions propagate NaN; they cannot raise.
"""

import jax

from repr_jax.multiview import (
  agreement,
  cca,
  exact,
  feature_regression,
  gcca,
  learned_weights,
  model,
  retrofitting,
  streaming,
  weighting,
)
from repr_jax.multiview.cca import CCA
from repr_jax.multiview.gcca import Combination, ViewFactor
from repr_jax.multiview.model import GCCA
from repr_jax.multiview.mvlsa import MVLSA, fit
from repr_jax.multiview.weighting import Weighting

__all__ = [
  "CCA",
  "GCCA",
  "MVLSA",
  "Combination",
  "ViewFactor",
  "Weighting",
  "agreement_weights",
  "cca_fit",
  "cca_transform",
  "combine",
  "counterfit",
  "direction_agreement",
  "energy_weights",
  "explained_shares",
  "factor_view",
  "fit",
  "gcca_exact",
  "gcca_transform",
  "heldout_weights",
  "label_weights",
  "log_counts",
  "observed_rows",
  "permuted_factors",
  "power_counts",
  "ppmi",
  "predict_from_features",
  "predict_view",
  "retrofit",
  "row_weights",
  "stream_init",
  "stream_remove",
  "stream_update",
  "support_scale",
  "view_agreement",
  "view_block",
  "view_products",
]

cca_fit = jax.jit(cca.cca_fit, static_argnames="k")
cca_transform = jax.jit(cca.cca_transform)
gcca_exact = jax.jit(
  exact.gcca_exact, static_argnames=("k", "center", "rows_per_block")
)
factor_view = jax.jit(
  gcca.factor_view, static_argnames=("m", "center", "max_cycles")
)
combine = jax.jit(gcca.combine, static_argnames="k")
view_products = jax.jit(gcca.view_products)
support_scale = jax.jit(gcca.support_scale)
view_block = jax.jit(gcca.view_block)
stream_init = jax.jit(
  streaming.stream_init, static_argnames=("n", "k", "dtype")
)
stream_update = jax.jit(streaming.stream_update)
stream_remove = jax.jit(streaming.stream_remove)
gcca_transform = jax.jit(model.gcca_transform, static_argnames="calibrate")
predict_view = jax.jit(model.predict_view, static_argnames="view")
explained_shares = jax.jit(model.explained_shares)
log_counts = jax.jit(weighting.log_counts)
power_counts = jax.jit(weighting.power_counts)
ppmi = jax.jit(weighting.ppmi)
row_weights = jax.jit(weighting.row_weights)
observed_rows = jax.jit(weighting.observed_rows)
direction_agreement = jax.jit(agreement.direction_agreement)
view_agreement = jax.jit(agreement.view_agreement)
agreement_weights = jax.jit(agreement.agreement_weights)
energy_weights = jax.jit(agreement.energy_weights)
permuted_factors = jax.jit(agreement.permuted_factors)
heldout_weights = jax.jit(learned_weights.heldout_weights)
label_weights = jax.jit(learned_weights.label_weights)
retrofit = jax.jit(retrofitting.retrofit)
counterfit = jax.jit(retrofitting.counterfit)
predict_from_features = jax.jit(feature_regression.predict_from_features)

"""Pure mathematics on arrays: no files, no flags, no dataset names.

Functions here are jitted; the modules hold the same functions without `jit`,
for composition. Jitted functions propagate NaN; they cannot raise. Functions
that run on the host, such as `from_scipy`, refuse NaN and infinity.

| function | content |
|---|---|
| `truncated_svd` | leading singular triples of a dense or sparse matrix |
| `pca_fit`, `pca_transform`, `pca_inverse` | principal components |
| `ppca_posterior`, `ppca_log_likelihood` | probabilistic PCA |
| `Natural`, `to_natural`, `to_moments` | parameters of a diagonal Gaussian |
| `reparameterize` | a sample that gradients pass through |
| `product_of_experts` | a query's Gaussian from its members' |
| `kl`, `kl_to_prior`, `log_product_kernel`, `log_evidence_ratio` | \
comparisons of two |
| `project_nonnegative`, `project_box`, `project_ball`, `project_halfspace` | \
nearest points of simple sets |
| `project_order`, `project_polyhedron`, `project_orthant_ball`, \
`project_intersection` | nearest points of other sets |
| `top_k`, `sharded_top_k`, `tie_ranks` | best items, and ranks with ties |
| `max_product` | belief propagation |
| `unit_rows` | rows of length 1 |
| `Sparse`, `from_scipy`, `to_scipy` | sparse matrices in blocks of rows |
| `matmat`, `rmatmat`, `normal_matmat` | products X Q, X' P, X'X Q |
| `scale_rows`, `scale_columns`, `row_sums`, `column_sums`, `observed_rows` | \
of a sparse matrix |
"""

import jax

from repr_jax.ops import (
  belief_propagation,
  gaussian,
  pca,
  projections,
  ranking,
  sparse,
  spectral,
  topk,
)
from repr_jax.ops.gaussian import Natural
from repr_jax.ops.normalize import unit_rows
from repr_jax.ops.pca import PCA
from repr_jax.ops.projections import Planes, Rows
from repr_jax.ops.ranking import RankBounds
from repr_jax.ops.sparse import Sparse, from_scipy, to_scipy
from repr_jax.ops.spectral import SVD, SVDInfo

__all__ = [
  "PCA",
  "SVD",
  "Natural",
  "Planes",
  "RankBounds",
  "Rows",
  "SVDInfo",
  "Sparse",
  "column_sums",
  "from_scipy",
  "kl",
  "kl_to_prior",
  "log_evidence_ratio",
  "log_product_kernel",
  "matmat",
  "max_product",
  "normal_matmat",
  "observed_rows",
  "pca_fit",
  "pca_inverse",
  "pca_transform",
  "ppca_log_likelihood",
  "ppca_posterior",
  "product_of_experts",
  "project_ball",
  "project_box",
  "project_halfspace",
  "project_intersection",
  "project_nonnegative",
  "project_order",
  "project_orthant_ball",
  "project_polyhedron",
  "reparameterize",
  "rmatmat",
  "row_sums",
  "scale_columns",
  "scale_rows",
  "sharded_top_k",
  "tie_ranks",
  "to_moments",
  "to_natural",
  "to_scipy",
  "top_k",
  "truncated_svd",
  "unit_rows",
]

truncated_svd = jax.jit(
  spectral.truncated_svd, static_argnames=("k", "block", "basis", "max_cycles")
)
pca_fit = jax.jit(pca.pca_fit, static_argnames="k")
pca_transform = jax.jit(pca.pca_transform)
pca_inverse = jax.jit(pca.pca_inverse)
ppca_posterior = jax.jit(pca.ppca_posterior)
ppca_log_likelihood = jax.jit(pca.ppca_log_likelihood)
to_natural = jax.jit(gaussian.to_natural)
to_moments = jax.jit(gaussian.to_moments)
reparameterize = jax.jit(gaussian.reparameterize)
product_of_experts = jax.jit(gaussian.product_of_experts)
kl = jax.jit(gaussian.kl)
kl_to_prior = jax.jit(gaussian.kl_to_prior)
log_product_kernel = jax.jit(gaussian.log_product_kernel)
log_evidence_ratio = jax.jit(gaussian.log_evidence_ratio)
project_nonnegative = jax.jit(projections.nonnegative)
project_box = jax.jit(projections.box)
project_ball = jax.jit(projections.ball)
project_halfspace = jax.jit(projections.halfspace)
project_order = jax.jit(projections.order)
project_polyhedron = jax.jit(projections.polyhedron)
project_orthant_ball = jax.jit(
  projections.orthant_ball, static_argnames="steps"
)
project_intersection = jax.jit(
  projections.dykstra, static_argnames="projections"
)
top_k = jax.jit(topk.top_k, static_argnames=("k", "width"))
sharded_top_k = jax.jit(topk.sharded_top_k, static_argnames=("k", "mesh"))
tie_ranks = jax.jit(ranking.tie_ranks)
max_product = jax.jit(
  belief_propagation.max_product, static_argnames="iterations"
)
matmat = jax.jit(sparse.matmat)
rmatmat = jax.jit(sparse.rmatmat)
normal_matmat = jax.jit(sparse.normal_matmat)
scale_rows = jax.jit(sparse.scale_rows)
scale_columns = jax.jit(sparse.scale_columns)
row_sums = jax.jit(sparse.row_sums)
column_sums = jax.jit(sparse.column_sums)
observed_rows = jax.jit(sparse.observed_rows)

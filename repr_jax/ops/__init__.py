"""Pure mathematics on arrays: no files, no flags, no dataset names.

The functions of the modules compose without `jit`; what is exported here is
jitted, for those who call it from outside. What is compiled cannot refuse a
NaN or an infinity: it shows in the result. Functions that read their input on
the host, such as `from_scipy`, refuse it.
"""

import jax

from repr_jax.ops import belief_propagation, gaussian, pca, spectral
from repr_jax.ops.gaussian import Natural as Natural
from repr_jax.ops.gaussian import to_natural as to_natural
from repr_jax.ops.normalize import unit_rows as unit_rows
from repr_jax.ops.operators import Operator as Operator
from repr_jax.ops.operators import as_operator as as_operator
from repr_jax.ops.pca import PCA as PCA
from repr_jax.ops.sparse import Sparse as Sparse
from repr_jax.ops.sparse import from_scipy as from_scipy
from repr_jax.ops.sparse import to_scipy as to_scipy
from repr_jax.ops.spectral import SVD as SVD

truncated_svd = jax.jit(
  spectral.truncated_svd,
  static_argnames=("k", "tolerance", "block", "basis", "max_cycles"),
)
pca_fit = jax.jit(pca.pca_fit, static_argnames=("k", "tolerance"))
ppca_log_likelihood = jax.jit(pca.ppca_log_likelihood)
product_of_experts = jax.jit(gaussian.product_of_experts)
max_product = jax.jit(
  belief_propagation.max_product, static_argnames=("iterations", "damping")
)

"""Word vectors from many views at once: CCA, GCCA and multiview LSA."""

import jax

from repr_jax.data.views.collection import Specification as Specification
from repr_jax.data.views.collection import View as View
from repr_jax.data.views.collection import collect as collect
from repr_jax.data.views.counting import Tally as Tally
from repr_jax.data.views.counting import count_offsets as count_offsets
from repr_jax.data.views.counting import count_pairs as count_pairs
from repr_jax.multiview import cca, gcca
from repr_jax.multiview.cca import CCA as CCA
from repr_jax.multiview.gcca import GCCA as GCCA
from repr_jax.multiview.mvlsa import MVLSA as MVLSA
from repr_jax.multiview.mvlsa import fit as fit
from repr_jax.multiview.weighting import Weighting as Weighting
from repr_jax.multiview.weighting import ppmi as ppmi
from repr_jax.multiview.weighting import row_weights as row_weights
from repr_jax.multiview.weighting import supported as supported

cca_fit = jax.jit(cca.cca_fit, static_argnames="k")
gcca_exact = jax.jit(
  gcca.gcca_exact, static_argnames=("k", "center", "rows_per_block")
)

"""Word vectors from many views at once: CCA, GCCA and multiview LSA."""

from repr_jax.multiview.counting import Tally as Tally
from repr_jax.multiview.counting import count_offsets as count_offsets
from repr_jax.multiview.counting import count_pairs as count_pairs
from repr_jax.multiview.views import Specification as Specification
from repr_jax.multiview.views import View as View
from repr_jax.multiview.views import collect as collect
from repr_jax.multiview.weighting import Weighting as Weighting
from repr_jax.multiview.weighting import ppmi as ppmi
from repr_jax.multiview.weighting import row_weights as row_weights
from repr_jax.multiview.weighting import supported as supported

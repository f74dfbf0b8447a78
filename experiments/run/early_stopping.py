"""Early stopping of an experiment's training, see `EarlyStopping`.

The library trains with the same class, so it stands in `repr_jax.ops`. Its
`state` goes into a checkpoint as it is.
"""

from repr_jax.ops.early_stopping import EarlyStopping as EarlyStopping
from repr_jax.ops.early_stopping import State as State

"""The interface of a system to compare with: one object in one file.

```python
# mine.py
from repr_jax.setexp.baselines.baseline import Baseline

COSINE = Baseline("cosine", fit, score, score_rows, contributions, rationale)
```

`python -m experiments.nvse --mode=evaluate --systems=bm25,mine:COSINE` sets it
beside the others.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.query import Query


class Baseline(NamedTuple):
  """Pure functions of a system that ranks entities for queries.

  Attributes:
    name: how tables call it.
    fit: model from feature counts [X, F] and a seed.
    score: scores [X] of all entities from a model and a query.
    score_rows: scores [s] from a model, a query and feature counts [s, F].
    contributions: parts that sum to `score`'s number for one entity, from a
      model, a query and the entity's row.
    rationale: weight of each feature for a query, [F], from a model and a
      query.
  """

  name: str
  fit: Callable[[sp.csr_array, int], Any]
  score: Callable[[Any, Query], np.ndarray]
  score_rows: Callable[[Any, Query, sp.csr_array], np.ndarray]
  contributions: Callable[[Any, Query, int], Contributions]
  rationale: Callable[[Any, Query], np.ndarray]


def of_features(indices: np.ndarray, parts: np.ndarray) -> Contributions:
  """Contributions of a score that is a sum over features, both [m]."""
  return Contributions(indices, parts, np.zeros(0), np.zeros(()))

"""The interface of a baseline: one `Baseline` object.

```python
# mine.py
from repr_jax.setexp.baselines.baseline import Baseline

COSINE = Baseline("cosine", fit, score, score_rows, contributions, rationale)
```

`python -m experiments.nvse --mode=evaluate --systems=bm25,mine:COSINE` compares
it with BM25. All but `fit` and `encode` are pure functions of one query in
fixed shapes; `systems.bind` compiles them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.ops import inputs
from repr_jax.setexp import feature_scores
from repr_jax.setexp.expansion import PaddedQuery
from repr_jax.setexp.explain import Contributions
from repr_jax.setexp.rows import Rows

_LARGEST = 1e30  # products with weights of features stay finite


class Baseline(NamedTuple):
  """Functions of a system that ranks entities for queries.

  Attributes:
    name: its name in tables of results.
    fit: model, a pytree of arrays, from feature counts [X, F] and a seed.
    score: scores [X] of all entities from a model and a query.
    score_rows: scores [s] from a model, a query and feature counts, fields
      [s, m].
    contributions: parts that sum to `score`'s number for one entity, from a
      model, a query and the entity's row, int32 [].
    rationale: weight of each feature for a query, [F], from a model and a
      query.
    encode: vectors [r, d] of new members, which `PaddedQuery.encoded` holds,
      from a model and feature counts [r, F], on the host; None for a system
      that needs none.
    batched: whether queries of a batch are vmapped. Systems that add up
      postings score one query at a time, which is faster.
  """

  name: str
  fit: Callable[[sp.csr_array, int], Any]
  score: Callable[[Any, PaddedQuery], jax.Array]
  score_rows: Callable[[Any, PaddedQuery, Rows], jax.Array]
  contributions: Callable[[Any, PaddedQuery, jax.Array], Contributions]
  rationale: Callable[[Any, PaddedQuery], jax.Array]
  encode: Callable[[Any, sp.csr_array], Any] | None = None
  batched: bool = True


def read_counts(counts: Any, name: str) -> sp.csr_array:
  """Checks feature counts and returns them as float32 CSR without zeros.

  Args:
    counts: any matrix [X, F] that `ops.inputs` reads.
  """
  table = sp.csr_array(inputs.read_matrix(counts, "counts"), dtype=np.float32)
  if not np.isfinite(table.data).all() or (table.data < 0).any():
    raise InputError(f"{name} needs counts that are finite, 0 or more")
  if not (table.has_canonical_format and table.data.all()):
    table = table.copy()
    table.sum_duplicates()
    table.eliminate_zeros()
  if not table.nnz:
    raise InputError(f"no entity has any feature: {name} cannot be fitted")
  return table


def query_counts(
  query: PaddedQuery, features: int
) -> tuple[jax.Array, jax.Array]:
  """The members' features, and the weighted sum of their counts.

  Args:
    features: F.

  Returns:
    Features of the members, each once, int32 [n], padded with F; and f_Q =
    sum_x tau_x f_x, [F], cut off where products with it would overflow.
  """
  weights = jnp.asarray(query.weights)
  entries = feature_scores.clean_entries(query.entries, weights, features)
  largest = jnp.max(jnp.abs(weights))
  scale = jnp.where(largest > 0, largest, 1)
  total = jnp.zeros(features, weights.dtype)
  signed = (weights / scale)[entries.member] * entries.count
  total = total.at[entries.feature].add(signed, mode="drop") * scale
  total = jnp.clip(total, -_LARGEST, _LARGEST)
  return feature_scores.distinct_features(entries, features), total


def member_vectors(query: PaddedQuery, vectors: jax.Array) -> jax.Array:
  """Vectors of a query's members, [q, d]; 0 for padding.

  Args:
    query: the query; new members have theirs in `encoded`.
    vectors: of all entities, [X, d].
  """
  ids, weights = jnp.asarray(query.ids), jnp.asarray(query.weights)
  known = vectors[jnp.maximum(ids, 0)]
  if query.encoded is not None:
    new = jnp.asarray(query.encoded, known.dtype)
    known = jnp.where((ids < 0)[:, None], new, known)
  return jnp.where((weights != 0)[:, None], known, 0)


def of_features(indices: jax.Array, parts: jax.Array) -> Contributions:
  """Contributions of a score that is a sum over features, both [m]."""
  none = jnp.zeros(0, parts.dtype)
  return Contributions(indices, parts, none, jnp.zeros((), parts.dtype))


def clean_rows(rows: Rows, features: int) -> Rows:
  """Rows [..., m] whose padding has feature 0 and count 0."""
  indices = jnp.asarray(rows.indices)
  valid = (indices >= 0) & (indices < features)
  return Rows(
    jnp.where(valid, indices, 0), jnp.where(valid, jnp.asarray(rows.counts), 0)
  )

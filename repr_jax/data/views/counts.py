"""Checks counts on the host and selects their frequent columns.

A row is observed if it has a nonzero count. Weighted values do not decide:
PPMI can empty a row that was counted.
"""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array as Csr

from repr_jax.errors import InputError


def validate(matrix: Any, name: str = "view", dtype: Any = np.float32) -> Csr:
  """Refuses counts that are negative or not finite.

  Args:
    matrix: counts [n, d], anything scipy reads as sparse.
    name: the view's name, for the message.
    dtype: float type of the result.

  Returns:
    The counts as a canonical CSR matrix without stored zeros. The argument is
    not changed.
  """
  csr = Csr(matrix, dtype=dtype)
  if not csr.has_canonical_format:
    csr = csr.copy()
    csr.sum_duplicates()
  bad = ~np.isfinite(csr.data) | (csr.data < 0)
  if bad.any():
    entry = int(np.argmax(bad))
    row = int(np.searchsorted(csr.indptr, entry, "right")) - 1
    raise InputError(
      f"view {name}: row {row}, column {csr.indices[entry]} holds "
      f"{csr.data[entry]}; counts must be finite and not negative"
    )
  if not csr.data.all():
    csr = csr.copy()
    csr.eliminate_zeros()
  return csr


def observed(matrix: Any) -> np.ndarray:
  """Rows with an entry that is not zero.

  Args:
    matrix: counts [n, d], sparse or dense.

  Returns:
    bool [n], the diagonal of K_j.
  """
  if scipy.sparse.issparse(matrix):
    csr = Csr(matrix)
    if csr.data.all():  # the usual case, without another array of this size
      return np.diff(csr.indptr) > 0
    hits = np.concatenate([[0], np.cumsum(csr.data != 0)])
    return hits[csr.indptr[1:]] > hits[csr.indptr[:-1]]
  return np.any(np.asarray(matrix) != 0, axis=1)


def is_constant(matrix: Any) -> bool:
  """Whether all observed rows are equal, so that centering leaves zero.

  Args:
    matrix: counts or features [n, d], sparse or dense.
  """
  rows = observed(matrix)
  if not scipy.sparse.issparse(matrix):
    kept = np.asarray(matrix)[rows]
    return bool((kept == kept[:1]).all())
  csr = Csr(matrix)[rows]
  csr.sum_duplicates()
  csr.eliminate_zeros()
  sizes = np.diff(csr.indptr)
  if not sizes.size or (sizes != sizes[0]).any():
    return not sizes.size
  shape = (len(sizes), int(sizes[0]))
  values, places = csr.data.reshape(shape), csr.indices.reshape(shape)
  return bool((values == values[0]).all() and (places == places[0]).all())


def top_columns(totals: np.ndarray, keep: int) -> np.ndarray:
  """The most frequent columns (t of the thesis).

  Args:
    totals: of the columns, [d].
    keep: how many columns to keep.

  Returns:
    Their positions in ascending order, int64 [min(keep, d)]; among columns of
    equal totals the first are kept.
  """
  order = np.argsort(-totals, kind="stable")[:keep]
  return np.sort(order)


def column_totals(matrix: Csr) -> np.ndarray:
  """Sums of columns [d] in float64, so that large counts add up exactly."""
  return np.bincount(
    matrix.indices, weights=matrix.data, minlength=matrix.shape[1]
  )

"""From counts to the matrices that GCCA sees (thesis 3.3, f = n after t).

t keeps the most frequent columns, n is a nonlinearity of each count. All of it
happens on the host, on CSR matrices whose stored entries alone are touched:
a count of zero stays zero under every transform, so a missing row stays
missing.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np
import scipy.sparse

from repr_jax.errors import InputError

_NO_INFORMATION = 1e-12
_KINDS = ("identity", "log", "power", "ppmi")


@dataclasses.dataclass(frozen=True)
class Weighting:
  """How the counts of a view become its matrix.

  Attributes:
    kind: "identity", "log" for log(1 + count), "power" for count^power, or
      "ppmi" for positive pointwise mutual information.
    power: exponent of "power"; the thesis' best is 1/4.
    smoothing: exponent of the column totals in "ppmi"; below 1 it lowers the
      weight of rare contexts (Levy et al. 2015 use 3/4).
    columns: how many of the most frequent columns to keep; None for all.
  """

  kind: str = "power"
  power: float = 0.25
  smoothing: float = 1.0
  columns: int | None = None

  def __post_init__(self):
    if self.kind not in _KINDS:
      raise InputError(f"weighting {self.kind!r} is not one of {_KINDS}")
    for name in ("power", "smoothing"):
      value = getattr(self, name)
      if not 0 < value < np.inf:
        raise InputError(f"{name} must be positive, not {value}")
    if self.columns is not None and self.columns < 1:
      raise InputError(f"cannot keep {self.columns} columns; keep 1 or more")


def validate(matrix, name: str = "view") -> scipy.sparse.csr_array:
  """Refuses counts that are negative or not finite.

  Args:
    matrix: counts [n, d], anything scipy reads as sparse.
    name: the view's name, for the message.

  Returns:
    The counts as a canonical float32 CSR matrix without stored zeros. The
    argument is not changed.
  """
  csr = scipy.sparse.csr_array(matrix, dtype=np.float32)
  if not csr.has_canonical_format:
    csr = csr.copy()
    csr.sum_duplicates()
  _check_counts(csr, name)
  if not csr.data.all():
    csr = csr.copy()
    csr.eliminate_zeros()
  return csr


def top_columns(matrix: scipy.sparse.csr_array, keep: int) -> np.ndarray:
  """The most frequent columns (t of the thesis).

  Args:
    matrix: counts [n, d].
    keep: how many columns to keep.

  Returns:
    Their positions in ascending order, int64 [min(keep, d)]; among columns of
    equal totals the first are kept.
  """
  totals = _column_totals(matrix)
  order = np.argsort(-totals, kind="stable")[:keep]
  return np.sort(order)


def apply(
  matrix, weighting: Weighting, name: str = "view"
) -> scipy.sparse.csr_array:
  """Truncates and transforms the counts of a view.

  Args:
    matrix: counts [n, d].
    weighting: what to do.
    name: the view's name, for messages.

  Returns:
    The weighted matrix, float32 CSR [n, min(d, weighting.columns)].
  """
  csr = validate(matrix, name)
  keep = weighting.columns
  if keep is not None and keep < csr.shape[1]:
    csr = csr[:, top_columns(csr, keep)]
  if weighting.kind == "identity":
    return csr
  if weighting.kind == "ppmi":
    return ppmi(csr, weighting.smoothing)
  if weighting.kind == "log":
    data = np.log1p(csr.data)
  elif weighting.power == 0.25:
    data = np.sqrt(np.sqrt(csr.data))  # ten times faster than np.power
  else:
    with np.errstate(over="ignore"):
      data = np.power(csr.data, np.float32(weighting.power))
    if not np.isfinite(data).all():
      raise InputError(
        f"view {name}: a count of {csr.data.max():g} to the power "
        f"{weighting.power:g} is too large; choose a smaller power"
      )
  return _with_data(csr, data)


def ppmi(
  matrix: scipy.sparse.csr_array, smoothing: float = 1.0
) -> scipy.sparse.csr_array:
  """Positive pointwise mutual information, max(0, log p(i,c) / (p(i) p(c))).

  Args:
    matrix: counts [n, d], finite and not negative.
    smoothing: p(c) is proportional to the column's total to this power, which
      is positive.

  Returns:
    The weights, float32 CSR [n, d], without stored zeros.
  """
  _check_counts(matrix, "for PPMI")
  if not 0 < smoothing < np.inf:
    raise InputError(f"smoothing must be positive and finite, not {smoothing}")
  rows = np.asarray(matrix.sum(axis=1, dtype=np.float64)).ravel()
  columns = _column_totals(matrix) ** smoothing
  with np.errstate(divide="ignore"):
    log_rows, log_columns = np.log(rows), np.log(columns)
  value = np.log(matrix.data.astype(np.float64))
  value -= np.repeat(log_rows, np.diff(matrix.indptr))
  value -= log_columns[matrix.indices]
  # p(i,c) / p(i) = count / row total; p(c) = column / sum of columns.
  value += np.log(columns.sum()) if columns.sum() > 0 else 0.0
  value[value < _NO_INFORMATION] = 0  # what rounding leaves of independence
  result = _with_data(matrix, value.astype(np.float32)).copy()
  result.eliminate_zeros()
  return result


def observed(matrix) -> np.ndarray:
  """Which rows a view knows: those with an entry that is not zero.

  Args:
    matrix: [n, d], sparse or dense.

  Returns:
    bool [n], the diagonal of K_j.
  """
  if scipy.sparse.issparse(matrix):
    csr = scipy.sparse.csr_array(matrix)
    if csr.data.all():  # the usual case, without another array of this size
      return np.diff(csr.indptr) > 0
    hits = np.concatenate([[0], np.cumsum(csr.data != 0)])
    return hits[csr.indptr[1:]] > hits[csr.indptr[:-1]]
  return np.any(np.asarray(matrix) != 0, axis=1)


def supported(matrices: Iterable, threshold: int) -> np.ndarray:
  """Rows that enough views know (v of the thesis).

  Args:
    matrices: the views, each [n, d_j].
    threshold: the number of views in which a row must be observed.

  Returns:
    bool [n].
  """
  total = sum(observed(matrix).astype(np.int64) for matrix in matrices)
  return np.asarray(total >= threshold)


def row_weights(
  matrix, power: float = 0.75, maximum: float | None = None
) -> np.ndarray:
  """GloVe-like weights of rows (W_j, thesis 3.3.2).

  Args:
    matrix: counts [n, d], before the nonlinearity; finite, not negative.
    power: the exponent, 3/4 in the thesis; 0 gives 1 to each row that is
      there.
    maximum: row total from which on the weight is 1; the largest if None.

  Returns:
    min(1, (row total / maximum)^power), float32 [n]; 0 for a missing row.
  """
  totals = np.asarray(matrix.sum(axis=1, dtype=np.float64)).ravel()
  bad = np.flatnonzero(~(np.isfinite(totals) & (totals >= 0)))
  if bad.size:
    raise InputError(
      f"row {bad[0]} adds up to {totals[bad[0]]}; counts must be finite and "
      "not negative"
    )
  if not 0 <= power < np.inf:
    raise InputError(f"the power of row totals must be 0 or more, not {power}")
  top = float(totals.max(initial=0)) if maximum is None else maximum
  if maximum is not None and not 0 < maximum < np.inf:
    raise InputError(f"the maximum row total must be positive, not {maximum}")
  present = totals > 0
  shares = np.where(present, totals, 1) / (top if top > 0 else 1)
  return np.where(present, np.minimum(1.0, shares**power), 0).astype(np.float32)


def _check_counts(csr: scipy.sparse.csr_array, name: str) -> None:
  """Names the first count that is negative or not finite."""
  bad = ~np.isfinite(csr.data) | (csr.data < 0)
  if bad.any():
    entry = int(np.argmax(bad))
    row = int(np.searchsorted(csr.indptr, entry, "right")) - 1
    raise InputError(
      f"view {name}: row {row}, column {csr.indices[entry]} holds "
      f"{csr.data[entry]}; counts must be finite and not negative"
    )


def _column_totals(matrix: scipy.sparse.csr_array) -> np.ndarray:
  """Sums of columns in float64, so that large counts add up exactly."""
  return np.bincount(
    matrix.indices, weights=matrix.data, minlength=matrix.shape[1]
  )


def _with_data(matrix, data: np.ndarray) -> scipy.sparse.csr_array:
  """The same pattern with other values."""
  result = scipy.sparse.csr_array(
    (data, matrix.indices, matrix.indptr), shape=matrix.shape
  )
  result.has_canonical_format = True
  return result

"""Weightings of counts for GCCA (thesis 3.3).

Each function takes a dense array or an `ops.Sparse` and gives the same kind
back. A count of zero stays zero. Observed rows are those with a nonzero count:
call `observed_rows` before a weighting, which may empty a row.
"""

import dataclasses
from collections.abc import Callable
from typing import TypeVar

import jax.numpy as jnp
from jax import Array

from repr_jax.errors import InputError
from repr_jax.ops import sparse
from repr_jax.ops.sparse import Sparse

X = TypeVar("X", Array, Sparse)
KINDS = ("identity", "log", "power", "ppmi")


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
    if self.kind not in KINDS:
      raise InputError(f"weighting {self.kind!r} is not one of {KINDS}")
    for name in ("power", "smoothing"):
      value = getattr(self, name)
      if not 0 < value < float("inf"):
        raise InputError(f"{name} must be positive, not {value}")
    if self.columns is not None and self.columns < 1:
      raise InputError(f"cannot keep {self.columns} columns; keep 1 or more")


def log_counts(counts: X) -> X:
  """log(1 + count).

  Args:
    counts: [n, d], dense or sparse.

  Returns:
    The weights, [n, d].

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> multiview.log_counts(jnp.array([[0.0, 1.0]])).round(3).tolist()
    [[0.0, 0.6930000185966492]]
  """
  return _mapped(counts, jnp.log1p)


def power_counts(counts: X, power: float | Array = 0.25) -> X:
  """count^power.

  Args:
    counts: [n, d], dense or sparse.
    power: the exponent, above 0.

  Returns:
    The weights, [n, d]; 0 where the count is 0.

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> multiview.power_counts(jnp.array([[0.0, 16.0]])).tolist()
    [[0.0, 2.0]]
  """

  def value(x):
    present = x > 0
    return jnp.where(present, jnp.where(present, x, 1) ** power, 0 * x)

  return _mapped(counts, value)


def ppmi(
  counts: X, smoothing: float | Array = 1.0, column_totals: Array | None = None
) -> X:
  """Positive pointwise mutual information, max(0, log p(i,c) / (p(i) p(c))).

  Args:
    counts: [n, d], dense or sparse.
    smoothing: p(c) is proportional to the column's total to this power.
    column_totals: totals of other counts, [d], such as the training rows' if
      `counts` are new rows; None for those of `counts`.

  Returns:
    The weights, [n, d].

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> multiview.ppmi(2 * jnp.eye(2)).round(3).tolist()
    [[0.6930000185966492, 0.0], [0.0, 0.6930000185966492]]
  """
  if isinstance(counts, Sparse):
    rows = sparse.row_sums(counts)
    columns = sparse.column_sums(counts)
  else:
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
  if column_totals is not None:
    columns = jnp.asarray(column_totals, rows.dtype)
  per_column = inverse_shares(columns, smoothing)
  per_row = jnp.where(rows > 0, 1 / jnp.where(rows > 0, rows, 1), 0)
  if isinstance(counts, Sparse):
    ratio = sparse.scale_columns(sparse.scale_rows(counts, per_row), per_column)
    return sparse.map_values(ratio, positive_log)  # type: ignore[return-value]
  return positive_log(counts * per_row[:, None] * per_column)


def inverse_shares(totals: Array, smoothing: float | Array) -> Array:
  """1 / p(c) of column totals [d]; 0 for an empty column."""
  present = totals > 0
  powers = jnp.where(present, jnp.where(present, totals, 1) ** smoothing, 0)
  return jnp.where(present, powers.sum() / jnp.where(present, powers, 1), 0)


def positive_log(ratio: Array) -> Array:
  """max(0, log ratio) of any shape; 0 for ratios above 1 by rounding alone."""
  some = ratio > 1 + 8 * jnp.finfo(ratio.dtype).eps
  kept = jnp.where(some, jnp.log(jnp.where(some, ratio, 1)), 0)
  return jnp.where(jnp.isnan(ratio), ratio, kept)


def row_weights(
  counts: Array | Sparse,
  power: float | Array = 0.75,
  maximum: float | Array | None = None,
) -> Array:
  """GloVe-like weights of rows, W_j of thesis 3.3.2.

    w_i = min(1, (row total / maximum)^power), 0 for an empty row.

  Args:
    counts: [n, d], dense or sparse, before any weighting.
    power: the exponent; 0 gives 1 to each row that has a count.
    maximum: least row total with weight 1; None for the largest total.

  Returns:
    Weights, [n].

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> counts = jnp.array([[4.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    >>> multiview.row_weights(counts, 0.5).tolist()
    [1.0, 0.0, 0.5]
  """
  if isinstance(counts, Sparse):
    totals = sparse.row_sums(counts)
  else:
    totals = counts.sum(axis=1)
  top = jnp.max(totals, initial=0) if maximum is None else maximum
  present = totals > 0
  shares = jnp.where(present, totals, 1) / jnp.where(top > 0, top, 1)
  kept = jnp.where(present, jnp.minimum(1, shares**power), 0)
  return jnp.where(jnp.isnan(totals), totals, kept).astype(totals.dtype)


def observed_rows(counts: Array | Sparse) -> Array:
  """Rows with a nonzero count: the diagonal of K_j.

  Args:
    counts: [n, d], dense or sparse, before any weighting.

  Returns:
    bool [n].

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> multiview.observed_rows(jnp.array([[0.0, 2.0], [0.0, 0.0]])).tolist()
    [True, False]
  """
  if isinstance(counts, Sparse):
    return sparse.observed_rows(counts)
  return jnp.any(counts != 0, axis=1)


def _mapped(counts: X, function: Callable[[Array], Array]) -> X:
  if isinstance(counts, Sparse):
    return sparse.map_values(counts, function)  # type: ignore[return-value]
  return function(counts)

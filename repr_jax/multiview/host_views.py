"""Views in any supported format, prepared for a fit.

A view is a numpy or jax array, an `ops.Sparse`, a BCOO or BCSR matrix, a scipy
matrix, or a function without arguments that gives one of these when it is
needed. `HostView` reads and weights it once.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax.sharding import Mesh
from scipy.sparse import csr_array as Csr

from repr_jax.data.views import counts
from repr_jax.errors import InputError
from repr_jax.multiview import weighting
from repr_jax.multiview.weighting import KINDS, Weighting
from repr_jax.ops import inputs, sharded, sparse
from repr_jax.ops import mesh as meshes
from repr_jax.ops.sharded import Part
from repr_jax.ops.sparse import Sparse

Matrix: TypeAlias = Any
ViewInput: TypeAlias = Matrix | Callable[[], Matrix]
Weightings: TypeAlias = Weighting | Sequence[Weighting | None] | None

_LEAST_WEIGHT = 1e-15  # the square of a smaller one is lost in float32
_NARROW = 512  # views with fewer columns share one width


class Columns(NamedTuple):
  """Columns of the counts that a weighting was made for.

  Attributes:
    kept: positions of the columns that are kept, int64 [d']; None for all.
    totals: of those columns, float64 [d']; None where no total is needed.
  """

  kept: np.ndarray | None = None
  totals: np.ndarray | None = None


def read(view: ViewInput, name: str) -> Csr | np.ndarray:
  """A view [n, d] on the host, as CSR or dense floats.

  Args:
    view: any of the kinds above.
    name: for messages, as "view 3".
  """
  if callable(view) and not hasattr(view, "shape"):
    view = view()
  return inputs.read_matrix(view, name)


def float_type(matrices: Sequence[Any]) -> np.dtype:
  """Type of a fit: float64 if x64 is on and a matrix needs it, or float32."""
  kinds = [matrix.dtype for matrix in matrices]
  wide = np.result_type(np.float32, *kinds)
  return np.dtype(np.float64 if wide == np.float64 and _x64() else np.float32)


def of_rows(
  compute: Callable[[Any], np.ndarray], matrix: Any, part: Part | None
) -> np.ndarray:
  """Computes numbers for each row, in the process that reads the row.

  Args:
    compute: from some rows [r, d] to their numbers, [r, ...].
    matrix: all rows, [n, d].
    part: rows that this process reads; None for all.

  Returns:
    The numbers [n, ...], on all processes.
  """
  if part is None:
    return compute(matrix)
  own = meshes.from_processes(compute(matrix[part.rows]))
  whole = np.empty((part.total, *own.shape[1:]), own.dtype)
  whole[meshes.from_processes(part.rows)] = own
  return whole


def columns_of(
  matrix: Csr, how: Weighting, part: Part | None = None
) -> Columns:
  """Columns to keep of a view [n, d], and their totals if needed.

  Args:
    part: which rows the matrix has; None for all.
  """
  kept, most = None, how.columns or matrix.shape[1]
  cut = most < matrix.shape[1]
  if not cut and how.kind != "ppmi":
    return Columns()
  totals = counts.column_totals(matrix)
  if part is not None:
    totals = meshes.from_processes(totals[None]).sum(axis=0)
  if cut:
    kept = counts.top_columns(totals, most)
    totals = totals[kept]
  return Columns(kept, totals if how.kind == "ppmi" else None)


def weigh(
  matrix: Matrix,
  how: Weighting,
  name: str = "view",
  columns: Columns | None = None,
) -> Csr:
  """Truncates and weights counts on the host by the functions of `weighting`.

  Args:
    matrix: counts [n, d], dense or sparse; finite and not negative.
    name: the view's name, for messages.
    columns: columns of the training rows, if `matrix` has new rows.

  Returns:
    The weights, CSR [n, d'], without stored zeros.
  """
  csr = counts.validate(matrix, name, float_type([matrix]))
  columns = columns_of(csr, how) if columns is None else columns
  if columns.kept is not None:
    csr = csr[:, columns.kept]
  size = csr.nnz
  if not size or how.kind == "identity":
    return csr
  # Values go to the device in few sizes, so that few programs are compiled.
  padding = sparse.bucket_size(size) - size
  data = np.pad(csr.data, (0, padding))
  if how.kind == "ppmi":
    rows = np.asarray(csr.sum(axis=1, dtype=np.float64)).ravel()
    shares = np.asarray(csr.data / np.repeat(rows, np.diff(csr.indptr)))
    per_column = _inverse_shares(columns.totals, how.smoothing)
    ratio = shares * np.asarray(per_column)[csr.indices]
    ratio = np.pad(ratio.astype(csr.dtype), (0, padding))
    values = np.asarray(_positive_log(ratio))[:size]
  else:
    made = _log(data) if how.kind == "log" else _power(data, how.power)
    values = np.asarray(made)[:size]
  if not np.isfinite(values).all():
    raise InputError(
      f"view {name}: a count of {csr.data.max():g} to the power "
      f"{how.power:g} is too large; choose a smaller power"
    )
  parts = (values.astype(csr.dtype), csr.indices, csr.indptr)
  weighted = Csr(parts, shape=csr.shape)
  if not values.all():
    weighted = weighted.copy()
    weighted.eliminate_zeros()
  weighted.has_canonical_format = True
  return weighted


class HostView:
  """One view of a fit: read when it is needed, weighted once.

  Attributes:
    name: for messages.
    rows: n.
    how: the weighting; None leaves the view unchanged.
    observed: rows with a nonzero entry before the weighting, bool [n].
    dtype: of the entries.
    width: columns after the weighting.
    is_sparse: whether the matrix is stored sparse.
    columns: the columns that the weighting kept, with their totals.
  """

  def __init__(
    self,
    view: ViewInput,
    name: str,
    how: Weighting | None,
    mesh: Mesh | None = None,
  ):
    self._view, self.how, self.name = view, how, name
    matrix = read(view, name)
    self.rows, width = matrix.shape
    self.width = min(width, (how.columns if how else None) or width)
    self.is_sparse = scipy.sparse.issparse(matrix)
    self.dtype = matrix.dtype
    self._part = sharded.own_part(self.rows, mesh)
    self.observed = of_rows(counts.observed, matrix, self._part)
    self.columns = Columns()
    if not self.observed.any():
      raise InputError(f"{name} is empty: no row has a nonzero entry")
    # The matrix of a function is read again later; other matrices stay.
    self._matrix = None if callable(view) else matrix

  def load(self) -> Csr | np.ndarray:
    """The weighted matrix [n, d] on the host, or the rows of this process."""
    matrix, name = self._matrix, self.name
    if matrix is None:
      matrix = read(self._view, name)
    if self._part is not None:
      matrix = matrix[self._part.rows]
      name += f", rows of process {jax.process_index()}"
      # Processes that share a view's rows skip this check when they map a file.
      if self.is_sparse and matrix.indices.max(initial=0) >= matrix.shape[1]:
        raise InputError(
          f"{name}: a column lies outside the view; read it again"
        )
    if self.how is None:
      return matrix
    matrix = counts.validate(matrix, name, float_type([matrix]))
    self.columns = columns_of(matrix, self.how, self._part)
    return weigh(matrix, self.how, name, self.columns)


def open_views(
  views: Sequence[ViewInput],
  weighting: Weightings = None,
  mesh: Mesh | None = None,
) -> list[HostView]:
  """Reads which rows each view observes; checks that all have the same rows.

  Args:
    views: as `fit` takes them.
    weighting: as `fit` takes it.
    mesh: devices of the fit. With several processes, each reads only its own
      rows.
  """
  views = list(views)
  if not views:
    raise InputError("no view was given")
  if weighting is None or isinstance(weighting, (Weighting, str)):
    each: list[Weighting | None] = [weighting] * len(views)
  else:
    each = list(weighting)
  for how in each:
    if how is not None and not isinstance(how, Weighting):
      raise InputError(
        f"a weighting must be a multiview.Weighting or None, not {how!r}; "
        f"the kinds are Weighting(kind) for kind in {KINDS}"
      )
  if len(each) != len(views):
    raise InputError(f"{len(each)} weightings for {len(views)} views")
  hosts: list[HostView] = []
  for j, (view, how) in enumerate(zip(views, each)):
    host = HostView(view, f"view {j}", how, mesh)
    if hosts and host.rows != hosts[0].rows:
      raise InputError(
        f"view {j} has {host.rows} rows; expected {hosts[0].rows} rows, as "
        "view 0 has"
      )
    hosts.append(host)
  return hosts


def observe(
  hosts: Sequence[HostView],
  min_support: int = 1,
  row_weights: Sequence[np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
  """Diagonals of W_j K_j after words with little support are dropped.

  Args:
    hosts: from `open_views`.
    min_support: v, in how many views a word must be observed.
    row_weights: W_j of each view, [n] each; None for ones.

  Returns:
    The weights [J, n], and in how many views each word is observed, [n].
  """
  if row_weights is not None and len(row_weights) != len(hosts):
    raise InputError(f"{len(row_weights)} row weights for {len(hosts)} views")
  seen = np.stack([host.observed for host in hosts])
  support = seen.sum(axis=0).astype(np.int32)
  alone = ~(seen & (support > 1)).any(axis=1)
  if len(hosts) > 1 and alone.any():
    raise InputError(
      f"{hosts[int(np.argmax(alone))].name} has no row in common with any "
      "other view; check that rows are the same words, or leave it out"
    )
  kept = seen & (support >= min_support)
  weights = kept.astype(float_type(hosts))
  for j, own in enumerate([] if row_weights is None else row_weights):
    weights[j] *= _checked_weights(own, j, weights.shape[1], weights.dtype)
  return weights, support


def _checked_weights(given, j: int, size: int, dtype) -> np.ndarray:
  own = np.asarray(given, dtype)
  if own.shape != (size,):
    raise InputError(
      f"the row weights of view {j} have shape {own.shape}; expected one for "
      f"each of {size} rows"
    )
  usable = (own >= _LEAST_WEIGHT) & (own <= 1 / _LEAST_WEIGHT)
  if not (usable | (own == 0)).all():
    row = int(np.argmax(~usable & (own != 0)))
    raise InputError(
      f"the row weight {own[row]:g} of view {j}, row {row}: row weights must "
      f"be 0 or from {_LEAST_WEIGHT:g} to {1 / _LEAST_WEIGHT:g}, usually 1 for "
      "the largest"
    )
  return own


def device_view(
  matrix: Csr | np.ndarray,
  name: str,
  dtype: np.dtype,
  widest: int | None = None,
) -> Sparse | jax.Array:
  """A matrix [n, d] on the device.

  Args:
    widest: columns of the widest sparse view. If given, narrow views are
      padded to 512 columns, others to this many, and entries to a power of 8:
      many views then share few compiled programs.
  """
  if not scipy.sparse.issparse(matrix):
    dense = np.asarray(matrix, dtype)
    sparse.check_finite(dense, name)
    return jnp.asarray(dense)
  columns, capacity = matrix.shape[1], sparse.bucket_size
  if widest is not None:
    columns = _NARROW if columns <= _NARROW else max(columns, widest)
    capacity = _power_of_eight
  return sparse.from_scipy(
    matrix,
    columns=sparse.bucket_size(columns),
    capacity=capacity,
    name=name,
    dtype=dtype,
  )


def _power_of_eight(size: int) -> int:
  return 8 ** max(1, -(-(size - 1).bit_length() // 3))


def _x64() -> bool:
  return jnp.zeros((), float).dtype == np.float64


_positive_log = jax.jit(weighting.positive_log)
_inverse_shares = jax.jit(weighting.inverse_shares)
_log = jax.jit(weighting.log_counts)
_power = jax.jit(weighting.power_counts)

"""Sparse matrices in blocks of rows: the one home of the sparse format.

A matrix X [n, d] is cut into B blocks of rows, row i going to block i mod B, so
that blocks hold about as many entries each even when rows are sorted by
frequency. Each block is kept as compressed rows twice, as it is and transposed,
because a product that gathers is several times faster than one that scatters;
this costs 16 bytes per entry. Products walk over the blocks with a scan, so
that the rows of a block stay in cache between X Q and X'(X Q), and a few blocks
at a time run side by side.

The number of stored entries is padded to a bucket (`bucket_size`): matrices of
similar size share one compiled program.
"""

import dataclasses
from collections.abc import Callable, Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array, lax

from repr_jax.errors import InputError
from repr_jax.ops.csr_product import csr_product, row_of_entries

_LARGEST = 1e13  # a square times a million entries is finite in float32
_LANES = 4  # blocks that a CPU handles side by side


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sparse:
  """A sparse matrix [n, d] in B blocks of rows, each stored twice.

  Attributes:
    values: entries by row within a block, [B, m], zero beyond the last.
    indices: their columns, int32 [B, m].
    indptr: where each row starts, int32 [B, ceil(n / B) + 1].
    t_values: the same entries by column, [B, m].
    t_indices: their rows within the block, int32 [B, m].
    t_indptr: where each column starts, int32 [B, d + 1].
    shape: (n, d), static.
  """

  values: Array
  indices: Array
  indptr: Array
  t_values: Array
  t_indices: Array
  t_indptr: Array
  shape: tuple[int, int] = dataclasses.field(metadata={"static": True})

  @property
  def dtype(self):
    """Type of the entries."""
    return self.values.dtype


def bucket_size(size: int) -> int:
  """Rounds a size up to 1, 1.25, 1.5 or 1.75 times a power of two."""
  if size <= 8:
    return 8
  power = 1 << (size.bit_length() - 1)
  for quarter in range(4, 8):
    if size <= power * quarter // 4:
      return power * quarter // 4
  return 2 * power


def from_scipy(
  matrix: scipy.sparse.spmatrix | scipy.sparse.sparray | np.ndarray,
  *,
  blocks: int = 16,
  columns: int | None = None,
  capacity: Callable[[int], int] = bucket_size,
  name: str = "matrix",
  dtype=np.float32,
) -> Sparse:
  """Builds a `Sparse` from a scipy matrix (or a small dense one) on the host.

  >>> import numpy as np, scipy.sparse
  >>> from repr_jax import ops
  >>> ops.from_scipy(scipy.sparse.csr_array(np.eye(3))).shape
  (3, 3)

  Args:
    matrix: [n, d], any scipy sparse format; entries must be finite.
    blocks: how many blocks of rows (rounded to what n allows).
    columns: pads with empty columns up to this number, so that matrices with
      fewer columns share a compiled program; a right factor [columns, k] then
      has zero rows past d.
    capacity: from the entries of the fullest block to the entries that all
      blocks are padded to. Coarse sizes let many matrices share one compiled
      program.
    name: how error messages call the matrix.
    dtype: type of the stored entries.

  Returns:
    The matrix with explicit zeros removed, [n, max(d, columns)].
  """
  csr = checked_csr(matrix, name, dtype)
  n, d = csr.shape
  width = max(d, columns or d)
  blocks = max(1, min(blocks, n // 8))
  rows = -(-n // blocks)
  parts = [csr[start::blocks] for start in range(blocks)]
  size = capacity(max(part.nnz for part in parts))
  by_row = pack(parts, rows, size)
  by_column = pack([part.T.tocsr() for part in parts], width, size)
  v, i, p, tv, ti, tp = (jnp.asarray(f) for f in (*by_row, *by_column))
  return Sparse(v, i, p, tv, ti, tp, (n, width))


def checked_csr(
  matrix: scipy.sparse.spmatrix | scipy.sparse.sparray | np.ndarray,
  name: str = "matrix",
  dtype=np.float32,
) -> scipy.sparse.csr_matrix:
  """A matrix [n, d] as canonical CSR without zeros, if it can be used.

  Args:
    matrix: any scipy sparse format, or dense.
    name: how error messages call it.
    dtype: type of the entries.
  """
  try:
    csr = scipy.sparse.csr_matrix(matrix, dtype=dtype)
  except (IndexError, TypeError, ValueError) as error:
    raise InputError(
      f"{name} must be a scipy or numpy matrix, not {type(matrix).__name__}"
    ) from error
  if not csr.has_canonical_format or not csr.data.all():
    csr = csr.copy()
    csr.sum_duplicates()
    csr.eliminate_zeros()
  if csr.nnz == 0:
    raise InputError(f"{name} of shape {csr.shape} is empty: no nonzero entry")
  largest = float(max(csr.data.max(), -csr.data.min()))
  if not np.isfinite(largest):
    row = int(np.searchsorted(csr.indptr, _first_bad(csr.data), "right")) - 1
    raise InputError(f"{name} has a NaN or infinite entry in row {row}")
  _check_size(largest, name)
  return csr


def check_finite(dense: np.ndarray, name: str) -> None:
  """Raises `InputError` where a dense matrix [n, d] cannot be multiplied.

  That is where it has a NaN, an infinity, or an entry so large that products
  overflow.
  """
  largest = float(max(dense.max(initial=0), -dense.min(initial=0)))
  if not np.isfinite(largest):
    row = int(np.argmax(~np.isfinite(dense).all(axis=1)))
    raise InputError(f"{name} has a NaN or infinite entry in row {row}")
  _check_size(largest, name)


def pack(
  parts: Sequence[scipy.sparse.csr_matrix], rows: int, capacity: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """CSR arrays of several matrices, padded to one shape, on the host.

  Args:
    parts: B matrices in CSR, with at most `rows` rows each.
    rows: rows that each is padded to.
    capacity: entries that each is padded to.

  Returns:
    Entries [B, capacity], their columns int32 [B, capacity], and where each
    row starts, int32 [B, rows + 1].
  """
  values = np.zeros((len(parts), capacity), parts[0].dtype)
  indices = np.zeros((len(parts), capacity), np.int32)
  indptr = np.empty((len(parts), rows + 1), np.int32)
  for block, part in enumerate(parts):
    values[block, : part.nnz] = part.data
    indices[block, : part.nnz] = part.indices
    indptr[block, : part.shape[0] + 1] = part.indptr
    indptr[block, part.shape[0] + 1 :] = part.nnz
  return values, indices, indptr


def to_scipy(x: Sparse) -> scipy.sparse.csr_matrix:
  """Brings a matrix back to the host as scipy CSR, [n, d].

  >>> import numpy as np
  >>> from repr_jax import ops
  >>> ops.to_scipy(ops.from_scipy(np.eye(2))).toarray()
  array([[1., 0.],
         [0., 1.]], dtype=float32)
  """
  blocks, rows = x.indptr.shape[0], x.indptr.shape[1] - 1
  n, d = x.shape
  parts = []
  for block in range(blocks):
    indptr = np.asarray(x.indptr[block])
    stored = int(indptr[-1])
    parts.append(
      scipy.sparse.csr_matrix(
        (
          np.asarray(x.values[block])[:stored],
          np.asarray(x.indices[block])[:stored],
          indptr,
        ),
        shape=(rows, d),
      )
    )
  stacked = scipy.sparse.vstack(parts, format="csr")
  row = np.arange(n)
  return stacked[(row % blocks) * rows + row // blocks]


def entries(x: Array | Sparse) -> Array:
  """Stored entries of X [n, d], or a dense X itself; JAX's BCOO is refused."""
  if hasattr(x, "todense"):
    raise InputError(
      f"give an array or a matrix of ops.from_scipy, not {type(x).__name__}"
    )
  return x.values if isinstance(x, Sparse) else x


def matmat(x: Sparse, q: Array) -> Array:
  """X Q for a sparse X and a dense Q.

  >>> import jax.numpy as jnp, numpy as np
  >>> from repr_jax import ops
  >>> x = ops.from_scipy(np.array([[1.0, 0.0], [2.0, 3.0]]))
  >>> ops.matmat(x, jnp.ones((2, 1))).ravel()
  Array([1., 5.], dtype=float32)

  Args:
    x: X [n, d].
    q: Q [d, k].

  Returns:
    The product, [n, k].
  """
  chex.assert_rank(q, 2)
  n = x.shape[0]

  def step(carry, block):
    return carry, csr_product(*block, q)

  _, y = _scan(step, jnp.zeros(()), (x.values, x.indices, x.indptr))
  return _from_blocks(y, n)


def rmatmat(x: Sparse, p: Array) -> Array:
  """X' P for a sparse X and a dense P.

  >>> import jax.numpy as jnp, numpy as np
  >>> from repr_jax import ops
  >>> x = ops.from_scipy(np.array([[1.0, 0.0], [2.0, 3.0]]))
  >>> ops.rmatmat(x, jnp.ones((2, 1))).ravel()
  Array([3., 3.], dtype=float32)

  Args:
    x: X [n, d].
    p: P [n, k].

  Returns:
    The product, [d, k].
  """
  chex.assert_rank(p, 2)
  rows = x.indptr.shape[1] - 1
  p_blocks = _to_blocks(p, x.indptr.shape[0], rows)
  d = x.shape[1]

  def step(total, block):
    fields, dense = block
    return total + csr_product(*fields, dense), None

  fields = (x.t_values, x.t_indices, x.t_indptr)
  zero = jnp.zeros((d, p.shape[1]), p.dtype)
  return _scan(step, zero, (fields, p_blocks))[0]


def normal_matmat(x: Sparse, q: Array) -> Array:
  """X'X Q for a sparse X and a dense Q; no [n, k] array is formed.

  >>> import jax.numpy as jnp, numpy as np
  >>> from repr_jax import ops
  >>> x = ops.from_scipy(np.array([[1.0, 0.0], [2.0, 3.0]]))
  >>> ops.normal_matmat(x, jnp.ones((2, 1))).ravel()
  Array([11., 15.], dtype=float32)

  Args:
    x: X [n, d].
    q: Q [d, k].

  Returns:
    The product, [d, k].
  """
  chex.assert_rank(q, 2)
  d = x.shape[1]

  def step(total, block):
    forward, backward = block
    return total + csr_product(*backward, csr_product(*forward, q)), None

  fields = (
    (x.values, x.indices, x.indptr),
    (x.t_values, x.t_indices, x.t_indptr),
  )
  return _scan(step, jnp.zeros((d, q.shape[1]), q.dtype), fields)[0]


def map_values(x: Sparse, function: Callable[[Array], Array]) -> Sparse:
  """Applies an elementwise transform to the stored entries of X [n, d].

  Entries that are not stored stay zero, whatever the function does to zero.
  """
  values, t_values = function(x.values), function(x.t_values)
  used = jnp.arange(x.values.shape[1]) < x.indptr[:, -1:]
  return dataclasses.replace(
    x, values=jnp.where(used, values, 0), t_values=jnp.where(used, t_values, 0)
  )


def scale_rows(x: Sparse, scale: Array) -> Sparse:
  """diag(scale) X: row i times scale_i.

  >>> import jax.numpy as jnp, numpy as np
  >>> from repr_jax import ops
  >>> x = ops.from_scipy(np.array([[1.0, 0.0], [2.0, 3.0]]))
  >>> ops.row_sums(ops.scale_rows(x, jnp.array([1.0, 10.0])))
  Array([ 1., 50.], dtype=float32)

  Args:
    x: X [n, d].
    scale: factors, [n].

  Returns:
    The matrix, [n, d].
  """
  chex.assert_shape(scale, (x.shape[0],))
  blocks, rows = x.indptr.shape[0], x.indptr.shape[1] - 1
  by_block = _to_blocks(scale[:, None], blocks, rows)[..., 0]
  row_of = jax.vmap(row_of_entries, in_axes=(0, None))(
    x.indptr, x.values.shape[1]
  )
  gather = jax.vmap(lambda s, i: s[i])
  return dataclasses.replace(
    x,
    values=x.values * gather(by_block, row_of),
    t_values=x.t_values * gather(by_block, x.t_indices),
  )


def scale_columns(x: Sparse, scale: Array) -> Sparse:
  """X diag(scale): column j times scale_j.

  >>> import jax.numpy as jnp, numpy as np
  >>> from repr_jax import ops
  >>> x = ops.from_scipy(np.array([[1.0, 0.0], [2.0, 3.0]]))
  >>> ops.row_sums(ops.scale_columns(x, jnp.array([1.0, 10.0])))
  Array([ 1., 32.], dtype=float32)

  Args:
    x: X [n, d].
    scale: factors, [d].

  Returns:
    The matrix, [n, d].
  """
  chex.assert_shape(scale, (x.shape[1],))
  column_of = jax.vmap(row_of_entries, in_axes=(0, None))(
    x.t_indptr, x.t_values.shape[1]
  )
  return dataclasses.replace(
    x,
    values=x.values * scale[x.indices],
    t_values=x.t_values * scale[column_of],
  )


def row_sums(x: Sparse) -> Array:
  """Sum of each row: X 1.

  >>> import numpy as np
  >>> from repr_jax import ops
  >>> ops.row_sums(ops.from_scipy(np.array([[1.0, 0.0], [2.0, 3.0]])))
  Array([1., 5.], dtype=float32)

  Args:
    x: X [n, d].

  Returns:
    The sums, [n].
  """
  sums = jax.vmap(_segment_sums)(x.values, x.indptr)
  return _from_blocks(sums[..., None], x.shape[0])[:, 0]


def column_sums(x: Sparse) -> Array:
  """Sum of each column: X' 1.

  >>> import numpy as np
  >>> from repr_jax import ops
  >>> ops.column_sums(ops.from_scipy(np.array([[1.0, 0.0], [2.0, 3.0]])))
  Array([3., 3.], dtype=float32)

  Args:
    x: X [n, d].

  Returns:
    The sums, [d].
  """
  return jax.vmap(_segment_sums)(x.t_values, x.t_indptr).sum(0)


def observed_rows(x: Sparse) -> Array:
  """Which rows have a nonzero entry: the diagonal of K_j (thesis 3.3.2).

  >>> import numpy as np
  >>> from repr_jax import ops
  >>> ops.observed_rows(ops.from_scipy(np.array([[0.0, 0.0], [2.0, 3.0]])))
  Array([False,  True], dtype=bool)

  Args:
    x: X [n, d].

  Returns:
    The mask, bool [n].
  """
  return row_sums(map_values(x, lambda v: (v != 0).astype(v.dtype))) > 0


def _check_size(largest: float, name: str) -> None:
  if largest > _LARGEST:
    raise InputError(
      f"{name} has an entry of {largest:g}, whose products overflow; "
      f"scale the matrix to entries below {_LARGEST:g}"
    )


def _first_bad(values: np.ndarray) -> int:
  return int(np.flatnonzero(~np.isfinite(values))[0])


def _scan(step, carry, fields):
  """`lax.scan` over blocks. A CPU runs a few blocks side by side. Other devices
  run one at a time, so that a product is compiled once."""
  blocks = jax.tree.leaves(fields)[0].shape[0]
  lanes = next(c for c in range(min(_LANES, blocks), 0, -1) if blocks % c == 0)
  return lax.platform_dependent(
    carry,
    fields,
    cpu=lambda c, f: lax.scan(step, c, f, unroll=lanes),
    default=lambda c, f: lax.scan(step, c, f),
  )


def _to_blocks(p: Array, blocks: int, rows: int) -> Array:
  """Rows [n, k] as they are dealt to the blocks, [B, rows, k]."""
  padded = jnp.pad(p, ((0, blocks * rows - p.shape[0]), (0, 0)))
  return padded.reshape(rows, blocks, -1).swapaxes(0, 1)


def _from_blocks(y: Array, n: int) -> Array:
  """Inverse of `_to_blocks`, [B, rows, k] to [n, k]."""
  return y.swapaxes(0, 1).reshape(-1, y.shape[-1])[:n]


def _segment_sums(values: Array, indptr: Array) -> Array:
  """Sum of each row of one CSR block."""
  owner = row_of_entries(indptr, values.shape[0])
  return jax.ops.segment_sum(
    values, owner, indptr.shape[0] - 1, indices_are_sorted=True
  )

"""The product of one block of compressed rows with a dense matrix.

On a CPU it calls jaxlib's own routine. On other devices, and with a jaxlib that
lacks the routine, rows of the dense matrix are gathered by entry and summed by
sorted segments: elementwise products and sums, which no device rounds.
Gradients are computed by gathers and scatters on every platform.

Designs of X'X Q compiled for one TPU v5e, with 128 columns of Q, in 4 blocks of
rows. GB read and written by the compiler's count, for X of 12,500 x 1,792 with
1.1M entries and of 100,000 x 14,336 with 9M:

| design | GB | GB |
|---|---|---|
| segments, rows of entries by binary search | 9.67 | |
| segments, rows of entries by a running sum (here) | .34 | 2.78 |
| the same by `jnp.cumsum`, eight times as long to compile | .24 | 1.91 |
| segments, rows of entries stored (8 more bytes an entry) | .13 | |
| a seventh of the columns dense, the rest by binary search | 1.58 | |
| all of X dense | .55 | |

The compiler gathers, multiplies and sums in one kernel, with Q and a block of
the result in fast memory. Almost all traffic of the first design is the search.
"""

import importlib

import jax
import jax.numpy as jnp
from jax import Array, lax

_TARGET = "cpu_csr_sparse_dense_ffi"
_WIDTH = 512  # numbers that a running sum takes at once
# The CPU's routine takes groups of this many columns, and the rest one by one.
# 7 single columns cost as much as 56 in groups: with 9.4M entries, a product
# and its transpose take 0.29 CPU seconds for 76 columns, 0.18 for 80.
_COLUMNS = 8


def _register() -> bool:
  """Registers jaxlib's routine with JAX; returns whether there is one."""
  try:
    library = importlib.import_module("jaxlib.cpu_sparse")
  except ImportError:
    return False
  for platform, targets in library.registrations().items():
    for name, value, version in targets:
      jax.ffi.register_ffi_target(
        name, value, platform=platform, api_version=version
      )
  return True


_HAS_ROUTINE = _register()


def row_of_entries(indptr: Array, capacity: int) -> Array:
  """The row each stored entry belongs to, int32 [capacity].

  Args:
    indptr: where each row starts, int32 [rows + 1].
    capacity: number of entries; those past the last row belong to it.
  """
  # Each row but the first adds 1 from its start on.
  starts = jnp.zeros(capacity, indptr.dtype)
  starts = starts.at[indptr[1:-1]].add(1, mode="drop", indices_are_sorted=True)
  return _running_sum(starts)


def _running_sum(x: Array) -> Array:
  """`jnp.cumsum` of one axis in two levels, which a TPU's compiler is fast on.

  655,360 numbers: 1.5 CPU seconds to compile, `jnp.cumsum` 18.
  """
  size = x.shape[0]
  parts = jnp.pad(x, (0, -size % _WIDTH)).reshape(-1, _WIDTH)
  inner = jnp.cumsum(parts, axis=1)
  before = jnp.cumsum(inner[:, -1]) - inner[:, -1]
  return (inner + before[:, None]).reshape(-1)[:size]


@jax.custom_vjp
def csr_product(
  values: Array, indices: Array, indptr: Array, dense: Array
) -> Array:
  """X Q for compressed rows X and a dense Q.

  Args:
    values: entries by row, [m], zero beyond the last.
    indices: their columns, int32 [m].
    indptr: where each row starts, int32 [rows + 1].
    dense: Q, [columns, k].

  Returns:
    The product, [rows, k].
  """
  plain = values.dtype in (jnp.float32, jnp.float64)
  if not (_HAS_ROUTINE and plain and values.dtype == dense.dtype):
    return _segments(values, indices, indptr, dense)
  return lax.platform_dependent(
    values, indices, indptr, dense, cpu=_routine, default=_segments
  )


def _routine(values, indices, indptr, dense):
  width = dense.shape[1]
  dense = jnp.pad(dense, ((0, 0), (0, -width % _COLUMNS)))
  shape = (indptr.shape[0] - 1, dense.shape[1])
  call = jax.ffi.ffi_call(
    _TARGET, jax.ShapeDtypeStruct(shape, dense.dtype), vmap_method="sequential"
  )
  return call(values, indptr, indices, dense)[:, :width]


def _segments(values, indices, indptr, dense):
  rows = indptr.shape[0] - 1
  row = row_of_entries(indptr, values.shape[0])
  terms = values[:, None] * dense[indices]
  return jax.ops.segment_sum(terms, row, rows, indices_are_sorted=True)


def _forward(values, indices, indptr, dense):
  kept = (values, indices, indptr, dense)
  return csr_product(*kept), kept


def _backward(kept, slope):
  values, indices, indptr, dense = kept
  by_entry = slope[row_of_entries(indptr, values.shape[0])]
  of_values = jnp.sum(by_entry * dense[indices], axis=1)
  of_dense = jnp.zeros_like(dense).at[indices].add(values[:, None] * by_entry)
  return of_values.astype(values.dtype), None, None, of_dense


csr_product.defvjp(_forward, _backward)

"""Matrices with known answers, for tests and benchmarks.

Every generator takes a numpy `Generator`, or a seed, and gives the same
arrays for the same state of it. Entities and facts are in
`synthetic_corpora`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from repr_jax import errors

_BLOCK = 1 << 22  # Nonzeros made at once.


class Spectrum(NamedTuple):
  """A matrix and its singular value decomposition.

  Attributes:
    matrix: u diag(s) v', [n, d].
    u: left singular vectors, [n, k].
    s: singular values, falling, [k].
    v: right singular vectors, [d, k].
  """

  matrix: np.ndarray
  u: np.ndarray
  s: np.ndarray
  v: np.ndarray


def with_spectrum(
  rng: np.random.Generator | int,
  n: int,
  d: int,
  singular_values: Sequence[float],
) -> Spectrum:
  """A random dense matrix with given singular values.

  Args:
    rng: the source of randomness, or a seed.
    n: rows.
    d: columns.
    singular_values: nonnegative, at most min(n, d) of them.

  Returns:
    The matrix with its decomposition, float64.
  """
  s = np.sort(np.asarray(singular_values, np.float64))[::-1]
  _check(0 < len(s) <= min(n, d), "need 1 to min(n, d) singular values")
  _check(bool((s >= 0).all()), "singular values are not negative")
  rng = _generator(rng)
  u, v = _orthonormal(rng, n, len(s)), _orthonormal(rng, d, len(s))
  return Spectrum((u * s) @ v.T, u, s, v)


def zipf_counts(
  rng: np.random.Generator | int,
  n: int,
  d: int,
  nnz: int,
  exponent: float = 1.0,
) -> scipy.sparse.csr_array:
  """Sparse counts with the frequency profile of text.

  Column c has about (c + 1)^-exponent as many nonzeros as the first, at most
  n. Earlier rows have more nonzeros and higher counts. Time and memory are
  proportional to nnz, so 500,000 x 12,500 is feasible.

  Args:
    rng: the source of randomness, or a seed.
    n: rows.
    d: columns.
    nnz: the exact number of nonzeros, at most n d.
    exponent: how steeply columns fall off.

  Returns:
    Positive whole counts, float32, with sorted indices.
  """
  _check(n > 0 and d > 0, "n and d must be positive")
  _check(0 <= nnz <= n * d, f"nnz must lie between 0 and {n * d}")
  rng = _generator(rng)
  sizes = _column_sizes(n, d, nnz, exponent)
  indptr = np.concatenate([[0], np.cumsum(sizes)])
  indices = np.empty(nnz, np.int32)
  data = np.empty(nnz, np.float32)
  column = 0
  while column < d:
    limit = indptr[column] + _BLOCK
    stop = int(np.searchsorted(indptr, limit, side="right")) - 1
    stop = min(max(stop, column + 1), d)
    part = slice(indptr[column], indptr[stop])
    columns = np.arange(column, stop)
    indices[part], data[part] = _zipf_columns(rng, n, columns, sizes)
    column = stop
  return scipy.sparse.csc_array((data, indices, indptr), (n, d)).tocsr()


def _zipf_columns(
  rng: np.random.Generator, n: int, columns: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Rows and counts of some columns, column by column, rows rising."""
  sizes = sizes[columns]
  m = np.repeat(sizes, sizes)
  first = np.repeat(np.cumsum(sizes) - sizes, sizes)
  i = np.arange(len(m)) - first
  # One row in each stratum: strata widen with i, so that low rows are denser,
  # and are never empty, so that the rows of a column are distinct.
  low = np.maximum(i, (n * (i / m) ** 2).astype(np.int64))
  high = np.maximum(i + 1, (n * ((i + 1) / m) ** 2).astype(np.int64))
  high[i + 1 == m] = n
  rows = low + (rng.random(len(m)) * (high - low)).astype(np.int64)
  scale = np.sqrt(n / ((rows + 1) * (np.repeat(columns, sizes) + 1)))
  counts = 1 + np.floor(rng.standard_exponential(len(m)) * scale)
  return rows.astype(np.int32), counts.astype(np.float32)


def _column_sizes(n: int, d: int, nnz: int, exponent: float) -> np.ndarray:
  """Nonzeros of each column, at most n, that add up to nnz."""
  weights = np.arange(1.0, d + 1) ** -exponent
  low, high = 0.0, n / weights.min()
  for _ in range(100):
    middle = (low + high) / 2
    if np.minimum(n, np.floor(middle * weights)).sum() <= nnz:
      low = middle
    else:
      high = middle
  sizes = np.minimum(n, np.floor(low * weights)).astype(np.int64)
  while sizes.sum() < nnz:
    room = np.flatnonzero(sizes < n)
    sizes[room[: nnz - sizes.sum()]] += 1
  return sizes


def _orthonormal(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
  return np.linalg.qr(rng.standard_normal((n, k)))[0]


def _check(holds: bool, message: str) -> None:
  if not holds:
    raise errors.InputError(message)


def _generator(rng: np.random.Generator | int) -> np.random.Generator:
  if not isinstance(rng, (int, np.integer, np.random.Generator)):
    raise errors.InputError(
      f"rng must be a numpy Generator or a whole number, not {rng!r}"
    )
  return np.random.default_rng(rng)

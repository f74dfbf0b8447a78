"""Matrices with known answers, for tests and benchmarks.

Every generator takes a numpy `Generator` and gives the same arrays for the
same state of it. Worlds of entities and facts are in `synthetic_worlds`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from repr_jax import errors

_BLOCK = 1 << 22  # Nonzeros made at once.


class SharedViews(NamedTuple):
  """Views of the same rows that share a signal.

  Attributes:
    views: one matrix [n, d_j] for each view, dense or scipy CSR, float32.
    signal: orthonormal basis of the shared column space, [n, k].
    observed: whether view j has row i, bool [j, n]; other rows are zero.
  """

  views: list
  signal: np.ndarray
  observed: np.ndarray


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


class PPCASample(NamedTuple):
  """A sample of probabilistic PCA, x = M z + mean + noise.

  Attributes:
    data: the sample, [n, d].
    loadings: M, orthogonal columns of falling length, [d, k].
    mean: [d].
    noise_variance: variance of the noise in each coordinate.
  """

  data: np.ndarray
  loadings: np.ndarray
  mean: np.ndarray
  noise_variance: float


def shared_views(
  rng: np.random.Generator,
  n: int,
  dims: Sequence[int],
  k: int,
  noise: float = 0.1,
  missing: float = 0.0,
) -> SharedViews:
  """Dense views sqrt(n) G A_j + noise, with orthonormal G and random A_j.

  Without noise and missing rows the column space of every view is that of G,
  so GCCA finds it with objective 0 (k at most each d_j).

  Args:
    rng: the source of randomness.
    n: rows.
    dims: columns of each view.
    k: dimensions of the signal.
    noise: standard deviation of the noise in each entry.
    missing: the share of rows that a view lacks; every row stays in one view.

  Returns:
    The views, the basis G and the observed rows.
  """
  _check(0 < k <= min(n, *dims), "k must lie between 1 and the smallest side")
  signal = _orthonormal(rng, n, k)
  observed = _observed(rng, len(dims), n, missing)
  views = []
  for d, seen in zip(dims, observed):
    view = np.sqrt(n) * signal @ _orthonormal(rng, d, k).T
    view += noise * rng.standard_normal((n, d))
    views.append((view * seen[:, None]).astype(np.float32))
  return SharedViews(views, signal.astype(np.float32), observed)


def count_views(
  rng: np.random.Generator,
  n: int,
  dims: Sequence[int],
  k: int,
  mean_count: float = 1.0,
  missing: float = 0.0,
) -> SharedViews:
  """Sparse Poisson counts whose expectations share k dimensions.

  The expected counts of view j are H W_j with nonnegative H [n, k], most of
  whose rows lean to one column, as if words had topics.

  Args:
    rng: the source of randomness.
    n: rows.
    dims: columns of each view.
    k: dimensions of the signal.
    mean_count: the mean of the expected counts; the higher, the less noise.
    missing: the share of rows that a view lacks; every row stays in one view.

  Returns:
    CSR views, an orthonormal basis of the span of H, the observed rows. A
    row may be all zero by chance although it is observed.
  """
  _check(0 < k <= n, "k must lie between 1 and n")
  topics = rng.dirichlet(np.full(k, 0.1), n)
  observed = _observed(rng, len(dims), n, missing)
  views = []
  for d, seen in zip(dims, observed):
    rate = topics @ rng.gamma(0.3, size=(k, d))
    rate *= mean_count / max(rate.mean(), 1e-12)
    counts = rng.poisson(rate) * seen[:, None]
    views.append(scipy.sparse.csr_array(counts.astype(np.float32)))
  return SharedViews(
    views, np.linalg.qr(topics)[0].astype(np.float32), observed
  )


def with_spectrum(
  rng: np.random.Generator, n: int, d: int, singular_values: Sequence[float]
) -> Spectrum:
  """A random dense matrix with given singular values.

  Args:
    rng: the source of randomness.
    n: rows.
    d: columns.
    singular_values: nonnegative, at most min(n, d) of them.

  Returns:
    The matrix with its decomposition, float64.
  """
  s = np.sort(np.asarray(singular_values, np.float64))[::-1]
  _check(0 < len(s) <= min(n, d), "need 1 to min(n, d) singular values")
  _check(bool((s >= 0).all()), "singular values are not negative")
  u, v = _orthonormal(rng, n, len(s)), _orthonormal(rng, d, len(s))
  return Spectrum((u * s) @ v.T, u, s, v)


def zipf_counts(
  rng: np.random.Generator,
  n: int,
  d: int,
  nnz: int,
  exponent: float = 1.0,
) -> scipy.sparse.csr_array:
  """Sparse counts with the frequency profile of text.

  Column c has about (c + 1)^-exponent as many nonzeros as the first, at most
  n; low rows have more nonzeros and higher counts than high ones. Takes time
  and memory proportional to nnz: 500,000 x 12,500 is no problem.

  Args:
    rng: the source of randomness.
    n: rows.
    d: columns.
    nnz: the exact number of nonzeros, at most n d.
    exponent: how steeply columns fall off.

  Returns:
    Positive whole counts, float32, with sorted indices.
  """
  _check(n > 0 and d > 0, "n and d must be positive")
  _check(0 <= nnz <= n * d, f"nnz must lie between 0 and {n * d}")
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


def ppca_sample(
  rng: np.random.Generator, n: int, d: int, k: int, noise_variance: float = 0.1
) -> PPCASample:
  """Draws from probabilistic PCA with known parameters.

  Args:
    rng: the source of randomness.
    n: the size of the sample.
    d: its dimension.
    k: the dimension of the latent variable, below d.
    noise_variance: positive.

  Returns:
    The sample with its parameters; M has squared column lengths k, ..., 1.
  """
  _check(0 < k < d, "k must lie between 1 and d - 1")
  _check(noise_variance > 0, "noise_variance must be positive")
  loadings = _orthonormal(rng, d, k) * np.sqrt(np.arange(k, 0, -1))
  mean = rng.standard_normal(d)
  data = rng.standard_normal((n, k)) @ loadings.T + mean
  data += np.sqrt(noise_variance) * rng.standard_normal((n, d))
  return PPCASample(data, loadings, mean, noise_variance)


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


def _observed(
  rng: np.random.Generator, views: int, n: int, missing: float
) -> np.ndarray:
  _check(0 <= missing < 1, "missing must be at least 0 and below 1")
  observed = rng.random((views, n)) >= missing
  observed[rng.integers(views, size=n), np.arange(n)] = True
  return observed


def _check(holds: bool, message: str) -> None:
  if not holds:
    raise errors.InputError(message)

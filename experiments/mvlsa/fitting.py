"""One SVD of each view, then as many combinations as a study asks for.

`mvlsa.fit` does both in one go. Here the left factors are kept, in memory or
on the disk, so that m, k, the ridge, the weights of views and the choice of
views change without another SVD.
"""

import dataclasses
import functools
import pathlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from repr_jax.data.io import array_files
from repr_jax.data.views import store
from repr_jax.data.views.collection import View
from repr_jax.errors import InputError
from repr_jax.multiview import gcca, mvlsa, weighting
from repr_jax.ops import operators, sparse, spectral
from repr_jax.ops.sparse import Sparse

_NARROW = 512  # views with fewer columns share one width
_WIDE = 1024  # columns that a product of the combination has at least


class Factor(NamedTuple):
  """The rank-m left factor of a view.

  Attributes:
    name: of the view.
    left: orthonormal columns, [n, m].
    s: singular values, [m].
    weights: diagonal of W_j K_j, [n].
  """

  name: str
  left: np.ndarray
  s: np.ndarray
  weights: np.ndarray


class Combination(NamedTuple):
  """Word vectors of some views.

  Attributes:
    embedding: [n, k], zero for words that no view has.
    values: eigenvalues, falling, [k].
    shares: explained share of the embedding by each view.
  """

  embedding: np.ndarray
  values: np.ndarray
  shares: dict[str, float]


def weighted(view: View, how: weighting.Weighting):
  """A view's matrix as GCCA sees it, [n, d]; dense views stay as they are."""
  if scipy.sparse.issparse(view.matrix):
    return weighting.apply(view.matrix, how, view.name)
  return np.asarray(view.matrix)


def row_weights(
  views: Sequence[View], power: float | None, min_support: int
) -> list[np.ndarray]:
  """W_j K_j of each view after words with little support are dropped.

  Args:
    views: the views.
    power: exponent of the GloVe-like weights; None for weights of one.
    min_support: v, in how many views a word must be.

  Returns:
    One array [n] for each view.
  """
  seen = [weighting.observed(view.matrix) for view in views]
  kept = np.sum(seen, axis=0) >= min_support
  if not kept.any():
    raise InputError(
      f"no word is in {min_support} of the {len(views)} views; lower "
      "--min_support"
    )
  found = []
  for view, known in zip(views, seen):
    weights = (known & kept).astype(np.float32)
    if power is not None and scipy.sparse.issparse(view.matrix):
      weights = weights * weighting.row_weights(view.matrix, power)
    found.append(weights)
  return found


def factor(
  view: View,
  weights: np.ndarray,
  how: weighting.Weighting,
  m: int,
  *,
  center: bool = True,
  tolerance: float = 1e-3,
  max_cycles: int = 2,
  seed: int = 0,
  cache: pathlib.Path | None = None,
) -> Factor:
  """The rank-m SVD of a weighted view, or the one found in the cache.

  Args:
    view: the view.
    weights: diagonal of W_j K_j, [n].
    how: nonlinearity and truncation.
    m: rank; min(d, m) is used.
    center: subtract column means over the observed rows.
    tolerance: relative error at which the SVD stops.
    max_cycles: how often the SVD may fill its basis; one is better than a
      randomized SVD with several passes, and flat spectra need no more.
    seed: of the SVD's starting block.
    cache: directory of factors; None to keep none.

  Returns:
    The factor.
  """
  path = None
  if cache is not None and view.path is not None:
    options = {
      "how": repr(how), "m": m, "center": center, "tolerance": tolerance,
      "max_cycles": max_cycles, "seed": seed,
    }  # fmt: skip
    mark = store.fingerprint(
      options, [view.path / "header.json"], [str(hash_array(weights))]
    )
    path = cache / f"{view.name}-{mark[:16]}.npz"
    if path.exists():
      kept = array_files.read_npz(path, ["left", "s"])
      return Factor(view.name, kept["left"], kept["s"], weights)
  x = to_device(weighted(view, how), how.columns, view.name)
  u, s = _left_factor(
    x, m, jnp.asarray(weights), jax.random.key(seed), center=center,
    tolerance=tolerance, max_cycles=max_cycles,
  )  # fmt: skip
  left, s = np.asarray(u), np.asarray(s)
  rank = max(1, int((s > 0).sum()))
  made = Factor(view.name, left[:, :rank], s[:rank], weights)
  if path is not None:
    path.parent.mkdir(parents=True, exist_ok=True)
    array_files.write_npz(path, left=made.left, s=made.s)
  return made


def to_device(matrix, columns: int | None, name: str) -> Sparse | jax.Array:
  """A view [n, d] in one of few shapes, so that few programs are compiled.

  Args:
    matrix: the weighted view.
    columns: how many a view of this run has at most; wide views are padded
      to it.
    name: of the view.
  """
  if not scipy.sparse.issparse(matrix):
    return mvlsa.load(matrix, name)
  width = matrix.shape[1]
  if columns is not None and _NARROW < width < columns:
    width = columns
  width = sparse.bucket_size(max(width, _NARROW))
  x = sparse.from_scipy(matrix, columns=width, name=name)
  capacity = 1
  while capacity < x.values.shape[1]:
    capacity *= 8
  more = ((0, 0), (0, capacity - x.values.shape[1]))
  padded: dict[str, Any] = {
    field: jnp.asarray(np.pad(np.asarray(getattr(x, field)), more))
    for field in ("values", "indices", "t_values", "t_indices")
  }
  return dataclasses.replace(x, **padded)


def hash_array(array: np.ndarray) -> int:
  """A checksum of an array of any shape."""
  return zlib.crc32(np.ascontiguousarray(array).data.cast("B"))


def combine(
  factors: Sequence[Factor],
  k: int,
  *,
  m: int | None = None,
  ridge: float = 1e-8,
  relative: bool = False,
  view_weights: Mapping[str, float] | None = None,
  seed: int = 0,
) -> Combination:
  """The leading left singular vectors of all the factors (thesis 3.3).

  Args:
    factors: what `factor` found of each view.
    k: dimension of the vectors.
    m: cut each factor to its first m columns.
    ridge: r_j of every view.
    relative: whether the ridge is in units of the view's mean squared
      singular value.
    view_weights: weight of each view's loss by name, 1 where absent; 0 leaves
      a view out.
    seed: of the eigensolver's starting block.

  Returns:
    The vectors.
  """
  strength = view_weights or {}
  chosen = [f for f in factors if strength.get(f.name, 1.0) > 0]
  if not chosen:
    raise InputError("every view has the weight 0")
  weights = [
    np.sqrt(strength.get(f.name, 1.0)).astype(np.float32) * f.weights
    for f in chosen
  ]
  scale = np.asarray(gcca.support_scale(jnp.asarray(np.stack(weights))))
  blocks = []
  for f, w in zip(chosen, weights):
    s = f.s[:m]
    r = ridge * float(np.mean(f.s**2)) if relative else ridge
    shrink = s * np.asarray(gcca.ridge_root(jnp.asarray(s), r))
    blocks.append((w * scale)[:, None] * f.left[:, :m] * shrink)
  found, values = gcca.combine(_wide(blocks), k, jax.random.key(seed))
  v = np.asarray(found)
  lengths = np.sum(v**2, axis=1)
  shares = {}
  for f, w, block in zip(chosen, weights, blocks):
    present = np.sum((w * scale) ** 2 * lengths)
    inside = np.sum((block.T @ v) ** 2)
    shares[f.name] = float(inside / max(present, 1e-30))
  return Combination(v, np.asarray(values), shares)


def _wide(blocks: Sequence[np.ndarray]) -> list[jax.Array]:
  """Blocks side by side in a few wide ones: fewer and larger products."""
  groups: list[list[np.ndarray]] = [[]]
  for block in blocks:
    if sum(b.shape[1] for b in groups[-1]) >= _WIDE:
      groups.append([])
    groups[-1].append(block)
  return [jnp.asarray(np.concatenate(group, axis=1)) for group in groups]


def block_width(rank: int) -> int:
  """Columns of a product: wide ones cost little more, so few are better."""
  return max(8, min(rank // 2, 128))


@functools.partial(
  jax.jit, static_argnames=("m", "center", "tolerance", "max_cycles")
)
def _left_factor(x, m, weights, key, *, center, tolerance, max_cycles):
  """As `gcca.factor_view`, with a bound on the work for flat spectra."""
  weighted_rows = operators.row_scaled(x, weights)
  if center:
    mean = operators.column_means(x, weights > 0)
    weighted_rows = operators.centered(weighted_rows, mean, weights)
  rank = min(m, *x.shape)
  svd, _ = spectral.truncated_svd(
    weighted_rows, rank, key, tolerance=tolerance, max_cycles=max_cycles,
    block=block_width(rank), basis=3 * rank,
  )  # fmt: skip
  return svd.u, svd.s

"""Speed and memory of SVD and GCCA beside other packages.

python -m experiments.bench --suite=spectral [--size=small]

Peers outside the `bench` extra: mvlearn pins an old matplotlib, so it is
installed apart, with `pip install --no-deps mvlearn seaborn` beside matplotlib.
"""

import dataclasses
import functools
import hashlib
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from experiments.bench.harness import Case
from repr_jax.data import synthetic
from repr_jax.data.io import array_files

_RANK = {"small": 30, "full": 300}
_GCCA_K = {"small": 10, "full": 50}


@dataclasses.dataclass
class _Matrix:
  """A sparse matrix with its true leading singular values."""

  csr: scipy.sparse.csr_matrix
  values: np.ndarray
  rank: int


@dataclasses.dataclass
class _Views:
  """Dense views and the values that judge an embedding of them."""

  views: list[np.ndarray]
  k: int
  whitening: list[np.ndarray]
  best: float


def cases(size: str) -> list[Case]:
  """The cases of this suite: truncated SVD, dense GCCA, and scaling."""
  full = size == "full"
  rows = (10_000, 100_000) if full else (2_000,)
  width = 300 if full else 40
  dense = [
    Case(
      name=f"GCCA of 5 dense views {n} x {width}",
      setup=functools.partial(_dense_views, n, width, _GCCA_K[size]),
      contenders={
        "ours": _gcca_ours,
        "cca-zoo": _gcca_cca_zoo,
        "mvlearn": _gcca_mvlearn,
        "mvlearn, float64": _gcca_mvlearn_double,
      },
      quality=_objective_gap,
    )
    for n in rows
  ]
  step = 62_500 if full else 2_000
  scaling = Case(
    name="scalable GCCA of 8 sparse views",
    setup=functools.partial(_sparse_views, 12_500 if full else 1_000),
    contenders={"ours": _scalable_ours},
    sizes=(step, 2 * step, 4 * step, 8 * step),
  )
  return [_svd_case(size), *dense, scaling]


def _svd_case(size: str) -> Case:
  shape = (100_000, 12_500) if size == "full" else (5_000, 1_000)
  nnz = 9_400_000 if size == "full" else 100_000
  return Case(
    name=f"SVD rank {_RANK[size]} of sparse {shape[0]} x {shape[1]}",
    setup=functools.partial(_zipf, *shape, nnz, _RANK[size]),
    contenders={
      "ours": _svd_ours,
      "ours, centered": _svd_centered,
      "ours, default tolerance": _svd_tight,
      "scikit-learn randomized_svd": _svd_sklearn,
      "scipy svds (ARPACK)": _svd_arpack,
      "gensim LsiModel": _svd_gensim,
    },
    quality=_mean_error,
  )


def _zipf(n: int, d: int, nnz: int, rank: int) -> _Matrix:
  counts = synthetic.zipf_counts(np.random.default_rng(0), n, d, nnz)
  csr = scipy.sparse.csr_matrix(counts)
  csr.data = np.sqrt(np.sqrt(csr.data))
  values = _kept(f"svd {n} {d} {nnz} {rank}", lambda: _arpack(csr, rank))
  return _Matrix(csr, values, rank)


def _arpack(csr, rank: int) -> np.ndarray:
  from scipy.sparse import linalg

  values = linalg.svds(
    csr.astype(np.float64), rank, return_singular_vectors=False
  )
  return np.sort(values)[::-1]


def _kept(name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
  """A reference that costs a minute, computed once and kept beside others."""
  digest = hashlib.sha256(f"{name} {np.__version__}".encode()).hexdigest()[:16]
  folder = pathlib.Path(tempfile.gettempdir()) / f"repr_jax-bench-{os.getuid()}"
  folder.mkdir(exist_ok=True)
  path = folder / f"{digest}.npz"
  if not path.exists():
    array_files.write_npz(path, values=make())
  return array_files.read_npz(path, ["values"])["values"]


@functools.cache
def _jitted_svd() -> Any:
  import jax

  from repr_jax.ops import operators, spectral

  def run(x, k, key, center, tolerance):
    op = operators.as_operator(x)
    if center:
      op = operators.centered(op, operators.column_means(op, None))
    return spectral.truncated_svd(op, k, key, tolerance=tolerance)[0]

  return jax.jit(run, static_argnames=("k", "center", "tolerance"))


def _svd_ours(data: _Matrix, center: bool = False, tolerance: float = 1e-2):
  import jax

  from repr_jax.ops import sparse

  x = sparse.from_scipy(data.csr)
  key = jax.random.key(0)
  return _jitted_svd()(x, data.rank, key, center, tolerance)


def _svd_centered(data: _Matrix):
  # The reference is not centered, so these values are not compared.
  return _svd_ours(data, center=True)._replace(s=None)


def _svd_tight(data: _Matrix):
  return _svd_ours(data, tolerance=1e-3)


def _svd_sklearn(data: _Matrix):
  from sklearn.utils import extmath

  return extmath.randomized_svd(data.csr, data.rank, n_iter=4, random_state=0)


def _svd_arpack(data: _Matrix):
  from scipy.sparse import linalg

  return linalg.svds(data.csr.astype(np.float64), data.rank)


def _svd_gensim(data: _Matrix):
  from gensim import matutils, models

  corpus = matutils.Sparse2Corpus(data.csr, documents_columns=False)
  model = models.LsiModel(
    corpus, num_topics=data.rank, chunksize=20_000, onepass=True
  )
  return None, model.projection.s, None


def _mean_error(data: _Matrix, result) -> dict[str, float]:
  """Relative error of the singular values against ARPACK in float64."""
  if result[1] is None:
    return {}
  values = np.sort(np.asarray(result[1]))[::-1]
  error = np.full(data.rank, 1.0)
  error[: len(values)] = np.abs(values / data.values[: len(values)] - 1)
  return {"mean error": error.mean(), "worst": error.max()}


def _dense_views(n: int, width: int, k: int) -> _Views:
  rng = np.random.default_rng(0)
  signal = rng.standard_normal((n, k), dtype=np.float32)
  views = []
  for _ in range(5):
    mix = rng.standard_normal((k, width), dtype=np.float32)
    noise = rng.standard_normal((n, width), dtype=np.float32)
    views.append(signal @ mix * np.float32(0.3) + 2 * noise)
  for view in views:
    view -= view.mean(axis=0)
  grams = [[np.asarray(a.T @ b, np.float64) for b in views] for a in views]
  whitening = [
    np.linalg.inv(np.linalg.cholesky(grams[j][j])).T for j in range(5)
  ]
  whole = np.block(
    [
      [whitening[i].T @ grams[i][j] @ whitening[j] for j in range(5)]
      for i in range(5)
    ]
  )
  best = float(np.linalg.eigvalsh(whole)[-k:].sum())
  return _Views(views, k, whitening, best)


def _objective_gap(data: _Views, embedding) -> dict[str, float]:
  """How far sum_j |P_j G|^2 stays below its maximum, relative to it."""
  g = np.linalg.qr(np.asarray(embedding, np.float64))[0]
  explained = sum(
    np.sum((w.T @ (view.T.astype(np.float64) @ g)) ** 2)
    for view, w in zip(data.views, data.whitening)
  )
  return {"objective gap": max(0.0, 1 - explained / data.best)}


@functools.cache
def _jitted_gcca() -> Any:
  from repr_jax import multiview

  return multiview.gcca_exact


def _gcca_ours(data: _Views):
  import jax.numpy as jnp

  views = [jnp.asarray(view) for view in data.views]
  return _jitted_gcca()(views, data.k).embedding


def _gcca_cca_zoo(data: _Views):
  from cca_zoo.linear import GCCA

  views: list[Any] = list(data.views)
  model = GCCA(n_components=data.k).fit(views)
  return sum(model.transform(views))


def _gcca_mvlearn(data: _Views):
  from mvlearn.embed import GCCA

  model = GCCA(n_components=data.k)
  return sum(model.fit_transform(data.views))


def _gcca_mvlearn_double(data: _Views):
  views = [view.astype(np.float64) for view in data.views]
  return _gcca_mvlearn(dataclasses.replace(data, views=views))


def _sparse_views(d: int, n: int) -> list[scipy.sparse.csr_matrix]:
  views = []
  for seed in range(8):
    rng = np.random.default_rng(seed)
    counts = synthetic.zipf_counts(rng, n, d, 30 * n)
    counts.data = np.sqrt(np.sqrt(counts.data))
    views.append(counts)
  return views


def _scalable_ours(views: list[scipy.sparse.csr_matrix]):
  from repr_jax.multiview import mvlsa

  return mvlsa.fit(views, 50, m=100).model.embedding

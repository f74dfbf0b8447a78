"""The routes of dense factorizations against LAPACK, whatever the platform."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax.ops import dense_factorizations as dense
from repr_jax.ops import precision

_EPS = float(np.finfo(np.float32).eps)


def _matrix(n: int, c: int, values) -> np.ndarray:
  """A matrix [n, c] with the given singular values."""
  rng = np.random.default_rng(n + c)
  r = min(n, c)
  u = np.linalg.qr(rng.normal(size=(n, r)))[0]
  v = np.linalg.qr(rng.normal(size=(c, r)))[0]
  return ((u * values) @ v.T).astype(np.float32)


_SPECTRA = {
  "flat": lambda r: np.linspace(1, 2, r),
  "decaying": lambda r: 10 ** -np.linspace(0, 5, r),
  "steep": lambda r: 1e4 * 10 ** -np.linspace(0, 9, r),
  "deficient": lambda r: np.where(np.arange(r) < r // 2, 3.0, 0),
  "repeated": lambda r: np.where(np.arange(r) < r // 2, 2.0, 1.0),
  "zero": np.zeros,
}


def _orthonormal(q) -> float:
  q = np.asarray(q, np.float64)
  return float(np.abs(q.T @ q - np.eye(q.shape[1])).max(initial=0))


@pytest.mark.parametrize("spectrum", _SPECTRA)
@pytest.mark.parametrize("shape", [(12, 12), (40, 15), (15, 40)])
@pytest.mark.parametrize("solver", [dense.svd, dense.polar_svd])
def test_svd(solver, shape, spectrum):
  values = _SPECTRA[spectrum](min(shape))
  x = _matrix(*shape, values)
  u, s, vt = (np.asarray(a, np.float64) for a in jax.jit(solver)(x))
  level = 20 * _EPS * max(values[0], 1e-30)
  np.testing.assert_allclose(s, np.linalg.svd(x)[1], atol=level)
  np.testing.assert_allclose((u * s) @ vt, x, atol=2 * level)
  resolved = s > 30 * _EPS * s[0]
  assert _orthonormal(u[:, resolved]) < 1e-5
  assert _orthonormal(vt[resolved].T) < 1e-5


@pytest.mark.parametrize("spectrum", _SPECTRA)
@pytest.mark.parametrize(
  "solver", [dense.qr, dense.cholesky_qr, dense.gram_schmidt]
)
def test_qr(solver, spectrum):
  values = _SPECTRA[spectrum](15)
  x = _matrix(60, 15, values)
  q, r = jax.jit(solver)(x)
  level = 20 * _EPS * max(values[0], 1e-30)
  q, r = np.asarray(q, np.float64), np.asarray(r, np.float64)
  np.testing.assert_allclose(q @ r, x, atol=level)
  np.testing.assert_allclose(np.tril(r, -1), 0, atol=level)
  assert _orthonormal(q) < 1e-5


@pytest.mark.parametrize("spectrum", _SPECTRA)
def test_a_basis_spans_the_columns(spectrum):
  values = _SPECTRA[spectrum](15)
  x = _matrix(60, 15, values)
  q = np.asarray(jax.jit(dense.orthonormal_basis)(x), np.float64)
  assert _orthonormal(q) < 1e-5
  level = 20 * _EPS * max(values[0], 1e-30)
  np.testing.assert_allclose(q @ (q.T @ x), x, atol=level)


def test_eigenpairs_of_a_batch():
  x = np.stack([_matrix(9, 9, np.arange(9.0, 0, -1)) for _ in range(3)])
  x = x + x.swapaxes(1, 2)
  values, vectors = jax.jit(jax.vmap(dense.eigh))(x)
  np.testing.assert_allclose(values, np.linalg.eigvalsh(x), atol=1e-5)
  image = np.einsum("bij,bjk->bik", x, np.asarray(vectors))
  np.testing.assert_allclose(image, vectors * values[:, None], atol=1e-5)


@pytest.mark.parametrize("size", [1, 5, 128, 129, 300, 512])
def test_the_inverse_of_a_triangle(size):
  rng = np.random.default_rng(size)
  lower = np.tril(rng.normal(size=(size, size)) / size) + np.eye(size)
  inverse = np.asarray(dense.lower_inverse(jnp.asarray(lower, jnp.float32)))
  np.testing.assert_allclose(inverse @ lower, np.eye(size), atol=1e-4)
  assert not np.triu(inverse, 1).any()


def test_routes_keep_float64():
  with precision.enable_x64():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(20, 7)))
    u, s, vt = dense.polar_svd(x)
    np.testing.assert_allclose((u * s) @ vt, x, atol=1e-13)
    q, r = dense.cholesky_qr(x)
    np.testing.assert_allclose(q @ r, x, atol=1e-13)

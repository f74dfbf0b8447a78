"""Truncated SVD against LAPACK and ARPACK, and its stated bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from jax.experimental import sparse as jsparse

from repr_jax.errors import InputError
from repr_jax.ops import operators, precision, sparse, spectral

_SVD = jax.jit(
  spectral.truncated_svd,
  static_argnames=("k", "tolerance", "block", "basis", "max_cycles"),
)


def _with_spectrum(n, d, values, seed=0, dtype=np.float32):
  rng = np.random.default_rng(seed)
  u = np.linalg.qr(rng.standard_normal((n, len(values))))[0]
  v = np.linalg.qr(rng.standard_normal((d, len(values))))[0]
  return ((u * values) @ v.T).astype(dtype)


def _check_triples(svd, x, tolerance):
  """Orthonormal factors with X v = s u and X' u = s v."""
  k = svd.s.shape[0]
  np.testing.assert_allclose(svd.u.T @ svd.u, np.eye(k), atol=1e-5)
  np.testing.assert_allclose(svd.v.T @ svd.v, np.eye(k), atol=1e-5)
  np.testing.assert_allclose(
    x @ svd.v, svd.u * svd.s, atol=tolerance * float(svd.s[0])
  )


@pytest.mark.parametrize("shape", [(900, 400), (400, 900)])
@pytest.mark.parametrize("decay", ["geometric", "power"])
def test_values_match_lapack_on_decaying_spectra(shape, decay):
  index = np.arange(1, 401)
  values = 50 * 0.97**index if decay == "geometric" else 50 / index**0.8
  x = _with_spectrum(*shape, values)
  svd, info = _SVD(jnp.asarray(x), 40, jax.random.key(1))
  np.testing.assert_allclose(svd.s, values[:40], rtol=1e-3)
  _check_triples(svd, x, 1e-3)
  assert float(info.estimate.max()) <= 1e-3
  assert int(info.products) >= 40


def test_bound_holds_on_a_slow_spectrum():
  values = 10 * (1 - 1e-3 * np.arange(400))
  x = _with_spectrum(900, 400, values)
  svd, info = _SVD(
    jnp.asarray(x), 20, jax.random.key(0), tolerance=1e-9, max_cycles=1
  )
  distance = np.abs(np.asarray(svd.s)[:, None] - values).min(axis=1)
  relative = distance / np.asarray(svd.s)
  assert np.all(relative <= np.asarray(info.bound) + 1e-5)
  assert np.all(np.asarray(svd.s) <= values[0] * (1 + 1e-5))


def test_restarts_reach_a_tolerance_that_one_cycle_misses():
  values = 10 / np.arange(1, 401) ** 0.1
  x = jnp.asarray(_with_spectrum(600, 400, values))
  one, one_info = _SVD(x, 20, jax.random.key(0), basis=56, max_cycles=1)
  many, many_info = _SVD(
    x, 20, jax.random.key(0), basis=56, tolerance=1e-5, max_cycles=80
  )
  error = [np.abs(s.s / values[:20] - 1).max() for s in (one, many)]
  assert int(many_info.products) > 56
  assert float(many_info.estimate.max()) <= 1e-5
  assert float(one_info.estimate.max()) > 1e-5
  assert error[1] < 1e-4 < error[0]


def test_sparse_matches_arpack():
  rng = np.random.default_rng(0)
  weights = 1 / np.arange(1, 601)
  counts = rng.poisson(40 * weights * rng.random((3000, 1)), (3000, 600))
  matrix = scipy.sparse.csr_matrix(counts.astype(np.float32))
  expected = scipy.sparse.linalg.svds(
    matrix.astype(np.float64), 30, return_singular_vectors=False
  )
  svd, _ = _SVD(sparse.from_scipy(matrix), 30, jax.random.key(0))
  np.testing.assert_allclose(svd.s, np.sort(expected)[::-1], rtol=1e-3)
  _check_triples(svd, matrix, 1e-3)


def test_float64_is_kept():
  with precision.enable_x64(True):
    values = 20 * 0.9 ** np.arange(200)
    x = jnp.asarray(_with_spectrum(500, 200, values, dtype=np.float64))
    svd, _ = _SVD(x, 15, jax.random.key(0), tolerance=1e-12)
    assert svd.s.dtype == jnp.float64
    np.testing.assert_allclose(svd.s, values[:15], rtol=1e-11)


@pytest.mark.parametrize("rank", [1, 7])
def test_missing_rank_is_zero_and_named(rank):
  x = jnp.asarray(_with_spectrum(500, 300, 5.0 + np.arange(rank)))
  svd, _ = _SVD(x, 12, jax.random.key(0))
  assert int((svd.s > 0).sum()) == rank
  np.testing.assert_array_equal(svd.u[:, rank:], 0)
  assert bool(jnp.isfinite(svd.u).all() & jnp.isfinite(svd.v).all())


def test_k_past_the_shape_is_refused():
  with pytest.raises(InputError, match="between 1 and 5"):
    spectral.truncated_svd(jnp.ones((9, 5)), 6, jax.random.key(0))


def test_a_sparse_matrix_of_jax_is_refused():
  matrix = jsparse.BCOO.fromdense(jnp.ones((9, 5)))
  with pytest.raises(InputError, match=r"ops\.from_scipy, not BCOO"):
    spectral.truncated_svd(matrix, 2, jax.random.key(0))


@pytest.mark.parametrize(
  "masked, kind", [(False, "sparse"), (True, "sparse"), (True, "dense")]
)
def test_implicit_centering_equals_dense_svd(masked, kind):
  rng = np.random.default_rng(4)
  dense = rng.poisson(3 / np.arange(1, 121), (800, 120)).astype(np.float32)
  rows = np.ones(800, bool)
  if masked:
    rows[::3] = False
    dense[~rows] = 0
  dense[rows, 0] += 1  # no observed row is empty
  y = dense if kind == "dense" else sparse.from_scipy(dense)
  q = rng.standard_normal((120, 3)).astype(np.float32)

  @jax.jit
  def run(y, rows):
    mean = operators.column_means(y, rows)
    op = operators.centered(y, mean, rows)
    svd, _ = spectral.truncated_svd(op, 10, jax.random.key(0), tolerance=1e-5)
    forward = op.matmat(q)
    return mean, forward, op.rmatmat(forward), op.normal(q), svd.s

  mean, forward, back, both, values = run(y, rows)
  np.testing.assert_allclose(mean, dense[rows].mean(axis=0), rtol=1e-5)
  expected = dense - rows[:, None] * dense[rows].mean(axis=0)
  np.testing.assert_allclose(forward, expected @ q, atol=1e-3)
  np.testing.assert_allclose(back, both, rtol=1e-3, atol=2e-2)
  wanted = np.linalg.svd(expected, compute_uv=False)
  np.testing.assert_allclose(values, wanted[:10], rtol=1e-4)


def test_row_scaling_of_operators():
  rng = np.random.default_rng(2)
  dense = rng.poisson(0.5, (60, 20)).astype(np.float32)
  scale = jnp.asarray(rng.random(60), jnp.float32)
  q = jnp.asarray(rng.random((20, 3)), jnp.float32)
  expected = np.asarray(scale)[:, None] * dense
  for x in (jnp.asarray(dense), sparse.from_scipy(dense)):
    op = operators.row_scaled(x, scale)
    np.testing.assert_allclose(op.matmat(q), expected @ q, rtol=1e-5)
    np.testing.assert_allclose(
      op.normal(q), expected.T @ (expected @ q), rtol=1e-4
    )


def test_signs_do_not_depend_on_the_start():
  x = jnp.asarray(_with_spectrum(300, 200, 9.0 * 0.8 ** np.arange(200)))
  one, _ = _SVD(x, 6, jax.random.key(0), tolerance=1e-6)
  two, _ = _SVD(x, 6, jax.random.key(1), tolerance=1e-6)
  np.testing.assert_allclose(one.u, two.u, atol=1e-3)
  again, _ = _SVD(x, 6, jax.random.key(0), tolerance=1e-6)
  np.testing.assert_array_equal(one.u, again.u)


def test_no_square_of_the_rows_is_formed():
  x = jax.ShapeDtypeStruct((20_000, 500), jnp.float32)
  key = jax.eval_shape(lambda: jax.random.key(0))
  memory = _SVD.lower(x, 20, key).compile().memory_analysis()
  assert memory.temp_size_in_bytes < 3 * 20_000 * 500 * 4


def test_top_eigenpairs_of_a_large_matrix():
  rng = np.random.default_rng(0)
  basis = np.linalg.qr(rng.standard_normal((700, 700)))[0]
  values = 3 * 0.96 ** np.arange(700)
  matrix = jnp.asarray((basis * values) @ basis.T, jnp.float32)
  found, vectors = spectral.top_eigenpairs(matrix, 8, jax.random.key(0))
  np.testing.assert_allclose(found, values[:8], rtol=1e-5)
  np.testing.assert_allclose(
    matrix @ vectors, vectors * found, atol=1e-2 * values[0]
  )


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_extreme_scales_are_finite(scale):
  values = scale * 0.9 ** np.arange(150)
  x = jnp.asarray(_with_spectrum(300, 150, values))
  svd, _ = _SVD(x, 5, jax.random.key(0), tolerance=1e-4)
  np.testing.assert_allclose(svd.s, values[:5], rtol=1e-3)


def test_the_iteration_is_compiled_once():
  x, key = jnp.ones((300, 200)), jax.random.key(0)
  text = _SVD.lower(x, 5, key).as_text()
  # One eigenproblem is within the basis, one is of the image.
  assert text.count("syevd") == 2

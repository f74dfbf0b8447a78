"""Matrices on a mesh of one device; `tests/mesh` has eight."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from repr_jax.errors import InputError
from repr_jax.ops import mesh as meshes
from repr_jax.ops import sharded

_AXES = ("rows",)
_SHARDS = 3  # rows are dealt to three parts, all on one device
_DENSE = np.random.default_rng(0).poisson(0.8, (20, 7)).astype(np.float32)


@pytest.fixture(name="x", params=["dense", "sparse"])
def _x(request):
  mesh = meshes.make_mesh("rows:1", _AXES, jax.devices()[:1])
  given = _DENSE
  if request.param == "sparse":
    given = scipy.sparse.csr_array(_DENSE)
  return sharded.from_host(given, mesh, _AXES, _SHARDS)


def test_products_equal_those_of_the_whole_matrix(x):
  rng = np.random.default_rng(1)
  q = rng.normal(size=(7, 2)).astype(np.float32)
  p = rng.normal(size=(20, 2)).astype(np.float32)
  product = sharded.gather_rows(sharded.matmat(x, jnp.asarray(q)), 20, _SHARDS)
  np.testing.assert_allclose(product, _DENSE @ q, rtol=1e-5, atol=1e-5)
  dealt = jnp.asarray(sharded.deal(p, _SHARDS))
  np.testing.assert_allclose(
    sharded.rmatmat(x, dealt), _DENSE.T @ p, rtol=1e-5, atol=1e-5
  )
  np.testing.assert_allclose(
    sharded.normal_matmat(x, jnp.asarray(q)),
    _DENSE.T @ (_DENSE @ q),
    rtol=1e-5,
    atol=1e-4,
  )


def test_scaled_rows_equal_those_of_the_whole_matrix(x):
  scale = np.random.default_rng(2).random(20).astype(np.float32)
  scaled = sharded.scale_rows(x, jnp.asarray(sharded.deal(scale, _SHARDS)))
  rows = sharded.gather_rows(sharded.matmat(scaled, jnp.eye(7)), 20, _SHARDS)
  np.testing.assert_allclose(rows, scale[:, None] * _DENSE, rtol=1e-6)


def test_tall_qr_gives_orthonormal_columns_and_a_triangle(x):
  rows = sharded.matmat(x, jnp.eye(7))
  q, r = sharded.tall_qr(x.mesh, x.axes, rows)
  np.testing.assert_allclose(q @ r, rows, atol=1e-4)
  np.testing.assert_allclose(q.T @ q, np.eye(7), atol=1e-5)
  np.testing.assert_allclose(r, np.triu(r), atol=1e-5)


def test_a_nan_is_refused_with_its_row():
  mesh = meshes.make_mesh("rows:1", _AXES, jax.devices()[:1])
  broken = _DENSE.copy()
  broken[4, 2] = np.nan
  with pytest.raises(InputError, match=r"the view has a NaN .* row 4"):
    sharded.from_host(broken, mesh, _AXES, _SHARDS, name="the view")

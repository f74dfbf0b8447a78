"""A fit on a mesh of one device; `mesh` has the same on eight."""

import jax
import numpy as np
import pytest
import scipy.sparse

from repr_jax import multiview
from repr_jax.multiview import sharding
from repr_jax.ops import mesh as meshes


@pytest.fixture(scope="module")
def mesh():
  return meshes.make_mesh("rows:1,views:1", sharding.AXES, jax.devices()[:1])


def test_an_exchange_on_one_part_moves_nothing(mesh):
  stacked = np.random.default_rng(0).normal(size=(1, 6, 3)).astype(np.float32)
  (moved,) = sharding.exchange(mesh, stacked)
  np.testing.assert_array_equal(moved, stacked[0])


@pytest.mark.parametrize("width", [2, 5, 10])
def test_a_combination_has_the_singular_vectors_of_the_whole(mesh, width):
  rng = np.random.default_rng(1)
  whole = rng.normal(size=(40, 10)) * np.linspace(3, 1, 10)
  v, values = sharding.combine(
    mesh, width, 3, whole.astype(np.float32), jax.random.key(0)
  )
  left, s, _ = np.linalg.svd(whole, full_matrices=False)
  np.testing.assert_allclose(values, s[:3] ** 2, rtol=1e-4)
  turned = np.abs(np.asarray(v).T @ left[:, :3])
  np.testing.assert_allclose(turned, np.eye(3), atol=1e-3)


@pytest.mark.parametrize("method", ["memory", "stream"])
def test_a_fit_on_a_mesh_is_the_fit_without(mesh, method):
  rng = np.random.default_rng(2)
  signal = rng.random((60, 3))
  views = []
  for width in (8, 9):
    counts = rng.poisson(signal @ (4 * rng.random((3, width))))
    counts[rng.random(60) < 0.2] = 0
    views.append(scipy.sparse.csr_array(counts.astype(np.float32)))
  options = {"m": 8, "tolerance": 1e-6, "method": method}
  alone = multiview.fit(views, 8, **options).truncate(2)
  shared = multiview.fit(views, 8, **options, mesh=mesh).truncate(2)
  np.testing.assert_allclose(shared.model.values, alone.model.values, rtol=1e-3)
  one, two = (np.asarray(x.model.embedding) for x in (alone, shared))
  np.testing.assert_allclose(
    two * np.sign(np.sum(one * two, axis=0)), one, atol=2e-3
  )

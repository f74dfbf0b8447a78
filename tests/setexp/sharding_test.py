"""States and batches of the autoencoder on a mesh."""

import jax
import numpy as np
import optax
import pytest
import scipy.sparse as sp
from jax.sharding import Mesh

from repr_jax import setexp
from repr_jax.errors import InputError
from repr_jax.setexp import batches, sharding, train


@pytest.fixture(scope="module")
def mesh():
  return Mesh(np.array(jax.devices()[:1]).reshape(1, 1), sharding.AXES)


def _state():
  config = setexp.Config(dim=2, hidden=(3,))
  counts = sp.csr_array(np.eye(4, 5) + 1)
  made = setexp.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(0), made)
  state = train.init_state(config, optax.adam, params, made.inputs)
  return config, counts, params, state


def test_a_placed_state_comes_back(mesh):
  config, _, params, state = _state()
  placed = sharding.place_state(mesh, state)
  back = sharding.on_host(train.parameters(config, placed), 5)
  jax.tree.map(np.testing.assert_array_equal, back, params)
  # Fewer features than rows: padding is cut off.
  assert sharding.on_host(params, 3).table.shape == (3, 3)


def test_placed_batches_are_the_same(mesh):
  _, counts, _, _ = _state()
  packed = batches.pack(counts, np.array([[0, 2], [1, 3]]))
  noise = np.ones((2, 1, 2, 2), np.float32)
  placed, same = sharding.place_batches(mesh, packed, noise, 5)
  jax.tree.map(np.testing.assert_array_equal, placed, packed)
  np.testing.assert_array_equal(same, noise)


def test_another_mesh_is_refused():
  wrong = Mesh(np.array(jax.devices()[:1]), ("batch",))
  with pytest.raises(InputError, match="axes"):
    sharding.place_state(wrong, _state()[-1])

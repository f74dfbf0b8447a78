import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax.setexp import hubness


def _units(size):
  vectors = np.random.default_rng(0).normal(size=(size, 4))
  return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("limit", [None, 8])
def test_crowding_is_the_mean_of_the_nearest(limit, monkeypatch):
  monkeypatch.setattr(hubness, "NEIGHBORS", 6)
  step, k = 1, 6
  if limit:
    monkeypatch.setattr(hubness, "_REFERENCES", limit)
    step, k = 3, 2  # of 20 entities every third
  units = _units(20)
  cosines = units @ units[::step].T
  cosines[np.arange(20)[:, None] == np.arange(0, 20, step)] = -1
  wanted = np.sort(cosines, axis=1)[:, -k:].mean(axis=1)
  given = jnp.asarray(units, jnp.float32)
  crowded = hubness.crowding(given, given, jnp.arange(20))
  np.testing.assert_allclose(crowded, wanted, atol=1e-5)
  # A new row may be near an entity that it equals.
  new = hubness.crowding(given[:1], given, jnp.array([-1]))
  assert new[0] > crowded[0]

"""Random orders: each item once, and all places alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from repr_jax.ops import shuffle


@pytest.mark.parametrize("count", [1, 2, 1000, 1025, 2048, 2049, 5000])
def test_every_item_comes_once(count):
  found = shuffle.random_order(jax.random.key(3), count)
  assert found.dtype == jnp.int32
  np.testing.assert_array_equal(np.sort(found), np.arange(count))


@pytest.mark.parametrize("count", [1030, 1500, 4096])
def test_places_and_neighbors_are_as_chance_has_them(count):
  keys = jax.random.split(jax.random.key(0), 2000)
  orders = np.asarray(
    jax.jit(jax.vmap(lambda key: shuffle.random_order(key, count)))(keys)
  )
  for place in (0, 1, count // 2, count - 1):
    seen, _ = np.histogram(orders[:, place], 20, (0, count))
    assert stats.chisquare(seen).pvalue > 1e-4
  # Two places are independent of one another, next to each other or not.
  for other in (1, 2, 32, count // 2):
    pairs, _, _ = np.histogram2d(
      orders[:, 0], orders[:, other], 5, [(0, count), (0, count)]
    )
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-4
  # Steps up and down: a random order has (count - 1) / 2 of each.
  up = (np.diff(orders, axis=1) > 0).sum(axis=1)
  z = (up - (count - 1) / 2) / np.sqrt((count + 1) / 12)
  assert abs(z.mean()) * np.sqrt(len(z)) < 4
  assert 0.85 < z.std() < 1.15


def test_keys_decide():
  one, two = (shuffle.random_order(jax.random.key(i), 3000) for i in (1, 2))
  again = shuffle.random_order(jax.random.key(1), 3000)
  np.testing.assert_array_equal(one, again)
  assert (one == two).mean() < 0.01

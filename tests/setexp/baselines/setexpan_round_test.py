"""Parts of a round of SetExpan, against loops."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax.setexp.baselines import setexpan, setexpan_round
from repr_jax.setexp.feature_scores import Entries


def test_similarity_is_min_over_max_on_each_subset():
  rng = np.random.default_rng(0)
  table, members = rng.random((4, 5)), rng.random((3, 5))
  trust, masks = np.array([1.0, -0.5, 0.0]), rng.integers(0, 2, (5, 2))
  wanted = np.zeros((4, 2))
  for n in range(4):
    for t in range(2):
      for member, weight in zip(members, trust):
        pairs = list(zip(table[n], member, masks[:, t]))
        low = sum(min(a, b) * m for a, b, m in pairs)
        high = sum(max(a, b) * m for a, b, m in pairs)
        wanted[n, t] += weight * low / max(high, 1e-30) / 1.5
  value = jax.jit(setexpan_round.similarity)(
    *(jnp.asarray(x, jnp.float32) for x in (table, members, trust, masks))
  )
  np.testing.assert_allclose(value, wanted, atol=1e-5)


def test_the_strongest_features_come_first():
  counts = sp.csr_array(
    np.array([[1.0, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 0]])
  )
  config = setexpan.Config(features=2)
  model = setexpan.fit(counts, config)
  entries = Entries(*map(jnp.array, ([0, 0], [0, 2], [1.0, 1.0])))
  kept, strengths = setexpan_round.select(
    model, entries, jnp.array([1.0, 3.0]), jnp.array([1, -1])
  )
  weight = np.log(2) * np.log(4 / 2)  # of entity 1, which joined
  assert kept.tolist() == [2, 0]
  np.testing.assert_allclose(strengths, [3.0, 1.0 + weight], rtol=1e-5)
  place = setexpan_round.slots(jnp.array([2, 0, 3]), 3)
  assert place.tolist() == [1, 3, 0]

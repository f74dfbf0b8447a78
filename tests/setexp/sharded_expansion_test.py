"""Expansion over a mesh of one device; `tests/mesh` has eight."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from jax.sharding import Mesh

from repr_jax import setexp


@pytest.mark.parametrize("k", [2, 5])
def test_one_device_gives_the_same(k):
  counts = sp.csr_array(np.eye(6, 5) + 1)
  config = setexp.Config(dim=2, hidden=(3,))
  made = setexp.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(0), made)
  model = setexp.model_from_scipy(config, params, made.inputs, counts)
  queries = [setexp.make_query(counts, ids) for ids in ([0, 5], [2])]
  padded, ranking = (
    setexp.pad_queries(model, queries),
    setexp.make_ranking("xi"),
  )
  mesh = Mesh(np.array(jax.devices()[:1]), ("entities",))
  placed = setexp.place_model(model, mesh)
  one = setexp.expand(model, padded, ranking, k)
  many = setexp.expand_sharded(placed, mesh, padded, ranking, k)
  finite = np.isfinite(one.scores)
  np.testing.assert_array_equal(
    np.asarray(many.ids)[finite], np.asarray(one.ids)[finite]
  )
  np.testing.assert_allclose(many.scores, one.scores, rtol=1e-5)

"""Expansion over a mesh of one device; `tests/mesh` has eight."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from jax.sharding import AbstractMesh, Mesh

from repr_jax import setexp
from repr_jax.errors import InputError


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("score", ["xi", "features", "cosine"])
def test_one_device_gives_the_same(score, k):
  model, padded, mesh = _problem()
  ranking = setexp.make_ranking(score)
  placed = setexp.place_model(model, mesh)
  one = setexp.expand(model, padded, ranking, k)
  for given in (placed, model):
    many = setexp.expand_sharded(given, mesh, padded, ranking, k)
    finite = np.isfinite(one.scores)
    np.testing.assert_array_equal(
      np.asarray(many.ids)[finite], np.asarray(one.ids)[finite]
    )
    np.testing.assert_allclose(many.scores, one.scores, rtol=1e-5)


def test_a_model_on_one_device_is_refused_on_many():
  model, padded, _ = _problem()
  mesh = AbstractMesh((2,), ("entities",))
  with pytest.raises(InputError, match="lay it out by place_model"):
    setexp.expand_sharded(model, mesh, padded, setexp.make_ranking("xi"), 2)


def _problem():
  counts = sp.csr_array(np.eye(6, 5) + 1)
  config = setexp.Config(dim=2, hidden=(3,))
  made = setexp.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(0), made)
  model = setexp.model_from_scipy(config, params, made.inputs, counts)
  queries = [setexp.make_query(counts, ids) for ids in ([0, 5], [2])]
  mesh = Mesh(np.array(jax.devices()[:1]), ("entities",))
  return model, setexp.pad_queries(model, queries), mesh

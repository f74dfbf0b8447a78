"""The built-in models as objects: nodes, sizes and queries of batches."""

import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import kb
from repr_jax.kb import score_models


@pytest.mark.parametrize("name", kb.MODELS)
def test_nodes_turn_back_into_relations(name):
  model = kb.MODELS[name]
  size = model.relation_size(6)
  table = np.random.default_rng(0).normal(size=(3, size)).astype(np.float32)
  nodes = model.nodes(jnp.asarray(table))
  assert nodes.shape[0] == 3 * model.parts
  np.testing.assert_array_equal(model.relations(nodes), table)


def test_objects_and_names_are_the_same_models():
  assert kb.MODELS["complex"] is kb.COMPLEX
  assert score_models.get_model(kb.T) is score_models.get_model("T") is kb.T
  assert all(model.name == name for name, model in kb.MODELS.items())


def test_queries_of_all_matrices_are_those_of_each():
  rng = np.random.default_rng(0)
  relations, heads, tails = (
    rng.normal(size=x).astype(np.float32) for x in ((3, 16), (5, 4), (5, 4))
  )
  ids = np.array([0, 2, 1, 1, 0])
  for_heads, for_tails = score_models.bilinear_queries(
    relations, np.eye(3, dtype=np.float32)[ids], heads, tails
  )
  for i, r in enumerate(ids):
    matrix = relations[r].reshape(4, 4)
    np.testing.assert_allclose(
      for_heads.vector[i], matrix @ tails[i], atol=1e-5
    )
    np.testing.assert_allclose(
      for_tails.vector[i], heads[i] @ matrix, atol=1e-5
    )

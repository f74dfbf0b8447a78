"""The built-in models as objects: nodes, sizes and queries of batches."""

import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import kb
from repr_jax.errors import InputError
from repr_jax.kb import score_models


@pytest.mark.parametrize("name", kb.MODELS)
def test_nodes_turn_back_into_relations(name):
  model = kb.MODELS[name]
  size = model.relation_size(6)
  table = np.random.default_rng(0).normal(size=(3, size)).astype(np.float32)
  nodes = model.nodes(jnp.asarray(table))
  assert nodes.shape[0] == 3 * model.parts
  np.testing.assert_array_equal(model.relations(nodes), table)


def test_blocks_hold_complex_and_are_held_by_r():
  rng = np.random.default_rng(0)
  real, imaginary, head, tail = rng.normal(size=(4, 3)).astype(np.float32)
  x, y = rng.normal(size=(2, 6)).astype(np.float32)
  row = np.concatenate([real, imaginary, -imaginary, real])
  np.testing.assert_allclose(
    kb.score("blocks", row, x, y),
    kb.score("complex", np.concatenate([real, imaginary]), x, y),
    rtol=1e-5,
  )
  a, b, c, d = map(np.diag, (real, head, tail, imaginary))
  matrix = np.block([[a, b], [c, d]])
  row = np.concatenate([real, head, tail, imaginary])
  np.testing.assert_allclose(
    kb.score("blocks", row, x, y),
    kb.score("R", matrix.ravel(), x, y),
    rtol=1e-5,
  )
  for side in ("heads", "tails"):
    score_all = getattr(kb, f"score_all_{side}")
    np.testing.assert_allclose(
      score_all("blocks", row, x, np.stack([y, x])),
      score_all("R", matrix.ravel(), x, np.stack([y, x])),
      rtol=1e-5,
    )
  with pytest.raises(InputError, match="blocks takes an even dim"):
    kb.BLOCKS.relation_size(3)


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

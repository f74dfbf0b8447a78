"""A model from two queries alone: its defaults."""

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax import kb


def _ask(relation, known):
  return kb.Query(relation * known, -known @ known)


def test_defaults_give_whole_relations_and_squares():
  model = kb.ScoreModel("mine", _ask, _ask, norm_weight=1.0)
  params = kb.init_params(model, jax.random.key(0), 3, 2, 4)
  assert params.relations.shape == (2, 4)
  np.testing.assert_array_equal(model.nodes(params.relations), params.relations)
  np.testing.assert_array_equal(
    model.moduli(jnp.array([-2.0, 3.0])), [4.0, 9.0]
  )
  assert repr(model) == "ScoreModel('mine')"


def test_parts_cut_relations():
  model = kb.ScoreModel("halves", _ask, _ask, parts=2)
  relations = jnp.arange(8.0).reshape(2, 4)
  nodes = model.nodes(relations)
  np.testing.assert_array_equal(nodes, relations.reshape(4, 2))
  np.testing.assert_array_equal(model.relations(nodes), relations)


def test_one_object_compiles_once(compilations):
  model = kb.ScoreModel("mine", _ask, _ask)
  args = jnp.ones(4), jnp.ones(4), jnp.ones(4)
  kb.score(model, *args)
  assert compilations.during(lambda: kb.score(model, *args)) == 0

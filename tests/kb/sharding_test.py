"""Tables by entity over a mesh; tests/mesh trains on eight devices."""

import jax
import numpy as np
import optax

from repr_jax import kb
from repr_jax.kb import candidate_training, sharding
from repr_jax.ops import mesh as meshes


def test_state_comes_back_from_a_mesh():
  mesh = meshes.make_mesh("batch:1", ("batch",), jax.devices()[:1])
  params = kb.init_params("complex", jax.random.key(0), 5, 2, 4)
  config = kb.CandidateConfig(5, 2, "complex", 4)
  optimizer = optax.adagrad(0.1)
  state = candidate_training.from_params(config, optimizer, params)
  placed = sharding.place_state(mesh, state)
  assert jax.tree.structure(placed) == jax.tree.structure(state)
  for x, y in zip(jax.tree.leaves(placed), jax.tree.leaves(state)):
    np.testing.assert_array_equal(x, y)
  back = sharding.on_host(placed.params, 3)
  np.testing.assert_array_equal(back.entities, params.entities[:3])
  np.testing.assert_array_equal(back.relations, params.relations)


def test_padded_entities_count_for_nothing():
  facts = np.array([[0, 0, 1], [2, 1, 0]], np.int32)
  known = kb.known_facts(facts, 3, 2)
  params = kb.init_params("complex", jax.random.key(0), 3, 2, 4)
  longer = params._replace(entities=np.pad(params.entities, ((0, 2), (0, 0))))
  for loss in ("softmax", "bpr"):
    config = kb.CandidateConfig(3, 2, "complex", 4, loss)
    losses = []
    for tables in (params, longer):
      init, update = kb.candidate_softmax(config, optax.sgd(0.1), None, known)
      del init
      state = candidate_training.from_params(
        config, optax.sgd(0.1), tables, 0.01
      )
      after, value = update(state, kb.CandidateBatch(facts))
      losses.append((after.params.entities[:3], value))
    for x, y in zip(*losses):
      np.testing.assert_allclose(x, y, rtol=1e-5)

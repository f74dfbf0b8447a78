"""Sharded paths against those of one device, and what they hold and move.

`devices_test.py` runs this file in a process with eight devices.
"""

import functools

import cost_model as cost
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.sparse as sp

from launch import compiled
from repr_jax import evaluation, kb, ops, setexp
from repr_jax.data import rules as rule_files
from repr_jax.kb import (
  candidate_training,
  link_prediction,
  negatives,
  pair_training,
)
from repr_jax.kb import sharding as kb_placement
from repr_jax.linking import entity_vectors
from repr_jax.multiview import gcca, mvlsa, sharding
from repr_jax.ops import mesh as meshes
from repr_jax.ops import operators, sharded, topk
from repr_jax.setexp import batches, fitting, make_ranking
from repr_jax.setexp import sharding as vae_placement
from repr_jax.setexp import train as vae_training


def _argument_bytes(tree) -> int:
  """Bytes of the arrays of a tree on the first device."""
  return sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(tree))


def _views(n: int) -> list:
  rng = np.random.default_rng(0)
  base = rng.normal(size=(n, 6))
  views = []
  # The second is decomposed directly, the others by iteration.
  for d in (120, 12, 125):
    x = np.abs(base @ rng.normal(size=(6, d))) * (rng.random((n, d)) < 0.3)
    x[rng.random(n) < 0.1] = 0
    views.append(sp.csr_matrix(x))
  return views


@pytest.mark.parametrize("dense", [False, True])
def test_products_with_dealt_rows(dense):
  mesh = meshes.make_mesh("rows:4,views:2", sharding.AXES)
  rng = np.random.default_rng(0)
  x = rng.poisson(0.5, (37, 5)).astype(np.float32)
  given = x if dense else sp.csr_matrix(x)
  y = sharded.from_host(given, mesh, sharding.AXES, 8, columns=8)
  q = rng.normal(size=(y.shape[1], 2)).astype(np.float32)
  p, w = rng.normal(size=(37, 2)).astype(np.float32), rng.random(37)
  dealt = meshes.place(sharded.deal(p, 8), mesh, sharding.AXES)
  weights = meshes.place(sharded.deal(w, 8), mesh, sharding.AXES)
  back = functools.partial(sharded.gather_rows, n=37, shards=8)

  @jax.jit
  def products(y, weights, q, p):
    op = operators.row_scaled(y, weights)
    return op.matmat(q), op.rmatmat(p), op.normal(q), *op.tall_qr(p)

  image, turned, normal, left, r = products(y, weights, q, dealt)
  scaled = w[:, None] * np.pad(x, ((0, 0), (0, q.shape[0] - 5)))
  close = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
  close(back(image), scaled @ q)
  close(turned, scaled.T @ p)
  close(normal, scaled.T @ (scaled @ q))
  close(back(left) @ r, p)
  close(back(left).T @ back(left), np.eye(2))


@pytest.mark.parametrize("method", ["memory", "stream"])
def test_fit_over_rows_and_views(method, compilations):
  mesh = meshes.make_mesh("rows:4,views:2", sharding.AXES)
  views = _views(203)
  fit = functools.partial(
    mvlsa.fit, views, 5, m=8, method=method, projections=method == "memory"
  )
  one, many = fit(), fit(mesh=mesh)
  for ours, theirs in zip(
    jax.tree.leaves(meshes.to_host(many.model)), jax.tree.leaves(one.model)
  ):
    np.testing.assert_allclose(ours, theirs, atol=2e-4)
  assert many.lost == pytest.approx(one.lost, abs=1e-5)
  assert compilations.during(lambda: fit(mesh=mesh).model) == 0


def _factor_program(n: int, d: int, entries: int, m: int, devices: int):
  """A compiled SVD of a view [n, d] over devices; no array is made."""
  mesh = meshes.make_mesh(
    f"rows:{devices}", sharding.AXES, jax.devices()[:devices]
  )
  shape = functools.partial(
    jax.ShapeDtypeStruct, sharding=meshes.spec(mesh, sharding.AXES)
  )
  rows, blocks = n // devices, 16
  capacity = entries // devices // blocks
  values = shape((devices, blocks, capacity), jnp.float32)
  indices = shape((devices, blocks, capacity), jnp.int32)
  by_row = shape((devices, blocks, rows // blocks + 1), jnp.int32)
  by_column = shape((devices, blocks, d + 1), jnp.int32)
  parts = sharded.Sparse(
    values, indices, by_row, values, indices, by_column, (rows, d)
  )
  x = sharded.Sharded(parts, (n, d), mesh, sharding.AXES)
  weights, key = shape((n,), jnp.float32), jax.random.key(0)
  factor = jax.jit(gcca.factor_view, static_argnums=1)
  return factor.lower(x, m, weights, key).compile()


def test_a_view_costs_what_the_model_says():
  n, d, entries, m = 1 << 16, 256, 1 << 21, 16
  held = {}
  for devices in (2, 8):
    program = _factor_program(n, d, entries, m, devices)
    view = cost.View(n, d, entries)
    held[devices] = compiled.memory(program)
    expected = cost.factor_memory(view, m, devices)
    assert held[devices] == pytest.approx(expected, rel=0.2)
    found = compiled.moved(program.as_text(), devices)
    # The product with X'X is in a loop, whose body occurs once in the program.
    expected = {
      "all-reduce": cost.product_moved(view, m) + cost.factor_moved(view, m)
    }
    assert found == pytest.approx(expected, rel=0.2)
  assert held[2] / held[8] == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_a_combination_costs_what_the_model_says(devices):
  mesh = meshes.make_mesh(
    f"rows:{devices}", sharding.AXES, jax.devices()[:devices]
  )
  # Twice the words on twice the devices: each has as much to hold.
  n, m, views, k = 4096 * devices, 16, 6, 4
  whole = jax.ShapeDtypeStruct(
    (n, views * m), jnp.float32, sharding=meshes.spec(mesh, sharding.AXES)
  )
  program = sharding.combine.lower(
    mesh, m, k, whole, jax.random.key(0)
  ).compile()
  expected = cost.combine_memory(n, views, m, k, devices)
  assert compiled.memory(program) == pytest.approx(expected, rel=0.2)
  if devices > 1:
    found = compiled.moved(program.as_text(), devices)
    expected = cost.combine_moved(views, m, views * m, devices)
    assert found == pytest.approx(expected, rel=0.2)


def test_factors_move_between_parts_of_the_mesh_as_the_model_says():
  mesh = meshes.make_mesh("rows:4,views:2", sharding.AXES)
  stacked = jax.ShapeDtypeStruct(
    (2, 64, 16), jnp.float32, sharding=meshes.spec(mesh, "views", "rows")
  )
  program = sharding.exchange.lower(mesh, stacked).compile()
  found = compiled.moved(program.as_text(), 2)
  assert found == {"all-to-all": 64 * 16 * 4 / 4}


def _vae_problem(features: int, **options):
  rng = np.random.default_rng(0)
  counts = sp.csr_array(rng.poisson(0.1, (40, features)).astype(np.float32))
  config = setexp.Config(dim=6, hidden=(32,), **options)
  return config, fitting.prepare(config, counts)


def test_training_of_the_autoencoder_over_batch_and_features():
  mesh = meshes.make_mesh("batch:2,features:4", vae_placement.AXES)
  config, problem = _vae_problem(101)  # three rows of padding
  fit = functools.partial(
    fitting.fit, problem.counts, config, jax.random.key(0), epochs=2,
    batch_size=16, hyper=setexp.Hyper(1e-2), validation=problem.counts[:10],
  )  # fmt: skip
  one, many = fit(), fit(mesh=mesh)
  for ours, theirs in zip(
    jax.tree.leaves(many.params), jax.tree.leaves(one.params)
  ):
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
  assert many.history[-1][0] == pytest.approx(one.history[-1][0], rel=1e-4)
  np.testing.assert_allclose(many.history[-1][1], one.history[-1][1], rtol=1e-4)


@pytest.mark.parametrize(("batch", "features"), [(1, 2), (1, 8), (2, 4)])
def test_a_step_of_the_autoencoder_costs_what_the_model_says(batch, features):
  devices = jax.devices()[: batch * features]
  mesh = meshes.make_mesh(
    f"batch:{batch},features:{features}", vae_placement.AXES, devices
  )
  config, problem = _vae_problem(4096)
  init, _ = setexp.vae(config)
  state = init(jax.random.key(0), problem.statistics)
  state = vae_placement.place_state(mesh, state)
  packed = batches.pack(problem.counts, np.arange(16)[None])
  noise = np.zeros((1, 1, 16, 6), np.float32)
  packed, noise = vae_placement.place_batches(mesh, packed, noise, 4096)
  program = vae_training.run.lower(
    config, optax.adam, state, packed, noise, setexp.Hyper()
  ).compile()
  sizes = cost.Autoencoder(
    features=4096, hidden=32, latent=6, batch=16,
    touched=packed.features[0].size,
  )  # fmt: skip
  found = compiled.moved(program.as_text(), mesh.size)
  expected = {"all-reduce": cost.step_moved(sizes, batch, features)}
  assert found == pytest.approx(expected, rel=0.2)
  state_bytes = _argument_bytes(state)
  assert state_bytes == pytest.approx(
    cost.state_memory(sizes, features), rel=0.2
  )


def _knowledge_base():
  rng = np.random.default_rng(0)
  facts = rng.integers(0, (29, 3, 29), (64, 3)).astype(np.int32)
  names = [f"e{i}" for i in range(29)], [f"r{i}" for i in range(3)]
  return facts, names, negatives.known_facts(facts, 29, 3)


def test_pairs_of_facts_over_devices():
  mesh = meshes.make_mesh("batch:8", ("batch",))
  facts, (entities, relations), known = _knowledge_base()
  rules = [rule_files.Rule("RelImp", ("r0", "r1"))]
  compiled = kb.compile_rules("B", rules, relations, entities)
  keys = jax.random.split(jax.random.key(2), 2)
  found = []
  for where in (None, mesh):
    params = kb.init_params("B", jax.random.key(1), 29, 3, 6)
    params = kb.project(compiled, params)
    state = kb.SGDState(params, jnp.float32(0.1), jnp.float32(1e-3))
    config = kb.SGDConfig(29, 3, "B", 6, batch_size=16, mesh=where)
    if where is not None:
      state = kb_placement.place_state(where, state)
    after, loss = pair_training.train(
      config, compiled, known, facts, state, keys
    )
    if where is not None:
      assert _argument_bytes(after.params.entities) == 4 * 6 * 4
    found.append((kb_placement.on_host(after.params, 29), loss))
  for ours, theirs in zip(*map(jax.tree.leaves, found)):
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize(
  ("candidates", "loss"), [(0, "softmax"), (7, "softmax"), (0, "bpr")]
)
def test_many_candidates_over_devices(candidates, loss):
  mesh = meshes.make_mesh("batch:8", ("batch",))
  facts, _, known = _knowledge_base()
  optimizer = optax.adagrad(0.1)
  found = []
  for where in (None, mesh):
    params = kb.init_params("complex", jax.random.key(1), 29, 3, 6)
    config = kb.CandidateConfig(
      29, 3, "complex", 6, loss, batch_size=16, num_candidates=candidates,
      mesh=where,
    )  # fmt: skip
    state = candidate_training.from_params(config, optimizer, params, 1e-3)
    if where is not None:
      state = kb_placement.place_state(where, state)
    after, last = candidate_training.train(
      config, optimizer, None, known, facts, state, jax.random.key(2)
    )
    if where is not None:
      assert _argument_bytes(after.params.entities) == 4 * 6 * 4
    found.append((kb_placement.on_host(after.params, 29), last))
  for ours, theirs in zip(*map(jax.tree.leaves, found)):
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_ranks_over_devices():
  mesh = meshes.make_mesh("batch:8", ("batch",))
  facts, _, _ = _knowledge_base()
  params = kb.init_params("T", jax.random.key(1), 29, 3, 6)
  # Equal rows make ties, and small whole numbers keep them exact.
  params = jax.tree.map(lambda x: jnp.round(10 * x), params)
  found = [
    link_prediction.rank(
      *link_prediction.scorers("T", params, where), facts, facts, block=16,
      num_entities=29,
    )
    for where in (None, mesh)
  ]  # fmt: skip
  for ours, theirs in zip(*map(jax.tree.leaves, found)):
    np.testing.assert_array_equal(ours, theirs)


def test_a_block_of_ranks_never_gathers_scores():
  mesh = meshes.make_mesh("batch:8", ("batch",))
  entities, dim, block, listed = 8192, 8, 16, 1024
  params = kb.init_params("distmult", jax.random.key(1), entities, 3, dim)
  _, tails = link_prediction.scorers("distmult", params, mesh)
  ids = np.zeros(block, np.int32)
  program = link_prediction.rank_block.lower(
    tails, ids, ids, ids, np.zeros(listed, np.int32),
    np.zeros(block + 1, np.int32), flip=False,
  ).compile()  # fmt: skip
  found = compiled.moved(program.as_text(), 8)
  # The queries' vectors, three numbers of each, and the known facts.
  expected = {"all-reduce": 4 * (block * dim + 3 * block + listed)}
  assert found == pytest.approx(expected, rel=0.2)
  assert compiled.memory(program) < 0.4 * block * entities * 4


def test_top_k_over_devices():
  mesh = meshes.make_mesh("batch:8", ("batch",))
  rng = np.random.default_rng(0)
  scores = rng.integers(0, 9, (3, 40)).astype(np.float32)  # many ties
  scores[1, 5:] = -np.inf
  scores[2, ::2] = -0.0
  placed = meshes.place(scores, mesh, None, "batch")
  for k in (4, 12):
    best = jax.vmap(functools.partial(topk.top_k, k=k))(scores)
    for ours, theirs in zip(ops.sharded_top_k(placed, k, mesh=mesh), best):
      np.testing.assert_array_equal(ours, theirs)
  program = ops.sharded_top_k.lower(placed, 4, mesh=mesh).compile()
  found = compiled.moved(program.as_text(), 8)
  assert found == pytest.approx(
    {"all-gather": 2 * 4 * 3 * 4 * 8},
    rel=0.2,  # values and places
  )


@pytest.mark.parametrize("score", ["xi", "bayes", "cosine", "hubs", "features"])
def test_expansion_over_devices(score):
  mesh = meshes.make_mesh("batch:8", ("batch",))
  config, problem = _vae_problem(50)
  counts = problem.counts[:37]
  params = setexp.init(config, jax.random.key(0), problem.statistics)
  inputs = problem.statistics.inputs
  model = setexp.model_from_scipy(config, params, inputs, counts)
  if score == "hubs":
    model, score = setexp.fit_cosine(model, 1.0, 0.5), "cosine"
  # More queries than are multiplied one by one.
  members = [[0, 36], [8, 9, 20], *([i] for i in range(7))]
  queries = [setexp.make_query(counts, ids) for ids in members]
  padded, ranking = setexp.pad_queries(model, queries), make_ranking(score)
  over = setexp.place_model(model, mesh)
  for k in (3, 37):
    one = setexp.expand(model, padded, ranking, k)
    many = setexp.expand_sharded(over, mesh, padded, ranking, k)
    np.testing.assert_array_equal(many.ids[:, :34], one.ids[:, :34])
    np.testing.assert_allclose(many.scores, one.scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["add", "mul"])
def test_analogies_among_shared_words(method):
  rng = np.random.default_rng(0)
  array = rng.normal(size=(123, 6)).astype(np.float32)
  array[7:] = np.tile(array[7:65], (2, 1))  # equal words on several devices
  terms = np.arange(9, dtype=np.int32)
  questions = rng.permuted(np.tile(terms, (30, 1)), axis=1)[:, :3]
  given = functools.partial(
    evaluation.solve_analogies, array, terms, questions, method=method,
    block_words=5,
  )  # fmt: skip
  np.testing.assert_array_equal(given(mesh=meshes.own_devices()), given())


def test_max_margin_vectors_of_shared_entities():
  rng = np.random.default_rng(0)
  table, unigram = rng.normal(size=(30, 5)), np.ones(30)
  offsets = np.append(0, np.cumsum(rng.integers(0, 6, 19)))
  words = rng.integers(0, 30, offsets[-1]).astype(np.int32)
  keys = jax.random.split(jax.random.key(0), 2)
  fit = functools.partial(
    entity_vectors.fit_max_margin, table, offsets, words, unigram, key=keys,
    margin=np.array([0.1, 0.5]), steps=20,
  )  # fmt: skip
  shared = fit(mesh=meshes.own_devices())
  assert shared.shape == (2, 19, 5)
  np.testing.assert_allclose(shared, fit(), atol=1e-5)

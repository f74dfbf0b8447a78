"""RESCAL by ALS against the textbook's updates in float64 and optimality."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.kb import rescal_als, slices
from repr_jax.ops import precision


def _relations(size=40, seed=0, count=2):
  rng = np.random.default_rng(seed)
  return [
    sp.csr_matrix((rng.random((size, size)) < 0.1) * rng.random((size, size)))
    for _ in range(count)
  ]


def _tree(height):
  size = 2**height - 1
  pairs = []
  for child in range(1, size):
    parent = child
    while parent:
      parent = (parent - 1) // 2
      pairs.append((parent, child))
  rows, columns = np.array(pairs).T
  return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), (size, size))


def _complement(edges, dtype=np.float32):
  return slices.make_slices([edges], [[1.0], [-1.0]], [0.0, 1.0], dtype=dtype)


def _start(data, rank, seed=0, roles=False, ridge=None):
  """A random start, drawn here so that it compiles little."""
  rng = np.random.default_rng(seed)
  left, right = (
    jnp.asarray(np.linalg.qr(rng.normal(size=(data.entities, rank)))[0], dtype)
    for dtype in 2 * [data.ones.dtype]
  )
  return rescal_als.from_factors(
    data, left, right if roles else left, ridge=ridge
  )


def _updated(data, state, steps, roles=False):
  for _ in range(steps):
    state = rescal_als.update(data, state, roles=roles)
  return state


def _predictions(model):
  return np.einsum("vi,kij,wj->kvw", model.left, model.cores, model.right)


def _textbook(matrices, factor, steps, penalty=0.0):
  """Nickel's two updates as he writes them; the last A, R."""

  def cores(a):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    shat = np.outer(s, s)
    shat = shat / (shat**2 + penalty)
    return [vt.T @ (shat * (u.T @ x @ u)) @ vt for x in matrices]

  core = cores(factor)
  for _ in range(steps):
    gram = factor.T @ factor
    top = sum(
      x @ factor @ r.T + x.T @ factor @ r for x, r in zip(matrices, core)
    )
    bottom = sum(r @ gram @ r.T + r.T @ gram @ r for r in core)
    bottom += penalty * np.eye(len(bottom))
    factor = np.linalg.solve(bottom.T, top.T).T
    core = cores(factor)
  return factor, core


@pytest.mark.parametrize("penalty", [None, 0.0, 0.3])
def test_updates_against_the_textbook(penalty):
  ridge = None if penalty is None else rescal_als.Ridge(penalty, penalty)
  penalty = penalty or 0.0
  with precision.enable_x64(True):
    data = slices.make_slices(_relations(), dtype=np.float64)
    state = _start(data, 6, ridge=ridge)
    factor = np.asarray(state.model.left)
    for _ in range(5):
      state = rescal_als.update(data, state)
    ours = _predictions(state.model)
    fit = float(state.fit)
  dense = [x.toarray() for x in _relations()]
  a, r = _textbook(dense, factor, 5, penalty)
  theirs = np.stack([a @ core @ a.T for core in r])
  np.testing.assert_allclose(ours, theirs, atol=1e-10)
  loss = sum(np.sum((x - p) ** 2) for x, p in zip(dense, theirs))
  assert fit == pytest.approx(1 - loss / sum(np.sum(x**2) for x in dense))


@pytest.mark.parametrize("roles", [False, True])
def test_complement_is_the_dense_complement(roles):
  edges = _tree(5)
  with precision.enable_x64(True):
    lazy = _complement(edges, np.float64)
    full = slices.make_slices(
      [edges, sp.csr_matrix(1.0 - edges.toarray())], dtype=np.float64
    )
    np.testing.assert_allclose(lazy.norms, full.norms)
    models = []
    for data in (lazy, full):
      state = _updated(data, _start(data, 7, 1, roles), 6, roles)
      models.append(_predictions(state.model))
  np.testing.assert_allclose(models[0], models[1], atol=1e-9)


def test_single_precision_follows_double_on_the_complement():
  # The complement's norm is a thousand times that of the edges.
  edges = _tree(8)
  found = []
  for dtype in (np.float32, np.float64):
    with precision.enable_x64(True):
      data = _complement(edges, dtype)
      noise = np.random.default_rng(0).normal(size=(255, 20))
      start = jnp.asarray(np.linalg.qr(noise)[0], dtype)
      state = rescal_als.from_factors(data, start, start)
      for _ in range(8):
        state = rescal_als.update(data, state)
      found.append(_predictions(state.model))
  assert np.abs(found[0] - found[1]).max() < 5e-3


@pytest.mark.parametrize("roles", [False, True])
def test_fit_never_falls(roles):
  data = slices.make_slices(_relations())
  state = _start(data, 6, 2, roles)
  fits = [float(state.fit)]
  for _ in range(15):
    state = rescal_als.update(data, state, roles=roles)
    fits.append(float(state.fit))
  assert np.all(np.diff(fits) > -1e-6) and fits[-1] > fits[0] + 1e-3
  assert int(state.step) == 15


def test_an_exact_model_is_recovered():
  rng = np.random.default_rng(4)
  a = rng.normal(size=(30, 3))
  dense = [a @ rng.normal(size=(3, 3)) @ a.T for _ in range(2)]
  data = slices.make_slices([sp.csr_matrix(x) for x in dense])
  state = _updated(data, _start(data, 3), 200)
  assert float(state.fit) > 1 - 1e-5
  np.testing.assert_allclose(_predictions(state.model), dense, atol=2e-2)


def test_roles_fit_what_one_vector_cannot():
  # A permutation of rank 4 times 2 has different row and column spaces.
  matrix = sp.csr_matrix(
    (np.ones(4), ([0, 1, 2, 3], [4, 5, 6, 7])), shape=(20, 20)
  )
  data = slices.make_slices([matrix])
  fits = {}
  for roles in (False, True):
    state = _updated(data, _start(data, 4, 0, roles), 30, roles)
    fits[roles] = float(state.fit)
  assert fits[True] > 0.999 and fits[False] < 0.6


def test_eigenvector_start_against_numpy():
  matrices = _relations(50, 5)
  data = slices.make_slices(matrices)
  state = rescal_als.init(data, 5, jax.random.key(0))
  dense = sum(x.toarray() + x.toarray().T for x in matrices)
  values, vectors = np.linalg.eigh(dense)
  best = vectors[:, np.argsort(-np.abs(values))[:5]]
  left = np.asarray(state.model.left)
  np.testing.assert_allclose(left @ left.T, best @ best.T, atol=1e-3)


def test_eigenvector_start_of_a_complement_is_filled_up_at_random():
  state = rescal_als.init(_complement(_tree(6)), 9, jax.random.key(0))
  left = np.asarray(state.model.left)
  np.testing.assert_allclose(left.T @ left, np.eye(9), atol=1e-5)
  assert np.linalg.norm(left.T @ np.ones(63)) == pytest.approx(np.sqrt(63))
  other = rescal_als.init(_complement(_tree(6)), 9, jax.random.key(1))
  assert (
    np.abs(left @ left.T - other.model.left @ other.model.left.T).max() > 0.1
  )


def test_rank_above_the_data_stays_finite():
  matrix = sp.csr_matrix((np.ones(2), ([0, 1], [1, 2])), shape=(12, 12))
  for ridge in (None, rescal_als.Ridge(0.1, 0.1)):
    data = slices.make_slices([matrix])
    state = _start(data, 10, ridge=ridge)
    for _ in range(20):
      state = rescal_als.update(data, state)
    assert np.isfinite(_predictions(state.model)).all()
    assert float(state.fit) > (0.99 if ridge is None else 0.5)


def test_runs_of_one_program_equal_runs_alone_and_compile_once():
  runs = [slices.make_slices(_relations(48, seed)) for seed in range(3)]
  keys = jax.random.split(jax.random.key(0), 3)
  rescal_als.fit_runs.clear_cache()
  models, fits, steps = rescal_als.fit_runs(
    slices.stack(runs), keys, rank=5, max_steps=12, start="random"
  )
  rescal_als.fit_runs(
    slices.stack(runs[::-1]), keys, rank=5, max_steps=12, start="random"
  )
  assert rescal_als.fit_runs._cache_size() == 1
  for index in range(3):
    data = jax.tree.map(lambda x, i=index: x[i], slices.stack(runs))
    state = rescal_als.init(data, 5, keys[index], start="random")
    state = rescal_als.fit(data, state, max_steps=12)
    assert float(fits[index]) == pytest.approx(float(state.fit), abs=1e-4)
    assert 1 <= int(steps[index]) <= 12
    one = jax.tree.map(lambda x, i=index: x[i], models)
    np.testing.assert_allclose(
      _predictions(one), _predictions(state.model), atol=2e-2
    )


def test_fit_stops_when_little_changes():
  data = slices.make_slices(_relations())
  state = rescal_als.fit(data, _start(data, 6), tolerance=1e-3)
  assert float(state.change) < 1e-3 and int(state.step) < 100


def test_no_square_matrix_is_formed():
  size = 1023
  data = _complement(_tree(10))
  state = jax.eval_shape(
    lambda d: rescal_als.init(d, 4, jax.random.key(0), start="random"), data
  )
  compiled = rescal_als.update.lower(data, state).compile()
  assert compiled.memory_analysis().temp_size_in_bytes < size * size * 4 / 2


def test_bad_input_is_named():
  matrices = _relations()
  with pytest.raises(InputError, match="matrix 1 has shape"):
    slices.make_slices([matrices[0], matrices[1][:10]])
  data = slices.make_slices(matrices)
  with pytest.raises(InputError, match="rank 41"):
    rescal_als.init(data, 41, jax.random.key(0))
  with pytest.raises(InputError, match="nvecs"):
    rescal_als.init(data, 4, jax.random.key(0), start="svd")

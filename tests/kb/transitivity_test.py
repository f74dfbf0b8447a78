"""The theorem on random matrices, and accuracies against dense counting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from repr_jax.errors import InputError
from repr_jax.kb import rescal_als, transitivity
from repr_jax.ops import precision


def _check(matrix):
  """Checks the triple in float64, whatever made it."""
  found = transitivity.violating_triple(matrix)
  a, b, c = (np.asarray(x, np.float64) for x in found[:3])
  dense = np.asarray(matrix, np.float64)
  assert bool(found.exists)
  assert a @ dense @ b > 0 and b @ dense @ c > 0 and a @ dense @ c <= 0
  np.testing.assert_allclose(
    found.products, [a @ dense @ b, b @ dense @ c, a @ dense @ c], atol=1e-3
  )


@settings(max_examples=40, deadline=None)
@given(
  st.sampled_from([2, 3, 17]),
  st.sampled_from(["any", "psd", "skew", "nearly", "nearly psd"]),
  st.integers(0, 10**6),
)
def test_every_asymmetric_matrix_is_violated(size, kind, seed):
  rng = np.random.default_rng(seed)
  noise = rng.normal(size=(size, size))
  symmetric, skew = (noise + noise.T) / 2, (noise - noise.T) / 2
  positive = noise @ noise.T
  matrix = {
    "any": noise,
    "psd": positive + skew,
    "skew": skew,
    "nearly": symmetric + 1e-3 * skew,
    "nearly psd": positive + 1e-3 * skew,
  }[kind]
  _check(jnp.asarray(matrix, jnp.float32))


def test_a_skew_part_of_one_part_in_a_billion_in_double():
  rng = np.random.default_rng(0)
  noise = rng.normal(size=(8, 8))
  with precision.enable_x64(True):
    _check(jnp.asarray(noise @ noise.T + 1e-9 * (noise - noise.T)))


def test_singular_positive_part():
  # x'Mx = 0 for the only vectors that K does not annul.
  matrix = np.zeros((3, 3))
  matrix[0, 0], matrix[1, 2], matrix[2, 1] = 1, 1, -1
  _check(jnp.asarray(matrix))


def test_whole_numbers_and_numbers_whose_products_are_none():
  _check(np.array([[1, 2], [0, 1]]))
  _check(np.array([[True, True], [False, True]]))
  for size in (1e30, 1e-30):
    matrix = np.array([[1, 1], [0, 1]], np.float32)
    found = transitivity.violating_triple(matrix * np.float32(size))
    plain = transitivity.violating_triple(matrix)
    assert bool(found.exists)
    np.testing.assert_allclose(found.a, plain.a, atol=1e-6)
    np.testing.assert_allclose(found.products / size, plain.products, rtol=1e-5)


def test_symmetric_and_other_matrices_are_refused():
  with pytest.raises(InputError, match="symmetric"):
    transitivity.violating_triple(jnp.diag(jnp.array([1.0, -2.0])))
  with pytest.raises(InputError, match="symmetric"):
    transitivity.violating_triple(jnp.zeros((3, 3)))
  with pytest.raises(InputError, match="square"):
    transitivity.violating_triple(jnp.zeros((3, 2)))
  with pytest.raises(InputError, match="real"):
    transitivity.violating_triple(jnp.array([[1, 1j], [0, 1]]))
  with pytest.raises(InputError, match="finite"):
    transitivity.violating_triple(jnp.array([[1.0, jnp.nan], [0.0, 1.0]]))


def test_jit_and_vmap():
  many = jax.random.normal(jax.random.key(0), (20, 5, 5))
  assert bool(
    jax.jit(jax.vmap(transitivity.violating_triple))(many).exists.all()
  )
  # A transitive matrix: no triple can be found.
  assert not bool(jax.jit(transitivity.violating_triple)(jnp.eye(3)).exists)


def _model(seed, size=30, rank=4):
  keys = jax.random.split(jax.random.key(seed), 3)
  left, right = (jax.random.normal(k, (size, rank)) for k in keys[:2])
  return rescal_als.RescalModel(
    left, right, jax.random.normal(keys[2], (2, rank, rank))
  )


@pytest.mark.parametrize("block", [7, 30, 64])
def test_accuracies_against_dense_counting(block):
  model = _model(0)
  rng = np.random.default_rng(0)
  mask = np.triu(rng.random((30, 30)) < 0.3, 1)
  edges = np.argwhere(mask).astype(np.int32)
  scores = np.einsum("vi,kij,wj->kvw", model.left, model.cores, model.right)
  margin = scores[0] - scores[1]
  found = transitivity.accuracies(model, jnp.asarray(edges), block=block)
  assert float(found.edges) == pytest.approx((margin[mask] > 0).mean())
  assert float(found.others) == pytest.approx((margin[~mask] < 0).mean())
  assert float(found.reversed) == pytest.approx((margin.T[mask] < 0).mean())
  pairs = transitivity.margins(model, jnp.asarray(edges), block=block)
  np.testing.assert_allclose(pairs, margin[mask], atol=1e-4)


def test_a_tie_is_wrong_on_both_sides():
  model = _model(1)._replace(cores=jnp.zeros((2, 4, 4)))
  found = transitivity.accuracies(model, jnp.array([[0, 1], [2, 3]]))
  assert [float(x) for x in found] == [0.0, 0.0, 0.0]


def test_accuracies_never_form_all_pairs():
  size = 4096
  model = jax.eval_shape(lambda: _model(0, size, 8))
  edges = jax.ShapeDtypeStruct((100, 2), jnp.int32)
  compiled = transitivity.accuracies.lower(model, edges, block=64).compile()
  assert compiled.memory_analysis().temp_size_in_bytes < size * size


def test_complement_samples_are_distinct_and_outside():
  rng = np.random.default_rng(0)
  edges = sp.csr_matrix(np.triu(np.ones((12, 12)), 1))
  drawn = transitivity.sample_complement(edges, 60, rng)
  assert drawn.nnz == 60 and drawn.max() == 1
  assert drawn.multiply(edges).nnz == 0
  every = transitivity.sample_complement(edges, 78, rng)
  np.testing.assert_array_equal((every + edges).toarray(), 1)
  with pytest.raises(InputError, match="79 pairs asked of 78"):
    transitivity.sample_complement(edges, 79, rng)

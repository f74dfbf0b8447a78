"""Matrices of every kind that a user may have, and keys or seeds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.experimental import sparse as jsparse

from repr_jax import ops
from repr_jax.errors import InputError
from repr_jax.ops import inputs

_DENSE = np.float32([[0, 2, 0], [1, 0, 3]])


@pytest.mark.parametrize(
  ("given", "is_sparse"),
  [
    (_DENSE, False),
    (_DENSE.astype(np.int64), False),
    (_DENSE.tolist(), False),
    (jnp.asarray(_DENSE), False),
    (scipy.sparse.coo_matrix(_DENSE), True),
    (ops.from_scipy(scipy.sparse.csr_array(_DENSE)), True),
    (jsparse.BCOO.fromdense(_DENSE, nse=5), True),  # with padding
    (jsparse.BCSR.fromdense(_DENSE), True),
  ],
)
def test_every_kind_holds_the_same_numbers(given, is_sparse):
  matrix = inputs.read_matrix(given, "counts")
  assert scipy.sparse.issparse(matrix) == is_sparse
  dense = matrix.toarray() if is_sparse else matrix
  np.testing.assert_array_equal(dense, _DENSE)


@pytest.mark.parametrize(
  ("given", "message"),
  [
    (np.ones(4), r"view 3 has shape \(4,\); expected two axes"),
    (np.array([["a"]]), "view 3 holds <U1; expected real numbers"),
    ([[1.0, 2.0], [3.0]], "view 3 is not a matrix"),
    (jsparse.BCOO.fromdense(jnp.ones((4, 2)), n_batch=1), "view 3.*batch"),
  ],
)
def test_what_is_no_matrix_is_named(given, message):
  with pytest.raises(InputError, match=message):
    inputs.read_matrix(given, "view 3")


def test_truth_values_are_zeros_and_ones():
  matrix = inputs.read_matrix(_DENSE > 0, "counts")
  np.testing.assert_array_equal(matrix, np.float32(_DENSE > 0), strict=True)


def test_a_seed_is_its_key():
  key = jax.random.key(7)
  for seed in (7, np.int64(7), key):
    assert inputs.as_key(seed) == key
  with pytest.raises(InputError, match="key must be"):
    inputs.as_key(0.5)

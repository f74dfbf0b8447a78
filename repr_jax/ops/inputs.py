"""Arguments as users pass them: matrices of many kinds, keys, whole numbers."""

import operator
from typing import Any

import jax
import numpy as np
import scipy.sparse
from jax.experimental import sparse as jsparse
from scipy.sparse import csr_array as Csr

from repr_jax.errors import InputError
from repr_jax.ops import sparse
from repr_jax.ops.sparse import Sparse


def read_matrix(matrix: Any, name: str) -> Csr | np.ndarray:
  """A matrix [n, d] on the host, as CSR or a dense array of real numbers.

  Args:
    matrix: a numpy or jax array, an `ops.Sparse`, a BCOO or BCSR matrix, a
      scipy matrix, or nested lists.
    name: for messages, as "view 3".
  """
  if isinstance(matrix, Sparse):
    matrix = sparse.to_scipy(matrix)
  elif isinstance(matrix, (jsparse.BCOO, jsparse.BCSR)):
    matrix = _from_jax_sparse(matrix, name)
  shape = getattr(matrix, "shape", None)
  if shape is None:
    try:
      matrix = np.asarray(matrix)
    except ValueError as error:
      raise InputError(f"{name} is not a matrix: {error}") from error
    shape = matrix.shape
  if len(shape) != 2:
    raise InputError(f"{name} has shape {tuple(shape)}; expected two axes")
  if not scipy.sparse.issparse(matrix):
    matrix = np.asarray(matrix)
  if matrix.dtype == bool:
    matrix = matrix.astype(np.float32)
  if matrix.dtype.kind not in "fiu":
    raise InputError(f"{name} holds {matrix.dtype}; expected real numbers")
  return Csr(matrix) if scipy.sparse.issparse(matrix) else matrix


def as_key(key: Any) -> jax.Array:
  """A random key [], made from a seed if one is given.

  Args:
    key: a key, or a whole number.
  """
  if isinstance(key, (int, np.integer)):
    return jax.random.key(int(key))
  if not isinstance(key, jax.Array):
    raise InputError(
      f"key must be a jax.random.key or a whole number, not {key!r}"
    )
  return key


def check_whole(least: int, **numbers: Any) -> None:
  """Refuses arguments that are not whole numbers of at least `least`."""
  for name, number in numbers.items():
    try:
      valid = operator.index(number) >= least
    except TypeError:
      valid = False
    if not valid:
      raise InputError(
        f"{name} must be a whole number, {least} or more, not {number!r}"
      )


def check_types(**arguments: tuple[Any, type]) -> None:
  """Refuses arguments that are not of their type."""
  for name, (value, kind) in arguments.items():
    if not isinstance(value, kind):
      given = type(value).__name__
      raise InputError(f"{name} must be a {kind.__name__}, not {given}")


def _from_jax_sparse(matrix: Any, name: str) -> Csr:
  """Entries of a BCOO or BCSR matrix; those out of bounds are padding."""
  if isinstance(matrix, jsparse.BCSR):
    matrix = matrix.to_bcoo()
  if matrix.n_batch or matrix.n_dense or matrix.ndim != 2:
    raise InputError(f"{name} is a sparse matrix with batch or dense axes")
  data, index = np.asarray(matrix.data), np.asarray(matrix.indices)
  inside = (index < np.array(matrix.shape)).all(axis=1)
  places = (index[inside, 0], index[inside, 1])
  return Csr((data[inside], places), shape=matrix.shape)

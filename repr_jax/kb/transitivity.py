"""Limits of RESCAL on a transitive relation (thesis 5.2).

A matrix M is transitive when a'Mb > 0 and b'Mc > 0 imply a'Mc > 0. Every
transitive matrix is symmetric, so for an asymmetric one there are vectors that
break the implication; `violating_triple` finds them. `accuracies` measures
how a fitted model treats a transitive closure, its complement and its reverse.
"""

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array, lax

from repr_jax.errors import InputError
from repr_jax.kb.rescal_als import RescalModel
from repr_jax.ops.dense_factorizations import eigh
from repr_jax.ops.precision import exact_products


class Violation(NamedTuple):
  """Vectors with a'Mb > 0 and b'Mc > 0 although a'Mc <= 0.

  Attributes:
    a: [d], of unit length.
    b: [d], of unit length.
    c: [d], of unit length.
    products: a'Mb, b'Mc and a'Mc as computed, [3].
    exists: whether the products break transitivity, bool [].
  """

  a: Array
  b: Array
  c: Array
  products: Array
  exists: Array


class Accuracies(NamedTuple):
  """Fractions of pairs whose relation a model predicts rightly.

  Attributes:
    edges: of E, right when the relation scores above its absence, [].
    others: of all pairs outside E, right when it scores below, [].
    reversed: of the pairs of E turned round, right when it scores below, [].
  """

  edges: Array
  others: Array
  reversed: Array


def violating_triple(matrix: Array) -> Violation:
  """Three vectors that show an asymmetric matrix not to be transitive.

  With M = S + K, S symmetric and K skew, take an eigenvector x of S with value
  l. If l < 0, then (x, -x, x) will do, for x'Mx = l. Else y = K'x has
  x'My = |K'x|^2 and y'Mx = -|K'x|^2, since x'SK'x = l x'K'x = 0, so
  (x, y, -x) gives a'Mc = -l <= 0; a small step of c along -M'x makes that
  strict. Some eigenvector has K'x != 0 as they span the space. The triple
  with the widest margin among all eigenvectors is returned (thesis 5.2.1).

  >>> import jax.numpy as jnp
  >>> from repr_jax import kb
  >>> matrix = jnp.array([[1.0, 1.0], [0.0, 1.0]])
  >>> a, b, c, products, exists = kb.violating_triple(matrix)
  >>> print(products[0] > 0, products[1] > 0, products[2] <= 0)
  True True True

  Args:
    matrix: M, [d, d], of any real type; its skew part must be above the
      rounding level.

  Returns:
    The triple. Under `jit` the matrix cannot be checked: look at `exists`.

  Raises:
    InputError: if M is symmetric up to rounding, or is not square.
  """
  matrix = jnp.asarray(matrix)
  if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
    raise InputError(f"the matrix must be square, not {list(matrix.shape)}")
  if jnp.iscomplexobj(matrix):
    raise InputError("the matrix must be real")
  matrix = matrix.astype(jnp.result_type(matrix, jnp.float32))
  if not isinstance(matrix, jax.core.Tracer):
    if not bool(jnp.isfinite(matrix).all()):
      raise InputError("the matrix has an entry that is not a finite number")
    scaled, _ = _scaled(matrix)
    skew = float(jnp.abs(scaled - scaled.T).max())
    if skew <= 4 * jnp.finfo(scaled.dtype).eps * float(jnp.abs(scaled).max()):
      raise InputError(
        "the matrix is symmetric up to rounding: the theorem speaks of "
        "asymmetric matrices only"
      )
  return _widest(matrix)


@functools.partial(jax.jit, static_argnames="block")
@exact_products
def accuracies(
  model: RescalModel, edges: Array, *, block: int = 1024
) -> Accuracies:
  """How a model of presence and absence treats a relation (thesis 5.2.2).

  Slice 0 of the model is the relation and slice 1 its absence. All v^2 pairs
  are scored, `block` rows at a time; a tie counts as wrong.

  Args:
    model: factors [v, d] and cores [2, d, d].
    edges: the relation's pairs E, without duplicates, int32 [n, 2].
    block: rows scored at a time; memory grows as block * v.
  """
  chex.assert_rank([model.left, model.cores, edges], [2, 3, 2])
  size = model.left.shape[0]
  forward = margins(model, edges)
  backward = margins(model, edges[:, ::-1])
  left = model.left @ (model.cores[0] - model.cores[1])
  blocks = -(-size // block)
  padded = jnp.pad(left, ((0, blocks * block - size), (0, 0)))

  def below(rows):
    # Rows of padding score 0 and are not below.
    return jnp.sum(rows @ model.right.T < 0, axis=1, dtype=jnp.int32)

  counts = lax.map(below, padded.reshape(blocks, block, -1)).reshape(-1)
  # The count of a row fits an int32, the sum of all counts may not. So the
  # counts are averaged as fractions of rows.
  fraction = jnp.mean(counts[:size] / size)
  share = edges.shape[0] / size**2
  inside = jnp.mean(forward < 0) * share
  return Accuracies(
    jnp.mean(forward > 0),
    (fraction - inside) / (1 - share),
    jnp.mean(backward < 0),
  )


@functools.partial(jax.jit, static_argnames="block")
@exact_products
def margins(model: RescalModel, pairs: Array, *, block: int = 8192) -> Array:
  """Score of presence over absence, s(i, 0, j) - s(i, 1, j), for given pairs.

  Args:
    model: factors [v, d] and cores [2, d, d].
    pairs: int32 [n, 2].
    block: pairs scored at a time.

  Returns:
    The margins, [n].
  """
  chex.assert_rank([model.left, model.cores, pairs], [2, 3, 2])
  left = model.left @ (model.cores[0] - model.cores[1])

  def one(pair):
    return left[pair[0]] @ model.right[pair[1]]

  return lax.map(one, pairs, batch_size=min(block, pairs.shape[0]))


def sample_complement(
  edges: scipy.sparse.spmatrix | scipy.sparse.sparray,
  count: int,
  rng: np.random.Generator,
) -> scipy.sparse.csr_matrix:
  """Draws distinct pairs outside a relation, self-pairs included.

  Args:
    edges: the relation E, [v, v]; its stored entries are its pairs.
    count: how many pairs.

  Returns:
    The pairs as a matrix of ones, [v, v].
  """
  size = edges.shape[0]
  coo = scipy.sparse.coo_matrix(edges)
  taken = np.unique(coo.row.astype(np.int64) * size + coo.col)
  if count > size * size - len(taken):
    raise InputError(
      f"{count} pairs asked of {size * size - len(taken)} outside the relation"
    )
  drawn = np.zeros(0, np.int64)
  while len(drawn) < count:
    more = rng.integers(0, size * size, 2 * (count - len(drawn)) + 16)
    more = more[~np.isin(more, taken)]
    drawn = np.concatenate([drawn, more])
    # The first place of each pair, so that the order of drawing stays.
    drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
  drawn = drawn[:count]
  ones = np.ones(count, np.float32)
  return scipy.sparse.csr_matrix(
    (ones, (drawn // size, drawn % size)), (size, size)
  )


@jax.jit
@exact_products
def _widest(matrix: Array) -> Violation:
  matrix, exponent = _scaled(matrix)
  symmetric, skew = (matrix + matrix.T) / 2, (matrix - matrix.T) / 2
  values, vectors = eigh(symmetric)

  def candidate(value, x):
    y = _unit(skew.T @ x)
    along = matrix.T @ x
    slack = -y @ (matrix @ x)
    pull = jnp.abs(y @ (matrix @ along))
    tiny = jnp.finfo(matrix.dtype).tiny
    step = jnp.clip(slack / (2 * pull + tiny), 0, 1)
    b = jnp.where(value < 0, -x, y)
    c = _unit(jnp.where(value < 0, x, -x - step * along))
    image = matrix @ c
    products = jnp.stack([x @ (matrix @ b), b @ image, x @ image])
    return x, b, c, products

  several = jax.vmap(candidate)(values, vectors.T)
  sign = jnp.array([1, 1, -1], matrix.dtype)
  margin = jnp.min(several[3] * sign, axis=1)
  a, b, c, products = (field[jnp.argmax(margin)] for field in several)
  exists = (products[0] > 0) & (products[1] > 0) & (products[2] <= 0)
  return Violation(a, b, c, jnp.ldexp(products, exponent), exists)


def _scaled(matrix: Array) -> tuple[Array, Array]:
  """The matrix scaled to a largest entry in [1/2, 1), and the exponent of 2.

  Avoids overflow and underflow in products of three numbers.
  """
  _, exponent = jnp.frexp(jnp.abs(matrix).max())
  return jnp.ldexp(matrix, -exponent), exponent


def _unit(x: Array) -> Array:
  length = jnp.linalg.norm(x)
  return x / jnp.where(length > 0, length, 1)

"""Memory and traffic of sharded programs, counted from shapes.

Tests compare these counts with compiled programs: a program that holds or moves
more than its arrays need fails.
"""

from typing import NamedTuple

from repr_jax.ops import spectral

_FLOAT = 4
_BLOCKS = 16  # of rows, in a device's part of a sparse matrix
_ENTRY = 16  # bytes that an entry is stored in: twice a value and an index
_WEIGHTING = 16  # bytes an entry takes for a while when rows are weighted
_BASES = 2.5  # copies of a Krylov basis that are there at a time


class View(NamedTuple):
  """A sparse view: words, columns and nonzero counts."""

  words: int
  columns: int
  entries: int


class Autoencoder(NamedTuple):
  """Sizes of an autoencoder and of one batch.

  Attributes:
    features: F.
    hidden: width of the first layer.
    latent: numbers in a concept.
    batch: entities in a step.
    touched: distinct features of a batch, with the padding.
  """

  features: int
  hidden: int
  latent: int
  batch: int
  touched: int


def _krylov_sizes(k: int) -> tuple[int, int]:
  """Columns of a product, and of a full basis, for k singular values."""
  plan = spectral._plan(k, None, None)
  return plan.block, plan.size


def product_moved(view: View, m: int) -> float:
  """Bytes of one product with X'X in the SVD of rank m: a sum of [d, b]."""
  return _FLOAT * view.columns * _krylov_sizes(m)[0]


def factor_moved(view: View, m: int) -> float:
  """Bytes of an SVD beside its products: means, Gram matrices, lengths."""
  return _FLOAT * (2 * view.columns + 2 * m * m + m)


def factor_memory(view: View, m: int, devices: int) -> float:
  """Bytes of a device that has 1 / devices of a view's rows, in its SVD."""
  rows, entries = view.words / devices, view.entries / devices
  block, size = _krylov_sizes(m)
  stored = _ENTRY * entries + _FLOAT * (2 * rows + _BLOCKS * view.columns)
  result = _FLOAT * m * (rows + view.columns)
  basis = _FLOAT * view.columns * (size + block)
  working = max(
    _WEIGHTING * entries,
    _FLOAT * m * rows,
    _ENTRY / 2 * entries + _BASES * basis,
  )
  return stored + result + working


def combine_moved(
  views: int, m: int, product: int, devices: int
) -> dict[str, float]:
  """Bytes of one block of columns of the Gram matrix, and of one product.

  Args:
    views: J.
    m: rank of each.
    product: columns that the Gram matrix is multiplied with at a time.
    devices: P.
  """
  rows = -(-views * m // devices) * devices
  return {
    "reduce-scatter": _FLOAT * rows * m,
    "all-gather": _FLOAT * rows * product,
  }


def combine_memory(
  words: int, views: int, m: int, k: int, devices: int
) -> float:
  """Bytes of a device while all factors are combined in memory."""
  c = views * m
  block, size = _krylov_sizes(k)
  # A small matrix is decomposed whole, a large one through a basis.
  direct = c <= 512 or size + block > c // 2
  solver = 7 * c * c if direct else _BASES * c * (size + block)
  held = words / devices * (c + k) + c * c / devices
  return _FLOAT * (held + c * m + solver)


def step_moved(sizes: Autoencoder, batch: int, features: int) -> float:
  """Bytes of a step of training on a mesh of batch x features devices.

  Over "features" go sums of the first layer and of the targets, the softmax and
  its gradient in the concepts; over "batch" the gradients. Rows stay.
  """
  f, h, d, b, u = sizes
  moved = 0.0
  if features > 1:
    moved += b / batch * (h + 2 * (d + 1) + 3)
  if batch > 1:
    moved += (u * (h + d + 1) + f * (d + 1)) / features
    moved += h + 2 * (h * d + d)
  return _FLOAT * moved


def state_memory(sizes: Autoencoder, features: int) -> float:
  """Bytes of parameters and moments on each of `features` devices."""
  f, h, d, _, _ = sizes
  small = 3 * (h + 2 * (h * d + d))
  return _FLOAT * (f / features * (3 * h + 3 * (d + 1)) + small)

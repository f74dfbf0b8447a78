"""The cells of RESCAL's tables: relations, sizes and settings.

A cell is a relation (the closure of a binary tree or of WordNet's hyponyms),
a size d of the vectors, a setting and whether entities have a vector for each
role.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from experiments import thesis
from experiments.rescal.config import Config
from repr_jax.data import synthetic_corpora, wordnet
from repr_jax.errors import InputError
from repr_jax.kb import slices, transitivity

_LABELS = {"full": "FullSet", "sub": "SubSet"}


class Relation(NamedTuple):
  """A transitive relation: its pairs [n, 2] and the names of its vertices."""

  data: str
  pairs: np.ndarray
  names: Sequence[str]


class Cell(NamedTuple):
  """One cell of a table: what is fitted, and how."""

  relation: Relation
  dim: int
  setting: str
  roles: bool

  @property
  def label(self) -> str:
    """The label, such as "tree V=2047 d=50 SubSet"."""
    name = f"{self.relation.data} V={len(self.relation.names)} d={self.dim}"
    roles = ", two roles" if self.roles else ""
    return f"{name} {_LABELS[self.setting]}{roles}"

  @property
  def thesis(self) -> tuple[int, ...] | None:
    """The thesis' figures for E, E^c, E^rev, or None."""
    size = len(self.relation.names)
    key = (self.relation.data, size, self.setting, self.roles)
    if key not in thesis.RESCAL or self.dim not in thesis.RESCAL_DIMS:
      return None
    return thesis.RESCAL[key][thesis.RESCAL_DIMS.index(self.dim)]


def load(config: Config) -> list[Cell]:
  """All cells of a configuration, the quick ones first."""
  if config.data == "tree":
    relations = [tree(size) for size in config.vertices]
  else:
    relations = [hyponyms(config.root, config.wordnet)]
  return list(cells_of(relations, config.dims, config.settings, config.roles))


def tree(size: int) -> Relation:
  """The closure of a complete binary tree with `size` vertices."""
  depth = int(size).bit_length()
  if size < 3 or 2**depth - 1 != size:
    raise InputError(
      f"--vertices: {size} is not 2^h - 1; near it are {2 ** (depth - 1) - 1} "
      f"and {2**depth - 1}"
    )
  names = [f"v{vertex + 1}" for vertex in range(size)]
  return Relation("tree", synthetic_corpora.binary_tree(depth), names)


def hyponyms(root: str, path: str | None = None) -> Relation:
  """The hyponym closure of WordNet below a synset."""
  database = wordnet.load(path)
  below = database.subtree(root)
  names = [database.names[row] for row in below.rows]
  return Relation("wordnet", below.closure, names)


def slices_of(cell: Cell, run: int, config: Config) -> slices.Slices:
  """The two relations that one run sees: presence, then absence."""
  pairs, size = cell.relation.pairs, len(cell.relation.names)
  ones = np.ones(len(pairs), config.dtype)
  edges = scipy.sparse.csr_matrix((ones, tuple(pairs.T)), (size, size))
  if cell.setting == "full":
    return slices.make_slices(
      [edges],
      mixing=np.array([[1.0], [-1.0]]),
      ones=np.array([0.0, 1.0]),
      dtype=config.dtype,
    )
  rng = np.random.default_rng([config.seed, run])
  absent = transitivity.sample_complement(edges, len(pairs), rng)
  return slices.make_slices([edges, absent], dtype=config.dtype)


def cells_of(
  relations: Sequence[Relation],
  dims: Sequence[int],
  settings: Sequence[str],
  roles: bool,
) -> Iterator[Cell]:
  """All cells, the quick ones first."""
  for relation, dim in itertools.product(relations, dims):
    if not 1 <= dim <= len(relation.names):
      raise InputError(
        f"--dims: {dim} is not between 1 and {len(relation.names)} vertices"
      )
    for setting in settings:
      yield Cell(relation, dim, setting, roles)

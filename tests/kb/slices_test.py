"""Products by touched rows against dense ones, and batches of runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax.errors import InputError
from repr_jax.kb import slices

V, D = 57, 5
_images = jax.jit(slices.images)
_mixed_sum = jax.jit(slices.mixed_sum, static_argnums=3)
_inner = jax.jit(slices.inner, static_argnums=3)


def _bases(seed=0, rows=(57, 9, 1)):
  """Matrices that touch a few rows each."""
  rng = np.random.default_rng(seed)
  found = []
  for count in rows:
    dense = (rng.random((V, V)) < 0.2) * rng.normal(size=(V, V))
    dense[rng.permutation(V)[count:]] = 0
    dense[rng.integers(V), 3] = 1.0
    found.append(sp.csr_matrix(dense))
  return found


def _place(tiles, rows, bases):
  """Rows of all lanes put back where they belong, [bases, v, d]."""
  rows = np.stack(rows)
  out = np.zeros((bases, V + 1, rows.shape[-1]))
  for owner, ids, part in zip(
    np.ravel(tiles.owner),
    np.reshape(tiles.rows, (-1, tiles.rows.shape[2])),
    np.reshape(rows, (-1, *rows.shape[2:])),
  ):
    np.add.at(out[owner], ids, part)
  return out[:, :V]


@pytest.mark.parametrize("batch", [False, True])
def test_products_equal_dense_ones(batch):
  bases = _bases()
  data = slices.make_slices(bases)
  if batch:  # the second of two runs whose tiles differ in number
    stacked = slices.stack([slices.make_slices(_bases(1, (57, 57, 57))), data])
    data = jax.tree.map(lambda x: x[1], stacked)
  rng = np.random.default_rng(2)
  dense = jnp.asarray(rng.normal(size=(V, D)), jnp.float32)
  weights = rng.normal(size=(3, D, D)).astype(np.float32)
  for tiles, matrices in (
    (data.by_row, bases),
    (data.by_column, [base.T for base in bases]),
  ):
    want = np.stack([matrix @ dense for matrix in matrices])
    got = _images(tiles, dense)
    np.testing.assert_allclose(_place(tiles, got, 3), want, atol=1e-4)
    np.testing.assert_allclose(
      _mixed_sum(tiles, got, weights, V),
      np.einsum("bvi,bij->vj", want, weights),
      atol=1e-3,
    )
    np.testing.assert_allclose(
      _inner(tiles, dense, got, 3),
      np.einsum("vi,bvj->bij", dense, want),
      atol=1e-3,
    )


def test_only_rows_that_are_not_empty_are_stored():
  count = 4000
  base = sp.csr_matrix(
    (np.ones(40), (np.arange(40), np.arange(40))), (count, count)
  )
  data = slices.make_slices([base] * 3)
  assert data.by_row.rows.size < 300
  assert np.sum(np.asarray(data.by_row.rows) < count) == 120


def test_norms_are_those_of_the_mixture():
  bases = _bases()
  mixing = np.array([[1.0, 0.0, 0.5], [-1.0, 2.0, 0.0]])
  ones = np.array([0.0, 1.0])
  data = slices.make_slices(bases, mixing, ones)
  dense = np.einsum("kb,bij->kij", mixing, [b.toarray() for b in bases])
  dense += ones[:, None, None]
  np.testing.assert_allclose(data.norms, np.sum(dense**2, (1, 2)), rtol=1e-5)


def test_bad_matrices_are_named():
  good, bad = sp.eye(5, format="csr"), sp.eye(5, format="csr")
  bad.data[2] = np.nan
  with pytest.raises(InputError, match="matrix 1 has shape"):
    slices.make_slices([good, sp.eye(4)])
  with pytest.raises(InputError, match=r"matrix 1 .* no nonzero entry"):
    slices.make_slices([good, sp.csr_matrix((5, 5))])
  with pytest.raises(InputError, match="matrix 1 has a NaN"):
    slices.make_slices([good, bad])

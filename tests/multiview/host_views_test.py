"""Views of every kind that a user may have, and those that are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.experimental import sparse as jsparse

from repr_jax import multiview, ops
from repr_jax.errors import InputError
from repr_jax.multiview import host_views
from repr_jax.ops import precision


def _counts(seed=0, n=60, d=9):
  counts = np.random.default_rng(seed).poisson(0.7, (n, d)).astype(np.float32)
  counts[seed] = 0
  return counts


_KINDS = {
  "numpy": np.asarray,
  "whole numbers": lambda x: x.astype(np.int64),
  "jax": jnp.asarray,
  "lists": lambda x: x.tolist(),
  "csr": scipy.sparse.csr_array,
  "coo": scipy.sparse.coo_matrix,
  "ops.Sparse": ops.from_scipy,
  "BCOO": lambda x: jsparse.BCOO.fromdense(x, nse=400),
  "BCSR": jsparse.BCSR.fromdense,
  "function": lambda x: lambda: scipy.sparse.csr_array(x),
}


@pytest.mark.parametrize("kind", _KINDS)
def test_every_kind_of_view_gives_the_same_fit(kind):
  views = [_counts(0), _counts(1)]
  expected = multiview.fit(views, 3, m=9, tolerance=1e-6)
  found = multiview.fit(
    [_KINDS[kind](view) for view in views], 3, m=9, tolerance=1e-6
  )
  np.testing.assert_allclose(
    found.model.embedding, expected.model.embedding, atol=1e-4
  )
  np.testing.assert_array_equal(found.support, expected.support)
  for u in found.model.projections:
    assert u.shape == (9, 3)


@pytest.mark.parametrize(
  ("view", "message"),
  [
    (np.ones(4), "two axes"),
    (np.ones((4, 2), complex), "real numbers"),
    (np.array([["a", "b"]] * 4), "real numbers"),
    ([[1.0, 2.0], [3.0]], "not a matrix"),
    (None, "two axes"),
    (jsparse.BCOO.fromdense(jnp.ones((4, 2)), n_batch=1), "batch"),
    (np.zeros((4, 2)), "is empty"),
  ],
)
def test_other_things_are_refused(view, message):
  with pytest.raises(InputError, match=message):
    multiview.fit([view], 1)


@pytest.mark.parametrize("change", [{"k": 1.5}, {"k": 0}, {"m": None}])
def test_sizes_that_are_none_are_refused(change):
  with pytest.raises(InputError, match="must be a whole number, 1 or more"):
    multiview.fit([_counts()], **{"k": 2, **change})


@pytest.mark.parametrize("key", ["zero", 0.5, None, np.random.default_rng(0)])
def test_a_key_that_is_none_is_refused(key):
  with pytest.raises(InputError, match="key must be"):
    multiview.fit([_counts()], 2, key=key)


def test_a_seed_is_a_key():
  one = multiview.fit([_counts(d=200)], 2, m=5, key=7)
  two = multiview.fit([_counts(d=200)], 2, m=5, key=jax.random.key(7))
  np.testing.assert_array_equal(one.model.embedding, two.model.embedding)


@pytest.mark.parametrize("method", ["memory", "stream"])
@pytest.mark.parametrize("sparse", [False, True])
def test_double_precision_is_kept(method, sparse):
  views = [_counts(j).astype(np.float64) for j in (0, 1)]
  given = [scipy.sparse.csr_array(v) for v in views] if sparse else views
  with precision.enable_x64(True):
    found = multiview.fit(given, 3, m=9, method=method, ridge=0.0)
    assert {x.dtype for x in jax.tree.leaves(found.model)} == {np.dtype(float)}
    basis = []
    for view in views:
      seen = view.any(axis=1)
      x = np.where(seen[:, None], view - view[seen].mean(axis=0), 0)
      basis.append(np.linalg.svd(x, full_matrices=False)[0])
    support = np.sum([v.any(axis=1) for v in views], axis=0)
    scale = np.where(support, 1 / np.sqrt(np.maximum(support, 1)), 0)
    seen = [v.any(axis=1)[:, None] for v in views]
    whole = np.hstack([s * b for s, b in zip(seen, basis)]) * scale[:, None]
    exact = np.linalg.svd(whole, compute_uv=False)[:3] ** 2
    np.testing.assert_allclose(found.model.values, exact, rtol=1e-10)


def test_a_row_is_observed_by_its_counts_not_by_its_weights():
  """PPMI empties row 0, whose counts are those of the columns."""
  rng = np.random.default_rng(0)
  counts = rng.poisson(1.0, (40, 6)).astype(np.float32)
  counts[5] = 0
  counts[0] = counts[1:].sum(axis=0)
  how = multiview.Weighting("ppmi")
  weighted = host_views.weigh(counts, how).toarray()
  assert not weighted[0].any()
  found = multiview.fit([counts], 2, m=6, weighting=how, keep_factors=True)
  np.testing.assert_array_equal(found.support, counts.any(axis=1))
  np.testing.assert_array_equal(found.factors[0].row_weights, found.support)
  mean = weighted[found.support > 0].mean(axis=0)
  np.testing.assert_allclose(found.model.means[0], mean, rtol=1e-5)


@pytest.mark.parametrize("kind", ["power", "log", "ppmi"])
def test_unseen_rows_are_weighted_as_the_views_were(kind):
  views = [scipy.sparse.csr_array(_counts(j, d=12)) for j in (0, 1)]
  how = multiview.Weighting(kind, columns=8)
  found = multiview.fit(views, 3, m=8, weighting=how, tolerance=1e-6)
  assert [u.shape for u in found.model.projections] == [(8, 3)] * 2
  again = found.transform([view[10:30] for view in views])
  np.testing.assert_allclose(again, found.model.embedding[10:30], atol=1e-4)
  with pytest.raises(InputError, match="a list of 2 matrices, one for each"):
    found.transform(views[:1])
  with pytest.raises(InputError, match="view 1 has 2 rows, view 0 has 3"):
    found.transform([views[0][:3], views[1][:2]])
  with pytest.raises(InputError, match="view 0 has a NaN"):
    found.transform([views[0][:3] * np.nan, views[1][:3]])


def test_weightings_are_one_for_each_view():
  with pytest.raises(InputError, match="1 weightings for 2 views"):
    multiview.fit(
      [_counts(0), _counts(1)], 2, weighting=[multiview.Weighting()]
    )


def test_a_view_without_a_common_row_is_refused():
  views = [np.diag([1.0, 2, 0, 0]), np.diag([0.0, 0, 1, 2])]
  with pytest.raises(InputError, match="view 0 has no row in common"):
    host_views.observe(host_views.open_views(views))
  host_views.observe(host_views.open_views(views[:1]))

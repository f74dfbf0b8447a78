"""Views at the edge: constant, empty, equal, huge, and asked for too much.

What the others' tests hold already is not repeated: duplicate and collinear
views, missing rank, extreme scales, and entries that are not finite.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import multiview, ops
from repr_jax.data.views import counting, counts
from repr_jax.errors import InputError
from repr_jax.multiview import host_views, mvlsa, weighting

pytestmark = pytest.mark.long  # edges, which compile much

_ROWS = 61  # neither a power of two nor a multiple of a block


def _dense(seed: int, columns: int = 4) -> np.ndarray:
  rng = np.random.default_rng(seed)
  return rng.standard_normal((_ROWS, columns)).astype(np.float32)


def _counts(seed: int, columns: int = 12) -> np.ndarray:
  rng = np.random.default_rng(seed)
  counts = rng.poisson(0.7, (_ROWS, columns)).astype(np.float32)
  counts[np.arange(_ROWS), rng.integers(columns, size=_ROWS)] += 1
  return counts


def _constant(value: float) -> np.ndarray:
  return np.full((_ROWS, 1), value, np.float32)


def _projections(views, weights=None) -> list[np.ndarray]:
  """W P_j W in double precision, by pseudo-inverses."""
  found = []
  for j, view in enumerate(views):
    w = np.ones(len(view)) if weights is None else weights[j]
    seen = (w > 0)[:, None]
    view = np.asarray(view, np.float64)
    view = (view - seen * view[w > 0].mean(axis=0)) * w[:, None]
    rank = np.linalg.matrix_rank(view, tol=1e-9 * np.abs(view).max() + 1e-30)
    u = np.linalg.svd(view, full_matrices=False)[0][:, :rank]
    found.append(w[:, None] * (u @ u.T) * w)
  return found


def _eigenvalues(views, k: int, weights=None) -> np.ndarray:
  """Of K^(-1/2) (sum_j W_j P_j W_j) K^(-1/2), the definition itself."""
  total = sum(_projections(views, weights))
  scale = np.full(len(total), len(views) ** -0.5)
  if weights is not None:
    scale = 1 / np.sqrt(np.sum(np.square(weights), axis=0))
  return np.linalg.eigvalsh(scale[:, None] * total * scale)[::-1][:k]


# Means of 61 equal numbers are not those numbers in single precision.
@pytest.mark.parametrize("value", [0.1, 1234.567, 3e8])
def test_constant_columns_correlate_with_nothing(value):
  x, y = _dense(0), _dense(1)
  alone = multiview.cca_fit(_constant(value), _constant(7.7), 1)
  np.testing.assert_array_equal(alone.correlations, 0)
  wide = [np.hstack([v, _constant(value)])[:, 1:] for v in (x, y)]
  found = multiview.cca_fit(*wide, 4)
  plain = multiview.cca_fit(x[:, 1:], y[:, 1:], 3)
  np.testing.assert_allclose(
    found.correlations, [*plain.correlations, 0], atol=1e-4
  )
  common = multiview.gcca_exact([_constant(value), _constant(7.7)], 1)
  np.testing.assert_array_equal(common.values, 0)
  np.testing.assert_array_equal(common.embedding, 0)


def test_views_of_zeros_and_of_one_row_explain_nothing():
  x, zero = _dense(0), np.zeros((_ROWS, 4), np.float32)
  found = multiview.cca_fit(zero, x, 4)
  np.testing.assert_array_equal(found.correlations, 0)
  assert np.isfinite(found.projections[1]).all()
  model = multiview.gcca_exact([zero, x], 4)
  np.testing.assert_allclose(model.values, 0.5, rtol=1e-5)
  np.testing.assert_allclose(model.shares, [0, 1], atol=1e-5)
  one = multiview.cca_fit(x[:1], x[:1], 1)
  np.testing.assert_array_equal(one.correlations, 0)


def test_correlations_never_exceed_one():
  x = _dense(3)
  for scale in (1e-12, 1.0, 1e12):
    found = np.asarray(multiview.cca_fit(x, scale * x[:, ::-1], 4).correlations)
    assert (found <= 1).all() and (found > 1 - 1e-5).all()
  with pytest.raises(InputError, match="k = 0"):
    multiview.cca_fit(x, x, 0)


def test_exact_gcca_past_the_rank_is_zero():
  x = _dense(0)[:, :2]
  views = [np.hstack([x, x]), np.hstack([x, -x])]
  model = multiview.gcca_exact(views, 4)
  np.testing.assert_allclose(model.values, [1, 1, 0, 0], atol=1e-5)
  np.testing.assert_array_equal(model.embedding[:, 2:], 0)
  np.testing.assert_allclose(model.objective, 4, rtol=1e-5)
  for u in model.projections:
    np.testing.assert_allclose(u[:, 2:], 0, atol=1e-6)
  alone = multiview.gcca_exact([_dense(2)], 4)
  assert 0 <= float(alone.objective) < 1e-5


@pytest.fixture(scope="module")
def sparse_views():
  return [sp.csr_array(_counts(seed)) for seed in (0, 1)]


@pytest.mark.parametrize("method", ["memory", "stream"])
def test_views_that_hold_no_information_change_nothing(sparse_views, method):
  """A constant view, and one class for each word, both centered."""
  members = np.eye(3, dtype=np.float32)[np.arange(_ROWS) % 3] * 1.3161
  views = [
    *sparse_views,
    sp.csr_array(_constant(1.3161)),
    sp.csr_array(members),
  ]
  # Streaming holds k + m directions, here all there are.
  found = mvlsa.fit(views, 4, m=28, method=method)
  expected = _eigenvalues([v.toarray() for v in views], 4)
  np.testing.assert_allclose(found.model.values, expected, atol=1e-4)
  np.testing.assert_allclose(found.model.shares[2], 0, atol=1e-6)
  rows = np.asarray(found.model.embedding)
  # Centered views know nothing of the vector of ones.
  np.testing.assert_allclose(rows.sum(axis=0), 0, atol=1e-3)


def test_weighted_and_missing_rows_at_the_edge(sparse_views):
  """Weights from 1e-9 to 1 and a view that knows two words."""
  rng = np.random.default_rng(0)
  few = np.zeros((_ROWS, 12), np.float32)
  few[:2, :2] = [[3, 1], [1, 2]]
  views = [*sparse_views, sp.csr_array(few)]
  weights = [10.0 ** -rng.uniform(0, 2, _ROWS) for _ in views]
  weights[0][5] = 1e-9
  found = mvlsa.fit(views, 4, m=12, row_weights=weights, ridge=0.0)
  seen = [w * counts.observed(v) for w, v in zip(weights, views)]
  expected = _eigenvalues([v.toarray() for v in views], 4, seen)
  np.testing.assert_allclose(found.model.values, expected, rtol=1e-3)
  assert np.isfinite(found.model.embedding).all()


@pytest.mark.parametrize("method", ["memory", "stream"])
def test_one_view_and_its_copies_are_explained_whole(sparse_views, method):
  view = sparse_views[0]
  for views in ([view], [view, view]):
    found = mvlsa.fit(views, 4, m=12, method=method)
    np.testing.assert_allclose(found.model.values, 1, atol=1e-5)
    for model in (found.model, found.truncate(2).model):
      assert 0 <= float(model.objective) < 1e-4


def test_a_cut_fit_has_the_objective_of_its_dimension(sparse_views):
  for normalization in ("unit", "generalized"):
    whole = mvlsa.fit(sparse_views, 4, m=12, normalization=normalization)
    fresh = mvlsa.fit(sparse_views, 2, m=12, normalization=normalization)
    np.testing.assert_allclose(
      whole.truncate(2).model.objective, fresh.model.objective, rtol=1e-4
    )


def test_huge_counts_give_the_vectors_of_small_ones(sparse_views):
  small = mvlsa.fit(sparse_views, 4, m=12).model
  huge = mvlsa.fit([v * np.float32(1e12) for v in sparse_views], 4, m=12).model
  np.testing.assert_allclose(huge.values, small.values, rtol=1e-4)
  np.testing.assert_allclose(huge.embedding, small.embedding, atol=1e-3)


def test_more_dimensions_than_rank_are_refused(sparse_views):
  x = _dense(0)[:, :2]
  exact = mvlsa.fit([x, _dense(1)[:, :2]], 4)
  np.testing.assert_allclose(
    exact.model.values, _eigenvalues([x, _dense(1)[:, :2]], 4), atol=1e-4
  )
  with pytest.raises(InputError, match="rank 2 in all, less than k = 3"):
    mvlsa.fit([np.hstack([x, x]), x], 3)
  with pytest.raises(InputError, match="rank 0"):  # one word, centered
    mvlsa.fit([v[:1] for v in sparse_views], 1)


@pytest.mark.parametrize(
  "change, message",
  [
    ({"views": [1e25 * _dense(0)]}, "products overflow"),
    ({"views": [np.zeros((_ROWS, 3))]}, "view 0 is empty"),
    ({"row_weights": [np.ones(_ROWS - 1)]}, r"view 0 have shape \(60,\)"),
    ({"row_weights": [np.full(_ROWS, 1e-20)]}, "row 0: row weights must be"),
    ({"row_weights": [np.full(_ROWS, np.nan)]}, "row 0: row weights must be"),
    ({"row_weights": [-np.ones(_ROWS)]}, "row 0: row weights must be"),
    ({"row_weights": [np.zeros(_ROWS)]}, "only 0 of 61 words"),
    ({"ridge": np.nan}, "ridge"),
  ],
)
def test_bad_numbers_are_named(change, message):
  arguments = {"views": [_dense(0)], **change}
  with pytest.raises(InputError, match=message):
    mvlsa.fit(arguments.pop("views"), 2, **arguments)


def test_weightings_at_the_edge():
  huge = sp.csr_array(np.array([[1e12, 1.0], [1.0, 1e12]]))
  expected = np.log(1e12 * (2e12 + 2) / (1e12 + 1) ** 2)
  ppmi = weighting.Weighting("ppmi")
  np.testing.assert_allclose(
    host_views.weigh(huge, ppmi).toarray(),
    [[expected, 0], [0, expected]],
    rtol=1e-6,
  )
  np.testing.assert_allclose(
    multiview.ppmi(jnp.asarray(huge.toarray(), jnp.float32)),
    [[expected, 0], [0, expected]],
    rtol=1e-6,
  )
  one = host_views.weigh(np.full((3, 2), 7.0), weighting.Weighting("ppmi"))
  assert one.nnz == 0  # independent: no information
  with pytest.raises(InputError, match=r"1e\+12 to the power 4"):
    host_views.weigh(huge, weighting.Weighting("power", power=4.0))
  twice = sp.coo_array(([3e38, 3e38], ([0, 0], [1, 1])), (1, 2))
  with pytest.raises(InputError, match="row 0, column 1 holds inf"):
    counts.validate(twice)
  weights = multiview.row_weights(huge.toarray())
  np.testing.assert_allclose(weights, 1)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_principal_components_of_columns_far_from_zero(kind):
  """Variances near 1 beside means of 1,000, and a constant column."""
  rng = np.random.default_rng(0)
  data = np.hstack([1000 + _dense(0, 7), _constant(1234.5)])
  data[:, 0] += 3 * rng.standard_normal(_ROWS).astype(np.float32)
  x = jnp.asarray(data) if kind == "dense" else ops.from_scipy(data)
  found = ops.pca_fit(x, 3, jax.random.key(0))
  values = np.linalg.eigvalsh(np.cov(data.astype(float).T, bias=True))[::-1]
  np.testing.assert_allclose(found.variances, values[:3], rtol=1e-3)
  np.testing.assert_allclose(found.noise, values[3:].mean(), rtol=1e-3)


def test_principal_components_of_nothing():
  data = np.hstack([_constant(0.1), _constant(1234.5)])
  found = ops.pca_fit(jnp.asarray(data), 1, jax.random.key(0))
  np.testing.assert_array_equal(found.variances, 0)
  np.testing.assert_allclose(found.noise, 0, atol=1e-6)
  likelihood = np.asarray(ops.ppca_log_likelihood(found, jnp.asarray(data)))
  assert not np.isnan(likelihood).any()


@pytest.mark.parametrize("scale", [1e-25, 1e25])
@pytest.mark.parametrize("columns", [4, 120])
def test_singular_vectors_of_tiny_and_huge_matrices(scale, columns):
  """Directly, and by the iteration, whose X'X would be 0 or infinite."""
  x = _dense(0, columns)
  x[:, 0] *= 5
  plain, _ = ops.truncated_svd(jnp.asarray(x), 2, jax.random.key(0))
  power = np.float32(2.0 ** np.round(np.log2(scale)))
  far, _ = ops.truncated_svd(jnp.asarray(power * x), 2, jax.random.key(0))
  np.testing.assert_allclose(far.s / power, plain.s, rtol=1e-6)
  np.testing.assert_allclose(far.v, plain.v, atol=1e-6)
  fits = [
    ops.pca_fit(jnp.asarray(data), 2, jax.random.key(0))
    for data in (x, power * x)
  ]
  np.testing.assert_allclose(fits[1].components, fits[0].components, atol=1e-6)
  np.testing.assert_allclose(fits[1].mean / power, fits[0].mean, rtol=1e-5)
  out_of_range = 0 if scale < 1 else np.inf
  np.testing.assert_array_equal(fits[1].variances, out_of_range)
  np.testing.assert_array_equal(fits[1].noise, out_of_range)


def test_signs_are_those_of_the_largest_entries():
  views = [_dense(0), _dense(1)]
  for scale in (1, -1):  # of all views: only signs of vectors could change
    found = multiview.gcca_exact([scale * v for v in views], 3)
    stacked = np.concatenate(found.projections)
    assert (stacked[np.abs(stacked).argmax(axis=0), range(3)] > 0).all()
    own = multiview.cca_fit(*(scale * v for v in views), 3).projections[1]
    own = np.asarray(own)
    assert (own[np.abs(own).argmax(axis=0), range(3)] > 0).all()


def test_row_weights_of_missing_rows():
  counts = np.array([[4.0, 0], [0, 0], [1, 0]])
  np.testing.assert_array_equal(multiview.row_weights(counts, 0.0), [1, 0, 1])
  np.testing.assert_array_equal(multiview.row_weights(counts, 0.5), [1, 0, 0.5])
  assert np.isnan(multiview.row_weights(counts * np.nan)).all()
  assert np.isnan(multiview.ppmi(counts * np.nan)).any()
  with pytest.raises(InputError, match="row 0, column 0 holds nan"):
    host_views.weigh(counts * np.nan, weighting.Weighting("ppmi"))


@pytest.mark.parametrize(
  "row, column, message",
  [(0, 3, "column 3 of 3"), (2, 0, "row 2 of 2"), (0, 0.5, "whole numbers")],
)
def test_pairs_outside_the_shape_are_named(row, column, message):
  with pytest.raises(InputError, match=message):
    counting.count_pairs(np.array([0, row]), np.array([0, column]), (2, 3))
  none = counting.count_pairs(np.array([]), np.array([]), (2, 3))
  assert none.nnz == 0


def test_a_not_finite_entry_of_a_compiled_function_shows():
  """Compiled functions cannot refuse; they must not hide it either."""
  x = _dense(0)
  x[3, 1] = np.nan
  assert np.isnan(multiview.cca_fit(x, _dense(1), 2).correlations).all()
  assert np.isnan(multiview.gcca_exact([x, _dense(1)], 2).embedding).any()
  svd, _ = ops.truncated_svd(jnp.asarray(x), 2, jax.random.key(0))
  assert np.isnan(svd.s).any()

"""A fitted generalized CCA, and its embeddings of unseen rows."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from repr_jax.errors import InputError
from repr_jax.ops.operators import as_operator
from repr_jax.ops.precision import exact_products
from repr_jax.ops.sparse import Sparse


class GCCA(NamedTuple):
  """A fitted generalized CCA.

  Attributes:
    embedding: G, one row per word, [n, k].
    values: how much of each dimension the mean view explains, in [0, 1] and
      descending, [k]: eigenvalues of K^(-1/2) (sum_j W_j P_j W_j) K^(-1/2),
      which is the mean of the P_j for complete views.
    projections: U_j of each view, each [d_j, k].
    loadings: C_j of each view, each [k, d_j]: the regression of the centered
      view on the embedding, the minimum of ||W_j K_j (X_j - G C_j)||^2.
    means: column means of each view, each [d_j].
    objective: sum_j ||W_j K_j (G - X_j U_j)||^2 plus the ridge penalty, [].
    shares: explained share of the embedding by each view, in [0, 1], [J].
  """

  embedding: Array
  values: Array
  projections: tuple[Array, ...]
  loadings: tuple[Array, ...]
  means: tuple[Array, ...]
  objective: Array
  shares: Array


def gcca_transform(
  model: GCCA,
  rows: Sequence[Array | Sparse],
  row_weights: Array | None = None,
  *,
  calibrate: bool = True,
) -> Array:
  """Embeds unseen rows: the mean of the observed views' projections.

    g = sum_j w_j^2 (x_j - mu_j) U_j / sum_j w_j^2, divided by the eigenvalues.

  Args:
    model: a fit with `projections` and `means`.
    rows: the new rows in each view, [n', d_j].
    row_weights: weight of each row in each view, zero where unobserved,
      [J, n']; None for all observed.
    calibrate: divide by the eigenvalues, so that training rows come out as
      their own embedding.

  Returns:
    Embeddings, [n', k]; zero for a row that no view has.

  Example:
    >>> import numpy as np
    >>> from repr_jax import multiview
    >>> x = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
    >>> views = [x[:, :4], x[:, 2:]]
    >>> model = multiview.gcca_exact(views, 2)
    >>> again = multiview.gcca_transform(model, [v[:5] for v in views])
    >>> bool(np.allclose(again, model.embedding[:5], atol=1e-4))
    True
  """
  projected, squares = _projected(model, rows, row_weights)
  support = squares.sum(axis=0)
  total = sum(square[:, None] * x for x, square in zip(projected, squares))
  mean = total / jnp.where(support > 0, support, 1)[:, None]
  if not calibrate:
    return mean
  return mean / jnp.where(model.values > 0, model.values, 1)


@exact_products
def predict_view(
  model: GCCA,
  rows: Sequence[Array | Sparse],
  view: int,
  row_weights: Array | None = None,
) -> Array:
  """Predicts the rows of one view from those of the others.

  The other views embed the row, and the view is regressed on the embedding:
  x_j = mu_j + g C_j.

  Args:
    model: a fit with projections and loadings.
    rows: rows in each view, [n', d_j]; those of `view` are not read.
    view: number of the view to predict.
    row_weights: as in `gcca_transform`, [J, n'].

  Returns:
    Rows of the view, [n', d_view]; its column means where no other view has
    the row.

  Example:
    >>> import numpy as np
    >>> from repr_jax import multiview
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(60, 2))
    >>> views = [np.float32(z @ rng.normal(size=(2, d))) for d in (3, 4, 5)]
    >>> model = multiview.gcca_exact(views, 2)
    >>> predicted = multiview.predict_view(model, views, view=1)
    >>> bool(np.allclose(predicted, views[1], atol=1e-3))
    True
  """
  if not 0 <= view < len(model.means):
    raise InputError(f"view {view} of {len(model.means)}")
  if row_weights is None:
    row_weights = jnp.ones((len(rows), rows[0].shape[0]), model.values.dtype)
  others = jnp.asarray(row_weights).at[view].set(0)
  g = gcca_transform(model, rows, others)
  return model.means[view] + g @ model.loadings[view]


def explained_shares(
  model: GCCA,
  rows: Sequence[Array | Sparse],
  row_weights: Array | None = None,
) -> Array:
  """Share of the rows' embedding that each view alone explains.

    1 - ||W_j (G - X_j U_j)||^2 / ||W_j G||^2 with G from all views.

  On the rows of a fit without ridge these are `model.shares`; on other rows
  they show how well each view's projection generalizes.

  Args:
    model: a fit with projections.
    rows: rows in each view, [n', d_j].
    row_weights: as in `gcca_transform`, [J, n'].

  Returns:
    Shares, at most 1, [J]; 0 for a view that has none of the rows.

  Example:
    >>> import numpy as np
    >>> from repr_jax import multiview
    >>> x = np.random.default_rng(0).normal(size=(40, 6)).astype("float32")
    >>> views = [x[:, :4], x[:, 2:]]
    >>> model = multiview.gcca_exact(views, 2)
    >>> shares = multiview.explained_shares(model, views)
    >>> bool(np.allclose(shares, model.shares, atol=1e-4))
    True
  """
  g = gcca_transform(model, rows, row_weights)
  projected, squares = _projected(model, rows, row_weights)
  shares = []
  for x, square in zip(projected, squares):
    whole = jnp.sum(square[:, None] * g**2)
    missed = jnp.sum(square[:, None] * (g - x) ** 2)
    shares.append(jnp.where(whole > 0, 1 - missed / whole, 0))
  return jnp.stack(shares)


@exact_products
def _projected(
  model: GCCA, rows: Sequence[Array | Sparse], row_weights: Array | None
) -> tuple[list[Array], Array]:
  """(X_j - mu_j) U_j of each view, [n', k], and squared weights, [J, n']."""
  if not model.projections:
    raise InputError("the fit has no projections; fit with projections=True")
  if len(rows) != len(model.projections):
    raise InputError(
      f"{len(rows)} views given, {len(model.projections)} fitted"
    )
  for j, (x, u) in enumerate(zip(rows, model.projections)):
    if x.shape[1] != u.shape[0]:
      raise InputError(
        f"view {j} has {x.shape[1]} columns; the fit had {u.shape[0]}"
      )
  dtype = model.values.dtype
  if row_weights is None:
    row_weights = jnp.ones((len(rows), rows[0].shape[0]), dtype)
  weights = jnp.asarray(row_weights).astype(dtype)
  projected = []
  for x, mean, u, weight in zip(rows, model.means, model.projections, weights):
    image = as_operator(x).matmat(u) - mean @ u
    # Masked rows may hold anything, NaN too.
    projected.append(jnp.where(weight[:, None] != 0, image, 0))
  return projected, weights**2

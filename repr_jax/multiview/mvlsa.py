"""Multiview LSA: from views on the host to word vectors (thesis 3.3).

`fit` is the one driver: it reads which rows each view observes, factors every
view (`factor_views`), combines the factors (`repr_jax.multiview.gcca`) and
computes the projections. Factors can be passed in and out, so that m, k, the
ridge and the weights of views change without another SVD.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jax import Array
from jax.sharding import Mesh

from repr_jax.data.views import counts
from repr_jax.errors import InputError
from repr_jax.multiview import block_fit, factoring, gcca, host_views
from repr_jax.multiview.gcca import ViewFactor
from repr_jax.multiview.host_views import HostView, ViewInput
from repr_jax.multiview.model import GCCA, gcca_transform
from repr_jax.multiview.weighting import Weighting
from repr_jax.ops import dense_factorizations as dense
from repr_jax.ops import inputs
from repr_jax.ops.precision import exact_products


class MVLSA(NamedTuple):
  """A fitted multiview LSA.

  Attributes:
    model: embedding [n, k] (zero rows for words that were dropped),
      projections, means, eigenvalues, objective and shares.
    support: in how many views each word was observed, int32 [n].
    kept: which words were fitted, bool [n].
    normalization: "unit" or "generalized".
    view_weights: c_j, [J].
    lost: share of the views' energy that streaming dropped; 0 in memory.
    errors: estimated relative error of each view's worst singular value, [J].
    columns: the columns that each view's weighting kept, and their totals;
      empty for a fit to bare factors.
    weighting: of each view; empty for a fit to bare factors.
    factors: of each view, with `keep_factors`.
    products: `view_products` of the factors, kept with them.
  """

  model: GCCA
  support: np.ndarray
  kept: np.ndarray
  normalization: str
  view_weights: np.ndarray
  lost: float
  errors: np.ndarray
  columns: tuple[host_views.Columns, ...]
  weighting: tuple[Weighting | None, ...]
  factors: tuple[ViewFactor, ...] | None
  products: Array | None = None

  def transform(
    self, rows: Sequence[ViewInput], row_weights: np.ndarray | None = None
  ) -> Array:
    """Vectors of unseen words from their rows in each view.

    Args:
      rows: rows in each view, [n', d_j], of the kinds that `fit` takes; a row
        of zeros is missing. Rows are weighted like the views of the fit.
      row_weights: W_j of the new rows, [J, n']; None for ones.

    Returns:
      Vectors [n', k] on the scale of the embedding; zero where no view has
      the word.
    """
    if not isinstance(rows, Sequence) or len(rows) != len(self.model.means):
      raise InputError(
        f"give a list of {len(self.model.means)} matrices, one for each view "
        "of the fit"
      )
    if not self.weighting:
      raise InputError(
        "fitted to bare factors, whose weighting is not known: give fit an "
        "earlier fit as factors"
      )
    dtype = np.dtype(self.model.values.dtype)
    seen: list[np.ndarray] = []
    ready = []
    for j, view in enumerate(rows):
      matrix: Any = host_views.read(view, f"view {j}")
      values = matrix.data if scipy.sparse.issparse(matrix) else matrix
      if not np.isfinite(values).all():
        raise InputError(f"view {j} has a NaN or infinite entry")
      if seen and matrix.shape[0] != len(seen[0]):
        raise InputError(
          f"view {j} has {matrix.shape[0]} rows, view 0 has {len(seen[0])}"
        )
      how = self.weighting[j]
      seen.append(counts.observed(matrix))
      if how is not None:
        matrix = host_views.weigh(matrix, how, f"{j}", self.columns[j])
      if scipy.sparse.issparse(matrix):
        matrix = matrix.toarray()
      ready.append(jnp.asarray(np.asarray(matrix, dtype)))
    weights = np.stack(seen).astype(dtype)
    if row_weights is not None:
      weights = weights * np.asarray(row_weights, dtype)
    weights = weights * np.sqrt(self.view_weights).astype(dtype)[:, None]
    vectors = gcca_transform(self.model, ready, jnp.asarray(weights))
    if self.normalization == "generalized":
      return vectors
    support = np.sum(weights**2, axis=0) / self.view_weights.sum()
    return vectors * jnp.asarray(np.sqrt(support).astype(dtype))[:, None]

  def truncate(self, k: int) -> "MVLSA":
    """The k-dimensional fit: the first k columns, embedding [n, k]."""
    model = self.model
    if not 1 <= k <= model.values.shape[0]:
      raise InputError(f"cannot cut {model.values.shape[0]} dimensions to {k}")
    cut = model._replace(
      embedding=model.embedding[:, :k],
      values=model.values[:k],
      projections=tuple(u[:, :k] for u in model.projections),
      loadings=tuple(c[:k] for c in model.loadings),
      objective=_objective(
        model.values[:k], self.view_weights, self.normalization == "unit"
      ),
    )
    return self._replace(model=cut)


def fit(
  views: Sequence[ViewInput],
  k: int,
  *,
  m: int = 300,
  ridge: float | Sequence[float] = 1e-8,
  relative_ridge: bool = False,
  view_weights: Sequence[float] | None = None,
  min_support: int = 1,
  row_weights: Sequence[np.ndarray] | None = None,
  weighting: host_views.Weightings = None,
  normalization: str = "unit",
  center: bool = True,
  method: str = "memory",
  tolerance: float = 1e-3,
  max_cycles: int = 12,
  projections: bool = True,
  key: Array | int = 0,
  factors: "Sequence[ViewFactor] | MVLSA | None" = None,
  keep_factors: bool = False,
  report: Callable[[int, float], None] | None = None,
  mesh: Mesh | None = None,
) -> MVLSA:
  """Fits word vectors to many views.

    minimize sum_j c_j ||W_j K_j (G - X_j U_j)||^2 + c_j r_j ||U_j||^2

  Args:
    views: matrices [n, d_j]: numpy or jax arrays, `ops.Sparse`, BCOO, BCSR or
      scipy matrices, or functions that return one. A row with a nonzero entry
      before weighting is observed.
    k: dimension of the vectors.
    m: rank of each view's SVD; min(d_j, m) is used.
    ridge: r_j, one for all views or one for each.
    relative_ridge: whether ridges are in units of a view's mean squared
      singular value.
    view_weights: c_j of each view, above 0; None for ones.
    min_support: v, least number of views that observe a word to be fitted.
    row_weights: W_j of each view, [n] each; None for weights of one.
    weighting: of the counts: one for all views, or one or None for each.
    normalization: "unit" returns V with unit columns as the thesis does,
      "generalized" K^(-1/2) V, which minimizes the objective under G'KG = I.
    center: subtract column means over the observed rows.
    method: "memory" holds [n, J m]; "stream" holds [n, k + 2 m] and drops what
      does not fit, which `lost` reports.
    tolerance: relative error at which each SVD stops.
    max_cycles: how often an SVD may fill its basis; bounds the work on flat
      spectra, whose last values do not reach the tolerance.
    projections: also compute U_j (streaming then reads each view again).
    key: random key, or seed, of the SVDs' starting blocks.
    factors: an earlier fit that kept its factors, or the factors of each
      view; the views are then not read, and may be empty. m truncates them.
      With the view_weights of the earlier fit, another ridge, m or k is far
      cheaper. A fit to bare factors cannot `transform`, since the views'
      weighting is unknown.
    keep_factors: return the factors of the views, [n, J m], and their
      products, [J m, J m].
    report: called with a view's number and its error after each SVD.
    mesh: devices with axes "rows" and "views": rows of a view are sharded over
      "rows", and the size of "views" is the number of views decomposed at a
      time. With several processes, each reads only its own rows of a view. The
      embedding comes back on the host.

  Returns:
    The fit. `truncate` cuts it to fewer dimensions without fitting again,
    `transform` embeds unseen rows.

  Example:
    >>> import numpy as np
    >>> from repr_jax import multiview
    >>> rng = np.random.default_rng(0)
    >>> views = [rng.poisson(1.0, (60, d)) for d in (20, 30)]
    >>> how = multiview.Weighting("power")
    >>> fitted = multiview.fit(views, k=5, m=10, weighting=how)
    >>> fitted.model.embedding.shape, fitted.model.projections[1].shape
    ((60, 5), (30, 5))
    >>> fitted.transform([view[:3] for view in views]).shape
    (3, 5)
  """
  keys = jax.random.split(inputs.as_key(key), 2)
  _check_options(normalization, method, k, m, ridge, tolerance)
  k, m = int(k), int(m)
  whole = method == "memory" and mesh is None
  if not whole and (factors is not None or keep_factors):
    raise InputError("factors are held by method='memory' without a mesh only")
  hosts: list[HostView] = []
  made, earlier = _given_factors(factors)
  if made is None:
    hosts = host_views.open_views(views, weighting, mesh)
    weights, support = host_views.observe(hosts, min_support, row_weights)
  else:
    weights = np.stack([np.asarray(f.row_weights) for f in made])
    support = (weights > 0).sum(axis=0).astype(np.int32)
  c = _checked_view_weights(view_weights, len(weights), weights.dtype)
  if np.shape(ridge) not in ((), (len(weights),)):
    raise InputError(
      f"ridge has shape {np.shape(ridge)}; give one number, or one for each "
      f"of the {len(weights)} views"
    )
  kept = np.asarray(weights.any(axis=0))
  if int(kept.sum()) < k:
    raise InputError(
      f"k = {k}, but only {int(kept.sum())} of {len(kept)} words are observed "
      f"in {min_support} views or more; lower k or min_support"
    )
  if made is None:
    gcca.check_rank(k, sum(min(m, x.width) for x in hosts), len(kept))
  settings: dict[str, Any] = {
    "center": center, "tolerance": tolerance, "max_cycles": max_cycles
  }  # fmt: skip
  loss = block_fit.Loss(np.asarray(ridge, c.dtype), relative_ridge, c)
  if not whole:
    done = block_fit.fit_blocks(
      hosts, k, m, weights, loss, keys, mesh=mesh, method=method,
      projections=projections, report=report, **settings,
    )  # fmt: skip
  else:
    known = None
    if earlier is not None and np.array_equal(c, earlier.view_weights):
      known = earlier.products
    done = _in_memory(
      hosts, k, m, weights, loss, keys, made, known, report, settings
    )
  values = np.asarray(done.combined.values)
  if not bool(jnp.isfinite(done.combined.v).all()) or values[-1] <= 0:
    rank = int((values > 0).sum())
    raise InputError(f"the views have rank {rank} in all, less than k = {k}")
  return MVLSA(
    model=_assemble(done, loss, normalization == "unit", projections),
    support=support,
    kept=kept,
    normalization=normalization,
    view_weights=c,
    lost=done.lost,
    errors=done.errors,
    columns=earlier.columns if earlier else tuple(x.columns for x in hosts),
    weighting=earlier.weighting if earlier else tuple(x.how for x in hosts),
    factors=tuple(done.factors) if keep_factors else None,
    products=done.products if keep_factors else None,
  )


def _given_factors(
  given: Any,
) -> tuple[Sequence[ViewFactor] | None, MVLSA | None]:
  """The factors of `fit`'s argument, and the earlier fit if it is one."""
  if not isinstance(given, MVLSA):
    return given, None
  if given.factors is None:
    raise InputError("the earlier fit has no factors; keep_factors=True")
  return given.factors, given


def _in_memory(
  hosts, k, m, weights, loss, keys, factors, products, report, settings
) -> block_fit.Done:
  """Holds every view's factors on one device, or takes those given."""
  errors = np.zeros(len(weights))
  if factors is None:
    factors = []
    pairs = factoring.factor_views(hosts, m, weights, keys[0], **settings)
    for j, (factor, error) in enumerate(pairs):
      factors.append(factor)
      errors[j] = error
      if report is not None:
        report(j, error)
  ridges = gcca.view_ridges(factors, loss.ridge, loss.relative)
  if products is None:
    products = gcca.view_products(factors, loss.weights)
  combined = gcca.combine(
    factors, k, keys[1], ridge=jnp.stack(ridges), view_weights=loss.weights,
    rank=m, products=products,
  )  # fmt: skip
  scale = gcca.support_scale(jnp.asarray(weights), loss.weights)
  return block_fit.Done(
    combined, factors, ridges, jnp.asarray(weights), scale, 0.0, errors, None,
    products,
  )  # fmt: skip


def _assemble(
  done: block_fit.Done, loss: block_fit.Loss, unit: bool, projections: bool
) -> GCCA:
  """Puts embedding, projections, objective and shares together."""
  v, values = done.combined.v, done.combined.values
  root = np.sqrt(loss.weights.sum()) if unit else 1
  maps, loadings = [], []
  for j, factor in enumerate(done.factors if projections else ()):
    u, c = _view_maps(
      factor.s, factor.right, done.ridges[j], done.combined.coordinates[j],
      done.weights[j] * done.scale, v,
    )  # fmt: skip
    maps.append(u * root)
    loadings.append(c / root)
  embedding = v if unit else done.scale[:, None] * v
  if done.gather is not None:
    embedding = done.gather(embedding)
  return GCCA(
    embedding=embedding,
    values=values,
    projections=tuple(maps),
    loadings=tuple(loadings),
    means=tuple(factor.mean for factor in done.factors),
    objective=_objective(values, loss.weights, unit),
    shares=done.combined.shares,
  )


@jax.jit
@exact_products
def _view_maps(s, right, ridge, coordinates, present, v) -> tuple[Array, Array]:
  """U_j = B (r + S^2)^(-1/2) C and (V' D^2 V)^(-1) C' (r + S^2)^(1/2) B'."""
  root = gcca.ridge_root(s, ridge)
  inverse = jnp.where(root > 0, 1 / jnp.where(root > 0, root, 1), 0)
  gram = v.T @ (present[:, None] ** 2 * v)
  outward = (coordinates * inverse[:, None]).T @ right.T
  values, vectors = dense.eigh(gram)
  cut = 10 * len(values) * jnp.finfo(values.dtype).eps * values[-1]
  shares = jnp.where(values > cut, 1 / jnp.maximum(values, cut), 0)
  loadings = vectors @ (shares[:, None] * (vectors.T @ outward))
  return right @ (root[:, None] * coordinates), loadings


def _objective(values, view_weights: np.ndarray, unit: bool) -> Array:
  loss = jnp.maximum(values.shape[0] - values.sum(), 0)
  return loss * view_weights.sum() if unit else loss


def _checked_view_weights(given, count: int, dtype) -> np.ndarray:
  weights = np.ones(count, dtype) if given is None else np.asarray(given, dtype)
  if weights.shape != (count,):
    raise InputError(f"view_weights has shape {weights.shape}, not ({count},)")
  bad = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
  if bad.size:
    raise InputError(
      f"the weight {weights[bad[0]]:g} of view {bad[0]}: weights of views must "
      "be above 0 and finite; leave a view out instead"
    )
  return weights


def _check_options(normalization, method, k, m, ridge, tolerance) -> None:
  if normalization not in ("unit", "generalized"):
    raise InputError(
      f"normalization {normalization!r} is neither 'unit' nor 'generalized'"
    )
  if method not in ("memory", "stream"):
    raise InputError(f"method {method!r} is neither 'memory' nor 'stream'")
  inputs.check_whole(1, k=k, m=m)
  ridges = np.asarray(ridge, np.float64)
  if not ((ridges >= 0) & (ridges < np.inf)).all():
    raise InputError(f"ridge must be finite, 0 or more, not {ridge}")
  if not 0 <= tolerance < np.inf:
    raise InputError(f"the tolerance must be finite, 0 or more: {tolerance}")

"""How far views agree, and weights of views from it, without labels.

The functions read stored factors (`gcca.factor_view`), not the views. A view
whose singular vectors no other view predicts is noise to the common space, but
the objective counts it in full: `agreement_weights` gives it a small weight. A
view with true information that no other view has does not agree either. So use
these weights among views of one kind, such as contexts in one text, and not
between text and a lexicon.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array

from repr_jax.multiview import gcca
from repr_jax.multiview.gcca import ViewFactor
from repr_jax.ops.precision import exact_products


def direction_agreement(
  factors: Sequence[ViewFactor] | ViewFactor,
) -> tuple[Array, ...]:
  """Adjusted R^2 of each singular vector of a view from each other view.

    R^2_(jl,i) = ||A_l' a_ji||^2 / ||K_l a_ji||^2

  is that of the regression of a_ji on the columns of A_l over the rows that
  view l observes. Chance gives c = m_l / n_l for m_l vectors on n_l rows, so
  (R^2 - c) / (1 - c) is returned, cut at 0.

  Args:
    factors: of each view, or of views stacked along the first axis. `right`,
      `mean` and the size of `s` are not read; a vector with s = 0 does not
      count.

  Returns:
    For each view [J, m_j]: row l is the agreement with view l, in [0, 1]. The
    view's own row is zero.

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 200, 3))
    >>> rank_3 = lambda x: multiview.factor_view(
    ...   x, 3, np.ones(200), jax.random.key(0))[0]
    >>> factors = [rank_3(x), rank_3(2 * x), rank_3(noise)]
    >>> first = multiview.direction_agreement(factors)[0]
    >>> np.round(first.mean(axis=1)).tolist()
    [0.0, 1.0, 0.0]
  """
  factors = gcca.unstacked(factors)
  lefts = [_left(factor) for factor in factors]
  seen = jnp.stack([_observed(f) for f in factors], axis=1)
  rows = jnp.sum(seen, axis=0)
  ranks = jnp.stack([jnp.sum(f.s > 0) for f in factors]).astype(seen.dtype)
  chance = jnp.clip(ranks / jnp.maximum(rows, 1), 0, 0.99)
  inside = [gcca.inner(left**2, seen) for left in lefts]  # [m_j, J] each
  count = len(factors)
  parts = [[jnp.zeros_like(left[0])] * count for left in lefts]
  for j in range(count):
    for other in range(j + 1, count):
      squares = gcca.inner(lefts[j], lefts[other]) ** 2
      for view, by, caught in (
        (j, other, jnp.sum(squares, axis=1)),
        (other, j, jnp.sum(squares, axis=0)),
      ):
        whole = inside[view][:, by]
        share = caught / jnp.where(whole > 0, whole, 1)
        above = (share - chance[by]) / (1 - chance[by])
        parts[view][by] = jnp.where(whole > 0, jnp.clip(above, 0, 1), 0)
  return tuple(jnp.stack(part) for part in parts)


@exact_products
def view_agreement(factors: Sequence[ViewFactor] | ViewFactor) -> Array:
  """Mean agreement of each view with the others, in [0, 1], [J].

  The mean of `direction_agreement` over a view's singular vectors, then over
  the other views by the number of rows that both observe.

  Args:
    factors: as in `direction_agreement`.

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 200, 3))
    >>> rank_3 = lambda x: multiview.factor_view(
    ...   x, 3, np.ones(200), jax.random.key(0))[0]
    >>> factors = [rank_3(x), rank_3(2 * x), rank_3(noise)]
    >>> np.round(multiview.view_agreement(factors), 1).tolist()
    [0.5, 0.5, 0.0]
  """
  factors = gcca.unstacked(factors)
  tables = direction_agreement(factors)
  seen = jnp.stack([_observed(f) for f in factors], axis=1)
  common = gcca.inner(seen, seen) * (1 - jnp.eye(len(factors)))
  means = []
  for j, (table, factor) in enumerate(zip(tables, factors)):
    count = jnp.maximum(jnp.sum(factor.s > 0), 1)
    by_view = jnp.sum(table, axis=1) / count
    means.append(by_view @ common[j] / jnp.maximum(jnp.sum(common[j]), 1))
  return jnp.stack(means).astype(factors[0].s.dtype)


def agreement_weights(agreement: Array, power: float | Array = 2.0) -> Array:
  """Weights c_j of views from their agreement: (R_j / max R)^power, [J].

  Args:
    agreement: R_j by `view_agreement`, [J].
    power: exponent; 0 weights all views equally.

  Returns:
    Weights in (0, 1], the largest 1. No weight is below 1e-6, so no view is
    left out; all are 1 if no views agree.

  Example:
    >>> import jax.numpy as jnp
    >>> from repr_jax import multiview
    >>> multiview.agreement_weights(jnp.array([0.4, 0.2, 0.0])).tolist()
    [1.0, 0.25, 9.999999974752427e-07]
  """
  most = jnp.max(agreement)
  share = jnp.where(most > 0, agreement / jnp.where(most > 0, most, 1), 1)
  safe = jnp.maximum(share, jnp.finfo(share.dtype).tiny)
  return jnp.maximum(safe**power, 1e-6)


def energy_weights(
  factors: Sequence[ViewFactor] | ViewFactor,
  *,
  ridge: float | Array = 1e-8,
  relative_ridge: bool | Array = False,
) -> Array:
  """Weights c_j by which each view has the same share of the common space.

    c_j = min_l e_l / e_j,  e_j = sum_i s_ji^2 / (r_j + s_ji^2)

  e_j is the trace of P_j, the view's degrees of freedom. With equal weights, a
  view of 200 directions moves cosines twice as far as one of 100. These weights
  remove that effect.

  Args:
    factors: of each view, or of views stacked along the first axis. Only `s`
      is read.
    ridge: r_j as in `combine`, [] or [J].
    relative_ridge: as in `combine`.

  Returns:
    Weights in (0, 1], the largest 1, [J].

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> x = np.random.default_rng(0).normal(size=(50, 8))
    >>> factors = [
    ...   multiview.factor_view(x, m, np.ones(50), jax.random.key(0))[0]
    ...   for m in (2, 4)]
    >>> multiview.energy_weights(factors).round(2).tolist()
    [1.0, 0.5]
  """
  factors = gcca.unstacked(factors)
  ridges = gcca.view_ridges(factors, ridge, relative_ridge)
  energy = jnp.stack(
    [jnp.sum(gcca.shrinkage(f.s, r) ** 2) for f, r in zip(factors, ridges)]
  )
  present = energy > 0
  least = jnp.min(jnp.where(present, energy, jnp.inf))
  return jnp.where(present, least / jnp.where(present, energy, 1), 1)


def permuted_factors(
  factors: Sequence[ViewFactor] | ViewFactor, key: Array
) -> tuple[ViewFactor, ...]:
  """Shuffles the observed rows of each view's factors independently.

  The views then share nothing but the pattern of what they observe. Results of
  `combine` and `view_agreement` on them are samples of the null distribution of
  the eigenvalues and of the agreement.

  Args:
    factors: of each view, or of views stacked along the first axis.
    key: random key.

  Returns:
    The shuffled factors; rows that a view does not observe stay in place.

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> x = np.random.default_rng(0).normal(size=(300, 3))
    >>> one, _ = multiview.factor_view(x, 3, np.ones(300), jax.random.key(0))
    >>> mixed = multiview.permuted_factors([one, one], jax.random.key(1))
    >>> bool(multiview.view_agreement(mixed).max() < 0.1)
    True
  """
  factors = gcca.unstacked(factors)
  keys = jax.random.split(key, len(factors))
  shuffled = []
  for factor, one in zip(factors, keys):
    seen = factor.row_weights > 0
    n = seen.shape[0]
    # The observed rows in their order and in a random one, then the others.
    places = jnp.argsort(~seen, stable=True)
    drawn = jax.random.uniform(one, (n,))
    order = jnp.argsort(jnp.where(seen, drawn, 2 + jnp.arange(n)))
    left = _left(factor)
    weights = factor.row_weights
    shuffled.append(
      factor._replace(
        left=jnp.zeros_like(left).at[places].set(left[order]),
        row_weights=weights.at[places].set(weights[order]),
      )
    )
  return tuple(shuffled)


def _observed(factor: ViewFactor) -> Array:
  """1 where the view observes a row, [n]."""
  return (factor.row_weights > 0).astype(factor.s.dtype)


def _left(factor: ViewFactor) -> Array:
  """A with unobserved rows and vectors that do not count set to zero."""
  kept = (factor.row_weights > 0)[:, None] & (factor.s > 0)[None]
  return jnp.where(kept, factor.left, 0)

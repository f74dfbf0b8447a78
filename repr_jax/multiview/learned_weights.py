"""Weights of views that make similarities of words agree with targets.

The similarity of two words in the common space is close to

  cos(x, y) = sum_j c_j a_j(x)'a_j(y)
              / sqrt(sum_j c_j |a_j(x)|^2  sum_j c_j |a_j(y)|^2)

with the rows a_j of each view's block A_j T_j: exactly so if no dimension is
cut and columns are scaled by the root of their eigenvalues. The cosine depends
on the weights c_j through three numbers for each pair and view, so weights are
fitted without an SVD. Targets are scores by people (`label_weights`, the
thesis' discriminative weights), or the similarities of a view that was held out
(`heldout_weights`), which needs no labels.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from repr_jax.multiview import gcca
from repr_jax.multiview.gcca import ViewFactor
from repr_jax.ops.precision import exact_products

_STEPS = 200
_RATE = 0.1  # of Adam, in units of log c
_BETAS = (0.9, 0.99)


class _Pairs(NamedTuple):
  """Parts of the cosine of each pair.

  Attributes:
    products: a_j(x)'a_j(y), [J, p].
    left: |a_j(x)|^2, [J, p].
    right: |a_j(y)|^2, [J, p].
  """

  products: Array
  left: Array
  right: Array


def label_weights(
  factors: Sequence[ViewFactor] | ViewFactor,
  pairs: Array,
  targets: Array,
  *,
  strength: float | Array = 0.005,
  ridge: float | Array = 1e-8,
) -> Array:
  """Weights c_j by which similarities correlate most with given scores.

  Maximizes the mean over the sets of Pearson's correlation between the
  cosines and the targets, minus strength times the variance of log c. Give
  ranks as targets for Spearman's correlation on one side.

  Args:
    factors: of each view, or of views stacked along the first axis. `right`
      and `mean` are not read.
    pairs: rows of two words, int [S, p, 2]; -1 marks padding.
    targets: scores, [S, p].
    strength: pull toward equal weights.
    ridge: r_j as in `combine`, [] or [J].

  Returns:
    Weights above 0 whose geometric mean is 1, [J].

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> rng = np.random.default_rng(0)
    >>> views = rng.normal(size=(2, 100, 3))
    >>> factors = [
    ...   multiview.factor_view(x, 3, np.ones(100), jax.random.key(0))[0]
    ...   for x in views]
    >>> pairs = rng.integers(100, size=(1, 200, 2))
    >>> a = factors[1].left[pairs]
    >>> targets = (a[:, :, 0] * a[:, :, 1]).sum(-1)
    >>> weights = multiview.label_weights(factors, pairs, targets)
    >>> bool(weights[1] > 2 * weights[0])
    True
  """
  blocks = _blocks(factors, ridge)
  pairs = jnp.asarray(pairs)
  real = jnp.all(pairs >= 0, axis=-1)
  rows = jnp.where(pairs < 0, 0, pairs)
  sets = [
    _of_pairs(blocks, rows[s, :, 0], rows[s, :, 1]) for s in range(len(rows))
  ]
  stacked = jax.tree.map(lambda *x: jnp.stack(x), *sets)
  targets = jnp.where(real, jnp.asarray(targets, blocks[0].dtype), 0)

  def correlations(weights: Array) -> Array:
    def one(parts, target, valid):
      return _correlation(_cosines(parts, weights), target, valid)

    return jax.vmap(one)(stacked, targets, real)

  return _fitted(correlations, len(blocks), strength, blocks[0].dtype)


def heldout_weights(
  factors: Sequence[ViewFactor] | ViewFactor,
  sources: Array,
  rows: Array,
  *,
  strength: float | Array = 0.005,
  ridge: float | Array = 1e-8,
) -> Array:
  """Weights c_j by which views predict the similarities of views held out.

  Each view is held out in turn, with all views of its source: views of one
  text share their tokens and so their noise. The cosines of the other views,
  for all pairs of some rows, are correlated with the cosines of the held-out
  view. The weights maximize the mean correlation, each source counted once,
  minus strength times the variance of log c.

  Args:
    factors: as in `label_weights`.
    sources: number of the source of each view, int [J].
    rows: rows whose pairs are compared, int [q]; -1 marks padding. Take rows
      that many views observe.
    strength: pull toward equal weights.
    ridge: r_j as in `combine`, [] or [J].

  Returns:
    Weights above 0 whose geometric mean is 1, [J]; ones where all views are
    of one source.

  Example:
    >>> import jax, numpy as np
    >>> from repr_jax import multiview
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 200, 3))
    >>> rank_3 = lambda x: multiview.factor_view(
    ...   x, 3, np.ones(200), jax.random.key(0))[0]
    >>> factors = [rank_3(x), rank_3(2 * x), rank_3(noise)]
    >>> rows = np.arange(100)
    >>> weights = multiview.heldout_weights(factors, np.arange(3), rows)
    >>> bool(weights[2] < 0.5 * weights[:2].min())
    True
  """
  blocks = _blocks(factors, ridge)
  sources, rows = jnp.asarray(sources), jnp.asarray(rows)
  real = rows >= 0
  rows = jnp.where(real, rows, 0)
  first, second = jnp.triu_indices(rows.shape[0], 1)
  parts = _of_pairs(blocks, rows[first], rows[second])
  both = real[first] & real[second]
  seen = (parts.left > 0) & (parts.right > 0) & both  # [J, p]
  targets = _over_root(parts.products, parts.left * parts.right)
  same = sources[:, None] == sources[None]
  share = 1 / jnp.sum(same, axis=1).astype(targets.dtype)
  known = jnp.any(~same, axis=1) & jnp.any(seen, axis=1)
  counted = jnp.where(known, share, 0)
  counted = counted / jnp.maximum(jnp.sum(counted), 1e-6)

  def correlations(weights: Array) -> Array:
    # One product for all held-out views: row s has weights without source s.
    cosines = _cosines(parts, jnp.where(same, 0, weights))
    by_view = jax.vmap(_correlation)(cosines, targets, seen)
    return counted * by_view * len(blocks)

  return _fitted(correlations, len(blocks), strength, blocks[0].dtype)


def _blocks(
  factors: Sequence[ViewFactor] | ViewFactor, ridge: float | Array
) -> list[Array]:
  """W_j A_j T_j of each view, zero where a row is not observed."""
  factors = gcca.unstacked(factors)
  ridges = gcca.view_ridges(factors, ridge)
  made = []
  for factor, r in zip(factors, ridges):
    seen = jnp.asarray(factor.row_weights)[:, None] > 0
    block = gcca.view_block(factor, jnp.ones((), factor.s.dtype), r)
    made.append(jnp.where(seen, block, 0))
  return made


@exact_products
def _of_pairs(blocks: Sequence[Array], x: Array, y: Array) -> _Pairs:
  """Products and squares of rows x [p] and y [p] in each view."""
  parts = []
  for block in blocks:
    a, b = block[x], block[y]
    parts.append([jnp.sum(u * v, axis=1) for u, v in ((a, b), (a, a), (b, b))])
  return _Pairs(*(jnp.stack(each) for each in zip(*parts)))


@exact_products
def _cosines(parts: _Pairs, weights: Array) -> Array:
  """Cosines [.., p] in the space with weights [.., J]; 0 without a view."""
  dot, left, right = (weights @ part for part in parts)
  return _over_root(dot, left * right)


def _correlation(x: Array, y: Array, valid: Array) -> Array:
  """Pearson's correlation [] over valid places; 0 if a side is constant."""
  weight = valid.astype(x.dtype)
  count = jnp.maximum(jnp.sum(weight), 1)
  x, y = (weight * (z - jnp.sum(weight * z) / count) for z in (x, y))
  square = jnp.sum(x**2) * jnp.sum(y**2)
  return _over_root(jnp.sum(x * y), square)


def _over_root(x: Array, square: Array) -> Array:
  """x / sqrt(square), 0 where the square is."""
  present = square > 0
  return jnp.where(present, x / jnp.sqrt(jnp.where(present, square, 1)), 0)


def _fitted(correlations, count: int, strength, dtype) -> Array:
  """Weights [J] at the end of Adam's steps on log c."""

  def loss(log: Array) -> Array:
    log = log - jnp.mean(log)
    return strength * jnp.mean(log**2) - jnp.mean(correlations(jnp.exp(log)))

  def step(i, state):
    log, mean, square = state
    slope = jax.grad(loss)(log)
    mean = _BETAS[0] * mean + (1 - _BETAS[0]) * slope
    square = _BETAS[1] * square + (1 - _BETAS[1]) * slope**2
    steady = mean / (1 - _BETAS[0] ** (i + 1))
    size = jnp.sqrt(square / (1 - _BETAS[1] ** (i + 1)))
    rate = _RATE * (1 - i / _STEPS)
    return log - rate * steady / (size + 1e-8), mean, square

  zero = jnp.zeros(count, dtype)
  log, _, _ = lax.fori_loop(0, _STEPS, step, (zero, zero, zero))
  return jnp.exp(log - jnp.mean(log))

"""Scores between Gaussians, against integrals on a grid."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from repr_jax.ops import gaussian
from repr_jax.setexp import gaussian_scores

_PRIOR = 1.5
_GRID = np.linspace(-30, 30, 60_001)


def _density(mean, variance):
  return stats.norm(mean, np.sqrt(variance)).pdf(_GRID)


def _integral(values):
  return float(np.sum(values) * (_GRID[1] - _GRID[0]))


def _kl(one, other):
  p = _density(*one)
  inside = p > 0
  ratio = np.log(p[inside]) - stats.norm(other[0], np.sqrt(other[1])).logpdf(
    _GRID[inside]
  )
  return _integral(p[inside] * ratio)


_BY_HAND = {
  "xi": lambda q, x: -((q[0] / q[1] - x[0] / x[1]) ** 2),
  "kl_query": lambda q, x: -_kl(q, x),
  "kl_entity": lambda q, x: -_kl(x, q),
  "kl_symmetric": lambda q, x: -_kl(q, x) - _kl(x, q),
  "product_kernel": lambda q, x: np.log(_integral(_density(*q) * _density(*x))),
  "mean": lambda q, x: -((q[0] - x[0]) ** 2),
  "bayes": lambda q, x: np.log(
    _integral(_density(*q) * _density(*x) / _density(0, _PRIOR))
  ),
}


def _natural(means, variances):
  precision = 1 / np.asarray(variances, np.float32)
  xi = np.asarray(means, np.float32) * precision
  return gaussian.Natural(jnp.asarray(xi), jnp.asarray(precision))


@pytest.mark.parametrize("name", gaussian_scores.SCORES)
def test_a_score_is_the_sum_of_its_integrals(name):
  query = np.array([[0.4, 0.5], [-0.3, 0.8]])  # mean, variance of two axes
  entities = np.array([[[0.1, 0.6], [0.7, 0.3]], [[-0.5, 0.9], [0.2, 0.4]]])
  weights = jnp.asarray([float(x == name) for x in gaussian_scores.SCORES])
  side = gaussian_scores.entity_side(_natural(*np.moveaxis(entities, 2, 0)))
  scores = gaussian_scores.scores(weights, _PRIOR, _natural(*query.T), side)
  # Axis d of `entities` is the first, that of the entities the second.
  parts = [
    [_BY_HAND[name](query[d], entities[d, x]) for d in range(2)]
    for x in range(2)
  ]
  np.testing.assert_allclose(scores, np.sum(parts, axis=1), rtol=1e-4)
  for x in range(2):
    own = gaussian_scores.parts(
      weights, _PRIOR, _natural(*query.T), _natural(*entities[:, x].T)
    )
    np.testing.assert_allclose(own, parts[x], rtol=1e-3, atol=1e-5)


def test_scores_that_overflow_are_the_ends_of_the_numbers():
  given = jnp.asarray([jnp.nan, jnp.inf, -jnp.inf, 2.0])
  got = np.asarray(gaussian_scores.finite(given))
  ends = np.finfo(np.float32)
  np.testing.assert_array_equal(got, [ends.min, ends.max, ends.min, 2.0])


def test_a_batch_of_queries_computes_no_product_of_weight_0():
  side = gaussian_scores.entity_side(_natural(np.ones((2, 5)), np.ones((2, 5))))
  queries = _natural(np.ones((3, 2)), np.ones((3, 2)))
  each = jax.vmap(gaussian_scores.scores, in_axes=(None, None, 0, None))
  jaxpr = jax.make_jaxpr(each)(jnp.eye(7)[0], _PRIOR, queries, side)

  def primitives(jaxpr):
    for equation in jaxpr.eqns:
      yield equation.primitive.name
      inner = equation.params.get("jaxpr")
      if inner is not None:
        yield from primitives(getattr(inner, "jaxpr", inner))

  found = list(primitives(jaxpr.jaxpr))
  assert found.count("cond") == 1  # with a branch for each kind of product
  assert found.count("dot_general") == 1  # the constants

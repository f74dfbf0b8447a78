"""Streamed fits: blocks with weights of views, ridges and kept dimensions."""

import numpy as np
import pytest
import scipy.sparse

from repr_jax import multiview
from repr_jax.errors import InputError


def _views():
  rng = np.random.default_rng(0)
  signal = rng.random((150, 3))
  views = []
  for d in (11, 12, 13):
    counts = rng.poisson(signal @ (3 * rng.random((3, d))))
    counts[rng.random(150) < 0.3] = 0
    views.append(scipy.sparse.csr_array(counts.astype(np.float32)))
  return views


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("normalization", ["unit", "generalized"])
def test_streamed_equals_in_memory(relative, normalization):
  settings = {
    "m": 13, "ridge": [0.5, 0.1, 0.0], "relative_ridge": relative,
    "view_weights": [1.0, 3.0, 0.5], "normalization": normalization,
    "tolerance": 1e-6, "weighting": multiview.Weighting("log"),
  }  # fmt: skip
  held = multiview.fit(_views(), 23, **settings).truncate(3).model
  streamed = multiview.fit(_views(), 23, method="stream", **settings)
  assert streamed.lost < 1e-5
  for ours, theirs in zip(streamed.truncate(3).model, held):
    for one, other in zip(_leaves(ours), _leaves(theirs)):
      scale = np.abs(other).max()
      np.testing.assert_allclose(one, other, atol=3e-3 * scale)


def _leaves(field):
  return [np.asarray(x) for x in field] if isinstance(field, tuple) else [field]


def test_factors_belong_to_memory():
  with pytest.raises(InputError, match="factors are held"):
    multiview.fit(_views(), 3, method="stream", keep_factors=True)


def test_cached_factors_give_the_same_fit():
  views = _views()
  first = multiview.fit(views, 3, m=10, keep_factors=True)
  again = multiview.fit((), 3, m=10, factors=first.factors)
  np.testing.assert_array_equal(first.model.embedding, again.model.embedding)
  for one, other in zip(first.model.projections, again.model.projections):
    np.testing.assert_array_equal(one, other)
  np.testing.assert_array_equal(first.support, again.support)
  with pytest.raises(InputError, match="weight 0 of view 1"):
    multiview.fit((), 3, factors=first.factors, view_weights=[1, 0, 1])
  with pytest.raises(InputError, match=r"view_weights has shape \(2,\)"):
    multiview.fit((), 3, factors=first.factors, view_weights=[1, 1])

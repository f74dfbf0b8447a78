"""Dimensions that a query depends on most."""

import numpy as np
import pytest

from experiments.explorer import concepts
from repr_jax.ops import precision


@pytest.mark.parametrize("multilabel", [False, True])
def test_dimensions_are_ordered_by_what_a_query_owes_to_them(multilabel):
  rng = np.random.default_rng(0)
  decoder = rng.standard_normal((30, 7))
  usual = rng.standard_normal(6)
  # So near that the divergence is the first term of its series.
  concept = usual + 1e-2 * rng.standard_normal(6) * np.arange(1, 7)

  def p(z):
    logits = decoder[:, :-1] @ z + decoder[:, -1]
    if multilabel:
      return 1 / (1 + np.exp(-logits))
    return np.exp(logits) / np.exp(logits).sum()

  def divergence(dimension):
    z = concept.copy()
    z[dimension] = usual[dimension]
    gains = p(concept) * np.log(p(concept) / p(z))
    if not multilabel:
      return gains.sum(), gains
    against = (1 - p(concept)) * np.log((1 - p(concept)) / (1 - p(z)))
    return (gains + against).sum(), gains

  with precision.enable_x64():
    chosen, gains, features = concepts._active(
      multilabel, decoder, usual, concept
    )
  order = np.argsort([-divergence(i)[0] for i in range(6)])
  assert chosen.tolist() == order[:5].tolist()
  for dimension, values, places in zip(chosen, gains, features):
    expected = divergence(int(dimension))[1]
    best = np.argsort(-expected)[: len(places)]
    assert places.tolist() == best.tolist()
    np.testing.assert_allclose(values, expected[best], rtol=1e-5)

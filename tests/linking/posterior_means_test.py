"""Posterior means: the encoder's by hand, bags as counts, no words."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from repr_jax import linking, setexp
from repr_jax.linking import posterior_means
from repr_jax.setexp import autoencoder

_KEY = jax.random.key(0)


def test_bags_become_counts():
  counts = posterior_means.bag_counts(
    np.array([0, 3, 3, 4]), np.array([2, 0, 2, 1], np.int32), 4
  )
  np.testing.assert_array_equal(
    counts.toarray(), [[1, 0, 2, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
  )


def test_posterior_means_are_the_encoders_and_zero_without_words():
  rng = np.random.default_rng(0)
  dense = rng.poisson(1.0, (12, 9)).astype(np.float32)
  dense[4] = 0
  config = autoencoder.Config(dim=3, hidden=(5,), weighting="log1p")
  counts = sp.csr_array(dense)
  null = posterior_means.fit_posterior_means(
    counts, key=_KEY, config=config, epochs=0
  )
  assert not null[4].any()
  # The same random encoder, by hand.
  full = sp.csr_array(dense[dense.any(axis=1)])
  start, _, _ = jax.random.split(_KEY, 3)
  statistics = autoencoder.statistics_from_scipy(config, full)
  params = setexp.init(config, start, statistics)
  sums = jnp.log1p(dense[0]) @ params.table
  expected = autoencoder.encode_sums(config, params.encoder, sums).mean
  np.testing.assert_allclose(null[0], expected, atol=1e-5)
  # The door, of one bag with padding.
  words = np.append(np.flatnonzero(dense[0]), -1)
  padded = np.append(dense[0][dense[0] > 0], np.nan)
  inputs = statistics.inputs
  door = linking.posterior_mean(config, params, inputs, words, padded)
  np.testing.assert_allclose(door, expected, atol=1e-5)
  nothing = linking.posterior_mean(
    config, params, inputs, words[-1:], padded[-1:]
  )
  np.testing.assert_array_equal(nothing, 0)
  trained = posterior_means.fit_posterior_means(
    counts, key=_KEY, config=config, epochs=2, batch_size=4
  )
  assert np.isfinite(trained).all()
  assert not np.allclose(trained[0], null[0])


def test_distinct_rows_are_the_first_of_equal_ones():
  table = np.array([[0, 0], [1, 2], [1, 2], [2, 1], [0, 0], [1, 2]])
  got = posterior_means.distinct_rows(sp.csr_array(table.astype(np.float32)))
  assert got.tolist() == [1, 3]


def test_unique_bags_are_encoded_all_and_trained_on_once():
  table = sp.csr_array(
    np.array([[3, 0, 1], [0, 2, 1], [0, 2, 1], [0, 2, 1]], np.float32)
  )
  config = autoencoder.Config(dim=2, hidden=(3,))

  def fit(counts, unique):
    return posterior_means.fit_posterior_means(
      counts, key=jax.random.key(0), config=config, epochs=3, unique=unique
    )

  once = fit(table, True)
  np.testing.assert_allclose(once[1], once[3], atol=1e-6)
  np.testing.assert_allclose(once[:2], fit(table[:2], False), atol=1e-5)
  assert np.abs(once - fit(table, False)).max() > 1e-6

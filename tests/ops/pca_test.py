"""PCA and probabilistic PCA against scikit-learn and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from sklearn import decomposition

from repr_jax import ops
from repr_jax.errors import InputError
from repr_jax.ops import pca, sparse


@pytest.fixture(scope="module")
def data():
  rng = np.random.default_rng(0)
  signal = rng.standard_normal((400, 4)) @ rng.standard_normal((4, 15)) * 2
  return (signal + rng.standard_normal((400, 15)) + 3).astype(np.float32)


def test_agrees_with_scikit_learn(data):
  n = len(data)
  ours = ops.pca_fit(jnp.asarray(data), 4, jax.random.key(0))
  theirs = decomposition.PCA(4).fit(data)
  # scikit-learn divides by n - 1.
  factor = (n - 1) / n
  np.testing.assert_allclose(
    ours.variances, theirs.explained_variance_ * factor, rtol=1e-4
  )
  np.testing.assert_allclose(
    ours.noise, theirs.noise_variance_ * factor, rtol=1e-3
  )
  np.testing.assert_allclose(
    np.abs(np.sum(ours.components.T * theirs.components_, axis=1)), 1, rtol=1e-4
  )


def test_log_likelihood_is_the_gaussian_density(data):
  model = ops.pca_fit(jnp.asarray(data), 4, jax.random.key(0))
  loading = np.asarray(pca.ppca_loading(model), np.float64)
  covariance = loading @ loading.T + float(model.noise) * np.eye(15)
  expected = scipy.stats.multivariate_normal(
    np.asarray(model.mean, np.float64), covariance
  ).logpdf(data)
  found = ops.ppca_log_likelihood(model, jnp.asarray(data))
  np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_likelihood_is_at_its_maximum(data):
  model = ops.pca_fit(jnp.asarray(data), 4, jax.random.key(0))

  def mean_likelihood(log_noise, log_scale):
    changed = model._replace(
      noise=model.noise * jnp.exp(log_noise),
      variances=model.variances * jnp.exp(log_scale),
    )
    return ops.ppca_log_likelihood(changed, jnp.asarray(data)).mean()

  slopes = jax.jit(jax.grad(mean_likelihood, argnums=(0, 1)))(0.0, 0.0)
  np.testing.assert_allclose(slopes, 0, atol=2e-2)
  assert mean_likelihood(0.3, 0.0) < mean_likelihood(0.0, 0.0)


def test_posterior_mean_solves_its_normal_equations(data):
  model = ops.pca_fit(jnp.asarray(data), 4, jax.random.key(0))
  mean, covariance = ops.ppca_posterior(model, jnp.asarray(data))
  loading = np.asarray(pca.ppca_loading(model))
  noise = float(model.noise)
  m = loading.T @ loading + noise * np.eye(4)
  expected = np.linalg.solve(m, loading.T @ (data - np.asarray(model.mean)).T)
  np.testing.assert_allclose(mean, expected.T, atol=1e-3)
  np.testing.assert_allclose(covariance, noise * np.linalg.inv(m), atol=1e-4)


def test_inverse_of_a_complete_transform(data):
  model = ops.pca_fit(jnp.asarray(data), 15, jax.random.key(0))
  z = ops.pca_transform(model, jnp.asarray(data))
  np.testing.assert_allclose(ops.pca_inverse(model, z), data, atol=1e-3)


def test_sparse_equals_dense():
  rng = np.random.default_rng(1)
  counts = rng.poisson(2 / np.arange(1, 31), (500, 30)).astype(np.float32)
  dense = ops.pca_fit(jnp.asarray(counts), 3, jax.random.key(0))
  thin = ops.pca_fit(sparse.from_scipy(counts), 3, jax.random.key(0))
  for one, two in zip(dense, thin):
    np.testing.assert_allclose(one, two, atol=1e-3)


def test_too_many_components():
  with pytest.raises(InputError, match="k = 9 components"):
    ops.pca_fit(jnp.ones((20, 8)), 9, jax.random.key(0))

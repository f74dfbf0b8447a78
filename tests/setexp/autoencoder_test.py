"""The autoencoder's modules and its bound."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.sparse as sp
import scipy.stats

from repr_jax import errors
from repr_jax.ops import precision
from repr_jax.setexp import autoencoder


@pytest.fixture
def counts():
  rng = np.random.default_rng(0)
  dense = rng.poisson(0.6, (12, 30)).astype(np.float32)
  dense[:, 0] += 1
  return sp.csr_array(dense)


def _model(counts, **changes):
  config = dataclasses.replace(
    autoencoder.Config(latent=3, hidden=(7,)), **changes
  )
  params = autoencoder.init_params(config, jax.random.key(1), counts)
  return config, params, autoencoder.statistics(counts)


def _by_hand(config, params, weighted):
  """Mean and log-variance of the encoder, written out."""
  x = np.tanh(weighted @ np.asarray(params.table) + params.encoder["bias"])
  for i in range(1, len(config.hidden)):
    layer = params.encoder[f"hidden_{i}"]
    x = np.tanh(x @ layer["kernel"] + layer["bias"])
  heads = [params.encoder[name] for name in ("mean", "log_variance")]
  return [np.asarray(x @ y["kernel"] + y["bias"]) for y in heads]


@pytest.mark.parametrize("hidden", [(7,), (7, 5), (7, 5, 4)])
def test_encoder_by_hand(counts, hidden):
  config, params, _ = _model(counts, hidden=hidden)
  row = counts[[0]].toarray()[0]
  found = autoencoder.encode(config, params.encoder, row @ params.table)
  mean, log_variance = _by_hand(config, params, row)
  np.testing.assert_allclose(found.mean, mean, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(
    found.log_variance, log_variance, rtol=1e-4, atol=1e-6
  )


def test_lower_bounded_variance(counts):
  config, params, _ = _model(counts, lower_bounded_variance=True)
  for scale in (-1e3, 0.0, 1e3):
    found = autoencoder.encode(config, params.encoder, jnp.full(7, scale))
    variance = np.exp(found.log_variance)
    assert (variance >= 1).all() and (variance <= np.e * 1.0001).all()
  row = counts[[0]].toarray()[0]
  found = autoencoder.encode(config, params.encoder, row @ params.table)
  _, raw = _by_hand(config, params, row)
  np.testing.assert_allclose(
    found.log_variance, 1 / (1 + np.exp(-raw)), rtol=1e-4
  )


def test_weightings_by_hand(counts):
  inputs = autoencoder.statistics(counts)
  row = counts[[3]].toarray()[0]
  length = row.sum()
  dense = counts.toarray()
  df = (dense > 0).sum(axis=0)
  idf = np.log(1 + (12 - df + 0.5) / (df + 0.5))
  np.testing.assert_allclose(inputs.idf, idf, rtol=1e-5)
  norm = 1.5 * (0.25 + 0.75 * length / dense.sum(axis=1).mean())
  expected = {
    "raw": row,
    "log1p": np.log(1 + row),
    "l1": row / length,
    "bm25": idf * 2.5 * row / (row + norm),
  }
  for name, value in expected.items():
    config = autoencoder.Config(weighting=name)
    for array in (row, jnp.asarray(row)):
      found = autoencoder.weigh(
        config, array, inputs.idf, length, inputs.mean_length
      )
      np.testing.assert_allclose(found, value, rtol=1e-5)
    nothing = autoencoder.weigh(
      config, np.zeros(30, np.float32), inputs.idf, 0.0, inputs.mean_length
    )
    np.testing.assert_array_equal(nothing, 0)


def test_likelihoods_by_scipy(counts):
  row = counts[[2]].toarray()[0]
  logits = np.random.default_rng(0).standard_normal(30)
  multinomial = scipy.stats.multinomial(
    int(row.sum()), np.exp(logits) / np.exp(logits).sum()
  )
  order = scipy.special.gammaln(row.sum() + 1)
  order -= scipy.special.gammaln(row + 1).sum()
  found = autoencoder.log_likelihood(
    autoencoder.Config(), jnp.asarray(logits), row
  )
  np.testing.assert_allclose(found, multinomial.logpmf(row) - order, rtol=1e-4)
  rate = 1 / (1 + np.exp(-logits))
  expected = scipy.stats.bernoulli(rate).logpmf(row > 0).sum()
  config = autoencoder.Config(decoder="multilabel")
  found = autoencoder.log_likelihood(config, jnp.asarray(logits), row)
  np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("decoder", ["multinomial", "multilabel"])
def test_the_bound_is_below_the_evidence(counts, decoder):
  """With one latent number, log p(x) is an integral."""
  with precision.enable_x64():
    config, params, inputs = _model(counts, latent=1, decoder=decoder)
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), params)
    row = jnp.asarray(counts[[1]].toarray()[0], jnp.float64)
    noise = jax.random.normal(jax.random.key(0), (4000, 1))
    found = autoencoder.elbo(config, params, inputs, row, noise)

    @jax.jit
    def value(z):
      logits = autoencoder.Decoder(30).apply(
        {"params": {"table": params.decoder}}, z
      )
      return autoencoder.log_likelihood(config, logits, row)

    top = float(value(jnp.zeros(1)))
    evidence = top + np.log(
      scipy.integrate.quad(
        lambda z: (
          np.exp(float(value(jnp.array([z]))) - top) * scipy.stats.norm.pdf(z)
        ),
        -8,
        8,
      )[0]
    )
    posterior = autoencoder.encode(config, params.encoder, row @ params.table)
    # The gap of the bound is the divergence from the true posterior.
    deviation = float(jnp.exp(posterior.log_variance[0] / 2))
    q = scipy.stats.norm(float(posterior.mean[0]), deviation)

    def gap(z):
      log_p = float(value(jnp.array([z]))) + scipy.stats.norm.logpdf(z)
      return q.pdf(z) * (q.logpdf(z) - log_p + evidence)

    expected = evidence - scipy.integrate.quad(gap, -8, 8)[0]
    assert found.value < evidence + 0.05
    np.testing.assert_allclose(found.value, expected, atol=0.15)


def test_starting_points(counts):
  config, params, _ = _model(counts)
  total = counts.toarray().sum(axis=0) + 0.5
  np.testing.assert_allclose(
    params.decoder[:, -1], np.log(total / total.sum()), rtol=1e-5
  )
  _, plain, _ = _model(counts, frequency_bias=False)
  np.testing.assert_array_equal(plain.decoder[:, -1], 0)
  vectors = np.random.default_rng(0).standard_normal((30, 7))
  found = autoencoder.init_params(config, jax.random.key(0), counts, vectors)
  np.testing.assert_allclose(found.table, vectors, rtol=1e-6)
  with pytest.raises(errors.InputError, match="word vectors"):
    autoencoder.init_params(config, jax.random.key(0), counts, vectors[:, :3])


@pytest.mark.parametrize(
  "changes",
  [
    {"decoder": "gaussian"},
    {"weighting": "tfidf"},
    {"hidden": ()},
    {"latent": 0},
    {"smoothing": 1.0},
    {"beta": float("nan")},
    {"prior_variance": 0.0},
    {"sampled": 5, "decoder": "multilabel"},
  ],
)
def test_wrong_configurations_are_refused(changes):
  with pytest.raises(errors.InputError):
    autoencoder.Config(**changes)

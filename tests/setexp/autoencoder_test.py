"""The autoencoder's modules and its bound."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.sparse as sp
import scipy.special
import scipy.stats

from repr_jax import errors, setexp
from repr_jax.ops import precision
from repr_jax.setexp import autoencoder
from repr_jax.setexp.rows import Rows, rows_from_dense, rows_from_scipy


@pytest.fixture
def counts():
  rng = np.random.default_rng(0)
  dense = rng.poisson(0.6, (12, 30)).astype(np.float32)
  dense[:, 0] += 1
  return sp.csr_array(dense)


def _model(counts, **changes):
  config = dataclasses.replace(
    autoencoder.Config(dim=3, hidden=(7,)), **changes
  )
  statistics = autoencoder.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(1), statistics)
  return config, params, statistics.inputs


def _by_hand(config, params, weighted):
  """Mean and log-variance of the encoder, written out."""
  bends = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}
  bend = bends[config.activation]
  x = bend(weighted @ np.asarray(params.table) + params.encoder["bias"])
  for i in range(1, len(config.hidden)):
    layer = params.encoder[f"hidden_{i}"]
    x = bend(x @ layer["kernel"] + layer["bias"])
  heads = [params.encoder[name] for name in ("mean", "log_variance")]
  return [np.asarray(x @ y["kernel"] + y["bias"]) for y in heads]


@pytest.mark.parametrize(
  "hidden, activation", [((7,), "tanh"), ((7, 5), "relu"), ((7, 5, 4), "tanh")]
)
def test_encoder_by_hand(counts, hidden, activation):
  config, params, inputs = _model(counts, hidden=hidden, activation=activation)
  row = counts[[0]].toarray()[0]
  rows = rows_from_scipy(counts, 30)
  found = setexp.encode(
    config, params, inputs, Rows(rows.indices[0], rows.counts[0])
  )
  mean, log_variance = _by_hand(config, params, row)
  np.testing.assert_allclose(found.mean, mean, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(
    found.log_variance, log_variance, rtol=1e-4, atol=1e-6
  )


def test_lower_bounded_variance(counts):
  config, params, _ = _model(counts, lower_bounded_variance=True)
  for scale in (-1e3, 0.0, 1e3):
    found = autoencoder.encode_sums(config, params.encoder, jnp.full(7, scale))
    variance = np.exp(found.log_variance)
    assert (variance >= 1).all() and (variance <= np.e * 1.0001).all()
  row = counts[[0]].toarray()[0]
  found = autoencoder.encode_sums(config, params.encoder, row @ params.table)
  _, raw = _by_hand(config, params, row)
  np.testing.assert_allclose(
    found.log_variance, 1 / (1 + np.exp(-raw)), rtol=1e-4
  )


def test_weightings_by_hand(counts):
  config = autoencoder.Config()
  inputs = autoencoder.statistics_from_scipy(config, counts).inputs
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


@pytest.mark.parametrize("decoder", ["multinomial", "multilabel"])
@pytest.mark.parametrize("frequency_bias", [True, False])
def test_statistics_of_dense_counts_are_those_of_sparse(
  counts, decoder, frequency_bias
):
  config = autoencoder.Config(decoder=decoder, frequency_bias=frequency_bias)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
    setexp.statistics(config, jnp.asarray(counts.toarray())),
    autoencoder.statistics_from_scipy(config, counts),
  )


def _logits(params, z):
  return params.decoder[:, :-1] @ z + params.decoder[:, -1]


def test_likelihoods_by_scipy(counts):
  """The bound's first term at zero noise is log p(x | mean)."""
  row = counts[[2]].toarray()[0]
  for decoder in ("multinomial", "multilabel"):
    config, params, inputs = _model(counts, decoder=decoder)
    entity = rows_from_dense(jnp.asarray(row))
    mean = setexp.encode(config, params, inputs, entity).mean
    logits = np.asarray(_logits(params, mean), np.float64)
    found = setexp.elbo(config, params, inputs, entity, jnp.zeros((1, 3)))
    if decoder == "multinomial":
      p = np.exp(logits) / np.exp(logits).sum()
      expected = scipy.stats.multinomial(int(row.sum()), p).logpmf(row)
      expected -= scipy.special.gammaln(row.sum() + 1)
      expected += scipy.special.gammaln(row + 1).sum()
    else:
      rate = 1 / (1 + np.exp(-logits))
      expected = scipy.stats.bernoulli(rate).logpmf(row > 0).sum()
    np.testing.assert_allclose(found.reconstruction, expected, rtol=1e-4)


@pytest.mark.parametrize("decoder", ["multinomial", "multilabel"])
def test_the_bound_is_below_the_evidence(counts, decoder):
  """With one latent number, log p(x) is an integral."""
  with precision.enable_x64():
    config, params, inputs = _model(counts, dim=1, decoder=decoder)
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), params)
    row = jnp.asarray(counts[[1]].toarray()[0], jnp.float64)
    noise = jax.random.normal(jax.random.key(0), (4000, 1))
    found = setexp.elbo(config, params, inputs, rows_from_dense(row), noise)

    @jax.jit
    def value(z):
      logits = _logits(params, z)
      if decoder == "multilabel":
        return jnp.sum((row > 0) * logits - jax.nn.softplus(logits))
      return jnp.sum(row * jax.nn.log_softmax(logits))

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
    posterior = autoencoder.encode_sums(
      config, params.encoder, row @ params.table
    )
    # The gap of the bound is the divergence from the true posterior.
    deviation = float(jnp.exp(posterior.log_variance[0] / 2))
    q = scipy.stats.norm(float(posterior.mean[0]), deviation)

    def gap(z):
      log_p = float(value(jnp.array([z]))) + scipy.stats.norm.logpdf(z)
      return q.pdf(z) * (q.logpdf(z) - log_p + evidence)

    ends = q.mean() - 9 * q.std(), q.mean() + 9 * q.std()
    expected = evidence - scipy.integrate.quad(gap, *ends)[0]
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
  statistics = autoencoder.statistics_from_scipy(config, counts)
  key = jax.random.key(0)
  found = setexp.init(config, key, statistics, vectors)
  np.testing.assert_allclose(found.table, vectors, rtol=1e-6)
  with pytest.raises(errors.InputError, match="word vectors"):
    setexp.init(config, key, statistics, vectors[:, :3])


@pytest.mark.parametrize(
  "changes",
  [
    {"decoder": "gaussian"},
    {"weighting": "tfidf"},
    {"hidden": ()},
    {"dim": 0},
    {"prior_variance": 0.0},
    {"sampled": 5, "decoder": "multilabel"},
  ],
)
def test_wrong_configurations_are_refused(changes):
  with pytest.raises(errors.InputError):
    autoencoder.Config(**changes)

"""Targets, weights and dropout of the training loss."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from repr_jax import setexp
from repr_jax.setexp import autoencoder, train


def test_targets_and_weights_of_the_loss_are_their_formula():
  """The loss of a linear encoder, written out with numpy."""
  config = autoencoder.Config(
    dim=3, hidden=(3,), weighting="bm25", activation="linear",
    unit_inputs=True, targets="inputs",
  )  # fmt: skip
  counts = np.random.default_rng(0).poisson(1.0, (4, 6)).astype(np.float32)
  counts[:, 0] += 1
  made = setexp.statistics(config, jnp.asarray(counts))
  params = setexp.init(config, jax.random.key(0), made)
  state = train.init_state(config, optax.sgd, params, made.inputs)
  noise = jnp.zeros((1, 4, 3))
  hyper = train.Hyper(0.0, beta=0.3, likelihood=7.0)
  _, info = train.step(
    config, optax.sgd, state, setexp.dense_batch(counts), noise, hyper
  )
  idf, length = np.asarray(made.inputs.idf), counts.sum(axis=1, keepdims=True)
  a = autoencoder.bm25_weights(counts, idf, length, made.inputs.mean_length)
  a = np.asarray(a) / np.linalg.norm(a, axis=1, keepdims=True)
  target = a / a.sum(axis=1, keepdims=True)
  head, spread = params.encoder["mean"], params.encoder["log_variance"]
  hidden = a @ np.asarray(params.table)
  mean = hidden @ head["kernel"] + head["bias"]
  log_variance = hidden @ spread["kernel"] + spread["bias"]
  logits = mean @ params.decoder[:, :-1].T + params.decoder[:, -1]
  log_p = jax.nn.log_softmax(logits)
  reconstruction = float((target * log_p).sum(axis=1).mean())
  variance = np.exp(log_variance)
  kl = float((variance + mean**2 - 1 - log_variance).sum(axis=1).mean() / 2)
  assert float(info.reconstruction) == pytest.approx(reconstruction, rel=1e-4)
  assert float(info.kl) == pytest.approx(kl, rel=1e-4)
  assert float(info.loss) == pytest.approx(
    0.3 * kl - 7 * reconstruction, rel=1e-4
  )


def test_dropout_keeps_the_expected_inputs():
  """Over many keys, inputs with dropout average to those without."""
  x = jnp.array([[3.0, 1.0, 0.0, 2.0]])
  many = jax.random.split(jax.random.key(0), 4000)
  drop = jax.jit(jax.vmap(autoencoder.drop_inputs, (0, None, None)))
  dropped = np.asarray(drop(many, x, 0.25))
  np.testing.assert_allclose(dropped.mean(axis=0), x, atol=0.15)
  assert np.mean(dropped[:, 0, 0] == 0) == pytest.approx(0.25, abs=0.03)

  config = autoencoder.Config(dim=2, hidden=(2,), activation="linear")
  counts = np.array([[3.0, 1.0, 0.0, 2.0]], np.float32)
  made = setexp.statistics(config, jnp.asarray(counts))
  params = setexp.init(config, jax.random.key(0), made)
  state = train.init_state(config, optax.sgd, params, made.inputs)
  batch, noise = setexp.dense_batch(counts), jnp.zeros((1, 1, 2))

  def loss(key, dropout):
    hyper = train.Hyper(0.0, 0.0, dropout=dropout)
    return train.step(config, optax.sgd, state, batch, noise, hyper, key)[1]

  keys = jax.random.split(jax.random.key(1), 20)
  varied = jax.jit(jax.vmap(lambda key: loss(key, 0.5).loss))(keys)
  assert float(jnp.std(varied)) > 0
  whole = jax.jit(jax.vmap(lambda key: loss(key, 0.0).loss))(keys[:3])
  plain = loss(None, None).loss
  np.testing.assert_allclose(whole, plain, rtol=1e-6)

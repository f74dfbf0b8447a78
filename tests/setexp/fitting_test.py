"""Hyperparameters that training refuses."""

import dataclasses

import jax
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import errors
from repr_jax.ops.precision import enable_x64
from repr_jax.setexp import autoencoder, fitting, train

_PLAIN = autoencoder.Config(dim=3, hidden=(6,))


@pytest.mark.parametrize(
  "hyper",
  [
    train.Hyper(float("inf")),
    train.Hyper(beta=-1.0),
    train.Hyper(smoothing=1.0),
    train.Hyper(beta=float("nan")),
    train.Hyper(prior_variance=0.0),
  ],
)
def test_wrong_hyperparameters_are_refused(hyper):
  with pytest.raises(errors.InputError):
    fitting.fit(
      sp.csr_array(np.ones((4, 5))), _PLAIN, jax.random.key(0), hyper=hyper
    )


def test_a_sampled_softmax_has_no_smoothing():
  config = autoencoder.Config(dim=3, hidden=(6,), sampled=4)
  with pytest.raises(errors.InputError, match="smoothing"):
    fitting.check_hyper(config, train.Hyper(smoothing=0.1))


def test_the_prior_variance_is_traced():
  counts = sp.csr_array(np.random.default_rng(0).poisson(1.0, (12, 7)) + 0.0)
  key = jax.random.key(0)
  static = dataclasses.replace(_PLAIN, prior_variance=3.0)
  hyper = train.Hyper(0.1, prior_variance=3.0)
  one = fitting.fit(counts, static, key, epochs=2, hyper=train.Hyper(0.1))
  two = fitting.fit(counts, _PLAIN, key, epochs=2, hyper=hyper)
  other = fitting.fit(counts, _PLAIN, key, epochs=2, hyper=train.Hyper(0.1))
  np.testing.assert_allclose(one.params.decoder, two.params.decoder, rtol=1e-5)
  assert np.abs(one.params.decoder - other.params.decoder).max() > 1e-4
  inputs, look = one.inputs, jax.random.key(1)
  bounds = [
    fitting.bound(config, inputs, one.params, counts, look).kl
    for config in (static, _PLAIN)
  ]
  assert abs(bounds[0] - bounds[1]) > 1e-2


def test_64_bits_train_without_widening_the_state():
  counts = np.random.default_rng(0).poisson(1.0, (12, 7)).astype(np.float32)
  with enable_x64():
    fitted = fitting.fit(
      sp.csr_array(counts), _PLAIN, jax.random.key(0), epochs=1
    )
    assert fitted.params.decoder.dtype == np.float32

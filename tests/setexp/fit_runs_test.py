"""Trainings in one program are those of `fitting.fit`."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import errors
from repr_jax.setexp import autoencoder, fit_runs, fitting, train

_CONFIG = autoencoder.Config(dim=2, hidden=(5,), weighting="bm25")
_HYPER = train.Hyper(
  np.array([0.01, 0.05, 0.02]), 0.1, dropout=np.array([0.0, 0.2, 0.4])
)


def _counts():
  dense = np.random.default_rng(0).poisson(0.4, (30, 100))
  dense[:, 0] += 1
  return sp.csr_array(dense.astype(np.float32))


def test_runs_equal_fits_and_compile_once(compilations):
  keys = jax.random.split(jax.random.key(0), 3)
  options = {"epochs": 2, "batch_size": 8}
  made = fit_runs.fit_runs(_counts(), _CONFIG, keys, hyper=_HYPER, **options)
  assert made.losses.shape == (2, 3)
  for i in range(3):
    own = train.Hyper(
      _HYPER.learning_rate[i], 0.1, dropout=float(_HYPER.dropout[i])
    )
    one = fitting.fit(_counts(), _CONFIG, keys[i], hyper=own, **options)
    jax.tree.map(
      lambda a, b, i=i: np.testing.assert_allclose(
        a[i], b, rtol=1e-3, atol=1e-4
      ),
      made.params,
      one.params,
    )
    losses = [loss for loss, _ in one.history]
    np.testing.assert_allclose(made.losses[:, i], losses, rtol=1e-4)
  other = _HYPER._replace(learning_rate=0.03, beta=np.array([1.0, 0.5, 0.1]))

  turned = keys[::-1]

  def again():
    fit_runs.fit_runs(_counts(), _CONFIG, turned, hyper=other, **options)

  assert compilations.during(again) == 0


def test_hyperparameters_fit_the_runs():
  keys = jax.random.split(jax.random.key(0), 2)
  with pytest.raises(errors.InputError, match="learning_rate has shape"):
    fit_runs.fit_runs(_counts(), _CONFIG, keys, hyper=_HYPER)
  wrong = train.Hyper(beta=np.array([0.1, -1.0]))
  with pytest.raises(errors.InputError, match="beta"):
    fit_runs.fit_runs(_counts(), _CONFIG, keys, hyper=wrong)
  none = fit_runs.fit_runs(_counts(), _CONFIG, keys, epochs=0)
  assert none.losses.shape == (0, 2)

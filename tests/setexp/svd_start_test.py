"""A start at LSA: means are U S^(1/2), logits give back the inputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import setexp
from repr_jax.errors import InputError
from repr_jax.setexp import fitting, from_scipy, svd_start, train

_CONFIG = setexp.Config(
  dim=4, hidden=(4,), weighting="bm25", activation="linear", unit_inputs=True,
  targets="inputs",
)  # fmt: skip


def _counts(seed=0):
  rng = np.random.default_rng(seed)
  return sp.csr_array(rng.poisson(0.7, (20, 15)).astype(np.float32))


def _problem():
  counts = _counts()
  return fitting.prepare(_CONFIG, counts[np.diff(counts.indptr) > 0])


def test_means_are_those_of_the_svd():
  problem = _problem()
  inputs = problem.statistics.inputs
  rows = from_scipy.encoder_rows(_CONFIG, inputs, problem.counts).toarray()
  np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
  params = svd_start.svd_start(
    _CONFIG, jax.random.key(0), problem.statistics, jnp.asarray(rows)
  )
  model = setexp.model_from_scipy(_CONFIG, params, inputs, problem.counts)
  means = np.asarray(model.side.mean).T
  u, s, vt = np.linalg.svd(rows, full_matrices=False)
  wanted = u[:, :4] * np.sqrt(s[:4])
  scale = np.sqrt(np.mean(wanted**2))
  np.testing.assert_allclose(
    means @ means.T, wanted @ wanted.T / scale**2, atol=1e-2
  )
  logits = means @ np.asarray(params.decoder[:, :-1]).T
  best = (u[:, :4] * s[:4]) @ vt[:4]
  np.testing.assert_allclose(logits, 2 * best / scale, atol=1e-2)


def test_other_encoders_are_refused():
  problem = _problem()
  config = setexp.Config(dim=4, hidden=(5,), activation="linear")
  with pytest.raises(InputError, match="hidden"):
    svd_start.svd_start(
      config, jax.random.key(0), problem.statistics, jnp.ones((20, 15))
    )
  with pytest.raises(InputError, match="lower dim"):
    svd_start.svd_start(
      _CONFIG, jax.random.key(0), problem.statistics, jnp.ones((3, 15))
    )


def test_training_goes_on_from_there():
  fitted = fitting.fit(
    _counts(), _CONFIG, jax.random.key(0), epochs=30, svd=True, decay=True,
    warmup=3, batch_size=10,
    hyper=train.Hyper(1e-2, beta=0.01, likelihood=20.0, dropout=0.2),
  )  # fmt: skip
  losses = [loss for loss, _ in fitted.history]
  assert np.mean(losses[-5:]) < np.mean(losses[:3])


def test_hyperparameters_of_an_epoch():
  hyper = train.Hyper(0.1, beta=0.4)
  first = fitting.hyper_at(hyper, 0, 10, warmup=4, decay=True)
  assert first.learning_rate == pytest.approx(0.1)
  assert first.beta == pytest.approx(0.1)
  half = fitting.hyper_at(hyper, 5, 10, warmup=4, decay=True)
  assert half.learning_rate == pytest.approx(0.05)
  assert half.beta == 0.4
  assert fitting.hyper_at(hyper, 5, 10) == hyper
  falling = [fitting.hyper_at(hyper, i, 3, anneal=True).beta for i in range(3)]
  assert falling == pytest.approx([0.4, 0.2, 0.0])
  assert fitting.hyper_at(hyper, 0, 1, anneal=True).beta == 0.4


def test_bad_hyperparameters_are_refused():
  with pytest.raises(InputError, match="dropout"):
    fitting.check_hyper(_CONFIG, train.Hyper(dropout=1.0))
  with pytest.raises(InputError, match="likelihood"):
    fitting.check_hyper(_CONFIG, train.Hyper(likelihood=-1.0))
  with pytest.raises(InputError, match="multinomial"):
    setexp.Config(decoder="multilabel", targets="inputs")

"""Parameters that start at latent semantic analysis.

A linear encoder of rows A with the table V S^(-1/2) gives U S^(1/2), the
concepts of LSA, and a decoder V S^(1/2) gives back the best approximation of A
as logits. Training then improves the bound. From random parameters, training
needs many more epochs and, on small corpora, ends at a worse ranking.
"""

from typing import Any

import jax
import jax.numpy as jnp

from repr_jax import errors
from repr_jax.ops import spectral
from repr_jax.setexp import autoencoder

_TOLERANCE = 1e-2
_LOG_VARIANCE = -2.0  # of the posterior before training
_DECODER = 2.0  # scale of the decoder's rows


def svd_start(
  config: autoencoder.Config,
  key: jax.Array,
  statistics: autoencoder.Statistics,
  rows: Any,
) -> autoencoder.Params:
  """Parameters from the SVD of the encoder's inputs.

  Args:
    config: of a linear encoder whose one layer has the width of a concept.
    statistics: of the training counts.
    rows: the encoder's inputs, dense or `ops.Sparse`, [X, F].

  Returns:
    Parameters whose posterior means have a standard deviation of 1.
  """
  if config.activation != "linear" or config.hidden != (config.dim,):
    raise errors.InputError(
      "a start at the SVD needs activation='linear' and one hidden layer of "
      f"dim = {config.dim}, not {config.activation} and {config.hidden}"
    )
  if config.dim > min(rows.shape):
    raise errors.InputError(
      f"a start at the SVD of {rows.shape[0]} entities with {rows.shape[1]} "
      f"features has no {config.dim} dimensions: lower dim"
    )
  drawn, fresh = jax.random.split(key)
  svd, _ = spectral.truncated_svd(rows, config.dim, drawn, tolerance=_TOLERANCE)
  root = jnp.sqrt(jnp.maximum(svd.s, 1e-6 * svd.s[0]))
  means = svd.u * root
  scale = jnp.sqrt(jnp.mean(means * means))
  params = autoencoder.init(config, fresh, statistics, svd.v / root / scale)
  encoder = jax.tree.map(jnp.zeros_like, params.encoder)
  encoder["mean"]["kernel"] = jnp.eye(config.dim, dtype=params.table.dtype)
  encoder["log_variance"]["bias"] += _LOG_VARIANCE
  decoder = params.decoder.at[:, :-1].set(_DECODER * svd.v * root)
  return autoencoder.Params(params.table, encoder, decoder)

"""The decoder's list of features for a query."""

import jax
import jax.numpy as jnp
import numpy as np

from repr_jax import ops, setexp


def test_it_is_the_decoder_at_the_mean_of_the_product():
  counts = jnp.asarray(np.random.default_rng(0).poisson(1.0, (6, 5)) + 1.0)
  config = setexp.Config(dim=2, hidden=(4,))
  statistics = setexp.statistics(config, counts)
  params = setexp.init(config, jax.random.key(0), statistics)
  rows = setexp.rows_from_dense(counts)
  model = setexp.make_model(config, params, statistics.inputs, rows)
  query = setexp.query_of_rows(rows, jnp.array([0, 3]), jnp.array([1.0, 2.0]))
  mean, _ = ops.to_moments(setexp.query_posterior(model, query))
  logits = params.decoder[:, :-1] @ mean + params.decoder[:, -1]
  listed = setexp.decoder_rationale(model, query)
  np.testing.assert_allclose(listed, jax.nn.softmax(logits), rtol=1e-5)
  base = jax.nn.softmax(params.decoder[:, -1])
  relative = setexp.decoder_rationale(model, query, True)
  np.testing.assert_allclose(
    relative, listed * np.log(listed / base), rtol=1e-4, atol=1e-6
  )

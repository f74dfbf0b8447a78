"""The decoder's own list of features for a query (thesis 4.4).

It shows what the model expects of the set, not why an entity has its rank;
`expansion.contributions` shows that.
"""

from typing import Any

import jax
import jax.numpy as jnp

from repr_jax.ops import gaussian
from repr_jax.ops.precision import chosen_products
from repr_jax.setexp import autoencoder
from repr_jax.setexp.expansion import Model, PaddedQuery, query_posterior


@chosen_products
def decoder_rationale(
  model: Model, query: PaddedQuery, relative: Any = False
) -> jax.Array:
  """Weight of each feature in the concept of a query (thesis 4.4).

  This is the decoder at the mean of the members' product, whatever the
  entities are ranked by; `contributions` explains a ranking.

  >>> import jax, jax.numpy as jnp
  >>> from repr_jax import setexp
  >>> counts = jnp.array([[3.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
  >>> config = setexp.Config(dim=2, hidden=(4,))
  >>> statistics = setexp.statistics(config, counts)
  >>> params = setexp.init(config, jax.random.key(0), statistics)
  >>> rows = setexp.rows_from_dense(counts)
  >>> model = setexp.make_model(config, params, statistics.inputs, rows)
  >>> query = setexp.query_of_rows(rows, jnp.array([0]), jnp.array([1.0]))
  >>> setexp.decoder_rationale(model, query).shape
  (3,)

  Args:
    model: the model.
    query: the query.
    relative: return p log(p / p0) instead of p. p0 is the probability at the
      prior's mean. This is the feature's term of KL(p || p0), so words that
      all entities share get little weight.

  Returns:
    [F].
  """
  mean, _ = gaussian.to_moments(query_posterior(model, query))
  table = model.params.decoder
  logits = table @ autoencoder.with_one(mean)
  bernoulli = model.config.decoder == "multilabel"
  logs = jax.nn.log_sigmoid if bernoulli else jax.nn.log_softmax
  log_p = logs(logits)
  against = jnp.exp(log_p) * (log_p - logs(table[:, -1]))
  return jnp.where(relative, against, jnp.exp(log_p))

"""Models and queries from padded rows are those from scipy matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import setexp


@pytest.mark.parametrize("activation", ["tanh", "linear"])
def test_a_model_of_rows_is_that_of_scipy(activation):
  rng = np.random.default_rng(0)
  counts = sp.csr_array(rng.poisson(0.5, (9, 7)) + np.eye(9, 7))
  hidden = (3,) if activation == "linear" else (4,)
  config = setexp.Config(dim=3, hidden=hidden, activation=activation)
  statistics = setexp.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(0), statistics)
  one = setexp.model_from_scipy(config, params, statistics.inputs, counts)
  rows = setexp.rows_from_scipy(counts)
  other = setexp.make_model(config, params, statistics.inputs, rows)
  ids, weights = jnp.array([3, 6]), jnp.array([1.0, -0.5])
  query = setexp.query_of_rows(rows, ids, weights)
  (asked,) = [setexp.make_query(counts, [3, 6], [1.0, -0.5])]
  padded = jax.tree.map(lambda x: x[0], setexp.pad_queries(one, [asked]))
  for name in setexp.SCORES:
    ranking = setexp.make_ranking(name)
    np.testing.assert_allclose(
      setexp.score_entities(other, query, ranking),
      setexp.score_entities(one, padded, ranking),
      rtol=1e-3,
      atol=1e-3,
    )


def test_a_query_of_rows_lists_the_members_features():
  rows = setexp.rows_from_scipy(sp.csr_array([[1.0, 0, 2], [0, 3, 0]]))
  query = setexp.query_of_rows(
    setexp.Rows(*map(jnp.asarray, rows)),
    jnp.array([1, 0, 0]),
    jnp.array([2.0, 1.0, 0.0]),
  )
  assert query.ids.tolist() == [1, 0, -1]  # weight 0 is padding
  entries = zip(*(x.tolist() for x in query.entries))
  listed = {x for x in entries if x[1] < 3 and x[0] < 2}
  assert listed == {(0, 1, 3.0), (1, 0, 1.0), (1, 2, 2.0)}

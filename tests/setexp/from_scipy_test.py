"""Rows and queries in fixed shapes, from scipy matrices."""

import jax
import numpy as np
import pytest
import scipy.sparse as sp

from repr_jax import setexp
from repr_jax.errors import InputError
from repr_jax.setexp import autoencoder, from_scipy


@pytest.fixture(scope="module")
def counts():
  return sp.csr_array(
    np.random.default_rng(0).poisson(0.6, (7, 9)) + np.eye(7, 9)
  )


@pytest.fixture(scope="module")
def model(counts):
  config = setexp.Config(dim=2, hidden=(3,))
  made = setexp.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(0), made)
  return setexp.model_from_scipy(config, params, made.inputs, counts)


def test_padded_queries_hold_their_members(model, counts):
  new = sp.csr_array([[0.0, 2, 0, 0, 0, 0, 0, 0, 1]])
  queries = [
    setexp.make_query(counts, [4]),
    setexp.make_query(counts, [1, 2], [1, -1, 0.5], new),
  ]
  padded = setexp.pad_queries(model, queries, size=3, members=2, entries=8)
  assert padded.ids.shape == (3, 3) and not padded.weights[2].any()
  assert padded.ids[1].tolist() == [1, 2, -1]
  for i, query in enumerate(queries):
    dense = np.zeros((3, 10))
    entries = [x[i] for x in padded.entries]
    np.add.at(dense, (entries[0], entries[1]), entries[2])
    own = query.rows.toarray()
    np.testing.assert_array_equal(dense[: len(own), :9], own)
    assert not dense[len(own) :, :9].any()
  # The new member has the numbers that its row is encoded to.
  encoded = from_scipy.encode_rows(
    model.config, model.params, model.inputs, new
  )
  for one, other in zip(padded.encoded, encoded):
    np.testing.assert_allclose(one[1, 2], other[0], rtol=1e-5)


@pytest.mark.parametrize("weighting", ["raw", "log1p", "bm25"])
@pytest.mark.parametrize("unit", [False, True])
def test_encoder_rows_are_those_of_one_entity(counts, weighting, unit):
  config = setexp.Config(dim=2, weighting=weighting, unit_inputs=unit)
  inputs = setexp.statistics_from_scipy(config, counts).inputs
  table = from_scipy.encoder_rows(config, inputs, counts.astype(np.float32))
  rows = setexp.rows_from_dense(counts.toarray().astype(np.float32))
  one = jax.tree.map(lambda x: x[3], rows)
  own = autoencoder.encoder_inputs(config, inputs, one)
  np.testing.assert_allclose(table.toarray()[3], own.counts, rtol=1e-5)


def test_rows_are_padded_with_nothing(counts):
  rows = from_scipy.padded_rows(counts[:3], size=5, shortest=16)
  assert rows.indices.shape == (5, 16)
  dense = np.zeros((5, 10))
  np.add.at(dense, (np.arange(5)[:, None], rows.indices), rows.counts)
  np.testing.assert_array_equal(dense[:3, :9], counts[:3].toarray())
  assert not dense[3:].any()


def test_other_features_are_refused(model, counts):
  with pytest.raises(InputError, match="different corpora"):
    setexp.model_from_scipy(
      model.config, model.params, model.inputs, counts[:, :5]
    )
  with pytest.raises(InputError, match="finite"):
    from_scipy.check_rows(sp.csr_array([[np.nan]]))

"""Packed batches hold the rows they were made of."""

import jax
import numpy as np
import optax
import pytest
import scipy.sparse as sp

from repr_jax import setexp
from repr_jax.errors import InputError
from repr_jax.setexp import batches, fitting, softmax, train


def _counts(seed=0, entities=12, features=30):
  dense = np.random.default_rng(seed).poisson(0.3, (entities, features))
  dense[:, 0] += 1
  return batches.check_counts(sp.csr_array(dense))


def _unpacked(batch, step, features):
  """The dense rows of one step of a batch."""
  own, cells, values = (x[step] for x in batch[:3])
  size, width = batch.weights.shape[1], len(own)
  dense = np.zeros((size, features), np.float32)
  for cell, value in zip(cells.tolist(), values.tolist()):
    if cell < size * width:
      row, place = divmod(cell, width)
      dense[row, own[place]] += value
  return dense


def test_batches_are_the_rows_in_their_order():
  counts = _counts()
  order = np.array([[3, 1, 7, 0], [11, 2, -1, -1]])
  packed = batches.pack(counts, order)
  dense = counts.toarray()
  for step, rows in enumerate(order):
    expected = np.where(rows[:, None] >= 0, dense[rows], 0)
    np.testing.assert_array_equal(_unpacked(packed, step, 30), expected)
  np.testing.assert_array_equal(packed.weights, order >= 0)
  for step in range(2):
    assert len(set(packed.features[step].tolist())) == packed.features.shape[1]
  assert packed.samples.shape == (2, 0)


def test_a_dense_batch_lists_every_feature():
  dense = _counts().toarray()
  batch = setexp.dense_batch(dense)
  cells = np.zeros(dense.size, np.float32)
  cells[np.asarray(batch.cells)] = batch.counts
  np.testing.assert_array_equal(cells.reshape(dense.shape), dense)
  np.testing.assert_array_equal(batch.weights, 1)


def test_typical_lengths_serve_most_batches():
  counts = _counts(1, 200, 60)
  lengths = batches.typical_lengths(counts, 8)
  order = np.random.default_rng(3).integers(200, size=(5, 8))
  packed = batches.pack(counts, order, shortest=lengths)
  assert (packed.features.shape[1], packed.cells.shape[1]) == lengths


def test_counts_are_merged_and_checked():
  twice = sp.csr_array(
    (np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 2, 3])),
    shape=(2, 3),
  )
  checked = batches.check_counts(twice)
  assert checked.dtype == np.float32 and checked.nnz == 1
  np.testing.assert_array_equal(checked.toarray(), [[0, 3, 0], [0, 0, 0]])
  with pytest.raises(InputError, match="no entity has a feature"):
    batches.check_counts(sp.csr_array((2, 3)))


def test_batches_of_several_runs_share_their_lengths():
  counts = _counts()
  order = np.array([[3, 1, 7, 0], [11, 2, -1, -1]])
  proposal = softmax.make_proposal("unigram", np.ones(30))
  rng = np.random.default_rng(0)
  lengths = [(32, 64), (48, 32), (40, 96)]
  parts = [
    batches.pack(counts, order, proposal, 40, rng, shortest)
    for shortest in lengths
  ]
  stacked = batches.stack(parts, 30)
  assert len({x.features.shape for x in parts}) > 1
  for run, part in enumerate(parts):
    own = batches.Batch(*(x[run] for x in stacked))
    for step in range(2):
      np.testing.assert_array_equal(
        _unpacked(own, step, 30), _unpacked(part, step, 30)
      )
      ids = np.concatenate([own.features[step], own.samples[step]])
      assert len(set(ids.tolist())) == len(ids)  # padding too
      assert (np.diff(own.features[step]) > 0).all()
    drawn, before = own.samples, part.samples
    np.testing.assert_array_equal(drawn[drawn < 30], before[before < 30])
    np.testing.assert_array_equal(own.weights, part.weights)


@pytest.mark.parametrize("sampled", [0, 5])
def test_a_step_by_shards_equals_one_of_all_features(sampled):
  rng = np.random.default_rng(3)
  features, shards = 22, 4  # two rows of padding
  counts = sp.csr_array(rng.poisson(0.3, (12, features)).astype(np.float32))
  config = setexp.Config(dim=3, hidden=(5,), sampled=sampled)
  problem = fitting.prepare(config, counts)
  state = setexp.vae(config).init(jax.random.key(0), problem.statistics)
  order = np.array([[0, 3, 5, 7, 9, -1]])
  packed = batches.pack(
    problem.counts, order, problem.proposal, sampled, rng, (8, 8)
  )
  cut = batches.by_shard(packed, features, shards)
  assert cut.features.shape[:2] == (1, shards)
  length = -(-features // shards)
  for shard, own in enumerate(cut.features[0]):
    own = own[own < features]
    assert set(own // length) <= {shard}
  longer = jax.tree.map(
    lambda x: (
      np.pad(x, ((0, 2), (0, 0)))
      if np.ndim(x) == 2 and len(x) == features
      else x
    ),
    state,
  )
  # Padded rows of the decoder must not be likely.
  longer.decoder[features:, -1] = -1e30
  noise = rng.normal(size=(1, 1, 6, 3)).astype(np.float32)
  hyper = setexp.Hyper(0.1)
  one, means = train.run_steps(config, optax.adam, state, packed, noise, hyper)
  other, again = train.run_steps(config, optax.adam, longer, cut, noise, hyper)
  np.testing.assert_allclose(means, again, rtol=1e-5)
  for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other)):
    if np.ndim(y) and len(y) == features + 2:
      y = y[:features]
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)

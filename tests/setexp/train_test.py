"""Steps on touched rows against plain differentiation and optax."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.sparse as sp
from jax.test_util import check_grads

from repr_jax import errors
from repr_jax.data import synthetic_corpora
from repr_jax.ops import precision
from repr_jax.setexp import autoencoder, batches, fitting, softmax, train

_update = jax.jit(train.update, static_argnums=0)
_CONFIGS = {
  "plain": autoencoder.Config(latent=3, hidden=(6,)),
  "deep": autoencoder.Config(
    latent=3, hidden=(6, 4), beta=0.3, weighting="log1p"
  ),
  "multilabel": autoencoder.Config(
    latent=3,
    hidden=(6,),
    decoder="multilabel",
    smoothing=0.5,
    weighting="l1",
    lower_bounded_variance=True,
  ),
  "smooth": autoencoder.Config(
    latent=3, hidden=(6,), smoothing=0.5, weighting="bm25", prior_variance=2.0
  ),
}


@pytest.fixture
def double():
  with precision.enable_x64(True):
    yield


def _counts(seed=0, size=10, features=40, rate=0.25):
  dense = np.random.default_rng(seed).poisson(rate, (size, features))
  dense[:, 0] += 1
  return batches.check_counts(sp.csr_array(dense.astype(np.float32)))


def _params(config, counts, dtype=jnp.float64):
  params = autoencoder.init_params(config, jax.random.key(3), counts)
  return jax.tree.map(lambda x: jnp.asarray(x, dtype), params)


def _dense_loss(config, inputs, params, rows, noise):
  """Mean loss of dense rows [b, F], by the definition of each term."""

  def one(counts, noise):
    exact = autoencoder.elbo(config, params, inputs, counts, noise)
    if not config.smoothing:
      return config.beta * exact.kl - exact.reconstruction
    weighted = autoencoder.weigh(
      config, counts, inputs.idf, counts.sum(), inputs.mean_length
    )
    posterior = autoencoder.encode(
      config, params.encoder, weighted @ params.table
    )
    z = posterior.mean + jnp.exp(posterior.log_variance / 2) * noise
    logits = autoencoder.with_one(z) @ params.decoder.T
    s, size = config.smoothing, counts.shape[0]
    if config.decoder == "multilabel":
      target = (1 - s) * (counts > 0) + s / 2
      losses = optax.sigmoid_binary_cross_entropy(logits, target)
    else:
      target = (1 - s) * counts + s * counts.sum() / size
      losses = -target * jax.nn.log_softmax(logits)
    return config.beta * exact.kl + losses.sum(axis=1).mean()

  return jax.vmap(one, in_axes=(0, 1))(rows, noise).mean()


_dense_slopes = jax.jit(
  jax.value_and_grad(_dense_loss, argnums=2), static_argnums=0
)


def _lazy_adam(params, slopes, memory, touched, step, rate):
  """Adam in numpy; rows of the first layer that are not touched stay."""
  flat, tree = jax.tree.flatten(params)
  names = [
    jax.tree_util.keystr(k) for k, _ in jax.tree.leaves_with_path(params)
  ]
  for i, (name, slope) in enumerate(zip(names, jax.tree.leaves(slopes))):
    rows = touched if name == ".table" else slice(None)
    first, second = memory.setdefault(
      name, [np.zeros(slope.shape), np.zeros(slope.shape)]
    )
    slope = np.asarray(slope)[rows]
    first[rows] = 0.9 * first[rows] + 0.1 * slope
    second[rows] = 0.999 * second[rows] + 0.001 * slope**2
    root = np.sqrt(second[rows] / (1 - 0.999**step)) + 1e-8
    flat[i] = np.array(flat[i])
    flat[i][rows] -= rate * first[rows] / (1 - 0.9**step) / root
  return jax.tree.unflatten(tree, flat)


@pytest.mark.parametrize("name", _CONFIGS)
def test_steps_equal_plain_differentiation_and_lazy_adam(double, name):
  config, counts = _CONFIGS[name], _counts()
  problem = fitting.prepare(config, counts)
  params = _params(config, counts)
  state = train.init(params)
  rng = np.random.default_rng(0)
  memory: dict = {}
  for step in range(1, 5):
    rows = rng.permutation(10)[:4]
    noise = jnp.asarray(rng.standard_normal((2, 4, 3)))
    dense = jnp.asarray(counts[rows].toarray(), jnp.float64)
    loss, slopes = _dense_slopes(config, problem.inputs, params, dense, noise)
    touched = np.flatnonzero(np.asarray(dense).sum(axis=0))
    assert 0 < len(touched) < 40
    params = _lazy_adam(params, slopes, memory, touched, step, 0.01)
    batch = jax.tree.map(lambda x: x[0], batches.pack(counts, rows[None]))
    state, info = _update(config, problem.inputs, state, batch, noise, 0.01)
    np.testing.assert_allclose(info.loss, loss, rtol=1e-6)
    found = train.parameters(state)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-7),
      found,
      params,
    )


def test_steps_equal_optax_when_all_rows_are_touched(double):
  config = _CONFIGS["plain"]
  counts = batches.check_counts(sp.csr_array(np.full((4, 20), 2.0)))
  problem = fitting.prepare(config, counts)
  params = _params(config, counts)
  state = train.init(params)
  optimizer = optax.adam(0.02)
  memory = optimizer.init(params)
  order = np.arange(4)[None]
  batch = jax.tree.map(lambda x: x[0], batches.pack(counts, order))
  for seed in range(4):
    noise = jax.random.normal(jax.random.key(seed), (1, 4, 3), jnp.float64)
    dense = jnp.asarray(counts.toarray(), float)
    _, slopes = _dense_slopes(config, problem.inputs, params, dense, noise)
    change, memory = optimizer.update(slopes, memory)
    params = optax.apply_updates(params, change)
    state, _ = _update(config, problem.inputs, state, batch, noise, 0.02)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8),
    train.parameters(state),
    params,
  )


@pytest.mark.parametrize(
  "function",
  [softmax.log_partition, softmax.log_partition_bernoulli],
)
def test_partition_gradients_by_finite_differences(double, function):
  rng = np.random.default_rng(0)
  z, table = rng.standard_normal((3, 4)), rng.standard_normal((11, 4))
  check_grads(function, (z, table), order=1, modes=["rev"], atol=1e-6)


def test_partitions_are_what_they_say(double):
  rng = np.random.default_rng(1)
  z, table = rng.standard_normal((3, 4)), rng.standard_normal((11, 4))
  logits = z @ table.T
  np.testing.assert_allclose(
    softmax.log_partition(z, table),
    np.log(np.exp(logits).sum(axis=1)),
    rtol=1e-6,
  )
  np.testing.assert_allclose(
    softmax.log_partition_bernoulli(z, table),
    np.log1p(np.exp(logits)).sum(axis=1),
    rtol=1e-6,
  )
  huge = softmax.log_partition(1e4 * jnp.asarray(z), table)
  np.testing.assert_allclose(huge, 1e4 * logits.max(axis=1), rtol=1e-6)


def test_only_one_matrix_of_batch_by_features_is_kept():
  """The gradient holds the exponentials, not logits or targets as well."""
  z, table = jnp.ones((32, 5)), jnp.ones((20_000, 5))

  def memory(function):
    slope = jax.jit(jax.grad(lambda z, t: function(z, t).sum(), (0, 1)))
    analysis = slope.lower(z, table).compile().memory_analysis()
    return analysis.temp_size_in_bytes

  whole = 32 * 20_000 * 4
  assert memory(softmax.log_partition) < 2.5 * whole


def test_padding_of_a_batch_changes_nothing(double):
  config, counts = _CONFIGS["plain"], _counts()
  problem = fitting.prepare(config, counts)
  params = _params(config, counts)
  rows = np.array([[2, 5, 7]])
  noise = np.random.default_rng(0).standard_normal((1, 5, 3))
  short = jax.tree.map(lambda x: x[0], batches.pack(counts, rows))
  padded = np.array([[2, 5, 7, -1, -1]])
  longer = jax.tree.map(lambda x: x[0], batches.pack(counts, padded))
  # More padding, with garbage where no cell and no feature is.
  u, n = len(longer.features), len(longer.cells)
  assert n > (longer.cells < 5 * u).sum()
  longer = longer._replace(
    counts=np.where(longer.cells < 5 * u, longer.counts, np.nan)
  )
  results = []
  for batch, eps in ((short, noise[:, :3]), (longer, noise)):
    state = train.init(params)
    for _ in range(3):
      state, info = _update(
        config, problem.inputs, state, batch, jnp.asarray(eps), 0.01
      )
    results.append((info, train.parameters(state)))
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9),
    *results,
  )


def test_vmapped_runs_equal_single_ones():
  config, counts = _CONFIGS["plain"], _counts()
  problem = fitting.prepare(config, counts)
  order = np.arange(8).reshape(2, 4)
  packed = batches.pack(counts, order)
  noise = jax.random.normal(jax.random.key(0), (2, 2, 1, 4, 3))
  starts = [
    train.init(autoencoder.init_params(config, jax.random.key(i), counts))
    for i in range(2)
  ]

  def steps(state, noise):
    return train.run_steps(config, problem.inputs, state, packed, noise, 0.01)

  many = jax.vmap(steps)(jax.tree.map(lambda *x: jnp.stack(x), *starts), noise)
  for i in range(2):
    jax.tree.map(
      lambda a, b, i=i: np.testing.assert_allclose(
        a[i], b, rtol=1e-4, atol=1e-5
      ),
      many,
      steps(starts[i], noise[i]),
    )


def test_rows_outside_the_batches_stay():
  config, counts = _CONFIGS["plain"], _counts()
  config = dataclasses.replace(config, sampled=8)
  problem = fitting.prepare(config, counts)
  params = _params(config, counts, jnp.float32)
  before = train.init(params)
  packed = batches.pack(
    counts,
    np.arange(4).reshape(2, 2),
    problem.proposal,
    8,
    np.random.default_rng(0),
  )
  noise = jax.random.normal(jax.random.key(0), (2, 1, 2, 3))
  after, _ = train.run_steps(config, problem.inputs, before, packed, noise, 0.1)
  own = set(packed.features[packed.features < 40])
  drawn = own | set(packed.samples[packed.samples < 40])
  assert len(drawn) < 40
  for old, new, touched in (
    (before.rows, after.rows, own),
    (before.decoder, after.decoder, drawn),
    (before.decoder_moments[0], after.decoder_moments[0], drawn),
  ):
    moved = np.flatnonzero(np.any(np.asarray(old != new), axis=1))
    assert set(moved) == touched


def test_sampled_sum_is_unbiased_and_its_log_nearly():
  rng = np.random.default_rng(0)
  z = np.concatenate([rng.standard_normal((2, 3)), np.ones((2, 1))], axis=1)
  table = rng.standard_normal((300, 4)).astype(np.float32)
  own = np.array([3, 10, 200])
  totals = rng.poisson(3, 300)
  exact = softmax.log_partition(jnp.asarray(z), jnp.asarray(table))
  for kind in ("unigram", "log_uniform"):
    proposal = softmax.make_proposal(kind, totals)
    np.testing.assert_allclose(proposal.probability.sum(), 1)
    found = softmax.sampling_bias(
      jnp.asarray(z), jnp.asarray(table), own, proposal, rng, 60, 400
    )
    # Z_sampled / Z has mean 1; so has its logarithm minus half the variance.
    ratio = np.exp(found)
    error = ratio.std(axis=0) / 20
    assert (np.abs(ratio.mean(axis=0) - 1) < 4 * error).all()
    large = softmax.sampling_bias(
      jnp.asarray(z), jnp.asarray(table), own, proposal, rng, 6000, 20
    )
    assert np.abs(large).mean() < np.abs(found).mean() / 4
  assert np.isfinite(exact).all()


def test_draws_are_distinct_and_outside_the_batch():
  proposal = softmax.make_proposal("unigram", np.arange(20))
  own = np.array([17, 19])
  features, weights = softmax.draw(proposal, np.random.default_rng(0), 30, own)
  real = features[features < 20]
  assert len(set(real)) == len(real) and not set(real) & set(own)
  assert np.isfinite(weights[: len(real)]).all()
  assert (weights[len(real) :] == -np.inf).all()


def test_log_uniform_follows_the_rank():
  proposal = softmax.make_proposal("log_uniform", np.array([1, 9, 4]))
  expected = np.log([4 / 3, 2, 3 / 2]) / np.log(4)
  np.testing.assert_allclose(proposal.probability, expected)
  with pytest.raises(errors.InputError, match="proposal"):
    softmax.make_proposal("zipf", np.ones(3))


def test_packing_restores_the_counts():
  counts = _counts(rate=0.5)
  order = np.array([[1, 4, -1], [2, 2, 0]])
  packed = batches.pack(counts, order)
  for i, rows in enumerate(order):
    u = packed.features.shape[1]
    wide = np.zeros(3 * u + 1)
    wide[packed.cells[i]] = packed.counts[i]
    dense = np.zeros((3, 40 + u))
    dense[:, packed.features[i]] = wide[:-1].reshape(3, u)
    assert not dense[:, 40:].any()
    for j, row in enumerate(rows):
      expected = counts[[row]].toarray()[0] if row >= 0 else np.zeros(40)
      np.testing.assert_array_equal(dense[j, :40], expected)
      assert packed.weights[i, j] == (row >= 0)
  assert [batches.padded_length(x) for x in (1, 64, 65, 97, 129, 385)] == [
    64,
    64,
    96,
    128,
    192,
    512,
  ]
  assert [batches.padded_length(x, 1) for x in (1, 2, 3, 4, 5, 7)] == [
    1,
    2,
    3,
    4,
    6,
    8,
  ]


@pytest.mark.parametrize("bad", [np.nan, -1.0])
def test_wrong_counts_are_refused(bad):
  with pytest.raises(errors.InputError, match="finite and not negative"):
    batches.check_counts(sp.csr_array(np.array([[1.0, bad]])))
  with pytest.raises(errors.InputError, match="nothing to fit"):
    batches.check_counts(sp.csr_array((2, 3)))


def test_bound_equals_the_definition():
  config, counts = _CONFIGS["smooth"], _counts()
  inputs = autoencoder.statistics(counts)
  params = _params(config, counts, jnp.float32)
  found = fitting.bound(
    config, inputs, params, counts, jax.random.key(0), samples=800, batch=4
  )
  noise = jax.random.normal(jax.random.key(9), (800, 3))
  terms = [
    autoencoder.elbo(config, params, inputs, jnp.asarray(x), noise)
    for x in counts.toarray()
  ]
  elbo = np.mean([x.value for x in terms])
  np.testing.assert_allclose(found.elbo, elbo, rtol=0.01)
  np.testing.assert_allclose(
    found.kl, np.mean([x.kl for x in terms]), rtol=1e-4
  )
  expected = np.exp(-found.elbo * counts.shape[0] / counts.sum())
  np.testing.assert_allclose(found.perplexity, expected, rtol=1e-4)


@pytest.mark.parametrize("sampled", [0, 64])
def test_training_raises_the_bound_and_stops_early(sampled):
  world = synthetic_corpora.entity_sets(
    np.random.default_rng(0), clusters=3, members=16, shared_features=40
  )
  config = autoencoder.Config(latent=4, hidden=(16,), sampled=sampled)
  held = world.counts[::8]
  key = jax.random.key(0)
  start = fitting.fit(world.counts, config, key, epochs=0)
  before = fitting.bound(config, start.inputs, start.params, held, key)
  found = fitting.fit(
    world.counts,
    config,
    key,
    epochs=12,
    rate=5e-3,
    batch=16,
    validation=held,
    patience=2,
  )
  after = fitting.bound(config, found.inputs, found.params, held, key)
  assert after.elbo > before.elbo + 1
  assert after.perplexity < before.perplexity
  seen = [x.elbo for _, x in found.history]
  stop = int(np.argmax(seen))
  assert len(seen) == 12 or len(seen) == stop + 3
  again = fitting.fit(world.counts, config, key, epochs=1, batch=16, rate=5e-3)
  first = fitting.fit(world.counts, config, key, epochs=1, batch=16, rate=5e-3)
  jax.tree.map(np.testing.assert_array_equal, again.params, first.params)


def test_best_parameters_are_kept():
  params = autoencoder.Params(jnp.ones(1), {}, jnp.ones(1))
  best = fitting.keep_best(None, params, -5.0)
  worse = fitting.keep_best(best, params._replace(table=jnp.zeros(1)), -6.0)
  assert (worse.idle, worse.elbo, worse.params.table[0]) == (1, -5.0, 1.0)
  nothing = fitting.keep_best(worse, params, float("nan"))
  assert nothing.idle == 2
  better = fitting.keep_best(nothing, params._replace(table=jnp.zeros(1)), -4.0)
  assert (better.idle, better.elbo, better.params.table[0]) == (0, -4.0, 0.0)

"""Steps on touched rows against plain differentiation and optax."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.sparse as sp

from repr_jax import errors, ops, setexp
from repr_jax.data import synthetic_corpora
from repr_jax.ops import precision
from repr_jax.setexp import autoencoder, batches, fitting, train
from repr_jax.setexp import rows as row_lib

_step = jax.jit(train.step, static_argnums=(0, 1))
_CONFIGS = {
  "plain": (autoencoder.Config(dim=3, hidden=(6,)), train.Hyper(0.01)),
  "deep": (
    autoencoder.Config(dim=3, hidden=(6, 4), weighting="log1p"),
    train.Hyper(0.01, beta=0.3),
  ),
  "multilabel": (
    autoencoder.Config(
      dim=3,
      hidden=(6,),
      decoder="multilabel",
      weighting="l1",
      lower_bounded_variance=True,
    ),
    train.Hyper(0.01, smoothing=0.5),
  ),
  "smooth": (
    autoencoder.Config(
      dim=3, hidden=(6,), weighting="bm25", prior_variance=2.0
    ),
    train.Hyper(0.01, smoothing=0.5),
  ),
}
_PLAIN, _HYPER = _CONFIGS["plain"]


@pytest.fixture
def double():
  with precision.enable_x64(True):
    yield


def _counts(seed=0, size=10, features=40, rate=0.25):
  dense = np.random.default_rng(seed).poisson(rate, (size, features))
  dense[:, 0] += 1
  return batches.check_counts(sp.csr_array(dense.astype(np.float32)))


def _params(config, counts, dtype=jnp.float64):
  statistics = autoencoder.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(3), statistics)
  return jax.tree.map(lambda x: jnp.asarray(x, dtype), params)


def _state(config, problem, params, optimizer=optax.adam):
  inputs = problem.statistics.inputs
  return train.init_state(config, optimizer, params, inputs)


def _dense_loss(config, hyper, inputs, params, rows, noise):
  """Mean loss of dense rows [b, F], by the definition of each term."""

  def one(counts, noise):
    weighted = autoencoder.weigh(
      config, counts, inputs.idf, counts.sum(), inputs.mean_length
    )
    posterior = autoencoder.encode_sums(
      config, params.encoder, weighted @ params.table
    )
    kl = ops.kl_to_prior(*posterior, config.prior_variance)
    z = posterior.mean + jnp.exp(posterior.log_variance / 2) * noise
    logits = z @ params.decoder[:, :-1].T + params.decoder[:, -1]
    s, size = hyper.smoothing or 0.0, counts.shape[0]
    if config.decoder == "multilabel":
      target = (1 - s) * (counts > 0) + s / 2
      losses = optax.sigmoid_binary_cross_entropy(logits, target)
    else:
      target = (1 - s) * counts + s * counts.sum() / size
      losses = -target * jax.nn.log_softmax(logits)
    return hyper.beta * kl + losses.sum(axis=1).mean()

  return jax.jit(jax.vmap(one, in_axes=(0, 1)))(rows, noise).mean()


_dense_slopes = jax.jit(
  jax.value_and_grad(_dense_loss, argnums=3), static_argnums=(0, 1)
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
  (config, hyper), counts = _CONFIGS[name], _counts()
  problem = fitting.prepare(config, counts)
  params = _params(config, counts)
  state = _state(config, problem, params)
  rng = np.random.default_rng(0)
  memory: dict = {}
  for step in range(1, 5):
    rows = rng.permutation(10)[:4]
    noise = jnp.asarray(rng.standard_normal((2, 4, 3)))
    dense = jnp.asarray(counts[rows].toarray(), jnp.float64)
    inputs = problem.statistics.inputs
    loss, slopes = _dense_slopes(config, hyper, inputs, params, dense, noise)
    touched = np.flatnonzero(np.asarray(dense).sum(axis=0))
    assert 0 < len(touched) < 40
    params = _lazy_adam(params, slopes, memory, touched, step, 0.01)
    batch = jax.tree.map(lambda x: x[0], batches.pack(counts, rows[None]))
    state, info = _step(config, optax.adam, state, batch, noise, hyper)
    np.testing.assert_allclose(info.loss, loss, rtol=1e-6)
    found = setexp.parameters(config, state)
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-7),
      found,
      params,
    )


@pytest.mark.parametrize(
  "optimizer",
  [
    optax.adam,
    optax.sgd(0.02),
    pytest.param(
      lambda rate: optax.chain(
        optax.clip_by_global_norm(0.1), optax.adamw(rate)
      ),
      marks=pytest.mark.long,
    ),
    pytest.param(
      lambda rate: optax.adafactor(rate, min_dim_size_to_factor=4),
      marks=pytest.mark.long,
    ),
  ],
)
def test_steps_equal_optax_when_all_rows_are_touched(double, optimizer):
  """A dense batch is the same code; any optimizer of optax steps as it does."""
  config, hyper = _PLAIN, train.Hyper(0.02, beta=0.5)
  rows = jnp.asarray(np.random.default_rng(0).poisson(1.0, (4, 20)) + 1.0)
  statistics = setexp.statistics(config, rows)
  params = setexp.init(config, jax.random.key(3), statistics)
  state = train.init_state(config, optimizer, params, statistics.inputs)
  plain = optimizer if isinstance(optimizer, tuple) else optimizer(0.02)
  memory = plain.init(params)

  @jax.jit
  def follow(params, memory, slopes):
    change, memory = plain.update(slopes, memory, params)
    return optax.apply_updates(params, change), memory

  for seed in range(4):
    noise = jax.random.normal(jax.random.key(seed), (1, 4, 3), jnp.float64)
    _, slopes = _dense_slopes(
      config, hyper, statistics.inputs, params, rows, noise
    )
    params, memory = follow(params, memory, slopes)
    batch = setexp.dense_batch(rows)
    state, _ = _step(config, optimizer, state, batch, noise, hyper)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8),
    setexp.parameters(config, state),
    params,
  )


def test_padding_of_a_batch_changes_nothing(double):
  config, counts = _PLAIN, _counts()
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
    state = _state(config, problem, params)
    for _ in range(3):
      state, info = _step(
        config, optax.adam, state, batch, jnp.asarray(eps), _HYPER
      )
    results.append((info, setexp.parameters(config, state)))
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9),
    *results,
  )


def test_the_bound_is_vmapped_over_entities_and_runs():
  config, dense = _PLAIN, jnp.asarray(_counts().toarray())
  statistics = setexp.statistics(config, dense)
  keys = jax.random.split(jax.random.key(0), 2)
  runs = jax.jit(jax.vmap(lambda k: setexp.init(config, k, statistics)))(keys)
  noise = jax.random.normal(jax.random.key(1), (10, 5, 3))
  rows = setexp.rows_from_dense(dense)

  def bound(params, row, noise):
    return setexp.elbo(config, params, statistics.inputs, row, noise)

  over = jax.vmap(jax.vmap(bound, (None, 0, 0)), (0, None, None))
  many = jax.jit(over)(runs, rows, noise)
  for i in range(2):
    params = jax.tree.map(lambda x, i=i: x[i], runs)
    for j in (0, 7):
      one = bound(params, jax.tree.map(lambda x, j=j: x[j], rows), noise[j])
      np.testing.assert_allclose(many.value[i, j], one.value, rtol=1e-5)
  # The batch of a training step has the same terms.
  params = jax.tree.map(lambda x: x[0], runs)
  batch, draws = setexp.dense_batch(dense), noise.swapaxes(0, 1)
  batch_terms = jax.jit(train.batch_terms, static_argnums=0)
  terms = batch_terms(config, statistics.inputs, params, batch, draws)
  np.testing.assert_allclose(many.value[0], terms.value, rtol=1e-5)


def test_padding_of_a_row_changes_nothing():
  config, counts = _PLAIN, _counts()
  statistics = autoencoder.statistics_from_scipy(config, counts)
  params = setexp.init(config, jax.random.key(0), statistics)
  noise = jax.random.normal(jax.random.key(1), (3, 3))
  rows = row_lib.rows_from_scipy(counts, 40)
  dense = setexp.rows_from_dense(jnp.asarray(counts[[0]].toarray()[0]))
  garbage = row_lib.Rows(
    np.where(rows.indices[0] == 40, [99, -7] * 20, rows.indices[0]),
    np.where(rows.indices[0] == 40, np.nan, rows.counts[0]),
  )
  one, other = (
    setexp.elbo(config, params, statistics.inputs, row, noise)
    for row in (dense, garbage)
  )
  np.testing.assert_allclose(one.value, other.value, rtol=1e-5)


def test_rows_outside_the_batches_stay():
  config, counts = _PLAIN, _counts()
  config = dataclasses.replace(config, sampled=8)
  problem = fitting.prepare(config, counts)
  params = _params(config, counts, jnp.float32)
  before = _state(config, problem, params)
  packed = batches.pack(
    counts,
    np.arange(4).reshape(2, 2),
    problem.proposal,
    8,
    np.random.default_rng(0),
  )
  noise = jax.random.normal(jax.random.key(0), (2, 1, 2, 3))
  after, _ = train.run_steps(
    config, optax.adam, before, packed, noise, train.Hyper(0.1)
  )
  own = set(packed.features[packed.features < 40])
  drawn = own | set(packed.samples[packed.samples < 40])
  assert len(drawn) < 40
  for old, new, touched in (
    (before.rows, after.rows, own),
    (before.decoder, after.decoder, drawn),
    *(
      (x, y, drawn)
      for x, y in zip(before.optimizer, after.optimizer)
      if x.shape == before.decoder.shape
    ),
  ):
    moved = np.flatnonzero(np.any(np.asarray(old != new), axis=1))
    assert set(moved) == touched


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


@pytest.mark.parametrize("bad", [np.nan, -1.0])
def test_wrong_counts_are_refused(bad):
  with pytest.raises(errors.InputError, match="finite and not negative"):
    batches.check_counts(sp.csr_array(np.array([[1.0, bad]])))
  with pytest.raises(errors.InputError, match="nothing to fit"):
    batches.check_counts(sp.csr_array((2, 3)))


def test_bound_equals_the_definition():
  config, counts = _CONFIGS["smooth"][0], _counts()
  inputs = autoencoder.statistics_from_scipy(config, counts).inputs
  params = _params(config, counts, jnp.float32)
  found = fitting.bound(
    config, inputs, params, counts, jax.random.key(0), samples=800, batch_size=4
  )
  noise = jax.random.normal(jax.random.key(9), (800, 3))
  terms = [
    setexp.elbo(
      config, params, inputs, setexp.rows_from_dense(jnp.asarray(x)), noise
    )
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
  config = autoencoder.Config(dim=4, hidden=(16,), sampled=sampled)
  held = world.counts[::8]
  key = jax.random.key(0)
  start = fitting.fit(world.counts, config, key, epochs=0)
  before = fitting.bound(config, start.inputs, start.params, held, key)
  found = fitting.fit(
    world.counts,
    config,
    key,
    epochs=12,
    hyper=train.Hyper(5e-3),
    batch_size=16,
    validation=held,
    patience=2,
  )
  after = fitting.bound(config, found.inputs, found.params, held, key)
  assert after.elbo > before.elbo + 1
  assert after.perplexity < before.perplexity
  seen = [x.elbo for _, x in found.history]
  stop = int(np.argmax(seen))
  assert len(seen) == 12 or len(seen) == stop + 3
  again, first = (
    fitting.fit(world.counts, config, key, epochs=1, batch_size=16)
    for _ in range(2)
  )
  jax.tree.map(np.testing.assert_array_equal, again.params, first.params)

"""Entity vectors against scalar loops, optax, exact optima and masks."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import optimize

from repr_jax import ops
from repr_jax.errors import InputError
from repr_jax.linking import entity_vectors as ev
from repr_jax.ops import precision

_KEY = jax.random.key(0)


def _words(size=40, d=6, seed=0):
  rng = np.random.default_rng(seed)
  table = rng.standard_normal((size, d)).astype(np.float32)
  return table / np.linalg.norm(table, axis=1, keepdims=True)


def _bags(lengths, size=40, seed=1):
  rng = np.random.default_rng(seed)
  offsets = np.concatenate([[0], np.cumsum(lengths)])
  return offsets, rng.integers(0, size, offsets[-1]).astype(np.int32)


def _scalar_loss(z, positives, negatives, gamma):
  total = 0.0
  for p in positives:
    for m in negatives:
      total += max(0.0, gamma - sum(a * (b - c) for a, b, c in zip(z, p, m)))
  return total / (len(positives) * len(negatives))


def test_the_loss_is_the_mean_hinge_over_pairs():
  rng = np.random.default_rng(0)
  z, p, m = rng.normal(size=4), rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
  expected = _scalar_loss(z, p, m, 0.7)
  assert expected > 0
  assert np.isclose(ev.margin_loss(*map(jnp.asarray, (z, p, m)), 0.7), expected)


def test_the_slope_agrees_with_finite_differences():
  rng = np.random.default_rng(1)
  shapes = ((5,), (4, 5), (3, 5))
  with precision.enable_x64():
    z, p, m = (jnp.asarray(rng.normal(size=s)) for s in shapes)
    slope = jax.jit(jax.grad(ev.margin_loss))(z, p, m, 0.3)
    assert slope.dtype == jnp.float64
    numeric = optimize.approx_fprime(
      np.asarray(z), lambda x: float(ev.margin_loss(x, p, m, 0.3)), 1e-7
    )
  np.testing.assert_allclose(slope, numeric, atol=1e-5)


def _loss_on_sphere(x, positives, negatives):
  return ev.margin_loss(x / jnp.linalg.norm(x), positives, negatives, 0.5)


def test_a_step_is_adagrad_and_a_projection():
  rng = np.random.default_rng(2)
  p, m = (jnp.asarray(rng.normal(size=(k, 5)), jnp.float32) for k in (4, 3))
  init, _ = ev.max_margin()
  state = init(_KEY, p, rng.normal(size=5))
  peer = optax.adagrad(0.3, initial_accumulator_value=0.0, eps=1e-12)
  z, inner = state.vector, peer.init(state.vector)
  for i in range(4):
    slope = jax.jit(jax.grad(lambda x, p: _loss_on_sphere(x, p, m)))(z, p + i)
    change, inner = peer.update(slope, inner)
    z = optax.apply_updates(z, change)
    z = z / jnp.linalg.norm(z)
    state, loss = ev.margin_step(state, p + i, m, 0.5, 0.3)
    assert loss >= 0
    assert np.isclose(jnp.linalg.norm(state.vector), 1)
  np.testing.assert_allclose(state.vector, z, atol=1e-5)


def test_the_fit_reaches_the_minimum_of_the_expected_loss():
  table = _words(12, 3)
  unigram = np.arange(1.0, 13)
  offsets, words = np.array([0, 6]), np.array([0, 0, 1, 2, 2, 2], np.int32)
  q = unigram**0.6 / (unigram**0.6).sum()
  own = table[words]

  def expected(z):
    z = z / np.linalg.norm(z)
    gap = (own @ z)[:, None] - (table @ z)[None]
    return float((np.maximum(0, 0.1 - gap) @ q).mean())

  best = min(
    optimize.minimize(expected, start, method="Nelder-Mead").fun
    for start in np.random.default_rng(0).normal(size=(10, 3))
  )
  found = ev.fit_max_margin(
    table, offsets, words, unigram, key=_KEY, steps=2000, learning_rate=0.1
  )
  assert expected(np.asarray(found[0], float)) < best + 0.01
  assert expected(np.array([-1.0, 1, 1])) > best + 0.1


def test_64_bits_draw_the_same_words():
  table, unigram = _words(), np.ones(40)
  offsets, words = _bags([12, 0, 15])
  start = np.random.default_rng(3).normal(size=(3, 6)).astype(np.float32)
  fit = {"key": _KEY, "steps": 20, "start": start}
  found = ev.fit_max_margin(table, offsets, words, unigram, **fit)
  with precision.enable_x64():
    same = ev.fit_max_margin(table, offsets, words, unigram, **fit)
    wide = ev.fit_max_margin(
      table.astype(np.float64), offsets, words, unigram, **fit
    )
  assert (same.dtype, wide.dtype) == (jnp.float32, jnp.float64)
  np.testing.assert_allclose(same, found, atol=1e-6)
  np.testing.assert_allclose(wide, found, atol=1e-4)


def test_entities_do_not_depend_on_one_another_or_on_blocks_of_padding():
  table, unigram = _words(), np.ones(40)
  offsets, words = _bags([3, 0, 5, 2, 7])
  whole = ev.fit_max_margin(
    table, offsets, words, unigram, key=_KEY, steps=20, block=8
  )
  changed = words.copy()
  changed[offsets[2] : offsets[3]] = 0
  other = ev.fit_max_margin(
    table, offsets, changed, unigram, key=_KEY, steps=20, block=8
  )
  same = np.array([0, 1, 3, 4])
  np.testing.assert_array_equal(whole[same], other[same])
  assert not np.allclose(whole[2], other[2])
  assert ev.has_words(offsets).tolist() == [True, False, True, True, True]
  lengths = np.linalg.norm(whole, axis=1)
  np.testing.assert_allclose(lengths, [1, 0, 1, 1, 1], atol=1e-6)


def test_a_second_stage_goes_on_from_the_first():
  table, unigram = _words(), np.ones(40)
  offsets, words = _bags([4, 0, 6])
  start = np.random.default_rng(3).normal(size=(3, 6))
  fit = {"key": _KEY, "block": 2}
  same = ev.fit_max_margin(
    table, offsets, words, unigram, steps=0, start=start, **fit
  )
  np.testing.assert_allclose(same, ops.unit_rows(start), atol=1e-6)
  found = ev.fit_max_margin(
    table, offsets, words, unigram, steps=30, start=start, **fit
  )
  np.testing.assert_allclose(found[1], ops.unit_rows(start)[1], atol=1e-6)
  assert not np.allclose(found[0], same[0])
  random = ev.fit_max_margin(table, offsets, words, unigram, steps=30, **fit)
  assert not np.allclose(found[0], random[0])


@pytest.mark.parametrize("stage", [False, True])
def test_runs_of_one_program_are_those_alone(stage):
  bags, keys = _bags([4, 0, 6]), jax.random.split(_KEY, 2)
  start = np.random.default_rng(3).normal(size=(2, 3, 6)) if stage else None
  margins, rates = np.array([0.1, 0.4]), np.array([0.3, 0.2])
  fixed = (_words(), *bags, np.ones(40))
  together = ev.fit_max_margin(
    *fixed, key=keys, steps=20, margin=margins, learning_rate=rates,
    start=start, block=4,
  )  # fmt: skip
  for i in range(2):
    alone = ev.fit_max_margin(
      *fixed, key=keys[i], steps=20, margin=margins[i], learning_rate=rates[i],
      start=None if start is None else start[i], block=4,
    )  # fmt: skip
    np.testing.assert_allclose(together[i], alone, atol=1e-6)
  with pytest.raises(InputError, match="one for each of several keys"):
    ev.fit_max_margin(*fixed, key=keys, margin=np.ones(3))


def test_entities_are_near_their_words_and_words_of_any_length_will_do():
  table, unigram = _words(60, 10), np.ones(60)
  offsets = np.arange(0, 61, 3)
  words = np.arange(60, dtype=np.int32)
  found = ev.fit_max_margin(table, offsets, words, unigram, key=_KEY, steps=200)
  cosines = np.asarray(found) @ table.T
  own = cosines.reshape(20, 20, 3).mean(axis=2)
  assert (own.argmax(axis=1) == np.arange(20)).all()
  longer = ev.fit_max_margin(
    7 * table, offsets, words, unigram, key=_KEY, steps=200
  )
  np.testing.assert_allclose(longer, found, atol=1e-3)


def test_words_that_never_occur_are_no_negatives():
  table = np.array([[1.0, 0], [0.6, 0.8], [0, 1]], np.float32)
  offsets, words = np.array([0, 1]), np.array([0], np.int32)
  found = ev.fit_max_margin(
    table, offsets, words, np.array([5.0, 0, 5]), key=_KEY, steps=50
  )
  # Against word 1 the entity would be pushed to a negative second number
  # further than against word 2 alone.
  assert found[0] @ (table[0] - table[2]) > 0.1


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"offsets": np.array([0, 2, 1, 5])}, "fall after entity 1"),
    ({"offsets": np.array([0, 2, 3, 6])}, "from 0 to"),
    ({"words": np.array([0, 1, 2, 3, 99])}, "entity 2 has the word 99"),
    ({"words": np.array([0.5, 1, 2, 3, 4])}, "whole numbers"),
    ({"unigram": np.zeros(40)}, "not all 0"),
    ({"unigram": np.ones(39)}, "belong together"),
    ({"start": np.ones((2, 6))}, "shape"),
    ({"block": 0}, "positive"),
    ({"margin": np.inf}, "margin must be finite"),
    ({"alpha": np.nan}, "alpha must be finite"),
    ({"word_vectors": np.full((40, 6), np.nan)}, "word 0 is not finite"),
  ],
)
def test_what_cannot_be_used_is_named(change, message):
  arguments = {
    "word_vectors": _words(),
    "offsets": np.array([0, 2, 3, 5]),
    "words": np.arange(5),
    "unigram": np.ones(40),
  }
  with pytest.raises(InputError, match=message):
    ev.fit_max_margin(**{**arguments, **change}, key=_KEY, steps=1)


def test_a_step_without_words_is_refused():
  with pytest.raises(InputError, match="1 or more"):
    ev.MarginConfig(0, 1)

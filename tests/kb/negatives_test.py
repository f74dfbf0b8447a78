"""Unknown facts: never a known one, and drawn evenly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from repr_jax import kb
from repr_jax.kb import negatives

_corrupt = jax.jit(negatives.corrupt)
_draw_any = jax.jit(negatives.draw_any, static_argnums=2)


def _facts(rng, count, entities, relations):
  return np.stack(
    [
      rng.integers(entities, size=count),
      rng.integers(relations, size=count),
      rng.integers(entities, size=count),
    ],
    axis=1,
  ).astype(np.int32)


@pytest.mark.parametrize("size", [(20, 3), (50_000, 18)])
def test_no_known_fact_is_missed_and_few_others_are_taken(size):
  rng = np.random.default_rng(0)
  facts = _facts(rng, 1000, *size)
  known = negatives.known_facts(facts, *size)
  assert np.all(kb.is_known(known, jnp.asarray(facts)))
  others = _facts(rng, 20_000, *size)
  listed = {tuple(row) for row in facts.tolist()}
  truth = np.array([tuple(row) in listed for row in others.tolist()])
  got = np.asarray(kb.is_known(known, jnp.asarray(others)))
  assert np.all(got[truth])
  assert got[~truth].mean() <= (0 if size[0] == 20 else 0.003)


def test_draws_are_unknown_and_even():
  facts = np.array([[0, 0, 1], [1, 1, 2], [2, 0, 0]], np.int32)
  known = negatives.known_facts(facts, 3, 2)
  drawn = _draw_any(known, jax.random.key(0), 6000)
  assert drawn.valid.mean() > 0.99
  triples = np.asarray(drawn.triples)[np.asarray(drawn.valid)]
  found, counts = np.unique(triples, axis=0, return_counts=True)
  assert len(found) == 18 - 3
  assert not {tuple(f) for f in facts} & {tuple(f) for f in found}
  assert counts.min() > 0.8 * counts.mean()


def test_corruption_keeps_the_rest_and_masks_what_it_cannot_do():
  rng = np.random.default_rng(1)
  facts = _facts(rng, 500, 30, 2)
  known = negatives.known_facts(facts, 30, 2)
  drawn, put_in, is_tail = _corrupt(
    known, jax.random.key(1), jnp.asarray(facts)
  )
  got = np.asarray(drawn.triples)
  side = np.asarray(is_tail)
  np.testing.assert_array_equal(got[:, 1], facts[:, 1])
  np.testing.assert_array_equal(got[side, 0], facts[side, 0])
  np.testing.assert_array_equal(got[~side, 2], facts[~side, 2])
  np.testing.assert_array_equal(
    np.where(side, got[:, 2], got[:, 0]), np.asarray(put_in)
  )
  listed = {tuple(row) for row in facts.tolist()}
  valid = np.asarray(drawn.valid)
  assert not any(tuple(row) in listed for row in got[valid].tolist())
  everything = np.indices((4, 1, 4)).reshape(3, -1).T.astype(np.int32)
  full = negatives.known_facts(everything, 4, 1)
  assert not _draw_any(full, jax.random.key(0), 50).valid.any()

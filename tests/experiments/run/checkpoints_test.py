"""Checkpoints: every kind of leaf comes back, other trees are refused."""

import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.run import runlib
from repr_jax import errors


def _run(directory: pathlib.Path, **config: Any) -> runlib.Run:
  return runlib.Run("small", directory=directory, config=config)


class _Tree(NamedTuple):
  key: jax.Array
  table: dict[str, Any]
  empty: jax.Array
  count: int
  rate: np.float32
  flag: bool


def _tree(seed: int) -> _Tree:
  key = jax.random.key(seed)
  table = {
    "a/b": jax.random.normal(key, (2, 3)),
    "half": jnp.full(2, seed, jnp.bfloat16),
    "host": np.arange(4, dtype=np.int16) + seed,
    "none": None,
  }
  return _Tree(
    key, table, jnp.zeros((0, 3)), seed, np.float32(seed / 3), bool(seed)
  )


def test_a_checkpoint_gives_back_every_kind_of_leaf(tmp_path):
  with _run(tmp_path) as run:
    assert run.restore(_tree(0)) is None
    run.save(4, _tree(1))
    run.save(7, _tree(2))
  with _run(tmp_path) as run:
    step, tree = run.restore(_tree(0))
  assert step == 7
  want = _tree(2)
  assert jax.tree.structure(tree) == jax.tree.structure(want)
  for ours, theirs in zip(jax.tree.leaves(tree), jax.tree.leaves(want)):
    assert type(ours) is type(theirs)
    if isinstance(ours, jax.Array) and jnp.issubdtype(
      ours.dtype, jax.dtypes.prng_key
    ):
      ours, theirs = jax.random.key_data(ours), jax.random.key_data(theirs)
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype
    np.testing.assert_array_equal(ours, theirs)


def test_a_checkpoint_of_another_shape_is_refused(tmp_path):
  with _run(tmp_path) as run:
    run.save(0, {"x": jnp.zeros(3)})
  with _run(tmp_path) as run:
    with pytest.raises(errors.InputError, match=r"float32\[3\] at \['x'\]"):
      run.restore({"x": jnp.zeros(4)})
    with pytest.raises(errors.InputError, match="absent"):
      run.restore({"x": jnp.zeros(3), "y": jnp.zeros(4)})

"""A second call of the same shapes does not compile again."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from repr_jax.ops import topk


def _top_k(seed: int) -> Any:
  scores = jax.random.normal(jax.random.key(seed), (300,))
  return topk.top_k(scores, k=5)


# Public entry points: functions of a seed, which changes values, not shapes.
_ENTRIES: dict[str, Callable[[int], Any]] = {
  "ops.topk.top_k": _top_k,
}


@pytest.mark.parametrize("name", _ENTRIES)
def test_entry_point_compiles_once(name, compilations):
  entry = _ENTRIES[name]
  jax.block_until_ready(entry(0))
  assert compilations.during(lambda: entry(1)) == 0


def test_compilations_are_counted(compilations):
  double = jax.jit(lambda x: 2 * x)
  three, four = jnp.ones(3), jnp.ones(4)
  assert compilations.during(lambda: double(three)) == 1
  assert compilations.during(lambda: double(three)) == 0
  assert compilations.during(lambda: double(four)) == 1
  assert compilations.during(lambda: jax.jit(lambda x: x + 1)(four)) == 1
  assert compilations.during(lambda: jax.jit(lambda x: x + 1)(four)) == 1

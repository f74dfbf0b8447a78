"""Doors of `repr_jax.ops`."""

import jax.numpy as jnp
import numpy as np
from doors.door import Door

from repr_jax import ops
from repr_jax.ops import normalize


def _members(seed, dtype):
  rng = np.random.default_rng(seed)
  xi = rng.normal(size=(4, 3)).astype(dtype)
  precision = rng.uniform(0.5, 2, (4, 3)).astype(dtype)
  weights = np.array([1.0, -0.5, 0.3, 0.0]).astype(dtype)
  return ops.Natural(jnp.asarray(xi), jnp.asarray(precision)), jnp.asarray(
    weights
  )


def _garbage(natural, weights):
  return ops.Natural(*(x.at[3].set(jnp.nan) for x in natural)), weights


def _rows(seed, dtype):
  rows = np.random.default_rng(seed).normal(size=(4, 3)).astype(dtype)
  return (jnp.asarray(rows),)


DOORS = [
  Door("ops.unit_rows", _rows, jitted=lambda: normalize._on_device, grad=(0,)),
  Door("ops.product_of_experts", _members, grad=(0,), mask=_garbage),
]

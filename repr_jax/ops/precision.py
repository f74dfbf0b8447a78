"""The range of floats: 64-bit types in a context, and sizes brought near 1."""

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
from jax import experimental


def enable_x64(wanted: bool = True) -> contextlib.AbstractContextManager:
  """A context in which 64-bit types are allowed, or are not.

  Args:
    wanted: whether they are.

  Returns:
    The context manager.
  """
  # JAX before 0.8, the last for Python 3.10, has it among experimental ones.
  home: Any = jax if hasattr(jax, "enable_x64") else experimental
  return home.enable_x64(wanted)


def near_one(largest: Any, xp: Any = jnp) -> Any:
  """The power of two that brings a size near 1: scaling by it is exact.

  Division by a size would not do: the inverse of 3e38 is 0 on many devices.

  Args:
    largest: sizes, floating [...].
    xp: `jax.numpy`, or numpy for numpy arrays.

  Returns:
    The factors, [...]; 1 for a size of 0, or one that is not finite.
  """
  if xp is jnp:
    largest = jax.lax.stop_gradient(largest)
  # A product of the largest factor with the largest or least float is finite
  # and not 0: 2^120 in float32.
  limit = int(jnp.finfo(largest.dtype).maxexp) - 8
  valid = xp.isfinite(largest) & (largest > 0)
  power = xp.frexp(xp.where(valid, largest, 0.5))[1]
  power = xp.clip(power, -limit, limit)
  return xp.ldexp(xp.ones((), largest.dtype), -power)

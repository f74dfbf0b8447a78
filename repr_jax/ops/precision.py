"""What floats can hold: 64 bits for a while, and numbers brought near 1."""

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
from jax import experimental

# A product of this with the largest or least of float32 is still one.
_LARGEST_POWER = 120


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


def near_one(largest: jax.Array) -> jax.Array:
  """The power of two that brings a size near 1: scaling by it is exact.

  Division by a size would not do: the inverse of 3e38 is 0 on many devices.

  Args:
    largest: sizes, floating [...].

  Returns:
    The factors, [...]; 1 for a size of 0, or one that is not finite.
  """
  largest = jax.lax.stop_gradient(largest)
  fine = jnp.isfinite(largest) & (largest > 0)
  power = jnp.frexp(jnp.where(fine, largest, 0.5))[1]
  power = jnp.clip(power, -_LARGEST_POWER, _LARGEST_POWER)
  return jnp.ldexp(jnp.ones((), largest.dtype), -power)

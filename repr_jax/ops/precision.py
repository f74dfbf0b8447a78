"""Floating point: 64-bit contexts, exact scaling, precision of products."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import experimental

_F = TypeVar("_F", bound=Callable[..., Any])


def enable_x64(wanted: bool = True) -> contextlib.AbstractContextManager:
  """A context that enables or disables 64-bit types."""
  # JAX before 0.8, the last for Python 3.10, has it among experimental ones.
  home: Any = jax if hasattr(jax, "enable_x64") else experimental
  return home.enable_x64(wanted)


def near_one(largest: Any, xp: Any = jnp) -> Any:
  """The power of two that brings a size near 1: scaling by it is exact.

  Division could underflow: the inverse of 3e38 is 0 on many devices.

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


def exact_products(function: _F) -> _F:
  """Computes a function's float32 products in float32 on every device.

  A TPU rounds the inputs of a product to bfloat16 and a recent GPU to TF32
  by default. Use it where a guarantee or an accuracy depends on precision:
  decompositions, projections, rules.

  Args:
    function: any function; products in functions that it calls count too.

  Returns:
    The function, exact under any `jax.default_matmul_precision`.
  """

  @functools.wraps(function)
  def exact(*args: Any, **keywords: Any) -> Any:
    with jax.default_matmul_precision("highest"):
      return function(*args, **keywords)

  return cast(_F, exact)


def chosen_products(function: _F) -> _F:
  """Computes a function's products in float32 unless the caller chose less.

  Use it where coarse products suffice: gradients of an autoencoder, scores
  that rank. `jax.default_matmul_precision("bfloat16")` around a call, or
  `JAX_DEFAULT_MATMUL_PRECISION=bfloat16` around a program, chooses them.

  Args:
    function: any function; products in functions that it calls count too.

  Returns:
    The function; it is exact unless JAX's own setting is set.
  """
  exact = exact_products(function)

  @functools.wraps(function)
  def chosen(*args: Any, **keywords: Any) -> Any:
    setting: Any = jax.config
    free = setting.jax_default_matmul_precision is None
    return (exact if free else function)(*args, **keywords)

  return cast(_F, chosen)

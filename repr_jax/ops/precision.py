"""Double precision for a while, by whichever name JAX has for it."""

import contextlib
from typing import Any

import jax
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

"""Objects of a user's own modules, named module:NAME on the command line."""

import importlib
from typing import Any, TypeVar

from repr_jax.errors import InputError

T = TypeVar("T")


def load(name: str, kind: type[T], flag: str) -> T:
  """Imports an object.

  Args:
    name: module:NAME; the module must be importable.
    kind: the type that the object must have.
  """
  module, colon, attribute = name.partition(":")
  if not colon or not module or not attribute:
    raise InputError(f"--{flag}: {name!r} is not of the form module:NAME")
  try:
    value: Any = getattr(importlib.import_module(module), attribute)
  except (ImportError, AttributeError) as error:
    raise InputError(f"--{flag}: cannot import {name!r}: {error}") from error
  if not isinstance(value, kind):
    raise InputError(
      f"--{flag}: {name!r} is a {type(value).__name__}, not a {kind.__name__}"
    )
  return value

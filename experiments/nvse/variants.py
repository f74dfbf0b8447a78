"""Other models of an evaluation: the run's configuration with changes."""

import dataclasses

from experiments.nvse.config import TRAINING, Config
from experiments.run import config
from repr_jax.errors import InputError


def variant(base: Config, text: str) -> Config:
  """A configuration with some training options changed.

  Args:
    text: changes as "dim=200:beta=0.3"; widths of layers as "500x200".
  """
  changes: dict[str, object] = {}
  for part in text.split(":"):
    name, equals, value = (x.strip() for x in part.partition("="))
    if not equals or name not in TRAINING or name in ("corpus", "seed"):
      raise InputError(
        f"--variants: {part!r} is not OPTION=VALUE with an option of training"
      )
    if isinstance(getattr(base, name), bool):
      if value.lower() not in ("true", "false"):
        raise InputError(f"--variants: {name} is true or false, not {value!r}")
      changes[name] = value.lower() == "true"
    else:
      changes[name] = value.split("x") if name == "hidden" else value
  values = {x.name: getattr(base, x.name) for x in dataclasses.fields(base)}
  try:
    return config.from_values(Config, values | changes)
  except InputError as error:
    raise InputError(f"--variants={text}: {error}") from error

"""A trained autoencoder on disk: arrays as .npz, the rest as JSON."""

import dataclasses
import json
import os
import pathlib
from typing import Any

import numpy as np
from flax import traverse_util

from repr_jax import errors
from repr_jax.data.io import array_files, files, json_files
from repr_jax.setexp import autoencoder

_ARRAYS, _NOTES = "parameters.npz", "model.json"


def save(
  directory: str | os.PathLike,
  config: autoencoder.Config,
  params: autoencoder.Params,
  inputs: autoencoder.Inputs,
  fingerprint: str,
) -> None:
  """Writes a model; each file is written atomically.

  Args:
    directory: where to write; created if it is missing.
    inputs: statistics for the weighting of inputs.
    fingerprint: of the features that the model was trained on.
  """
  folder = pathlib.Path(directory)
  folder.mkdir(parents=True, exist_ok=True)
  notes = {"config": dataclasses.asdict(config), "features": fingerprint}
  text = json.dumps(notes, indent=2, sort_keys=True)
  flat = traverse_util.flatten_dict(params.encoder, sep="/")
  array_files.write_npz(
    folder / _ARRAYS,
    table=params.table,
    decoder=params.decoder,
    idf=inputs.idf,
    mean_length=inputs.mean_length,
    notes=np.frombuffer(text.encode(), np.uint8),
    **{f"encoder/{name}": value for name, value in flat.items()},
  )
  with files.atomic_write(folder / _NOTES) as stream:
    stream.write(text + "\n")


def load(
  directory: str | os.PathLike, fingerprint: str | None = None
) -> tuple[autoencoder.Config, autoencoder.Params, autoencoder.Inputs]:
  """Reads what `save` wrote.

  Args:
    directory: where `save` wrote.
    fingerprint: of the current features; must equal the model's, not checked if
      None.

  Returns:
    Configuration, parameters and statistics, arrays on the host.
  """
  folder = pathlib.Path(directory)
  notes_path, path = folder / _NOTES, folder / _ARRAYS
  notes = json_files.read_json(notes_path)
  config, trained_on = _read_notes(notes, notes_path)
  if fingerprint is not None and fingerprint != trained_on:
    raise errors.InputError(
      f"the model was trained on other features (fingerprint {trained_on}, "
      f"not {fingerprint}): train again on this table, or give the table "
      "that belongs to the model",
      path=notes_path,
    )
  arrays: dict[str, Any] = dict(array_files.read_npz(path))
  missing = {"table", "decoder", "idf", "mean_length", "notes"} - set(arrays)
  if missing:
    raise errors.InputError(f"has no array {min(missing)}", path=path)
  text = arrays["notes"].tobytes().decode("utf-8", "replace")
  if json_files.parse_json(text, path) != notes:
    raise errors.InputError(
      f"belongs to another model than {_NOTES} beside it: save the model again",
      path=path,
    )
  del arrays["notes"]
  _check_arrays(config, arrays, path)
  encoder = {
    name.removeprefix("encoder/"): value
    for name, value in arrays.items()
    if name.startswith("encoder/")
  }
  params = autoencoder.Params(
    arrays["table"],
    traverse_util.unflatten_dict(encoder, sep="/"),
    arrays["decoder"],
  )
  return (
    config,
    params,
    autoencoder.Inputs(arrays["idf"], arrays["mean_length"]),
  )


def _read_notes(
  notes: Any, path: pathlib.Path
) -> tuple[autoencoder.Config, str]:
  try:
    config = autoencoder.Config(**notes["config"])
    for field in dataclasses.fields(config):
      value = getattr(config, field.name)
      widths = value if isinstance(value, tuple) else ()
      # An int may stand for a float; a bool, though an int to Python, may not.
      if type(value) is not type(field.default) and not (
        type(value) is int and isinstance(field.default, float)
      ):
        raise ValueError(f"{field.name} cannot be {value!r}")
      if not all(type(width) is int for width in widths):
        raise ValueError(f"{field.name} must be whole numbers")
    return config, str(notes["features"])
  except errors.InputError as error:
    raise errors.InputError(str(error), path=path) from error
  except (ValueError, TypeError, LookupError, OverflowError) as error:
    raise errors.InputError(
      f"does not describe a model ({error}); it may be damaged", path=path
    ) from error


def _check_arrays(
  config: autoencoder.Config, arrays: dict[str, np.ndarray], path: pathlib.Path
) -> None:
  """Refuses arrays of unexpected shapes and arrays that are not finite."""
  features = arrays["idf"].size
  shapes: dict[str, tuple[int, ...]] = {
    "table": (features, config.hidden[0]),
    "decoder": (features, config.dim + 1),
    "idf": (features,),
    "mean_length": (),
    "encoder/bias": (config.hidden[0],),
  }
  widths = [*config.hidden, config.dim]
  layers = [f"hidden_{i}" for i in range(1, len(config.hidden))]
  ends = zip([*layers, "mean"], widths, widths[1:])
  for layer, before, after in (
    *ends,
    ("log_variance", config.hidden[-1], config.dim),
  ):
    shapes[f"encoder/{layer}/kernel"] = (before, after)
    shapes[f"encoder/{layer}/bias"] = (after,)
  odd = sorted(set(shapes) ^ set(arrays))
  if odd:
    raise errors.InputError(
      f"{'lacks' if odd[0] in shapes else 'has no use for'} array {odd[0]}",
      path=path,
    )
  for name, shape in shapes.items():
    array = arrays[name]
    if array.shape != shape or array.dtype.kind != "f":
      raise errors.InputError(
        f"{name} is {array.dtype} of shape {array.shape}, the configuration "
        f"asks for floats of shape {shape}",
        path=path,
      )
    if not np.isfinite(array).all():
      raise errors.InputError(f"{name} has a value not finite", path=path)

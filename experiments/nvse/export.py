"""One directory with all that answering queries needs."""

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from experiments.nvse import systems
from experiments.nvse.config import Options
from experiments.run import workdir
from repr_jax.data.entities import features
from repr_jax.data.io import files, json_files
from repr_jax.errors import InputError
from repr_jax.setexp import expansion, model_files
from repr_jax.setexp.baselines import word2vecf

_NOTES, _FEATURES, _MODEL = "export.json", "features", "model"
_VECTORS = "word2vecf.npz"
_KINDS: dict[str, tuple[type, ...]] = {
  "ranking": (str,),
  "pooling": (str,),
  "normalize": (bool,),
  "word2vecf": (bool,),
  "power": (int, float),
  "own": (int, float),
  "fusion": (int, float),
}


class Exported(NamedTuple):
  """What a directory holds.

  Attributes:
    table: features, names and sentences.
    model: the autoencoder with all entities encoded.
    vectors: word2vecf's; the other baselines are fitted in moments.
    notes: options, ranking and fingerprint, as export.json has them.
  """

  table: features.FeatureTable
  model: expansion.Model
  vectors: word2vecf.Model | None
  notes: Mapping[str, Any]


def save(
  directory: str | pathlib.Path,
  options: Options,
  table: features.FeatureTable,
  model: expansion.Model,
  vectors: word2vecf.Model | None,
  fusion: float,
) -> None:
  """Writes the directory; export.json comes last and says it is complete.

  Args:
    directory: where; what is there is replaced.
    options: of the model and its ranking.
    table: its features.
    model: the autoencoder with its entities.
    vectors: of word2vecf, if they are wanted.
    fusion: weight of the autoencoder in "nvse+bm25".
  """
  folder = pathlib.Path(directory)
  folder.mkdir(parents=True, exist_ok=True)
  (folder / _NOTES).unlink(missing_ok=True)
  features.save(folder / _FEATURES, table)
  model_files.save(
    folder / _MODEL, model.config, model.params, model.inputs, table.fingerprint
  )
  if vectors is not None:
    files.write_npz(folder / _VECTORS, **vectors._asdict())
  notes = {
    "fingerprint": table.fingerprint,
    "entities": len(table.entities),
    "features": len(table.features),
    "ranking": options.ranking,
    "normalize": options.normalize,
    "power": options.power,
    "own": options.own,
    "pooling": options.pooling,
    "fusion": fusion,
    "word2vecf": vectors is not None,
    "systems": list(systems.SYSTEMS),
    "corpus": list(options.corpus),
    "seed": options.seed,
  }
  workdir.write_json(folder / _NOTES, notes)


def load(directory: str | pathlib.Path) -> Exported:
  """Reads what `save` wrote; features stay on disk until they are used.

  Args:
    directory: where.

  Returns:
    Table and models. A directory that is incomplete, or whose model belongs
    to other features, is an `InputError`.
  """
  folder = pathlib.Path(directory)
  path = folder / _NOTES
  if not path.exists():
    raise InputError(
      "is no exported model (there is no export.json): make one with "
      "python -m experiments.nvse --mode=export --export=DIR",
      path=folder,
    )
  notes = _read_notes(path)
  table = features.load(folder / _FEATURES)
  loaded = model_files.load(folder / _MODEL, table.fingerprint)
  model = expansion.build(*loaded, table.counts)
  vectors = None
  if notes["word2vecf"]:
    vectors = _read_vectors(folder / _VECTORS, table.counts.shape)
  return Exported(table, model, vectors, notes)


def _read_notes(path: pathlib.Path) -> dict[str, Any]:
  """Reads export.json; what is used of it has its type."""
  notes = json_files.read_json(path)
  for name, kinds in _KINDS.items():
    value: Any = notes.get(name) if isinstance(notes, dict) else None
    good = type(value) in kinds
    if not good or (float in kinds and not 0 <= value < float("inf")):
      raise InputError(
        f"is damaged ({name} is {value!r}): export again", path=path
      )
  return notes


def _read_vectors(
  path: pathlib.Path, shape: tuple[int, int]
) -> word2vecf.Model:
  """Reads the vectors of [X, F] entities and contexts."""
  arrays = files.read_npz(path, word2vecf.Model._fields)
  negatives = arrays.pop("negatives")
  width = arrays["noise"].shape[-1:]
  for name, rows in zip(("entities", "contexts"), shape):
    if arrays[name].shape != (rows, *width) or len(width) != 1:
      raise InputError(f"{name} is not {rows} vectors", path=path)
  numbers = all(
    x.dtype.kind == "f" and x.ndim == 2 and np.isfinite(x).all()
    for x in arrays.values()
  )
  if not numbers or negatives.dtype.kind not in "iu" or negatives.shape:
    raise InputError("holds what is no finite vector", path=path)
  return word2vecf.Model(negatives=int(negatives), **arrays)

"""One directory with all that answering queries needs."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from experiments import workdir
from experiments.nvse import systems
from experiments.nvse.options import Options
from repr_jax.data import files
from repr_jax.errors import InputError
from repr_jax.setexp import expand, features, model_files, word2vecf

_NOTES, _FEATURES, _MODEL = "export.json", "features", "model"
_VECTORS = "word2vecf.npz"


class Exported(NamedTuple):
  """What a directory holds.

  Attributes:
    table: features, names and sentences.
    model: the autoencoder with all entities encoded.
    vectors: word2vecf's; the other baselines are fitted in moments.
    notes: options, ranking and fingerprint, as export.json has them.
  """

  table: features.FeatureTable
  model: expand.Model
  vectors: word2vecf.Model | None
  notes: Mapping[str, Any]


def save(
  directory: str | pathlib.Path,
  options: Options,
  table: features.FeatureTable,
  model: expand.Model,
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
    "normalise": options.normalise,
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
  try:
    notes = json.loads(path.read_text("utf-8"))
    str(notes["ranking"]), bool(notes["normalise"]), float(notes["power"])
    str(notes["pooling"]), float(notes["own"])
    wanted = bool(notes["word2vecf"])
    float(notes["fusion"])
  except (ValueError, KeyError, TypeError) as error:
    raise InputError(f"is damaged ({error}): export again", path=path) from None
  table = features.load(folder / _FEATURES)
  loaded = model_files.load(folder / _MODEL, table.fingerprint)
  model = expand.build(*loaded, table.counts)
  vectors = None
  if wanted:
    arrays = files.read_npz(folder / _VECTORS)
    missing = set(word2vecf.Model._fields) - set(arrays)
    if missing:
      raise InputError(f"has no array {min(missing)}", path=folder / _VECTORS)
    negatives = int(arrays.pop("negatives"))
    kept = {k: x for k, x in arrays.items() if k in word2vecf.Model._fields}
    vectors = word2vecf.Model(negatives=negatives, **kept)
  return Exported(table, model, vectors, notes)

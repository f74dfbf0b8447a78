"""A trained set-expansion model with its entities, systems and directory.

`nvse` trains such models and writes them; `nvse` and the explorer open them.
A directory is either a finished run of `nvse`, whose features are in a store
of their own, or an export, which holds everything. `expansion.json` says
where the parts are and how entities are ranked; it is written last.
"""

import dataclasses
import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.run import entity_gcca, workdir
from repr_jax import setexp
from repr_jax.data.entities import features, skip_grams
from repr_jax.data.io import array_files, json_files
from repr_jax.errors import InputError
from repr_jax.setexp import (
  calibration,
  expansion,
  from_scipy,
  model_files,
  systems,
)
from repr_jax.setexp.baselines import lsa, setexpan, sgns, word2vecf
from repr_jax.setexp.query import Query

_NOTES, _FEATURES, _MODEL = "expansion.json", "features", "model"
_VECTORS, _CHANCES = "word2vecf.npz", "chances.json"
GCCA = "gcca"
SYSTEMS = (*systems.SYSTEMS, GCCA)
_KINDS: dict[str, tuple[type, ...]] = {
  "features": (str,),
  "score": (str,),
  "pooling": (str,),
  "normalize": (bool,),
  "word2vecf": (bool,),
  "power": (int, float),
  "member_share": (int, float),
  "reliability": (int, float),
  "hubness": (int, float),
  "fusion": (int, float),
  "seed": (int,),
}


@dataclasses.dataclass
class Expander:
  """A trained model over its entities.

  Attributes:
    table: features, names and sentences.
    model: the autoencoder with all entities encoded.
    ranking: how the autoencoder ranks.
    vectors: of word2vecf, if they are trained.
    fusion: share of the autoencoder in "nvse+bm25".
    relative: whether a rationale is relative to the prior's mean.
    seed: of the baselines that draw.
    word2vecf_config: how word2vecf trains.
    word2vecf_epochs: passes of word2vecf, where it is not trained yet.
    word2vecf_contexts: "words", tokens of sentences as in the thesis, or
      "all", documents and links too.
    lsa_rank: singular vectors of lsa.
    lsa_power: exponent of their values.
    lsa_hubness: share of an entity's crowding that lsa subtracts.
    gcca_power: exponent of the eigenvalues in gcca.
    gcca_ridge: ridge of the views in gcca.
    chances: weights of the evidence [5] by system, for calibrated chances of
      results; see `setexp.fit_chances`.
    setexpan_config: settings of SetExpan; `seed` replaces theirs.
    contexts: returns skip-grams of the entities' mentions, the features of
      SetExpan. Without any, SetExpan uses the table's features.
    shape: smallest padded sizes of queries, for baselines.
  """

  table: features.FeatureTable
  model: expansion.Model
  ranking: systems.RankingConfig = dataclasses.field(
    default_factory=systems.RankingConfig
  )
  vectors: word2vecf.Model | None = None
  fusion: float = 0.5
  relative: bool = False
  seed: int = 0
  word2vecf_config: sgns.Config = dataclasses.field(default_factory=sgns.Config)
  word2vecf_epochs: int = 100
  word2vecf_contexts: str = "words"
  lsa_rank: int = lsa.RANK
  lsa_power: float = lsa.POWER
  lsa_hubness: float = 0.0
  gcca_power: float = entity_gcca.POWER
  gcca_ridge: float = entity_gcca.RIDGE
  chances: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
  setexpan_config: setexpan.Config = dataclasses.field(
    default_factory=setexpan.Config
  )
  contexts: Callable[[], skip_grams.Contexts | None] | None = None
  shape: systems.Shape = dataclasses.field(default_factory=systems.Shape)

  def __post_init__(self):
    self.model = systems.prepare(self.model, self.ranking)
    self._systems: dict[str, systems.System] = {}

  def system(self, name: str) -> systems.System:
    """A system by name, fitted when it is first asked for."""
    if name not in self._systems:
      self._systems[name] = self._fit(name)
    return self._systems[name]

  def rank_by(self, score: str) -> None:
    """Changes the autoencoder's ranking score."""
    if score not in expansion.SCORES:
      raise InputError(
        f"--ranking: there is no {score!r}; there are "
        f"{', '.join(expansion.SCORES)}"
      )
    self.ranking = dataclasses.replace(self.ranking, score=score)
    for name in ("nvse", "nvse+bm25"):
      self._systems.pop(name, None)
    self.chances.pop("nvse", None)  # they belong to the previous ranking

  def train_vectors(self) -> word2vecf.Model:
    """The vectors of word2vecf, trained when first asked for."""
    if self.vectors is None:
      self.vectors = word2vecf.fit(
        word2vecf_counts(self.table, self.word2vecf_contexts),
        self.word2vecf_config,
        epochs=self.word2vecf_epochs,
        seed=self.seed,
      )
    return self.vectors

  def read_contexts(self) -> skip_grams.Contexts | None:
    """The contexts of the entities' mentions; None where there are none."""
    contexts = None if self.contexts is None else self.contexts()
    return contexts if contexts is not None and contexts.names else None

  def _fit(self, name: str) -> systems.System:
    if name == "nvse":
      return systems.nvse(self.model, self.ranking, relative=self.relative)
    if name == "nvse+bm25":
      return systems.fuse(self.system("nvse"), self.system("bm25"), self.fusion)
    check_system(name)
    if name == "lsa":
      fitted = lsa.fit(
        self.table.counts, rank=self.lsa_rank, power=self.lsa_power,
        hubness=self.lsa_hubness, seed=self.seed,
      )  # fmt: skip
      return systems.bind(lsa.LSA, fitted, self.shape)
    if name == GCCA:
      fitted = entity_gcca.fit(
        self.table.counts, self.table.features, rank=self.lsa_rank,
        power=self.gcca_power, ridge=self.gcca_ridge, seed=self.seed,
      )  # fmt: skip
      return systems.bind(lsa.LSA._replace(name=GCCA), fitted, self.shape)
    if name == "setexpan":
      return self._setexpan()
    vectors = self.train_vectors() if name == "word2vecf" else None
    return systems.baseline(
      name, self.table.counts, self.seed, vectors, self.shape
    )

  def _setexpan(self) -> systems.System:
    contexts = self.read_contexts()
    counts = self.table.counts if contexts is None else contexts.counts
    model = setexpan.fit(counts, self.setexpan_config._replace(seed=self.seed))
    system = systems.bind(setexpan.SETEXPAN, model, self.shape)
    if contexts is None:
      return system
    names = [f"context:{x}" for x in contexts.names]
    return systems.with_features(system, counts, names)


def check_system(name: str) -> None:
  """Raises `InputError` for a name that is no system."""
  if ":" in name:
    systems.find_baseline(name)
  elif name not in SYSTEMS:
    raise InputError(
      f"there is no system {name!r}; there are {', '.join(SYSTEMS)}, and "
      "MODULE:NAME for one of your own"
    )


def word2vecf_counts(table: features.FeatureTable, kind: str) -> sp.csr_array:
  """Counts that word2vecf trains on, [X, F], for `word2vecf_contexts`."""
  return only_words(table) if kind == "words" else table.counts


def only_words(table: features.FeatureTable) -> sp.csr_array:
  """Counts of the tokens of sentences alone, [X, F]; other columns are 0.

  A table without such features keeps what it has.
  """
  words = np.array([x.startswith("word:") for x in table.features], bool)
  counts = sp.csr_array(table.counts, copy=True)
  if not words[counts.indices].any():
    return counts
  counts.data = np.where(words[counts.indices], counts.data, 0)
  counts.eliminate_zeros()
  return counts


def save(directory: str | pathlib.Path, expander: Expander) -> None:
  """Writes an export, which holds all that `load` reads.

  Args:
    directory: where; earlier files are replaced.
  """
  folder = pathlib.Path(directory)
  folder.mkdir(parents=True, exist_ok=True)
  (folder / _NOTES).unlink(missing_ok=True)
  model, table = expander.model, expander.table
  features.save(folder / _FEATURES, table)
  model_files.save(
    folder / _MODEL, model.config, model.params, model.inputs, table.fingerprint
  )
  if expander.chances:
    save_chances(folder, expander)
  contexts = expander.read_contexts()
  contexts_of(folder / _FEATURES).unlink(missing_ok=True)
  if contexts is not None:
    skip_grams.save(contexts_of(folder / _FEATURES), contexts)
  if expander.vectors is not None:
    array_files.write_npz(folder / _VECTORS, **expander.vectors._asdict())
  save_notes(
    folder,
    folder / _FEATURES,
    expander.ranking,
    expander.seed,
    expander.fusion,
    expander.vectors is not None,
  )


def save_chances(directory: str | pathlib.Path, expander: Expander) -> None:
  """Writes the weights of chances beside the model that they belong to.

  Args:
    directory: of a run or an export.
    expander: the model, how it ranks and the weights.
  """
  value = {
    "ranking": dataclasses.asdict(expander.ranking),
    "weights": {name: x.tolist() for name, x in expander.chances.items()},
  }
  workdir.write_json(pathlib.Path(directory) / _CHANCES, value)


def read_chances(
  directory: str | pathlib.Path, ranking: systems.RankingConfig
) -> dict[str, np.ndarray]:
  """Weights of chances by system; those of another ranking are left out.

  Args:
    directory: of a run or an export.
    ranking: how the autoencoder ranks now.

  Returns:
    Weights [5] by system; empty if none were fitted.
  """
  path = pathlib.Path(directory) / _CHANCES
  if not path.exists():
    return {}
  value = json_files.read_json(path)
  try:
    weights = {
      str(name): np.array(x, np.float32) for name, x in value["weights"].items()
    }
    same = value["ranking"] == dataclasses.asdict(ranking)
  except (AttributeError, KeyError, TypeError, ValueError):
    weights, same = {"": np.zeros(0, np.float32)}, False
  shape = (calibration.NUM_EVIDENCE,)
  if not all(
    x.shape == shape and np.isfinite(x).all() for x in weights.values()
  ):
    raise InputError("is damaged: evaluate with --chances again", path=path)
  return {name: x for name, x in weights.items() if same or name != "nvse"}


def set_chances(
  weights: np.ndarray | None, scores: np.ndarray, query: Query
) -> tuple[np.ndarray | None, int | None]:
  """Chances of all entities, and how many of them make the set.

  Args:
    weights: of the evidence, [5]; None if none were fitted.
    scores: of all entities, [X].

  Returns:
    Chances [X] and the number; None and None without weights.
  """
  if weights is None:
    return None, None
  members = np.zeros(len(scores), np.float32)
  own = query.ids >= 0
  members[query.ids[own]] = query.weights[own]
  given = setexp.chances(weights, scores.astype(np.float32), members)
  return np.asarray(given), int(setexp.expected_cut(given))


def save_notes(
  directory: str | pathlib.Path,
  table_folder: str | pathlib.Path,
  ranking: systems.RankingConfig,
  seed: int,
  fusion: float = 0.5,
  word2vecf_saved: bool = False,
) -> None:
  """Writes expansion.json, so that `load` opens a directory with a model.

  Args:
    directory: of a run or an export; `model_files.save` has written model/.
    table_folder: folder that holds the features.
    ranking: how the autoencoder ranks.
    seed: of the baselines that draw.
    fusion: share of the autoencoder in "nvse+bm25".
    word2vecf_saved: whether the directory holds vectors of word2vecf.
  """
  notes = {
    **dataclasses.asdict(ranking),
    "features": os.path.relpath(table_folder, directory),
    "fusion": fusion,
    "word2vecf": word2vecf_saved,
    "seed": seed,
  }
  workdir.write_json(pathlib.Path(directory) / _NOTES, notes)


def load(directory: str | pathlib.Path) -> Expander:
  """Opens a run or an export; features stay on disk until they are used.

  Args:
    directory: where.

  Returns:
    The model with its entities encoded.

  Raises:
    InputError: the directory is incomplete, or its model belongs to other
      features.
  """
  folder = pathlib.Path(directory)
  path = folder / _NOTES
  if not path.exists():
    raise InputError(
      f"holds no trained model (there is no {_NOTES}): train one with "
      f"python -m experiments.nvse --workdir={folder}",
      path=folder,
    )
  notes = _read_notes(path)
  where = folder / notes["features"]
  if not where.is_dir():
    raise InputError(f"its features are not at {where}", path=path)
  table = features.load(where)
  loaded = model_files.load(folder / _MODEL, table.fingerprint)
  vectors = None
  if notes["word2vecf"]:
    vectors = _read_vectors(folder / _VECTORS, table.counts.shape)
  fields = [field.name for field in dataclasses.fields(systems.RankingConfig)]
  ranking = systems.RankingConfig(**{name: notes[name] for name in fields})
  return Expander(
    table,
    from_scipy.model_from_scipy(*loaded, table.counts),
    ranking,
    vectors,
    notes["fusion"],
    seed=notes["seed"],
    chances=read_chances(folder, ranking),
    contexts=lambda: load_contexts(where, len(table.entities)),
  )


def contexts_of(table_folder: pathlib.Path) -> pathlib.Path:
  """The file of contexts that belongs to a folder of features."""
  return table_folder.with_name(f"{table_folder.name}-contexts.npz")


def load_contexts(
  table_folder: pathlib.Path, size: int
) -> skip_grams.Contexts | None:
  """Contexts of X = `size` entities; None where they were not counted."""
  path = contexts_of(table_folder)
  return skip_grams.load(path, size) if path.exists() else None


def _read_notes(path: pathlib.Path) -> dict[str, Any]:
  """Reads expansion.json and checks the types of its values."""
  notes = json_files.read_json(path)
  if isinstance(notes, dict):  # Version 0.2 wrote no such values.
    notes = {"reliability": 0.0, "hubness": 0.0, **notes}
  for name, kinds in _KINDS.items():
    value: Any = notes.get(name) if isinstance(notes, dict) else None
    good = type(value) in kinds
    if not good or (str not in kinds and not 0 <= value < float("inf")):
      raise InputError(
        f"is damaged ({name} is {value!r}): train or export again", path=path
      )
  if notes["score"] != "cosine" and (notes["reliability"] or notes["hubness"]):
    raise InputError(
      f"is damaged (reliability or hubness beside the score "
      f"{notes['score']!r}): train or export again",
      path=path,
    )
  return notes


def _read_vectors(
  path: pathlib.Path, shape: tuple[int, int]
) -> word2vecf.Model:
  """Reads the vectors of [X, F] entities and contexts."""
  arrays = array_files.read_npz(path, word2vecf.Model._fields)
  negatives = arrays.pop("negatives")
  width = arrays["noise"].shape[-1:]
  for name, rows in zip(("entities", "contexts"), shape):
    if arrays[name].shape != (rows, *width) or len(width) != 1:
      raise InputError(f"{name} is not {rows} vectors", path=path)
  finite = all(
    x.dtype.kind == "f" and x.ndim == 2 and np.isfinite(x).all()
    for x in arrays.values()
  )
  if not finite or negatives.dtype.kind not in "iu" or negatives.shape:
    raise InputError("its vectors are not all finite", path=path)
  return word2vecf.Model(negatives=int(negatives), **arrays)

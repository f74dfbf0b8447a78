"""What queries and evaluations share: the table, the model, all systems."""

import dataclasses
import pathlib
from collections.abc import Callable

from experiments.nvse import data, export, systems, train
from experiments.nvse.config import Options
from repr_jax.data.entities import features
from repr_jax.errors import InputError
from repr_jax.setexp import expansion
from repr_jax.setexp.baselines import word2vecf


@dataclasses.dataclass
class Session:
  """A trained model over its entities.

  Attributes:
    options: of the run.
    table: features, names and sentences.
    model: the autoencoder with its entities.
    vectors: of word2vecf, if they are trained.
    fusion: share of the autoencoder in "nvse+bm25".
    relative: whether a rationale is relative to the prior's mean.
  """

  options: Options
  table: features.FeatureTable
  model: expansion.Model
  vectors: word2vecf.Model | None = None
  fusion: float = 0.5
  relative: bool = False

  def __post_init__(self):
    self._systems: dict[str, systems.System] = {}

  def system(self, name: str) -> systems.System:
    """A system by name, fitted when it is first asked for."""
    if name not in self._systems:
      self._systems[name] = self._fit(name)
    return self._systems[name]

  def rank_by(self, score: str, normalize: bool) -> None:
    """Changes the autoencoder's ranking score."""
    self.options = dataclasses.replace(
      self.options, ranking=score, normalize=normalize
    )
    for name in ("nvse", "nvse+bm25"):
      self._systems.pop(name, None)

  def train_vectors(self) -> word2vecf.Model:
    """The vectors of word2vecf, trained when first asked for."""
    if self.vectors is None:
      self.vectors = word2vecf.fit(
        self.table.counts,
        epochs=self.options.word2vecf_epochs,
        seed=self.options.seed,
      )
    return self.vectors

  def _fit(self, name: str) -> systems.System:
    if name == "nvse":
      return systems.nvse(
        self.model, self.table.counts, self.options, self.relative
      )
    if name == "nvse+bm25":
      return systems.fuse(self.system("nvse"), self.system("bm25"), self.fusion)
    if name not in systems.BASELINES:
      raise InputError(
        f"there is no system {name!r}; there are {', '.join(systems.SYSTEMS)}"
      )
    vectors = self.train_vectors() if name == "word2vecf" else None
    counts = self.table.counts
    return systems.baseline(name, counts, self.options.seed, vectors)


def from_run(
  directory: pathlib.Path,
  options: Options,
  say: Callable[[str], None] = lambda text: None,
) -> Session:
  """The model of a work directory, trained first where there is none.

  Args:
    directory: of the training.
    options: of the run.
    say: called with a line of text when something was done.
  """
  table = data.open_table(options, say)
  loaded = train.run_training(directory, options, table)
  model = expansion.build(*loaded, table.counts)
  return Session(options, table, model)


def from_export(directory: str, options: Options) -> Session:
  """The model of an exported directory.

  Args:
    directory: from --mode=export.
    options: of the run; corpus and model come from the directory.
  """
  found = export.load(directory)
  names = ("ranking", "normalize", "power", "own", "pooling")
  how = {name: found.notes[name] for name in names}
  options = dataclasses.replace(options, **how)
  return Session(
    options, found.table, found.model, found.vectors, found.notes["fusion"]
  )

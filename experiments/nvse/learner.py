"""One training of the autoencoder: its start, its log and its checkpoints."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse as sp
from jax.sharding import Mesh

from experiments.nvse import data
from experiments.nvse.config import Config
from experiments.run import expander, progress, runlib
from repr_jax.data import vectors as vector_files
from repr_jax.data.entities import features
from repr_jax.errors import InputError
from repr_jax.ops import early_stopping
from repr_jax.setexp import autoencoder, fitting, model_files, sharding
from repr_jax.setexp import train as steps

MODEL = "model"
_LOOK = 2_000  # Entities of the training set whose bound is measured.
_CAPACITY = 1024  # A checkpoint has room for a multiple of so many epochs.


class Trained(NamedTuple):
  """A model and how it got there.

  Attributes:
    config: of the model.
    params: the best parameters.
    inputs: statistics for the weighting.
    history: of each epoch its training loss, validation bound (0 without
      validation entities) and seconds, [epochs, 3].
    bounds: sampled bounds of "training" and, if any, "validation" entities.
  """

  config: autoencoder.Config
  params: autoencoder.Params
  inputs: autoencoder.Inputs
  history: np.ndarray
  bounds: dict[str, fitting.Bound]


class _Checkpoint(NamedTuple):
  """Contents of a checkpoint."""

  state: steps.State
  best: autoencoder.Params
  stopping: early_stopping.State
  history: np.ndarray


class Learner:
  """A training that logs, validates, stops and checkpoints.

  Attributes:
    config: of the run.
    problem: entities to train on.
    start: the last epoch that a checkpoint has seen, -1 where there is none.
    epochs: passes at most.
    state: what training goes on from.
  """

  def __init__(
    self,
    run: runlib.Run,
    config: Config,
    table: features.FeatureTable,
    *,
    mesh: Mesh | None = None,
    save_every: int = 0,
  ):
    """Restores the run's last checkpoint, or begins at the start.

    Args:
      run: open; its directory gets checkpoints, the log and `model/`.
      mesh: devices that share the training.
      save_every: epochs between checkpoints; 0 for about ten in all.
    """
    self._run, self._table, self.config = run, table, config
    model = config.model_config()
    chosen, held_out = split(table.counts, config.validation, config.seed)
    self.problem = fitting.prepare(model, table.counts[chosen])
    self.epochs = config.epochs
    self._validation = table.counts[held_out] if held_out.size else None
    keys = jax.random.split(jax.random.key(config.seed), 3)
    start, self._train_key, self._look_key = keys
    words = _word_vectors(config, table)
    params = fitting.start(self.problem, start, words, svd=config.svd_start)
    inputs = self.problem.statistics.inputs
    state = steps.init_state(model, optax.adam, params, inputs)
    if mesh is not None:
      state = sharding.place_state(mesh, state, config.hyper().smoothing)
    capacity = -(-max(config.epochs, 1) // _CAPACITY) * _CAPACITY
    done = _Checkpoint(
      state,
      jax.tree.map(np.array, params),
      early_stopping.State(),
      np.zeros((capacity, 3), np.float32),
    )
    del params, state
    self.start, done = run.restore(done) or (-1, done)
    self.state: Any = done.state
    self._best = done.best
    self._stopping = early_stopping.EarlyStopping(
      config.patience, state=done.stopping
    )
    self._history = np.array(done.history)
    self._save_every = save_every or max(1, config.epochs // 10)

  def key(self, epoch: int) -> jax.Array:
    """Random key of an epoch."""
    return jax.random.fold_in(self._train_key, epoch)

  def hyper(self, epoch: int) -> steps.Hyper:
    """Hyperparameters of an epoch."""
    config = self.config
    return fitting.hyper_at(
      config.hyper(),
      epoch,
      config.epochs,
      warmup=config.warmup,
      decay=config.decay,
    )

  def should_stop(self) -> bool:
    """Whether the validation bound no longer improves."""
    return self._stopping.should_stop

  def needs_state(self, epoch: int) -> bool:
    """Whether an epoch ends with a validation or a checkpoint."""
    return self._validation is not None or self._saves(epoch)

  def _saves(self, epoch: int) -> bool:
    last = epoch + 1 == self.epochs or self.should_stop()
    return last or (epoch + 1) % self._save_every == 0

  def after(
    self, epoch: int, state: Any, outputs: Sequence[Any], seconds: float
  ) -> None:
    """Logs an epoch, validates and checkpoints.

    As `vmapped_training.Learner` says; `outputs` are `steps.Info`, of the
    steps or of parts of them.
    """
    loss = float(np.concatenate([np.ravel(x.loss) for x in outputs]).mean())
    bound = 0.0
    if self._validation is not None:
      bound = self._validate(epoch, state)
    self._history[epoch] = loss, bound, max(seconds, 1e-6)
    loss, bound, seconds = self._history[epoch].tolist()
    shown = {"loss": loss, "seconds_of_epoch": seconds}
    if self._validation is not None:
      shown["validation_elbo"] = bound
    self._run.log(epoch, **shown)
    if self._saves(epoch):
      memory = _Checkpoint(
        state, self._best, self._stopping.state, self._history
      )
      self._run.save(epoch, memory)

  def _validate(self, epoch: int, state: steps.State) -> float:
    """The bound of the validation entities; the best parameters are kept."""
    params = jax.tree.map(
      jnp.asarray, steps.parameters(self.problem.config, state)
    )
    bound = self._bound(params, self._validation, self.config.z_samples).elbo
    if self._stopping.update(epoch, bound):
      whole = sharding.on_host(params, self.problem.counts.shape[1])
      self._best = jax.tree.map(lambda x: np.array(x, copy=True), whole)
    return bound

  def _bound(self, params: Any, counts: Any, samples: int) -> fitting.Bound:
    return fitting.bound(
      self.problem.config, self.problem.statistics.inputs, params, counts,
      self._look_key, samples=samples,
    )  # fmt: skip

  def finish(self, state: Any) -> Trained:
    """Measures the model and keeps it in the run's directory.

    Args:
      state: after the last epoch.

    Returns:
      The best model by validation, or the last without.
    """
    problem, best = self.problem, self._best
    if self._validation is None:
      size = self._table.counts.shape[1]
      best = sharding.on_host(steps.parameters(problem.config, state), size)
    bounds = {}
    on_device = jax.tree.map(jnp.asarray, best)
    for name, counts in (
      ("training", problem.counts[:_LOOK]),
      ("validation", self._validation),
    ):
      if counts is not None:
        bounds[name] = self._bound(on_device, counts, 5)
    inputs = problem.statistics.inputs
    model_files.save(
      self._run.directory / MODEL, problem.config, best, inputs,
      self._table.fingerprint,
    )  # fmt: skip
    expander.save_notes(
      self._run.directory,
      data.table_folder(self.config),
      self.config.ranking_config(),
      self.config.seed,
    )
    history = self._history[self._history[:, 2] > 0]
    return Trained(problem.config, best, inputs, history, bounds)


def split(
  counts: sp.csr_array, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
  """Rows to train on and rows for validation; rows without features in none.

  Args:
    counts: [X, F].
    share: of the entities that are held out.

  Returns:
    Both, rising.
  """
  rows = np.flatnonzero(np.diff(counts.indptr) > 0)
  if rows.size < 2:
    raise InputError(
      f"{rows.size} of {counts.shape[0]} entities have features left after "
      "pruning: lower --min_count and --drop_most_frequent"
    )
  size = int(share * rows.size)
  held_out = np.random.default_rng(seed).permutation(rows)[:size]
  return np.setdiff1d(rows, held_out), np.sort(held_out)


def _word_vectors(
  config: Config, table: features.FeatureTable
) -> np.ndarray | None:
  """The first layer from word vectors, random where a word has none."""
  if config.word_vectors is None:
    return None
  given = vector_files.read_vectors(config.word_vectors)
  width = given.array.shape[1]
  if width != config.hidden[0]:
    raise InputError(
      f"--word_vectors has vectors of {width} numbers, the first layer of "
      f"--hidden {config.hidden[0]}: set --hidden={width}"
    )
  places: dict[str, int] = {}
  for i, word in enumerate(given.words):
    places.setdefault(word.lower(), i)
  words = [feature.partition(":")[2] for feature in table.features]
  place = np.array([places.get(word, -1) for word in words])
  if (place < 0).all():
    raise InputError("has no word of the corpus", path=config.word_vectors)
  scale = float(given.array.std()) or 1.0
  rng = np.random.default_rng(config.seed)
  array = rng.normal(0, scale, (len(words), width)).astype(np.float32)
  array[place >= 0] = given.array[place[place >= 0]]
  progress.say(
    f"nvse: {(place >= 0).sum():,} of {len(words):,} features start at a "
    "word vector"
  )
  # Scaled as a random layer is: sums over an entity's features have spread 1.
  per_entity = max(table.counts.nnz / table.counts.shape[0], 1.0)
  return array / np.float32(scale * np.sqrt(per_entity))

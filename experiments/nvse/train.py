"""Training with a log, checkpoints, early stopping and a model at the end."""

import dataclasses
import pathlib
import time
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
import scipy.sparse as sp
from jax.sharding import Mesh

from experiments.nvse import data
from experiments.nvse.config import VOLATILE, Config
from experiments.run import (
  early_stopping,
  expander,
  memory,
  progress,
  runlib,
)
from repr_jax.data import vectors as vector_files
from repr_jax.data.entities import features
from repr_jax.data.io import json_files
from repr_jax.errors import InputError
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import (
  autoencoder,
  expansion,
  fitting,
  model_files,
  sharding,
)
from repr_jax.setexp import train as steps

_MODEL = "model"
_LOOK = 2_000  # Entities of the training set whose bound is measured.
_CAPACITY = 1024  # Epochs whose history a checkpoint has room for, in steps.


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


def train(
  run: runlib.Run,
  config: Config,
  table: features.FeatureTable,
  save_every: int = 0,
) -> Trained:
  """Trains, or goes on where the run stopped, and keeps the model.

  Args:
    run: open; its directory gets checkpoints, the log and `model/`.
    config: of the run.
    table: features of the entities.
    save_every: epochs between checkpoints; 0 for about ten in all.

  Returns:
    The best model by validation, or the last without.
  """
  model, hyper = config.model_config(), config.hyper()
  chosen, held_out = split(table.counts, config.validation, config.seed)
  problem = fitting.prepare(model, table.counts[chosen])
  inputs = problem.statistics.inputs
  start, train_key, look_key = jax.random.split(jax.random.key(config.seed), 3)
  words = _word_vectors(config, table)
  params = fitting.start(problem, start, words, svd=config.svd_start)
  mesh = meshes.make_mesh(config.mesh, sharding.AXES)
  state = steps.init_state(model, optax.adam, params, inputs)
  if mesh is not None:
    state = sharding.place_state(mesh, state, hyper.smoothing)
  capacity = -(-max(config.epochs, 1) // _CAPACITY) * _CAPACITY
  done = _Checkpoint(
    state,
    jax.tree.map(np.array, params),
    early_stopping.State(),
    np.zeros((capacity, 3), np.float32),
  )
  del params, state
  first, done = run.restore(done) or (-1, done)
  stopping = early_stopping.EarlyStopping(config.patience, state=done.stopping)
  save_every = save_every or max(1, config.epochs // 10)
  validation = table.counts[held_out] if held_out.size else None
  for epoch in run.progress(range(first + 1, config.epochs), "epoch"):
    if stopping.should_stop:
      break
    done = _epoch(
      problem, config, done, epoch, train_key, look_key, validation, mesh,
      stopping,
    )  # fmt: skip
    loss, bound, seconds = done.history[epoch].tolist()
    shown = {"loss": loss, "seconds_of_epoch": seconds}
    if validation is not None:
      shown["validation_elbo"] = bound
    run.log(epoch, **shown)
    last = epoch + 1 == config.epochs or stopping.should_stop
    if last or (epoch + 1) % save_every == 0:
      run.save(epoch, done)
  best = done.best
  if validation is None:
    size = table.counts.shape[1]
    best = sharding.on_host(steps.parameters(model, done.state), size)
  bounds = {}
  for name, counts in (
    ("training", problem.counts[:_LOOK]),
    ("validation", validation),
  ):
    if counts is not None:
      bounds[name] = fitting.bound(
        model, inputs, best, counts, look_key, samples=5
      )
  history = done.history[done.history[:, 2] > 0]
  model_files.save(
    run.directory / _MODEL, model, best, inputs, table.fingerprint
  )
  expander.save_notes(
    run.directory,
    data.table_folder(config),
    config.ranking_config(),
    config.seed,
  )
  return Trained(model, best, inputs, history, bounds)


def load(
  directory: pathlib.Path, fingerprint: str
) -> tuple[autoencoder.Config, autoencoder.Params, autoencoder.Inputs]:
  """The model that `train` left in a run's directory."""
  return model_files.load(directory / _MODEL, fingerprint)


def is_trained(directory: pathlib.Path) -> bool:
  """Whether a run's directory holds a finished model."""
  return (directory / _MODEL / "model.json").exists()


def record(run: runlib.Run, trained: Trained) -> None:
  """Rows of results.json: bounds, perplexity and time."""
  for name, bound in trained.bounds.items():
    run.row(f"{name} entities", "sampled ELBO, nats", bound.elbo)
    run.row(f"{name} entities", "KL, nats", bound.kl)
    run.row(f"{name} entities", "perplexity bound", bound.perplexity)
  if len(trained.history):
    run.row("training", "epochs", len(trained.history))
    seconds = float(np.median(trained.history[:, 2]))
    run.row("training", "seconds per epoch", seconds)


def open_run(
  directory: pathlib.Path, config: Config, *, from_flags: bool = False
) -> runlib.Run:
  """The run of a training: the same config find its directory again.

  Args:
    directory: of the run.
    config: of the run; a new ranking needs no new training, and more epochs
      go on with the last.
    from_flags: whether the configuration is that of the program's flags, which
      are then recorded as they are.
  """
  return runlib.Run(
    "nvse",
    directory=directory,
    config=None if from_flags else dataclasses.asdict(config),
    volatile=VOLATILE,
    extendable=("epochs",),
  )


def trained_model(
  run: runlib.Run, config: Config, table: features.FeatureTable
) -> tuple[autoencoder.Config, autoencoder.Params, autoencoder.Inputs]:
  """The model of an open run, trained and recorded where it is not yet.

  Args:
    run: the run.
    config: of the run.
    table: features of the entities.

  Returns:
    Configuration, parameters and statistics.
  """
  if run.finished and is_trained(run.directory):
    return load(run.directory, table.fingerprint)
  trained = train(run, config, table)
  record(run, trained)
  run.row("training", "peak memory, GB", memory.peak_bytes() / 1e9)
  picture = curve(trained.history, config.validation > 0)
  if picture is not None:
    run.plot("training", picture)
  return trained.config, trained.params, trained.inputs


def keep_rows(run: runlib.Run) -> None:
  """Adds the rows of a finished run again, since new ones replace them."""
  path = run.directory / "results.json"
  for row in json_files.read_json(path)["rows"]:
    run.row(row.pop("name"), row.pop("metric"), row.pop("value"), **row)


def run_training(
  directory: pathlib.Path, config: Config, table: features.FeatureTable
) -> tuple[autoencoder.Config, autoencoder.Params, autoencoder.Inputs]:
  """`trained_model` in a directory of its own."""
  with open_run(directory, config) as run:
    return trained_model(run, config, table)


def expander_of(
  config: Config, table: features.FeatureTable, model: expansion.Model
) -> expander.Expander:
  """A model with how the configuration ranks."""
  plain = config.setexpan_contexts == "features"
  return expander.Expander(
    table,
    model,
    config.ranking_config(),
    fusion=config.fusion,
    relative=config.relative,
    seed=config.seed,
    word2vecf_epochs=config.word2vecf_epochs,
    word2vecf_contexts=config.word2vecf_contexts,
    lsa_rank=config.lsa_rank,
    lsa_power=config.lsa_power,
    word2vecf_config=config.word2vecf_config(),
    setexpan_config=config.setexpan_config(),
    contexts=None if plain else lambda: data.contexts(config, table),
  )


def split(
  counts: sp.csr_array, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
  """Rows to train on and rows for validation; rows without features in none.

  Args:
    counts: [X, F].
    share: of the entities that are held out.
    seed: of the draw.

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


def _epoch(
  problem: fitting.Problem,
  config: Config,
  done: _Checkpoint,
  epoch: int,
  train_key: jax.Array,
  look_key: jax.Array,
  validation: sp.csr_array | None,
  mesh: Mesh | None,
  stopping: early_stopping.EarlyStopping,
) -> _Checkpoint:
  began = time.monotonic()
  state, info = fitting.epoch(
    problem,
    done.state,
    jax.random.fold_in(train_key, epoch),
    hyper=fitting.hyper_at(
      config.hyper(),
      epoch,
      config.epochs,
      warmup=config.warmup,
      decay=config.decay,
    ),
    batch_size=config.batch_size,
    samples=config.z_samples,
    mesh=mesh,
  )
  seconds = max(time.monotonic() - began, 1e-6)
  best, bound = done.best, 0.0
  if validation is not None:
    params = steps.parameters(problem.config, state)
    bound = fitting.bound(
      problem.config, problem.statistics.inputs, params, validation, look_key,
      samples=config.z_samples,
    ).elbo  # fmt: skip
    if stopping.update(epoch, bound):
      whole = sharding.on_host(params, problem.counts.shape[1])
      best = jax.tree.map(lambda x: np.array(x, copy=True), whole)
  history = done.history.copy()
  history[epoch] = float(info.loss), bound, seconds
  return _Checkpoint(state, best, stopping.state, history)


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
  # As the drawn ones: a sum over an entity's features has a spread of 1.
  per_entity = max(table.counts.nnz / table.counts.shape[0], 1.0)
  return array / np.float32(scale * np.sqrt(per_entity))


def curve(history: np.ndarray, held_out: bool) -> Any:
  """A picture of training; None where matplotlib is not installed.

  Args:
    history: as `Trained` has it, [epochs, 3].
    held_out: whether there were validation entities.
  """
  try:
    from matplotlib import figure
  except ImportError:
    return None
  picture = figure.Figure(figsize=(6, 3.5))
  axes = picture.subplots()
  epochs = np.arange(1, len(history) + 1)
  axes.plot(epochs, -history[:, 0], "o-", ms=3, label="training objective")
  if held_out:
    axes.plot(epochs, history[:, 1], "o-", ms=3, label="validation ELBO")
  axes.set(xlabel="epoch", ylabel="nats per entity")
  axes.grid(alpha=0.3)
  axes.legend()
  return picture

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
from experiments.nvse.config import Options
from experiments.run import expander, progress, runlib
from repr_jax.data import vectors as vector_files
from repr_jax.data.entities import features
from repr_jax.errors import InputError
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import autoencoder, fitting, model_files, sharding
from repr_jax.setexp import train as steps

_MODEL = "model"
_LOOK = 2_000  # Entities of the training set whose bound is measured.
_LOWEST = -1e30


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


class _Progress(NamedTuple):
  """What a checkpoint holds."""

  state: steps.State
  best: autoencoder.Params
  elbo: float
  idle: int
  history: np.ndarray


def train(
  run: runlib.Run,
  options: Options,
  table: features.FeatureTable,
  save_every: int = 0,
) -> Trained:
  """Trains, or goes on where the run stopped, and keeps the model.

  Args:
    run: open; its directory gets checkpoints, the log and `model/`.
    options: of the run.
    table: features of the entities.
    save_every: epochs between checkpoints; 0 for about ten in all.

  Returns:
    The best model by validation, or the last without.
  """
  config = options.config()
  chosen, held_out = split(table.counts, options.validation, options.seed)
  problem = fitting.prepare(config, table.counts[chosen])
  start, train_key, look_key = jax.random.split(jax.random.key(options.seed), 3)
  words = _word_vectors(options, table)
  params = autoencoder.init(config, start, problem.statistics, words)
  inputs, hyper = problem.statistics.inputs, options.hyper()
  mesh = meshes.make_mesh(options.mesh, sharding.AXES)
  state = steps.init_state(config, optax.adam, params, inputs)
  if mesh is not None:
    state = sharding.place_state(mesh, state, hyper.smoothing)
  done = _Progress(
    state,
    jax.tree.map(np.array, params),
    _LOWEST,
    0,
    np.zeros((options.epochs, 3), np.float32),
  )
  del params, state
  first, done = run.restore(done) or (-1, done)
  save_every = save_every or max(1, options.epochs // 10)
  validation = table.counts[held_out] if held_out.size else None
  for epoch in run.progress(range(first + 1, options.epochs), "epoch"):
    if done.idle >= options.patience:
      break
    done = _epoch(
      problem, options, done, epoch, train_key, look_key, validation, mesh
    )
    loss, bound, seconds = done.history[epoch].tolist()
    shown = {"loss": loss, "seconds_of_epoch": seconds}
    if validation is not None:
      shown["validation_elbo"] = bound
    run.log(epoch, **shown)
    last = epoch + 1 == options.epochs or done.idle >= options.patience
    if last or (epoch + 1) % save_every == 0:
      run.save(epoch, done)
  best = done.best
  if validation is None:
    size = table.counts.shape[1]
    best = sharding.on_host(steps.parameters(config, done.state), size)
  bounds = {}
  for name, counts in (
    ("training", problem.counts[:_LOOK]),
    ("validation", validation),
  ):
    if counts is not None:
      bounds[name] = fitting.bound(
        config, inputs, best, counts, look_key, samples=5
      )
  history = done.history[done.history[:, 2] > 0]
  model_files.save(
    run.directory / _MODEL, config, best, inputs, table.fingerprint
  )
  expander.save_notes(
    run.directory,
    data.table_folder(options),
    options.ranking_config(),
    options.seed,
  )
  return Trained(config, best, inputs, history, bounds)


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


# What a trained model does not depend on.
_RANKING = (
  "store", "ranking", "normalize", "power", "member_share", "pooling",
  "word2vecf_epochs", "mesh",
)  # fmt: skip


def open_run(directory: pathlib.Path, options: Options) -> runlib.Run:
  """The run of a training: the same options find its directory again.

  Args:
    directory: of the run.
    options: of the run; a new ranking needs no new training.
  """
  return runlib.Run(
    "nvse",
    directory=directory,
    config=dataclasses.asdict(options),
    volatile=_RANKING,
  )


def run_training(
  directory: pathlib.Path, options: Options, table: features.FeatureTable
) -> tuple[autoencoder.Config, autoencoder.Params, autoencoder.Inputs]:
  """A training in a directory of its own, found again if it has finished.

  Args:
    directory: of the run.
    options: of the run.
    table: features of the entities.

  Returns:
    Configuration, parameters and statistics.
  """
  with open_run(directory, options) as run:
    if run.finished and is_trained(directory):
      return load(directory, table.fingerprint)
    trained = train(run, options, table)
    record(run, trained)
  return trained.config, trained.params, trained.inputs


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
  options: Options,
  done: _Progress,
  epoch: int,
  train_key: jax.Array,
  look_key: jax.Array,
  validation: sp.csr_array | None,
  mesh: Mesh | None,
) -> _Progress:
  began = time.monotonic()
  state, info = fitting.epoch(
    problem,
    done.state,
    jax.random.fold_in(train_key, epoch),
    hyper=options.hyper(),
    batch_size=options.batch_size,
    samples=options.z_samples,
    mesh=mesh,
  )
  seconds = max(time.monotonic() - began, 1e-6)
  best = fitting.Best(done.best, done.elbo, done.idle)
  bound = 0.0
  if validation is not None:
    params = steps.parameters(problem.config, state)
    found = fitting.bound(
      problem.config, problem.statistics.inputs, params, validation, look_key,
      samples=options.z_samples,
    )  # fmt: skip
    bound = found.elbo
    params = sharding.on_host(params, problem.counts.shape[1])
    best = fitting.keep_best(best, params, bound)
  history = done.history.copy()
  history[epoch] = float(info.loss), bound, seconds
  return _Progress(state, best.params, best.elbo, best.idle, history)


def _word_vectors(
  options: Options, table: features.FeatureTable
) -> np.ndarray | None:
  """The first layer from word vectors, random where a word has none."""
  if options.word_vectors is None:
    return None
  given = vector_files.read_vectors(options.word_vectors)
  width = given.array.shape[1]
  if width != options.hidden[0]:
    raise InputError(
      f"--word_vectors has vectors of {width} numbers, the first layer of "
      f"--hidden {options.hidden[0]}: set --hidden={width}"
    )
  places: dict[str, int] = {}
  for i, word in enumerate(given.words):
    places.setdefault(word.lower(), i)
  words = [feature.partition(":")[2] for feature in table.features]
  found = np.array([places.get(word, -1) for word in words])
  if (found < 0).all():
    raise InputError("has no word of the corpus", path=options.word_vectors)
  scale = float(given.array.std()) or 1.0
  rng = np.random.default_rng(options.seed)
  array = rng.normal(0, scale, (len(words), width)).astype(np.float32)
  array[found >= 0] = given.array[found[found >= 0]]
  progress.say(
    f"nvse: {(found >= 0).sum():,} of {len(words):,} features start at a "
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

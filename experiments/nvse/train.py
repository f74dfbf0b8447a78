"""Training: log, checkpoints, early stopping and the finished model."""

import dataclasses
import pathlib
import time
from typing import Any

import numpy as np

from experiments.nvse import data
from experiments.nvse.config import VOLATILE, Config
from experiments.nvse.learner import MODEL, Learner, Trained
from experiments.run import expander, memory, runlib
from repr_jax.data.entities import features
from repr_jax.data.io import json_files
from repr_jax.ops import mesh as meshes
from repr_jax.setexp import (
  autoencoder,
  expansion,
  fitting,
  model_files,
  sharding,
)


def train(
  run: runlib.Run,
  config: Config,
  table: features.FeatureTable,
  save_every: int = 0,
) -> Trained:
  """Trains or resumes, and saves the model.

  Args:
    run: open; its directory gets checkpoints, the log and `model/`.
    config: of the run.
    table: features of the entities.
    save_every: epochs between checkpoints; 0 for about ten in all.

  Returns:
    The best model by validation, or the last without.
  """
  mesh = meshes.make_mesh(config.mesh, sharding.AXES)
  learner = Learner(run, config, table, mesh=mesh, save_every=save_every)
  state = learner.state
  for epoch in run.progress(range(learner.start + 1, config.epochs), "epoch"):
    if learner.should_stop():
      break
    began = time.monotonic()
    state, info = fitting.epoch(
      learner.problem,
      state,
      learner.key(epoch),
      hyper=learner.hyper(epoch),
      batch_size=config.batch_size,
      samples=config.z_samples,
      mesh=mesh,
    )
    learner.after(epoch, state, [info], time.monotonic() - began)
  return learner.finish(state)


def open_run(
  directory: pathlib.Path, config: Config, *, from_flags: bool = False
) -> runlib.Run:
  """Opens the run of a training; an equal configuration resumes it.

  Args:
    directory: of the run.
    config: of the run. The ranking may change without new training, and the
      number of epochs may grow.
    from_flags: whether the configuration comes from the program's flags,
      which are then recorded unchanged.
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
  """The model of an open run; trains and records it first if needed.

  Args:
    run: the run.
    config: of the run.
    table: features of the entities.

  Returns:
    Configuration, parameters and statistics.
  """
  kept = run.directory / MODEL
  if run.finished and (kept / "model.json").exists():
    return model_files.load(kept, table.fingerprint)
  trained = train(run, config, table)
  report(run, config, trained)
  return trained.config, trained.params, trained.inputs


def report(run: runlib.Run, config: Config, trained: Trained) -> None:
  """Rows and the plot of a training.

  Args:
    run: the run.
    config: of the run.
    trained: what it has trained.
  """
  for name, bound in trained.bounds.items():
    run.row(f"{name} entities", "sampled ELBO, nats", bound.elbo)
    run.row(f"{name} entities", "KL, nats", bound.kl)
    run.row(f"{name} entities", "perplexity bound", bound.perplexity)
  if len(trained.history):
    run.row("training", "epochs", len(trained.history))
    seconds = float(np.median(trained.history[:, 2]))
    run.row("training", "seconds per epoch", seconds)
  run.row("training", "peak memory, GB", memory.peak_bytes() / 1e9)
  picture = curve(trained.history, config.validation > 0)
  if picture is not None:
    run.plot("training", picture)


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
  config: Config,
  table: features.FeatureTable,
  model: expansion.Model,
  chances: dict[str, np.ndarray] | None = None,
) -> expander.Expander:
  """A model with the configuration's ranking and, if fitted, chances."""
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
    lsa_hubness=config.lsa_hubness,
    gcca_power=config.gcca_power,
    gcca_ridge=config.gcca_ridge,
    chances=chances or {},
    word2vecf_config=config.word2vecf_config(),
    setexpan_config=config.setexpan_config(),
    contexts=None if plain else lambda: data.skip_gram_contexts(config, table),
  )


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

"""Trains several autoencoders in one compiled program.

Runs differ in their seeds and in hyperparameters, which the program takes as
arrays. Runs with tables or batches of other shapes have a program each.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.nvse.config import Config
from experiments.nvse.learner import Learner, Trained
from experiments.run import expander, vmapped_runs, vmapped_training
from repr_jax.data.entities import features
from repr_jax.errors import InputError
from repr_jax.setexp import batches, fitting
from repr_jax.setexp import train as steps
from repr_jax.setexp.baselines import word2vecf


def train(
  group: vmapped_runs.Group,
  members: Mapping[int, tuple[Config, features.FeatureTable]],
) -> Iterator[tuple[int, Trained]]:
  """Trains the runs, one program for each shape of their arrays.

  Args:
    members: configuration and entities of each run, by its place.

  Yields:
    The place and the model of each run that did not fail.
  """
  learners: dict[int, Learner] = {}
  for i, (config, table) in members.items():
    learner = group.attempt(i, Learner, group.runs[i], config, table)
    if learner is not None:
      learners[i] = learner
  for places in vmapped_training.alike(
    {i: _form(learner) for i, learner in learners.items()}
  ):
    program = _train_alike(group, {i: learners[i] for i in places})
    for at, i in enumerate(places):
      trained = group.attempt(i, learners.pop(i).finish, program.state(at))
      if trained is not None:
        yield i, trained


def vectors(
  members: Mapping[int, tuple[Config, features.FeatureTable]],
) -> dict[int, word2vecf.Model]:
  """Word2vecf of runs that ask for it; runs that are alike share a program.

  Args:
    members: configuration and entities of each run, by its place.

  Returns:
    Models by place. A run whose training fails is not among them: it fails
    again, with its message, when it asks for the model.
  """
  groups: dict[Any, list[int]] = {}
  for i, (config, table) in members.items():
    evaluated = config.mode != "train" and "word2vecf" in config.systems
    if config.mode == "export" or evaluated:
      static = word2vecf.common(config.word2vecf_config())
      own = (config.word2vecf_epochs, config.word2vecf_contexts, id(table))
      groups.setdefault((static, *own), []).append(i)
  made = {}
  for places in groups.values():
    every = [members[i][0] for i in places]
    table = members[places[0]][1]
    try:
      models = word2vecf.fit_runs(
        expander.word2vecf_counts(table, every[0].word2vecf_contexts),
        [config.word2vecf_config() for config in every],
        [config.seed for config in every],
        epochs=every[0].word2vecf_epochs,
        mesh=vmapped_runs.mesh(len(every)),
      )
    except InputError:
      continue
    for i, model in zip(places, models):
      if np.isfinite(model.entities).all():
        made[i] = model
  return made


def _form(learner: Learner) -> Any:
  """Everything that runs of one program have in common."""
  config = learner.config
  return (
    _static(learner),
    learner.state,
    learner.problem.counts.shape,
    config.batch_size,
    config.z_samples,
  )


def _static(learner: Learner) -> Any:
  # The prior variance is one of the traced hyperparameters.
  return dataclasses.replace(learner.problem.config, prior_variance=1.0)


def _train_alike(
  group: vmapped_runs.Group, learners: Mapping[int, Learner]
) -> vmapped_training.Program:
  """Trains runs of one form; the program with their last states."""
  every = list(learners.values())
  first = every[0]
  static, size = _static(first), first.problem.counts.shape[1]
  hypers = [learner.config.hyper() for learner in every]
  # If one run uses smoothing or dropout, runs without it use the value 0.
  smooths = any(hyper.smoothing is not None for hyper in hypers)
  drops = any(hyper.dropout is not None for hyper in hypers)

  def step(inputs: Any, state: Any, arguments: Any) -> tuple[Any, Any]:
    del inputs
    return steps.run_steps(static, optax.adam, state, *arguments)

  def hyper_of(learner: Learner, epoch: int) -> steps.Hyper:
    hyper = learner.hyper(epoch)
    return hyper._replace(
      smoothing=(hyper.smoothing or 0.0) if smooths else None,
      dropout=(hyper.dropout or 0.0) if drops else None,
      prior_variance=learner.config.prior_variance,
    )

  def feed(epoch: int, active: list[bool]) -> Iterator[Any]:
    hyper = jax.tree.map(
      lambda *x: np.array(x, np.float32), *(hyper_of(x, epoch) for x in every)
    )
    # Runs that are not active are given what the first active one has.
    row = np.maximum(np.cumsum(active) - 1, 0) * np.array(active)
    chunks = [
      fitting.chunks(
        learner.problem,
        learner.key(epoch),
        learner.config.batch_size,
        learner.config.z_samples,
        dropout=drops,
      )
      for learner, on in zip(every, active)
      if on
    ]
    for parts in zip(*chunks, strict=True):
      packed, noise, keys = zip(*(parts[i] for i in row))
      yield (
        batches.stack(packed, size),
        jnp.stack(noise),
        hyper,
        jnp.stack(keys) if drops else None,
      )

  program = vmapped_training.Program(
    step,
    [learner.state for learner in every],
    # The products of one run fill a core; on other devices they do not.
    one_by_one=jax.default_backend() == "cpu",
  )
  for learner in every:
    learner.state = None
  vmapped_training.train(group, learners, program, feed)
  return program

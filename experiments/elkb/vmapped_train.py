"""Trains several runs of the knowledge base in one compiled program.

Vmaps the epoch over the runs. The state of each run has its own step size and
penalty.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.elkb import data
from experiments.elkb import train as kb_train
from experiments.run import vmapped_runs, vmapped_training
from repr_jax.kb import scores


class Member(NamedTuple):
  """A run of the group: its knowledge base and its model."""

  kb: data.KnowledgeBase
  training: kb_train.Training


def train(
  group: vmapped_runs.Group, members: Mapping[int, Member]
) -> dict[int, scores.Params]:
  """Trains the runs, one program for each shape of their arrays.

  Args:
    members: knowledge base and model of each run, by the run's index.

  Returns:
    The best tables of each run that did not fail, by the run's index.
  """
  trees = {
    i: (x.training.inputs, x.training.state, kb_train.extras(x.training.config))
    for i, x in members.items()
  }
  best: dict[int, scores.Params] = {}
  for places in vmapped_training.alike(trees):
    learners = {}
    for i in places:
      kb, training = members[i]
      learner = group.attempt(
        i, kb_train.Validation, group.runs[i], kb, training
      )
      if learner is not None:
        learners[i] = learner
    if learners:
      _train_alike(group, {i: members[i] for i in learners}, learners)
    best |= {i: learners[i].best() for i in learners if i in group.active()}
  return best


def _train_alike(
  group: vmapped_runs.Group,
  members: Mapping[int, Member],
  learners: Mapping[int, kb_train.Validation],
) -> None:
  """Trains runs whose arrays have the same shapes."""
  first, *others = members.values()
  inputs: Any = first.training.inputs
  own = any(member.kb is not first.kb for member in others)
  if own:
    inputs = [member.training.inputs for member in members.values()]
  states = [learner.state for learner in learners.values()]
  program = vmapped_training.Program(
    first.training.pure, states, inputs, own_inputs=own
  )
  keys = jnp.stack([learner.key for learner in learners.values()])

  def feed(epoch: int, active: list[bool]) -> Iterator[jax.Array]:
    del active
    yield _fold_in(keys, np.int32(epoch))

  vmapped_training.train(group, learners, program, feed)


_fold_in = jax.jit(jax.vmap(jax.random.fold_in, (0, None)))

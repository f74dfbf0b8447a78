"""Trains several runs of the knowledge base in one compiled program.

The epoch of one run is vmapped over runs, whose states have a step size and a
penalty each, and the runs are spread over the devices. Every run validates,
logs, stops and checkpoints by itself, exactly as it would alone.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from experiments.elkb import data
from experiments.elkb import train as kb_train
from experiments.run import progress, vmapped_runs
from repr_jax.kb import scores
from repr_jax.ops import mesh as meshes


class Member(NamedTuple):
  """A run of the group: its knowledge base and its model."""

  kb: data.KnowledgeBase
  training: kb_train.Training


def train(
  group: vmapped_runs.Group, members: Mapping[int, Member]
) -> dict[int, scores.Params]:
  """Trains the runs, one program for each shape of their arrays.

  Args:
    group: the runs.
    members: what to train, by the place of its run.

  Returns:
    The best tables of each run that did not fail, by place.
  """
  shapes: dict[Any, list[int]] = {}
  for i, (_, training) in members.items():
    arrays = jax.tree.map(jnp.shape, (training.inputs, training.state))
    key = jax.tree.structure(training.state), str(arrays)
    shapes.setdefault(key, []).append(i)
  best: dict[int, scores.Params] = {}
  for places in shapes.values():
    validations = {}
    for i in places:
      kb, training = members[i]
      validation = group.attempt(
        i, kb_train.Validation, group.runs[i], kb, training
      )
      if validation is not None:
        validations[i] = validation
    _train_alike(group, {i: members[i] for i in validations}, validations)
    best |= {
      i: validations[i].best() for i in validations if i in group.active()
    }
  return best


def _train_alike(
  group: vmapped_runs.Group,
  members: Mapping[int, Member],
  validations: Mapping[int, kb_train.Validation],
) -> None:
  """Trains runs whose arrays have the same shapes."""
  if not validations:
    return
  places = list(validations)
  program = _Program([members[i] for i in places], list(validations.values()))
  first = min(validation.start for validation in validations.values()) + 1
  last = members[places[0]].training.config.epochs
  name = f"epoch of {len(places)} runs"
  for epoch in progress.track(range(first, last), name):
    alive = group.active()
    # A run whose checkpoint is ahead of the others' waits for them.
    active = [
      i in alive
      and epoch > validations[i].start
      and not validations[i].stopping.should_stop
      for i in places
    ]
    waiting = [i in alive and epoch <= validations[i].start for i in places]
    if not any(active) and not any(waiting):
      break
    losses = program.step(epoch, active)
    due = validations[places[0]].is_due(epoch)
    states = program.states() if due else [None] * len(places)
    for i, on, state, loss in zip(places, active, states, losses):
      if on:
        group.attempt(i, validations[i].after, epoch, state, float(loss))


class _Program:
  """The runs' states on the devices, and the step that moves them on."""

  def __init__(
    self, members: list[Member], validations: list[kb_train.Validation]
  ) -> None:
    devices = jax.devices()[: len(members)]
    self._count = len(members)
    # The last run stands in for those that would fill the last device.
    padding = -len(members) % len(devices)
    members = members + members[-1:] * padding
    validations = validations + validations[-1:] * padding
    inputs = [member.training.inputs for member in members]
    shared = all(member.kb is members[0].kb for member in members)
    mesh = Mesh(np.array(devices), ("runs",)) if len(devices) > 1 else None
    # Laid out at once as they leave a step, so that the next one finds what
    # it was compiled for.
    place = functools.partial(_place, mesh)
    self._inputs = (
      place(inputs[0], False) if shared else place(_stack(inputs), True)
    )
    self._states = place(_stack([x.state for x in validations]), True)
    self._keys = place(jnp.stack([x.key for x in validations]), True)
    self._padding = [False] * padding
    self._mesh = mesh
    self._step = _compiled(members[0].training.pure, shared, mesh)

  def step(self, epoch: int, active: list[bool]) -> np.ndarray:
    """One epoch of the active runs; the mean loss of each, [runs]."""
    keys = _fold_in(self._keys, np.int32(epoch))
    mask = _place(self._mesh, np.array(active + self._padding), True)
    self._states, losses = self._step(self._inputs, self._states, keys, mask)
    return np.asarray(losses)[: self._count]

  def states(self) -> list[Any]:
    """The states of the runs, on the host."""
    host = jax.device_get(self._states)
    return [jax.tree.map(lambda x, i=i: x[i], host) for i in range(self._count)]


_fold_in = jax.jit(jax.vmap(jax.random.fold_in, (0, None)))


def _stack(trees: list[Any]) -> Any:
  return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _place(mesh: Mesh | None, tree: Any, cut: bool) -> Any:
  """Arrays on the devices, cut along their first axis or whole on each."""
  if mesh is None:
    return jax.tree.map(jnp.asarray, tree)
  spec = PartitionSpec("runs") if cut else PartitionSpec()
  return jax.device_put(tree, NamedSharding(mesh, spec))


def _compiled(pure: Callable, shared: bool, mesh: Mesh | None) -> Callable:
  """An epoch of all runs; those that are not active stay as they are."""
  many = jax.vmap(pure, (None if shared else 0, 0, 0))

  def step(inputs, states, keys, active):
    moved, losses = many(inputs, states, keys)

    def pick(new, old):
      mask = active.reshape(-1, *[1] * (new.ndim - 1))
      return jnp.where(mask, new, old)

    return jax.tree.map(pick, moved, states), losses

  if mesh is not None:
    runs, whole = PartitionSpec("runs"), PartitionSpec()
    specs = (whole if shared else runs, runs, runs, runs)
    step = meshes.shard_map(step, mesh, specs, (runs, runs))
  return jax.jit(step, donate_argnums=1)

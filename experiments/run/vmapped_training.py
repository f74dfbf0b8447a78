"""The training loop of a group: many runs, one compiled program.

A step of one run, `step(inputs, state, arguments) -> (state, outputs)`, is
mapped over the runs of the group and spread over the devices. Every run logs,
validates, stops and checkpoints by itself, exactly as it would alone.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from experiments.run import progress, vmapped_runs
from repr_jax.ops import mesh as meshes

Step = Callable[[Any, Any, Any], tuple[Any, Any]]


class Learner(Protocol):
  """One run of a group, as the loop sees it.

  Attributes:
    start: the last epoch that a checkpoint has seen, -1 where there is none.
    epochs: passes at most.
    state: arrays that training goes on from.
  """

  start: int
  epochs: int
  state: Any

  def should_stop(self) -> bool:
    """Whether training has ended early."""
    ...

  def needs_state(self, epoch: int) -> bool:
    """Whether `after` reads the state of an epoch."""
    ...

  def after(
    self, epoch: int, state: Any, outputs: list[Any], seconds: float
  ) -> None:
    """Logs an epoch, validates and checkpoints.

    Args:
      epoch: from 0.
      state: after it, on the host; None where it is not needed.
      outputs: of each call of the step, on the host.
      seconds: the run's share of the epoch's time.
    """
    ...


def alike(trees: Mapping[int, Any]) -> list[list[int]]:
  """Groups runs by the structure and the shapes of their arrays.

  Args:
    trees: of each run by its place; leaves that are not arrays must be equal.

  Returns:
    Places of the runs of each group.
  """
  groups: dict[Any, list[int]] = {}
  for place, tree in trees.items():
    leaves, structure = jax.tree.flatten(tree)
    forms = [
      f"{x.dtype}{x.shape}" if hasattr(x, "dtype") else repr(x) for x in leaves
    ]
    groups.setdefault((structure, *forms), []).append(place)
  return list(groups.values())


def train(
  group: vmapped_runs.Group,
  learners: Mapping[int, Learner],
  program: "Program",
  feed: Callable[[int, list[bool]], Iterator[Any]],
) -> None:
  """Trains runs whose arrays have the same shapes; see `Program.state`.

  Args:
    learners: the runs to train, by their place in the group, in the order of
      the program's states.
    feed: from an epoch and a mask of active runs to the arguments of each call
      of the step, trees of arrays with a leading axis of runs. Arguments of
      inactive runs are not used.
  """
  places = list(learners)
  first = min(learner.start for learner in learners.values()) + 1
  last = max(learner.epochs for learner in learners.values())
  name = f"epoch of {len(places)} runs"
  for epoch in progress.track(range(first, last), name):
    left = [
      i in group.active()
      and epoch < learners[i].epochs
      and not learners[i].should_stop()
      for i in places
    ]
    if not any(left):
      break
    # A run whose checkpoint is ahead of the others' waits for them.
    active = [on and epoch > learners[i].start for i, on in zip(places, left)]
    if not any(active):
      continue
    began = time.monotonic()
    outputs = [program.run(x, active) for x in feed(epoch, active)]
    on_host = [jax.device_get(x) for x in outputs]
    seconds = (time.monotonic() - began) / sum(active)
    for at, i in enumerate(places):
      if active[at]:
        own = [jax.tree.map(lambda x, at=at: x[at], y) for y in on_host]
        wanted = learners[i].needs_state(epoch)
        state = program.state(at) if wanted else None
        group.attempt(i, learners[i].after, epoch, state, own, seconds)


class Program:
  """The runs' states on the devices, and the step that updates them."""

  def __init__(
    self,
    step: Step,
    states: Sequence[Any],
    inputs: Any = (),
    *,
    own_inputs: bool = False,
    one_by_one: bool = False,
  ) -> None:
    """Stacks the states and spreads them over the devices.

    Args:
      step: from inputs, state and arguments of one run to its next state and
        outputs; pure.
      states: of the runs, with the same shapes.
      inputs: arrays that no step changes.
      own_inputs: whether `inputs` is a list, an item for each run.
      one_by_one: runs of one device take turns inside the program, and those
        that are not active cost nothing. For steps whose products fill a core
        by themselves; otherwise the step is vmapped.
    """
    self._count = len(states)
    self._mesh = vmapped_runs.mesh(len(states))
    # Copies of the last run fill up the last device.
    self._more = 0 if self._mesh is None else -len(states) % self._mesh.size
    # Sharded as a step returns them, so that the second step does not compile
    # again.
    self._inputs = (
      self._place(self._stack(inputs), True)
      if own_inputs
      else self._place(inputs, False)
    )
    self._states = self._place(self._stack(states), True)
    self._step = _compiled(step, own_inputs, one_by_one, self._mesh)

  def run(self, arguments: Any, active: Sequence[bool]) -> Any:
    """One call of the step of the active runs.

    Args:
      arguments: with a leading axis of runs.
      active: whether each run takes the step; others stay as they are.

    Returns:
      The outputs with a leading axis of runs, on the devices.
    """
    mask = np.array([*active, *[False] * self._more])
    arguments = jax.tree.map(self._filled, arguments)
    self._states, outputs = self._step(
      self._inputs, self._states, self._place((arguments, mask), True)
    )
    return outputs

  def state(self, index: int) -> Any:
    """The state of one run, copied to the host."""
    shards = self._mesh.size if self._mesh is not None else 1
    device, row = divmod(index, (self._count + self._more) // shards)
    part = jax.tree.map(lambda x: x.addressable_data(device), self._states)
    return jax.tree.map(np.array, _row(part, np.int32(row)))

  def _filled(self, leaf: Any) -> Any:
    if not self._more:
      return leaf
    return jnp.concatenate([leaf, *[leaf[-1:]] * self._more])

  def _stack(self, trees: Sequence[Any]) -> Any:
    filled = [*trees, *[trees[-1]] * self._more]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *filled)

  def _place(self, tree: Any, cut: bool) -> Any:
    """Arrays on the devices, cut along their first axis or whole on each."""
    if self._mesh is None:
      return jax.device_put(tree)
    spec = PartitionSpec("runs") if cut else PartitionSpec()
    return jax.device_put(tree, NamedSharding(self._mesh, spec))


@jax.jit
def _row(tree, row):
  return jax.tree.map(lambda x: x[row], tree)


def _compiled(
  step: Step, own_inputs: bool, one_by_one: bool, mesh: Mesh | None
) -> Callable:
  """A step of all runs; those that are not active stay as they are."""

  def vmapped(inputs, states, given):
    arguments, active = given
    many = jax.vmap(step, (0 if own_inputs else None, 0, 0))
    moved, outputs = many(inputs, states, arguments)

    def pick(new, old):
      mask = active.reshape(-1, *[1] * (new.ndim - 1))
      return jnp.where(mask, new, old)

    return jax.tree.map(pick, moved, states), outputs

  def in_turn(inputs, states, given):
    def one(item):
      own, state, (arguments, on) = item
      used = own if own_inputs else inputs
      form = jax.eval_shape(step, used, state, arguments)[1]
      nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), form)
      return lax.cond(
        on, lambda: step(used, state, arguments), lambda: (state, nothing)
      )

    return lax.map(one, (inputs if own_inputs else None, states, given))

  function = in_turn if one_by_one else vmapped
  if mesh is not None:
    runs, whole = PartitionSpec("runs"), PartitionSpec()
    specs = (runs if own_inputs else whole, runs, runs)
    function = meshes.shard_map(function, mesh, specs, (runs, runs))
  return jax.jit(function, donate_argnums=1)

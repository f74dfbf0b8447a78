"""Several runs of an experiment in one program.

An experiment that supports this lists the flags in which such runs may differ,
`VMAP_OVER = ("seed", ...)`. It also defines `run_vmapped(members)`, which
executes the `Member`s and returns for each its error or None. The program's
flags are those that the members share. Each work directory gets the files of a
single run. Trainings share the loop of `vmapped_training`.
"""

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from experiments.run import progress, runlib

if TYPE_CHECKING:
  from jax.sharding import Mesh

T = TypeVar("T")


class Member(NamedTuple):
  """A run of the group: its work directory and all its flags by name."""

  directory: pathlib.Path
  flags: Mapping[str, Any]


class Group:
  """The runs of a group in their work directories; a context manager.

  An error in one run ends only that run.

  Attributes:
    members: the runs, as they were given.
    runs: their directories, open.
    failures: the error that ended each run, or None.
  """

  def __init__(
    self,
    experiment: str,
    members: Sequence[Member],
    volatile: Sequence[str] = (),
    extendable: Sequence[str] = (),
  ):
    """Names the runs; nothing is touched before the `with` block.

    Args:
      volatile: as for `runlib.Run`.
      extendable: as for `runlib.Run`.
    """
    self.members = list(members)
    self.failures: list[str | None] = [None for _ in members]
    self.runs = [
      runlib.Run(
        experiment,
        directory=x.directory,
        config=x.flags,
        volatile=volatile,
        extendable=extendable,
      )
      for x in members
    ]
    self._open: set[int] = set()

  def __enter__(self) -> "Group":
    for index, run in enumerate(self.runs):
      self._open.add(index)
      self.attempt(index, run.__enter__)
      if index in self._open and run.finished:
        self.finish(index)
    return self

  def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
    for index in self.active():
      self._open.discard(index)
      self.runs[index].__exit__(kind, error, trace)

  def active(self) -> list[int]:
    """Places of the runs that have neither ended nor failed."""
    return sorted(self._open)

  def attempt(
    self, index: int, function: Callable[..., T], *arguments: Any
  ) -> T | None:
    """Calls a function for one run; an error ends that run.

    Args:
      index: place of the run.

    Returns:
      The function's result; None where the run has failed, now or before.
    """
    if index not in self._open:
      return None
    try:
      return function(*arguments)
    except Exception as error:
      name = "" if _speaks(error) else f"{type(error).__name__}: "
      self.failures[index] = f"{name}{error}"
      progress.say(f"error: {self.members[index].directory}: {name}{error}")
      self._open.discard(index)
      self.runs[index].__exit__(type(error), error, error.__traceback__)
      return None

  def prepare(self, function: Callable[[Mapping[str, Any]], T]) -> dict[int, T]:
    """Calls a function with the flags of each run that is active.

    Returns:
      Its results by place, without the runs that have failed.
    """
    ready = {
      i: self.attempt(i, function, self.members[i].flags) for i in self.active()
    }
    return {i: made for i, made in ready.items() if made is not None}

  def finish(self, index: int) -> None:
    """Ends a run: writes its results and leaves its directory."""

    def write():
      self.runs[index].__exit__(None, None, None)

    self.attempt(index, write)
    self._open.discard(index)


def mesh(count: int) -> "Mesh | None":
  """The devices that runs are spread over, as the axis "runs".

  Returns:
    The mesh; None where there is one device, or one run.
  """
  import jax
  from jax.sharding import Mesh

  devices = np.array(jax.devices()[:count])
  return Mesh(devices, ("runs",)) if len(devices) > 1 else None


def cores() -> int:
  """Processors that this process may use."""
  if hasattr(os, "sched_getaffinity"):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def _speaks(error: Exception) -> bool:
  """Whether an error's message suffices without the error's type."""
  return isinstance(error, (ValueError, OSError, runlib.NonFiniteError))

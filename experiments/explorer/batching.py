"""Batches of requests: one thread computes, one call answers many.

When the thread is free, all waiting requests of one kind go into one call. A
lone request never waits for others; under load the batches grow.
"""

import asyncio
import collections
import sys
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

# One thread reads requests, another computes. With Python's default interval
# of 5 ms each waits for the other a sixth of the time.
_SWITCH_SECONDS = 0.0005


class Busy(Exception):
  """Too many requests wait already."""


class Job(NamedTuple):
  """One request.

  Attributes:
    kind: jobs of equal kinds may share a call; None for one of its own.
    run: from the arguments of several jobs to their answers, in order.
    argument: of this job.
  """

  kind: Hashable
  run: Callable[[Sequence[Any]], Sequence[Any]]
  argument: Any


class Counts(NamedTuple):
  """Requests, calls, requests in the largest call, and refused requests."""

  requests: int
  calls: int
  largest: int
  refused: int


class Batcher:
  """A thread that answers jobs; `submit` from an event loop."""

  def __init__(self, max_batch: int = 32, max_waiting: int = 512):
    """Starts the thread.

    Args:
      max_batch: jobs in one call at most.
      max_waiting: jobs that may wait; more are refused.
    """
    self._max_batch = max_batch
    self._max_waiting = max_waiting
    self._jobs: collections.deque[tuple[Job, asyncio.Future]] = (
      collections.deque()
    )
    self._changed = threading.Condition()
    self._closed = False
    self.counts = Counts(0, 0, 0, 0)
    sys.setswitchinterval(_SWITCH_SECONDS)  # of the whole process
    self._thread = threading.Thread(
      target=self._work, name="explorer", daemon=True
    )
    self._thread.start()

  async def submit(self, job: Job) -> Any:
    """Waits for the answer of a job; its error is raised here.

    Args:
      job: the job.

    Raises:
      Busy: too many jobs wait.
    """
    future = asyncio.get_running_loop().create_future()
    with self._changed:
      if self._closed or len(self._jobs) >= self._max_waiting:
        self.counts = self.counts._replace(refused=self.counts.refused + 1)
        raise Busy
      self._jobs.append((job, future))
      self._changed.notify()
    return await future

  def close(self) -> None:
    """Ends the thread after its current call."""
    with self._changed:
      self._closed = True
      self._changed.notify()
    self._thread.join()

  def _take(self) -> list[tuple[Job, asyncio.Future]]:
    """The first job and those that wait and are of its kind."""
    with self._changed:
      self._changed.wait_for(lambda: self._jobs or self._closed)
      if self._closed:
        return []
      first = self._jobs.popleft()
      taken = [first]
      kept: list[tuple[Job, asyncio.Future]] = []
      if first[0].kind is not None:
        while self._jobs and len(taken) < self._max_batch:
          job = self._jobs.popleft()
          (taken if job[0].kind == first[0].kind else kept).append(job)
        self._jobs.extendleft(reversed(kept))
      old = self.counts
      self.counts = Counts(
        old.requests + len(taken),
        old.calls + 1,
        max(old.largest, len(taken)),
        old.refused,
      )
      return taken

  def _work(self) -> None:
    while True:
      taken = self._take()
      if not taken:
        return
      # Jobs of clients that left need no answer.
      taken = [pair for pair in taken if not pair[1].cancelled()]
      if not taken:
        continue
      error: Exception | None = None
      answers: Sequence[Any] = []
      try:
        answers = taken[0][0].run([job.argument for job, _ in taken])
      except Exception as caught:
        error = caught
      futures = [future for _, future in taken]
      loop = futures[0].get_loop()
      if not loop.is_closed():
        loop.call_soon_threadsafe(_deliver, futures, answers, error)


def _deliver(
  futures: Sequence[asyncio.Future],
  answers: Sequence[Any],
  error: Exception | None,
) -> None:
  for place, future in enumerate(futures):
    if future.done():
      continue
    if error is None:
      future.set_result(answers[place])
    else:
      future.set_exception(error)

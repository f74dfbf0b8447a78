"""Runs the jobs of a sweep through an executor."""

import pathlib
import time
from typing import Any, NamedTuple

from launch import board, child, executors, plan, vmapped_group

_STOP_SECONDS = 30.0


class _Running(NamedTuple):
  """A job at work."""

  job: plan.Job
  command: child.Command
  handle: Any
  began: float


class Failure(NamedTuple):
  """A run that did not reach its end, and why."""

  run: plan.Run
  reason: str
  log: pathlib.Path


class Sweep:
  """A running sweep: its jobs in an executor.

  Attributes:
    failures: runs that have failed.
  """

  def __init__(
    self,
    sweep: plan.Plan,
    executor: executors.Executor,
    limit: int,
    best: board.Best,
    shown: board.Board,
  ):
    """Counts the runs that have finished before.

    Args:
      executor: where they run.
      limit: jobs at a time.
    """
    self.failures: list[Failure] = []
    self._plan, self._executor, self._limit = sweep, executor, limit
    self._best, self._board = best, shown
    self._running: list[_Running] = []
    finished = [run for run in sweep.runs if run.finished]
    self._done = len(finished)
    for run in finished:
      best.add(run.name, run.directory)
    (sweep.root / "logs").mkdir(parents=True, exist_ok=True)

  def execute(self, jobs: list[plan.Job]) -> None:
    """Runs the jobs, `limit` at a time; an interrupt stops them."""
    waiting = list(jobs)
    # Jobs of a sweep that was killed end by themselves, within a second.
    self._until_free([run for job in jobs for run in job.runs])
    try:
      while waiting or self._running:
        while waiting and len(self._running) < self._limit:
          self._start(waiting.pop(0))
        handles = [x.handle for x in self._running]
        for over, one in zip(
          self._executor.ended(handles), list(self._running)
        ):
          if over:
            self._running.remove(one)
            self._end(one)
        self._draw(waiting)
        time.sleep(self._executor.interval)
    except BaseException:
      self._stop()
      raise

  def _draw(self, waiting: list[plan.Job]) -> None:
    lines = [(x.job.name, x.began, x.command.log) for x in self._running]
    self._board.draw(self._counts(waiting), self._best.text, lines)

  def _counts(self, waiting: list[plan.Job]) -> board.Counts:
    running = sum(len(x.job.runs) for x in self._running)
    left = sum(len(job.runs) for job in waiting)
    return board.Counts(self._done, running, len(self.failures), left)

  def _start(self, job: plan.Job) -> None:
    name = job.name.rpartition(" ")[2] if len(job.runs) > 1 else job.name
    folder = (self._plan.root / "logs").absolute()
    log, status = folder / f"{name}.txt", folder / f"{name}.code"
    status.unlink(missing_ok=True)
    if len(job.runs) > 1:
      _group_status(job).unlink(missing_ok=True)
    one = child.Command(job.arguments, log, status)
    handle = self._executor.submit(one)
    self._running.append(_Running(job, one, handle, time.monotonic()))
    self._board.say(f"started  {job.name}")

  def _end(self, one: _Running) -> None:
    code = executors.exit_code(one.command)
    told: dict[str, str | None] = {}
    if len(one.job.runs) > 1:
      told = plan.read_json(_group_status(one.job)) or {}
    for run in one.job.runs:
      has = (run.directory / "results.json").exists()
      if has and (code == 0 or len(one.job.runs) > 1):
        self._done += 1
        plan.note_finished(self._plan.root, run)
        figure = self._best.add(run.name, run.directory)
        self._board.say(f"done     {run.name}  {figure}".rstrip())
        continue
      reason = told.get(str(run.directory)) or _reason(code)
      self.failures.append(Failure(run, reason, one.command.log))
      self._board.say(f"failed   {run.name}  {reason}")

  def _stop(self) -> None:
    """Interrupts what runs, and waits until the directories are free."""
    if not self._running:
      return
    self._board.say("stopping; the same command goes on from here")
    self._executor.stop([x.handle for x in self._running])
    self._until_free([run for x in self._running for run in x.job.runs])

  def _until_free(self, runs: list[plan.Run]) -> None:
    """Waits for processes that use work directories, up to a time."""
    until = time.monotonic() + _STOP_SECONDS
    while held := {h for x in runs if (h := plan.holder(x.directory))}:
      if time.monotonic() > until:
        self._board.say(f"still at work: processes {', '.join(sorted(held))}")
        return
      time.sleep(0.1)


def _group_status(job: plan.Job) -> pathlib.Path:
  group = job.arguments[-1].partition("=")[2]
  return vmapped_group.status_path(pathlib.Path(group))


def _reason(code: int | None) -> str:
  if code is None:
    return "was ended from outside"
  if code < 0:
    return f"was ended by signal {-code}"
  return "left no results" if code == 0 else f"exit code {code}"

"""Where runs are executed: processes of this machine, or SLURM, by submitit."""

import contextlib
import fcntl
import logging
import os
import pathlib
import secrets
import shutil
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from launch import child
from repr_jax import errors

# submitit ends local jobs after a time; ours end by themselves.
_LOCAL_MINUTES = 60 * 24 * 365
# A job that the queue does not know has ended; its file may come later.
_GONE_SECONDS = 10.0


class Executor(Protocol):
  """Starts commands and tells when they have ended."""

  interval: float

  def submit(self, job: child.Command) -> Any:
    """Starts a command; returns a handle."""

  def ended(self, handles: Sequence[Any]) -> list[bool]:
    """Which commands have ended."""

  def stop(self, handles: Sequence[Any]) -> None:
    """Asks commands to stop; their runs can be resumed."""


def exit_code(job: child.Command) -> int | None:
  """Exit code of a command; None if it was killed from outside."""
  with contextlib.suppress(OSError, ValueError):
    return int(job.status.read_text())
  return None


def _submitit() -> Any:
  try:
    import submitit
  except ImportError as error:
    raise errors.InputError(
      "the executor needs submitit: pip install 'repr_jax[launch]', or use "
      "--executor=print"
    ) from error
  logging.getLogger("submitit").setLevel(logging.ERROR)
  return submitit


class Local:
  """Processes of this machine."""

  interval = 0.2

  def __init__(self, folder: pathlib.Path, gpus: Sequence[str] = ()):
    """Prepares the executor.

    Args:
      folder: for submitit's files.
      gpus: ids of GPUs; each run gets one. Without ids each run sees all GPUs.
    """
    submitit = _submitit()
    self._executor = submitit.LocalExecutor(folder=folder)
    self._executor.update_parameters(timeout_min=_LOCAL_MINUTES)
    self._free = list(gpus)
    self._dealt: dict[str, str] = {}
    # Jobs end when the kernel releases this lock, however this process ends.
    self._path = folder.absolute() / f"owner-{secrets.token_hex(8)}"
    self._path.parent.mkdir(parents=True, exist_ok=True)
    self._owner = open(self._path, "w")  # noqa: SIM115
    fcntl.flock(self._owner, fcntl.LOCK_EX)
    weakref.finalize(self, self._path.unlink, missing_ok=True)

  def submit(self, job: child.Command) -> Any:
    """Starts a command in processes of its own."""
    # submitit hides all GPUs from a local job that did not ask for any.
    shown = self._free.pop(0) if self._free else None
    job.environment["CUDA_VISIBLE_DEVICES"] = (
      os.environ.get("CUDA_VISIBLE_DEVICES") if shown is None else shown
    )
    job.owner = self._path
    handle = self._executor.submit(job)
    if shown is not None:
      self._dealt[handle.job_id] = shown
    return handle

  def ended(self, handles: Sequence[Any]) -> list[bool]:
    """Which processes have ended."""
    ended = [handle.done() for handle in handles]
    for handle, over in zip(handles, ended):
      if over and handle.job_id in self._dealt:
        self._free.append(self._dealt.pop(handle.job_id))
    return ended

  def stop(self, handles: Sequence[Any]) -> None:
    """Interrupts processes, and waits until they are gone."""
    for handle in handles:
      handle.cancel(check=False)
    until = time.monotonic() + 10
    while time.monotonic() < until and not all(self.ended(handles)):
      time.sleep(0.05)


class Slurm:
  """Jobs of a SLURM cluster.

  States come from `squeue`, which every cluster has; `sacct` needs accounting.
  """

  interval = 1.0

  def __init__(self, folder: pathlib.Path, options: Mapping[str, Any]):
    """Prepares the executor.

    Args:
      folder: for submitit's files; on a disk that all nodes see.
      options: of sbatch, by submitit's names.
    """
    submitit = _submitit()
    if not shutil.which("sbatch") or not shutil.which("srun"):
      raise errors.InputError(
        "--executor=slurm: there is no sbatch here; run it on a node from "
        "which jobs are submitted, or use --executor=local"
      )
    try:
      self._executor = submitit.SlurmExecutor(folder=folder)
      self._executor.update_parameters(**options)
    except (RuntimeError, TypeError, ValueError) as error:
      first, *rest = str(error).splitlines()
      known = ", ".join(line.strip(" -").split()[0] for line in rest[1:])
      raise errors.InputError(
        f"--slurm: {first}" + (f"; there are {known}" if known else "")
      ) from None
    self._missing: dict[str, float] = {}

  def submit(self, job: child.Command) -> Any:
    """Submits a command by sbatch."""
    try:
      handle = self._executor.submit(job)
    except Exception as error:
      raise errors.InputError(f"sbatch failed: {error}") from error
    return handle, job

  def ended(self, handles: Sequence[Any]) -> list[bool]:
    """Which jobs have an exit code, or are no longer in the queue."""
    queued = self._queued()
    ended = []
    for handle, job in handles:
      name = handle.job_id
      if queued is None or name in queued:
        self._missing.pop(name, None)
      since = time.monotonic()
      if queued is not None and name not in queued:
        since = self._missing.setdefault(name, since)
      lost = time.monotonic() - since > _GONE_SECONDS
      ended.append(job.status.exists() or lost)
    return ended

  def _queued(self) -> set[str] | None:
    """Ids of this user's jobs in the queue, None where it does not answer."""
    asked = subprocess.run(
      ["squeue", "--noheader", "--me", "--format=%i"],
      capture_output=True,
      text=True,
    )
    return None if asked.returncode else set(asked.stdout.split())

  def stop(self, handles: Sequence[Any]) -> None:
    """Cancels jobs, and waits a while for the queue to drop them."""
    names = {handle.job_id for handle, _ in handles}
    if not names:
      return
    subprocess.run(["scancel", *sorted(names)], capture_output=True)
    until = time.monotonic() + 30
    while time.monotonic() < until and names & (self._queued() or set()):
      time.sleep(0.5)

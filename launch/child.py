"""A command as a job: what an executor's process runs.

Only the standard library is imported here, since every job loads this.
"""

import contextlib
import datetime
import fcntl
import os
import pathlib
import shlex
import signal
import subprocess
from typing import Any

_GRACE_SECONDS = 20.0
_POLL_SECONDS = 0.5
_PARENT = "REPR_JAX_PARENT"  # as `experiments.run.shutdown` has it


class Command:
  """A program with its arguments, its log and a file for its exit code.

  A call runs the program and waits. An interrupt also interrupts the program,
  which leaves a work directory that can be resumed.
  """

  def __init__(
    self, arguments: list[str], log: pathlib.Path, status: pathlib.Path
  ):
    """Describes the job; nothing is started.

    Args:
      log: file that its output is added to.
      status: file that gets its exit code.
    """
    self.arguments = arguments
    self.log = log
    self.status = status
    # Variables to set, or to remove where None.
    self.environment: dict[str, str | None] = {}
    # A file that a process of this machine holds locked: when that process
    # dies, the program is interrupted.
    self.owner: pathlib.Path | None = None

  def __call__(self) -> int:
    """Runs the program to its end and returns its exit code."""
    variables = {**os.environ, **self.environment}
    kept = {k: v for k, v in variables.items() if v is not None}
    with open(self.log, "a") as out:
      now = datetime.datetime.now().isoformat(" ", "seconds")
      out.write(f"[{now}] {shlex.join(self.arguments)}\n")
      out.flush()
      process = subprocess.Popen(
        self.arguments,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        env={**kept, _PARENT: str(os.getpid())},
        # Ctrl-C on the terminal reaches the program through us, once.
        start_new_session=True,
      )
      try:
        code = self._wait(process)
      except BaseException:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
          process.wait(_GRACE_SECONDS)
        process.kill()
        raise
    beside = self.status.with_suffix(".tmp")
    beside.write_text(f"{code}\n")
    beside.replace(self.status)
    return code

  def _wait(self, process: subprocess.Popen) -> int:
    while self.owner is not None:
      with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(_POLL_SECONDS)
      if _is_free(self.owner):
        self.owner.unlink(missing_ok=True)
        raise KeyboardInterrupt
    return process.wait()

  def checkpoint(self) -> Any:
    """The job to submit again when the cluster preempts the machine."""
    from submitit import helpers

    return helpers.DelayedSubmission(self)


def _is_free(path: pathlib.Path) -> bool:
  """Whether no process has the file locked."""
  try:
    with open(path, "rb") as file:
      fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
  except FileNotFoundError:
    return True
  except OSError:
    return False
  return True

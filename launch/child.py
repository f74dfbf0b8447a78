"""A command as a job: what an executor's process runs.

Only the standard library is imported here, since every job loads this.
"""

import contextlib
import datetime
import os
import pathlib
import shlex
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

_GRACE_SECONDS = 20.0


class Command:
  """A program with its arguments, its log and a file for its exit code.

  Called, it runs the program and waits. Interrupted, it interrupts the program
  too, which leaves a work directory that can be resumed.
  """

  def __init__(
    self,
    arguments: list[str],
    log: pathlib.Path,
    status: pathlib.Path,
    environment: Mapping[str, str | None] | None = None,
  ):
    """Describes the job; nothing is started.

    Args:
      arguments: the program and what it is called with.
      log: file that its output is added to.
      status: file that gets its exit code.
      environment: variables to set, or to remove where None.
    """
    self.arguments = arguments
    self.log = log
    self.status = status
    self.environment = dict(environment or {})

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
        env=kept,
        # Ctrl-C on the terminal reaches the program through us, once.
        start_new_session=True,
      )
      try:
        code = process.wait()
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

  def checkpoint(self) -> Any:
    """What to submit again when the cluster takes the machine away."""
    from submitit import helpers

    return helpers.DelayedSubmission(self)

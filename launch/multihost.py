"""Runs one job in several processes, on this machine or on a cluster.

python -m launch.multihost --processes=2 --devices_per_process=4 --
    python -m experiments.mvlsa --mesh=rows:4,views:2 --workdir=runs/big
    starts two processes here, which share the devices of both

srun --kill-on-bad-exit python -m launch.multihost --
    python -m experiments.mvlsa --mesh=rows:256 --workdir=runs/big
    joins the processes that SLURM (or a TPU or GPU pod) has started, by
    JAX's own detection of the cluster

The first process writes the work directory, and its output is shown. A process
that dies ends the job, and its log is named; the same command then resumes
from the last checkpoint.
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from absl import flags

from experiments.run import processes, shutdown
from launch import command as commands

_PROCESSES = flags.DEFINE_integer(
  "processes",
  None,
  "Processes to start on this machine. Without this flag, join the processes "
  "that the cluster has started.",
  lower_bound=1,
)
_DEVICES = flags.DEFINE_integer(
  "devices_per_process",
  None,
  "Devices of a process on a CPU. Default: 1.",
  lower_bound=1,
)
_LOGS = flags.DEFINE_string(
  "logs", "runs/multihost", "Directory of the processes' logs."
)

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 10.0
_TAIL_LINES = 15


class _Member(NamedTuple):
  number: int
  process: subprocess.Popen
  log: pathlib.Path


def run(
  command: Sequence[str],
  count: int,
  logs: str | os.PathLike,
  devices: int | None = None,
) -> int:
  """Starts the processes of a job and waits for them.

  Args:
    command: of each process.
    count: how many.
    logs: directory of `process-NUMBER.log`.
    devices: of a process on a CPU.

  Returns:
    0 if all ended well, else the code of the first that did not.
  """
  folder = pathlib.Path(logs)
  folder.mkdir(parents=True, exist_ok=True)
  members: list[_Member] = []
  try:
    address = f"127.0.0.1:{_free_port()}"
    for number in range(count):
      members.append(_start(command, number, count, address, folder, devices))
    return _watch(members)
  finally:
    _end(members)


def _start(command, number, count, address, folder, devices) -> _Member:
  environment = {
    **os.environ,
    processes.PROCESSES: str(count),
    processes.ADDRESS: address,
    processes.NUMBER: str(number),
    shutdown.PARENT: str(os.getpid()),
  }
  if devices is not None:
    forced = f"--xla_force_host_platform_device_count={devices}"
    given = environment.get("XLA_FLAGS", "")
    environment["XLA_FLAGS"] = f"{given} {forced}".strip()
  log = folder / f"process-{number}.log"
  with open(log, "wb") as out:
    process = subprocess.Popen(
      command,
      env=environment,
      stdout=out,
      stderr=subprocess.STDOUT,
      stdin=subprocess.DEVNULL,
      start_new_session=True,
    )
  return _Member(number, process, log)


def _watch(members: Sequence[_Member]) -> int:
  """Waits; passes on what the first process says."""
  with open(members[0].log, "rb") as heard:
    while True:
      codes = [member.process.poll() for member in members]
      _pass_on(heard)
      failed = [(m, code) for m, code in zip(members, codes) if code]
      if failed:
        member, code = _culprit(failed)
        return _report(member, code, len(members))
      if all(code == 0 for code in codes):
        _pass_on(heard)
        return 0
      time.sleep(_POLL_SECONDS)


def _culprit(failed):
  """The process that failed first, as far as is known.

  If a process dies, JAX aborts the others, so a process that ended in another
  way is taken to be the first.
  """
  return min(failed, key=lambda item: item[1] == -signal.SIGABRT)


def _report(member: _Member, code: int, count: int) -> int:
  how = f"ended with code {code}"
  if code < 0:
    how = f"was ended by {signal.Signals(-code).name}"
  _say(
    f"multihost: process {member.number} of {count} {how}, and so the job "
    f"ends; its log is {member.log}"
  )
  lines = member.log.read_text(errors="replace").splitlines()
  for line in lines[-_TAIL_LINES:]:
    _say(f"  {line}")
  _say("multihost: the same command resumes from the last checkpoint")
  return code if code > 0 else 128 - code


def _pass_on(heard) -> None:
  text = heard.read()
  if text:
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def _end(members: Sequence[_Member]) -> None:
  """Ends running processes: by SIGTERM, after a while by SIGKILL."""
  for member in members:
    if member.process.poll() is None:
      member.process.terminate()
  until = time.monotonic() + _GRACE_SECONDS
  for member in members:
    try:
      member.process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
      member.process.kill()
      member.process.wait()


def _free_port() -> int:
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]


def _say(text: str) -> None:
  print(text, file=sys.stderr, flush=True)


def _terminate(signum, frame) -> None:
  del frame
  sys.exit(128 + signum)


def main(argv: list[str]) -> None:
  """Runs the command that follows `--`."""
  command = list(argv[1:])
  if not command:
    commands.fail("no command; it comes after --, see --help")
  if command[0] in ("python", "python3"):
    command[0] = sys.executable
  shutdown.with_parent()
  if _PROCESSES.value is None:
    os.environ[processes.PROCESSES] = "auto"
    os.execvp(command[0], command)
  signal.signal(signal.SIGTERM, _terminate)
  try:
    code = run(command, _PROCESSES.value, _LOGS.value, _DEVICES.value)
  except KeyboardInterrupt:
    _say("multihost: stopped; the same command resumes")
    code = 130
  except OSError as error:
    _say(f"error: {error}")
    code = 2
  sys.exit(code)


if __name__ == "__main__":
  commands.start(main)

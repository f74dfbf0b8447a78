"""A SLURM cluster of this one machine, for as long as a test takes."""

import contextlib
import getpass
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue")
_PLACES = "/usr/sbin:/usr/local/sbin:/sbin"
_START_SECONDS = 60.0
_CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 NodeHostname={host} CPUs=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Unavailable(Exception):
  """Why there can be no cluster here."""


def _free_ports(count: int) -> list[int]:
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
    for one in sockets:
      one.bind(("127.0.0.1", 0))
    return [one.getsockname()[1] for one in sockets]


def _find() -> dict[str, str]:
  path = f"{os.environ.get('PATH', '')}:{_PLACES}"
  found = {name: shutil.which(name, path=path) for name in _PROGRAMS}
  missing = [name for name, place in found.items() if place is None]
  if missing:
    raise Unavailable(
      f"{', '.join(missing)} not found (apt-get install slurmctld slurmd "
      "slurm-client munge)"
    )
  return {name: place for name, place in found.items() if place is not None}


def _cgroup_plugin(slurmd: str) -> str:
  """One that works without cgroups: v1 touches none before it is asked to."""
  told = subprocess.run([slurmd, "-V"], capture_output=True, text=True).stdout
  version = tuple(map(int, re.findall(r"\d+", told)[:2]))
  return "disabled" if version >= (23, 11) else "cgroup/v1"


@contextlib.contextmanager
def _daemon(arguments: list[str], log: pathlib.Path) -> Iterator[None]:
  """A process in the foreground, stopped at the end of the block."""
  with open(log, "ab") as out:
    process = subprocess.Popen(
      arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=out
    )
  try:
    yield
  finally:
    process.terminate()
    try:
      process.wait(15)
    except subprocess.TimeoutExpired:
      process.kill()
      process.wait()


def _wait(what: str, ready, logs: list[pathlib.Path]) -> None:
  until = time.monotonic() + _START_SECONDS
  while not ready():
    if time.monotonic() > until:
      told = [
        line
        for log in logs
        if log.exists()
        for line in log.read_text(errors="replace").splitlines()[-3:]
      ]
      raise Unavailable(f"{what} did not start: {' | '.join(told)}")
    time.sleep(0.2)


@contextlib.contextmanager
def one_node(folder: pathlib.Path) -> Iterator[pathlib.Path]:
  """Starts munge and SLURM; yields the file for the variable SLURM_CONF.

  Args:
    folder: for keys, states and logs.

  Yields:
    The configuration.

  Raises:
    Unavailable: a program is missing or does not start.
  """
  programs = _find()
  folder.chmod(0o755)
  host = socket.gethostname().split(".")[0]
  config = folder / "slurm.conf"
  text = _CONFIG.format(
    host=host, user=getpass.getuser(), folder=folder, ports=_free_ports(2)
  )
  config.write_text(text)
  kind = _cgroup_plugin(programs["slurmd"])
  (folder / "cgroup.conf").write_text(f"CgroupPlugin={kind}\n")
  for name in ("state", "spool"):
    (folder / name).mkdir()
  key = folder / "munge.key"
  key.write_bytes(os.urandom(128))
  key.chmod(0o600)
  munge = [programs["munged"], "--foreground", "--force", f"--key-file={key}"]
  for name in ("socket", "pid-file", "log-file", "seed-file"):
    munge.append(f"--{name}={folder}/munge.{name.removesuffix('-file')}")
  environment = {**os.environ, "SLURM_CONF": str(config)}

  def idle() -> bool:
    asked = subprocess.run(
      ["sinfo", "--noheader", "--format=%t"],
      capture_output=True,
      text=True,
      env=environment,
    )
    return asked.stdout.strip() == "idle"

  logs = [folder / f"{x}.out" for x in ("munged", "slurmctld", "slurmd")]
  with contextlib.ExitStack() as stack:
    stack.enter_context(_daemon(munge, logs[0]))
    _wait("munged", (folder / "munge.socket").exists, logs[:1])
    for name, log, more in (
      ("slurmctld", logs[1], ["-c"]),
      ("slurmd", logs[2], ["-N", host]),
    ):
      command = [programs[name], "-D", "-f", str(config), *more]
      stack.enter_context(_daemon(command, log))
    _wait("SLURM", idle, [*logs, folder / "slurmd.log"])
    yield config

"""Runs programs in forks of a process that has imported what they import.

A new process takes seconds to import JAX, a fork none: so tests start programs
by `call` wherever the process itself is not what they test. The parent never
asks JAX for devices, whose threads would not live on in a child, and never
imports a program, whose flags would meet those of another. It reads requests as
lines of JSON and answers each when its child has ended.

A child tells of each change that it is about to make to the files of a folder:
opening one to write, renaming, removing, making a folder. It can be killed
just before any of them, which is where a state between two others shows. It
also tells where it writes to a file under its own name rather than beside it.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pathlib
import re
import resource
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_ROOT = pathlib.Path(__file__).parents[1]
# Folders of programs that are no module of the project.
_SCRIPTS = (
  _ROOT / "tests" / "reliability",
  _ROOT / "tests" / "experiments" / "run",
)
_POLL_SECONDS = 0.005
_IMPORTED = (
  "orbax.checkpoint",
  "matplotlib.figure",
  "matplotlib.backends.backend_agg",
  "experiments.elkb.vmapped_train",
  "experiments.rescal.train",
  "experiments.run.report",
  "experiments.relatedness.data",
  "experiments.mvlsa.studies",
  "experiments.cmr.comparison",
  "experiments.ned.chapter",
  "experiments.nvse.evaluate",
  "experiments.run.runlib",
  "repr_jax.data.synthetic",
  "repr_jax.ops.svd_updates",
)
_CHANGES = {
  *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"),
  *("os.link", "os.symlink"),
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_GROWS = (".lock", "metrics.jsonl")  # what is added to in its place
IN_PLACE = "written in its place: "
UNFINISHED = re.compile(r"\.[0-9a-f]{16}\.(tmp|old)|.*orbax-checkpoint-tmp.*")
CORES = (
  sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
)


class Ended(NamedTuple):
  """How a child ended.

  Attributes:
    code: exit code; of a killed child minus the signal.
    killed: whether it was killed before its end.
    seconds: how long it ran.
    changes: how many it made to the files of the watched directory.
    stdout: what it wrote to standard output.
    stderr: what it wrote to standard error.
  """

  code: int
  killed: bool
  seconds: float
  changes: int
  stdout: str
  stderr: str

  @property
  def returncode(self) -> int:
    """The exit code, by the name that `subprocess` has for it."""
    return self.code

  @property
  def said(self) -> str:
    """Its standard output, then its standard error."""
    return self.stdout + self.stderr


class Programs:
  """Programs whose runs start at once; a context manager."""

  def __init__(
    self,
    cache: pathlib.Path,
    *,
    hash_seed: str = "random",
    cores: Sequence[int] = CORES,
  ):
    """Starts the parent of all runs.

    Args:
      cache: directory of compiled programs.
      hash_seed: of Python's hashes, for all runs.
      cores: those that the runs may use, where the system lets one choose.
    """
    variables = {
      **os.environ,
      "PYTHONPATH": os.pathsep.join(map(str, (_ROOT, *_SCRIPTS))),
      "PYTHONHASHSEED": hash_seed,
      "REPR_JAX_SETTINGS": "off",
      "JAX_PLATFORMS": "cpu",
      "JAX_COMPILATION_CACHE_DIR": str(cache),
      "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    self._process = subprocess.Popen(
      [sys.executable, __file__, ",".join(map(str, cores))],
      env=variables,
      cwd=_ROOT,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )

  def __enter__(self) -> "Programs":
    return self

  def __exit__(self, *error: Any) -> None:
    self.close()

  def close(self) -> None:
    """Ends the parent."""
    self._process.kill()
    self._process.communicate()

  def run(
    self,
    module: str,
    arguments: Sequence[str],
    *,
    watch: pathlib.Path | None = None,
    seconds: float | None = None,
    changes: int | None = None,
    limit: int | None = None,
    stop: int = signal.SIGKILL,
    again: Sequence[str] | None = None,
    cwd: pathlib.Path = _ROOT,
    variables: Mapping[str, str] | None = None,
    as_main: bool = False,
  ) -> Ended:
    """Runs a program, and kills it at a moment.

    Args:
      module: has the program's `main`.
      arguments: of the program.
      watch: directory in which changes are counted.
      seconds: when to kill it; never where None.
      changes: it is killed before it makes so many.
      limit: bytes that a file may have.
      stop: the signal that kills it.
      again: arguments of a second run in the same process, after the first.
      cwd: its directory.
      variables: of its environment, beside those of the parent.
      as_main: whether it is started as `python -m` does.
    """
    request = {
      "module": module,
      "arguments": list(arguments),
      "watch": None if watch is None else str(watch),
      "seconds": seconds,
      "changes": changes,
      "limit": limit,
      "stop": int(stop),
      "again": None if again is None else list(again),
      "cwd": str(cwd),
      "variables": dict(variables or {}),
      "as_main": as_main,
    }
    assert self._process.stdin and self._process.stdout
    self._process.stdin.write(json.dumps(request) + "\n")
    self._process.stdin.flush()
    return Ended(**json.loads(self._process.stdout.readline()))


@functools.cache
def shared() -> Programs:
  """One parent for all tests of this process, with which it ends."""
  started = Programs(
    pathlib.Path(os.environ["JAX_COMPILATION_CACHE_DIR"]), hash_seed="1"
  )
  atexit.register(started.close)
  return started


def call(
  module: str, *arguments: str, cwd: pathlib.Path = _ROOT, **variables: str
) -> Ended:
  """Output and exit code of `python -m module` with these arguments."""
  return shared().run(
    module, arguments, cwd=cwd, variables=variables, as_main=True
  )


def _is_in_place(path: str, folder: str, flags: int) -> bool:
  """Whether a file of a run is written where a reader may look for it."""
  parts = pathlib.Path(path).relative_to(folder).parts
  grows = parts[-1] in _GROWS and not flags & os.O_TRUNC
  return not grows and not any(map(UNFINISHED.fullmatch, parts))


def _tell_changes(folder: str, last: int | None, told: int) -> None:
  """Writes a byte for each change, and ends the process before the last."""
  count = 0

  def hook(event: str, arguments: tuple[Any, ...]) -> None:
    nonlocal count
    if event != "open" and event not in _CHANGES:
      return
    if isinstance(arguments[0], int):
      return  # an open file
    path = os.path.abspath(os.fsdecode(arguments[0]))
    flags = arguments[2] if event == "open" else 0
    if not path.startswith(folder + os.sep):
      return
    if event == "open" and not flags & _WRITES:
      return
    count += 1
    if count == last:
      os.kill(os.getpid(), signal.SIGKILL)
    os.write(told, b".")
    if event == "open" and _is_in_place(path, folder, flags):
      os.write(1, f"{IN_PLACE}{path}\n".encode())

  sys.addaudithook(hook)


def _launch(module: Any, arguments: Sequence[str]) -> Any:
  """The exit code of a program."""
  from experiments.run import runlib

  sys.argv = [module.__name__, *arguments]
  try:
    if hasattr(module, "launch"):  # a program that defines no flags
      module.launch()
      return 0
    runlib.launch(module.main)
  except SystemExit as end:
    return end.code or 0
  return 0


def _as_main(module: str, arguments: Sequence[str]) -> Any:
  """The exit code of what `python -m module` runs."""
  sys.argv = [module, *arguments]
  try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
  except SystemExit as end:
    if isinstance(end.code, str):
      print(end.code, file=sys.stderr)
    return end.code or 0
  return 0


def _become(
  request: Mapping[str, Any], out: int, error: int, told: int
) -> None:
  """Turns a child into the program; does not return."""
  from absl import flags

  code: Any = 70
  try:
    for number, end in enumerate(
      (os.open(os.devnull, os.O_RDONLY), out, error)
    ):
      os.dup2(end, number)
    os.chdir(request["cwd"])
    os.environ.update(request["variables"])
    paths = request["variables"].get("PYTHONPATH", "")
    sys.path[:0] = [request["cwd"], *filter(None, paths.split(os.pathsep))]
    if request["limit"] is not None:
      signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
      resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"],) * 2)
    if request["watch"] is not None:
      _tell_changes(os.path.abspath(request["watch"]), request["changes"], told)
    if request["as_main"]:
      code = _as_main(request["module"], request["arguments"])
      return
    module = importlib.import_module(request["module"])
    code = _launch(module, request["arguments"])
    if request["again"] is not None and not code:
      for name in flags.FLAGS:
        flags.FLAGS[name].unparse()
      flags.FLAGS.unparse_flags()
      code = _launch(module, request["again"])
  except BaseException:
    import traceback

    traceback.print_exc()
  finally:
    with contextlib.suppress(OSError):
      sys.stdout.flush()
      sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def _drain(pipe: int, said: list[bytes]) -> None:
  with contextlib.suppress(BlockingIOError):
    while data := os.read(pipe, 1 << 16):
      said.append(data)


def _serve(request: Mapping[str, Any]) -> dict[str, Any]:
  written: tuple[list[bytes], ...] = ([], [], [])  # output, errors, changes
  began = time.monotonic()
  pipes = [os.pipe() for _ in written]
  pid = os.fork()
  if not pid:
    _become(request, *(end for _, end in pipes))
  for pipe, end in pipes:
    os.set_blocking(pipe, False)
    os.close(end)
  gone, status = 0, 0
  while not gone:
    time.sleep(_POLL_SECONDS)
    for (pipe, _), held in zip(pipes, written):
      _drain(pipe, held)
    late = (request["seconds"] or 1e9) <= time.monotonic() - began
    gone, status = os.waitpid(pid, os.WNOHANG)
    if not gone and late:
      os.kill(pid, request["stop"])
      gone, status = os.waitpid(pid, 0)
  for (pipe, _), held in zip(pipes, written):
    _drain(pipe, held)
    os.close(pipe)
  code = os.waitstatus_to_exitcode(status)
  return {
    "code": code,
    "killed": code == -request["stop"],
    "seconds": time.monotonic() - began,
    "changes": sum(map(len, written[2])),
    "stdout": b"".join(written[0]).decode(errors="replace"),
    "stderr": b"".join(written[1]).decode(errors="replace"),
  }


def _main() -> None:
  for name in _IMPORTED:
    importlib.import_module(name)
  gc.collect()
  gc.freeze()
  gc.disable()  # runs are short, and tracing makes much that is kept
  answers = os.fdopen(os.dup(1), "w")
  for line in sys.stdin:
    answers.write(json.dumps(_serve(json.loads(line))) + "\n")
    answers.flush()


if __name__ == "__main__":
  sys.path.pop(0)  # folders here have the names of packages
  if sys.argv[1]:
    os.sched_setaffinity(0, map(int, sys.argv[1].split(",")))
  _main()

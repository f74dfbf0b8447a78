"""Runs programs in forks of a process that has imported what they import.

A new process takes seconds to import JAX, a fork none. The parent never asks
JAX for devices, whose threads would not live on in a child, and never imports
a program, whose flags would meet those of another. It reads requests as lines
of JSON and answers each when its child has ended.
"""

import contextlib
import gc
import importlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_ROOT = pathlib.Path(__file__).parents[2]
_POLL_SECONDS = 0.005
_IMPORTED = (
  "orbax.checkpoint", "matplotlib.figure", "matplotlib.backends.backend_agg",
  "experiments.kb_together", "experiments.rescal_cells", "experiments.report",
  "experiments.relatedness_data", "experiments.mvlsa.studies",
  "experiments.cmr.comparison", "experiments.ned.chapter",
  "experiments.nvse.reporting", "experiments.explorer.server",
  "experiments.runlib", "repr_jax.data.synthetic", "repr_jax.ops.svd_updates",
)  # fmt: skip
CORES = (
  sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
)


class Ended(NamedTuple):
  """How a child ended.

  Attributes:
    code: exit code; of a killed child minus the signal.
    killed: whether it was killed before its end.
    seconds: how long it ran.
    paths: how many paths appeared in the watched directory.
    said: what it wrote to standard output and error.
  """

  code: int
  killed: bool
  seconds: float
  paths: int
  said: str


class Programs:
  """Programs whose runs start at once; a context manager."""

  def __init__(
    self,
    cache: pathlib.Path,
    imported: Sequence[str] = _IMPORTED,
    *,
    hash_seed: str = "random",
    cores: Sequence[int] = CORES,
  ):
    """Starts the parent of all runs.

    Args:
      cache: directory of compiled programs.
      imported: what it imports, none of which defines flags of a program.
      hash_seed: of Python's hashes, for all runs.
      cores: those that the runs may use, where the system lets one choose.
    """
    variables = {
      **os.environ,
      "PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'tests' / 'reliability'}",
      "PYTHONHASHSEED": hash_seed,
      "REPR_JAX_SETTINGS": "off",
      "JAX_PLATFORMS": "cpu",
      "JAX_COMPILATION_CACHE_DIR": str(cache),
      "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
      # Compiling is most of the work here, and speed is not looked at.
      "XLA_FLAGS": "--xla_backend_optimization_level=0 "
      "--xla_llvm_disable_expensive_passes=true",
    }
    self._process = subprocess.Popen(
      [sys.executable, __file__, ",".join(map(str, cores)), *imported],
      env=variables,
      cwd=_ROOT,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )

  def __enter__(self) -> "Programs":
    return self

  def __exit__(self, *error: Any) -> None:
    self._process.kill()
    self._process.communicate()

  def run(
    self,
    module: str,
    arguments: Sequence[str],
    *,
    watch: pathlib.Path | None = None,
    seconds: float | None = None,
    paths: int | None = None,
    limit: int | None = None,
    stop: int = signal.SIGKILL,
  ) -> Ended:
    """Runs a program, and kills it at a moment.

    Args:
      module: has the program's `main`.
      arguments: of the program.
      watch: directory in which new paths are counted.
      seconds: when to kill it; never where None.
      paths: the number of new paths at which to kill it.
      limit: bytes that a file may have.
      stop: the signal that kills it.
    """
    request = {
      "module": module,
      "arguments": list(arguments),
      "watch": None if watch is None else str(watch),
      "seconds": seconds,
      "paths": paths,
      "limit": limit,
      "stop": int(stop),
    }
    assert self._process.stdin and self._process.stdout
    self._process.stdin.write(json.dumps(request) + "\n")
    self._process.stdin.flush()
    return Ended(**json.loads(self._process.stdout.readline()))


def _become(request: Mapping[str, Any], said: int) -> None:
  """Turns a child into the program; does not return."""
  from experiments import runlib

  code: Any = 70
  try:
    for number in (1, 2):
      os.dup2(said, number)
    if request["limit"] is not None:
      signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
      resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"],) * 2)
    sys.argv = [request["module"], *request["arguments"]]
    module = importlib.import_module(request["module"])
    if hasattr(module, "launch"):  # a program that defines no flags
      module.launch()
    runlib.launch(module.main)
  except SystemExit as end:
    code = end.code or 0
  except BaseException:
    import traceback

    traceback.print_exc()
  finally:
    with contextlib.suppress(OSError):
      sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)


def _look(folder: str | None, seen: set[str]) -> None:
  for top, folders, names in os.walk(folder) if folder else ():
    seen.update(os.path.join(top, name) for name in (*folders, *names))


def _drain(pipe: int, said: list[bytes]) -> None:
  with contextlib.suppress(BlockingIOError):
    while data := os.read(pipe, 1 << 16):
      said.append(data)


def _serve(request: Mapping[str, Any]) -> dict[str, Any]:
  seen: set[str] = set()
  said: list[bytes] = []
  _look(request["watch"], seen)
  before = len(seen)
  began = time.monotonic()
  pipe, end = os.pipe()
  os.set_blocking(pipe, False)
  pid = os.fork()
  if not pid:
    _become(request, end)
  os.close(end)
  killed, gone, status = False, 0, 0
  while not gone:
    time.sleep(_POLL_SECONDS)
    _drain(pipe, said)
    _look(request["watch"], seen)
    late = (request["seconds"] or 1e9) <= time.monotonic() - began
    full = (request["paths"] or 1e9) <= len(seen) - before
    gone, status = os.waitpid(pid, os.WNOHANG)
    if not gone and (late or full):
      os.kill(pid, request["stop"])
      gone, status = os.waitpid(pid, 0)
      killed = True
  _drain(pipe, said)
  os.close(pipe)
  return {
    "code": os.waitstatus_to_exitcode(status),
    "killed": killed,
    "seconds": time.monotonic() - began,
    "paths": len(seen) - before,
    "said": b"".join(said).decode(errors="replace"),
  }


def _main(imported: Sequence[str]) -> None:
  for name in imported:
    importlib.import_module(name)
  gc.collect()
  gc.freeze()
  gc.disable()  # runs are short, and tracing makes much that is kept
  answers = os.fdopen(os.dup(1), "w")
  for line in sys.stdin:
    answers.write(json.dumps(_serve(json.loads(line))) + "\n")
    answers.flush()


if __name__ == "__main__":
  if sys.argv[1]:
    os.sched_setaffinity(0, map(int, sys.argv[1].split(",")))
  _main(sys.argv[2:])

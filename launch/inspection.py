"""Asks an experiment, in a process of its own, which flags it has.

The launcher has flags of its own and must not occupy a device, so it never
imports an experiment. `ask` starts a child process that does. The child parses
the command line of every run before any run starts.
"""

import functools
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

from repr_jax import errors

_CHILD = "from launch import inspection; inspection.answer()"


class Answer(NamedTuple):
  """Flags of an experiment, as the child process reports them.

  Attributes:
    vmap_over: flags in which runs of one program may differ.
    flags: all flags of each run, by name.
  """

  vmap_over: tuple[str, ...]
  flags: list[dict[str, Any]]


def load_experiment(name: str) -> types.ModuleType:
  """Imports the program that `python -m name` runs, without running it."""
  try:
    known = all(part.isidentifier() for part in name.split("."))
    spec = importlib.util.find_spec(name) if known else None
    if spec is None:
      raise errors.InputError(f"there is no experiment {name!r}")
    if spec.submodule_search_locations is not None:
      name = f"{name}.__main__"
    return importlib.import_module(name)
  except ModuleNotFoundError as error:
    raise errors.InputError(
      f"the experiment {name!r} cannot be imported: {error}"
    ) from error


def parse_flags(arguments: Sequence[str]) -> dict[str, Any]:
  """All flags of the experiment in this process, after these arguments.

  Args:
    arguments: of the command line, without the program.

  Returns:
    Values by name; `flags.FLAGS` has them too.
  """
  from absl.testing import flagsaver

  from experiments.run import command_line, workdir

  # absl adopts the given mapping as its state and changes it.
  first = {name: dict(state) for name, state in _first_values().items()}
  flagsaver.restore_flag_values(first)
  rest = command_line.parse(["experiment", *arguments])
  if len(rest) > 1:
    raise errors.InputError(f"unexpected argument {rest[1]!r}")
  return workdir.flag_values()


@functools.cache
def _first_values() -> Any:
  """The flags as they were before the first command line was parsed."""
  from absl import flags
  from absl.testing import flagsaver

  return flagsaver.save_flag_values(flags.FLAGS)


def answer() -> None:
  """The child: a question as JSON on standard input, the answer on output."""
  out = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)  # keep output of imports out of the answer
  question = json.load(sys.stdin)
  reply: dict[str, Any] = {}
  try:
    module = load_experiment(question["experiment"])
    over = getattr(module, "VMAP_OVER", ())
    reply["vmap_over"] = over if hasattr(module, "run_vmapped") else ()
    reply["runs"] = [_parsed(arguments) for arguments in question["runs"]]
  except errors.InputError as error:
    reply["error"] = str(error)
  out.write(json.dumps(reply, default=str))
  out.close()


def _parsed(arguments: Sequence[str]) -> dict[str, Any]:
  try:
    return {"flags": parse_flags(arguments)}
  except (errors.InputError, OSError) as error:
    return {"error": str(error)}


def ask(experiment: str, runs: Sequence[Sequence[str]]) -> Answer | list[str]:
  """Parses the command line of each run in a child process.

  Args:
    experiment: module that `python -m` runs.
    runs: arguments of each run, among them `--workdir`.

  Returns:
    The answer, or for each run what is wrong with it ("" where nothing is).
  """
  question = json.dumps({"experiment": experiment, "runs": runs})
  ended = subprocess.run(
    [sys.executable, "-c", _CHILD],
    input=question,
    capture_output=True,
    text=True,
    # On the CPU, so that the child does not occupy an accelerator.
    env={**os.environ, "JAX_PLATFORMS": "cpu"},
  )
  try:
    reply = json.loads(ended.stdout)
  except ValueError:
    last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
    raise errors.InputError(
      f"the experiment {experiment!r} cannot be imported: {last}"
    ) from None
  if "error" in reply:
    raise errors.InputError(reply["error"])
  wrong = [run.get("error", "") for run in reply["runs"]]
  if any(wrong):
    return wrong
  return Answer(
    tuple(reply["vmap_over"]), [run["flags"] for run in reply["runs"]]
  )

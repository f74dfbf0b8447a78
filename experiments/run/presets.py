"""Presets: packaged files of flags, found by name from any directory.

`--preset=NAME` stands for the flags of `experiments/presets/NAME.flags`, and
flags after it override them. `$REPR_JAX_DATA` in a preset or in a file of
flags is the directory that the environment variable of this name gives.
"""

import difflib
import os
import pathlib
from collections.abc import Sequence

from absl import flags

from repr_jax import errors

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "presets"
_DATA = "REPR_JAX_DATA"

PRESET = flags.DEFINE_string(
  "preset",
  None,
  "Name of a flag file in experiments/presets, without .flags. Flags after it "
  "override it.",
)


def names(program: str = "") -> list[str]:
  """Names of the packaged presets.

  Args:
    program: an experiment, to list only its own; all where it has none.
  """
  every = sorted(path.stem for path in FOLDER.glob("*.flags"))
  own = [name for name in every if name.startswith(f"{program}_")]
  return own or every


def expand(argv: Sequence[str]) -> list[str]:
  """Replaces `--preset=NAME` by its flags and fills in `$REPR_JAX_DATA`.

  Args:
    argv: the program and its arguments, without `--flagfile`.

  Returns:
    The program and its arguments. Of a flag that is given again later, an
    earlier value that needs `$REPR_JAX_DATA` is left out.

  Raises:
    InputError: there is no such preset, or `$REPR_JAX_DATA` is needed and not
      set.
  """
  program, *arguments = argv
  if PRESET.name not in flags.FLAGS:  # a program without presets
    return list(argv)
  rest: list[str] = []
  if "--" in arguments:  # what follows belongs to another program
    end = arguments.index("--")
    arguments, rest = arguments[:end], arguments[end:]
  folder = pathlib.PurePath(program)
  experiment = folder.parent.name if folder.name == "__main__.py" else ""
  expanded = _insert(arguments, experiment, ())
  return [program, *_fill(expanded), *rest]


def only_by_preset(arguments: Sequence[str]) -> set[str]:
  """Names of flags that come from a preset alone.

  Args:
    arguments: a command line that `expand` accepts, without the program.

  Returns:
    The names, without those of flags that are also given themselves.
  """
  if PRESET.name not in flags.FLAGS or "--" in arguments:
    return set()
  beside = [x for x in arguments if _name(x) != "preset"]
  own = {_name(x) for x in beside}
  own |= {x.removeprefix("no") for x in own}
  within = {_name(x) for x in _insert(arguments, "", ())}
  within |= {x.removeprefix("no") for x in within}
  return within - own - {""}


def _insert(
  arguments: Sequence[str], experiment: str, within: tuple[str, ...]
) -> list[str]:
  out: list[str] = []
  waiting = iter(arguments)
  for argument in waiting:
    name = _name(argument)
    if name != "preset":
      out.append(argument)
      continue
    value = argument.partition("=")[2] if "=" in argument else next(waiting, "")
    if value in within:
      raise errors.InputError(f"--preset={value} contains itself")
    out += _insert(_read(value, experiment), experiment, (*within, value))
  return out


def _read(name: str, experiment: str) -> list[str]:
  known = names(experiment)
  if name not in known:
    if name in names():
      raise errors.InputError(
        f"--preset={name} belongs to experiments.{name.partition('_')[0]}; "
        f"experiments.{experiment} has {', '.join(known)}"
      )
    near = difflib.get_close_matches(name, known, 3)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise errors.InputError(
      f"--preset={name}: there is no such preset{hint}; there are "
      f"{', '.join(known)}"
    )
  lines = (FOLDER / f"{name}.flags").read_text("utf-8").splitlines()
  return [line.strip() for line in lines if line.strip().startswith("-")]


def _fill(arguments: Sequence[str]) -> list[str]:
  """Puts the data directory in; overridden values do not need it."""
  variable = f"${_DATA}"
  last = {_name(x): i for i, x in enumerate(arguments) if _name(x)}
  folder = os.environ.get(_DATA)
  out = []
  for i, argument in enumerate(arguments):
    if variable in argument:
      if i < last.get(_name(argument), i):
        continue
      if not folder:
        raise errors.InputError(
          f"{argument.partition('=')[0]} needs {variable}: set the environment "
          "variable to the data directory, or give the flag a value of your own"
        )
      argument = argument.replace(variable, folder)
    out.append(argument)
  return out


def _name(argument: str) -> str:
  """Name of the flag that an argument sets, "" where it is no flag."""
  if not argument.startswith("-"):
    return ""
  return argument.lstrip("-").partition("=")[0]

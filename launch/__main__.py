"""One command for all programs: `repr-jax PROGRAM --flags`.

repr-jax --help
repr-jax reproduce --workdir=runs/main
python -m launch reproduce --workdir=runs/main

`repr-jax nvse` is `python -m experiments.nvse`, `repr-jax sweep` is `python -m
launch.sweep`, and so on. `repr-jax PROGRAM --help` lists a program's flags.
"""

import ast
import difflib
import pathlib
import runpy
import sys
from collections.abc import Sequence

import experiments
import launch
import repr_jax

_LAUNCHERS = ("sweep", "collect", "multihost", "compile", "completion")


def programs() -> dict[str, tuple[str, str]]:
  """Module and purpose of each program, by its name; imports none of them."""
  listed = {}
  (folder,) = experiments.__path__
  for path in sorted(pathlib.Path(folder).glob("*/__main__.py")):
    name = path.parent.name
    listed[name] = (f"experiments.{name}", _purpose(path))
  (folder,) = launch.__path__
  for name in _LAUNCHERS:
    path = pathlib.Path(folder) / f"{name}.py"
    listed[name] = (f"launch.{name}", _purpose(path))
  return listed


def _purpose(path: pathlib.Path) -> str:
  """The first line of a program's docstring."""
  text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
  return text.partition("\n")[0].rstrip(".")


def _overview() -> str:
  listed = programs()
  width = max(map(len, listed))
  lines = [f"  {name:{width}}  {why}" for name, (_, why) in listed.items()]
  return "\n".join(
    [
      f"repr_jax {repr_jax.__version__}",
      "usage: repr-jax PROGRAM [--flags]; python -m launch is the same",
      *lines,
      "repr-jax PROGRAM --help lists the flags of a program.",
    ]
  )


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the program that the first argument names, in this process.

  Args:
    argv: name and flags; by default those of the command line.

  Returns:
    The exit code, where the program did not end the process itself.
  """
  name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
  if name in ("--help", "-h", "help"):
    print(_overview())
    return 0
  if name == "--version":
    print(repr_jax.__version__)
    return 0
  listed = programs()
  if name not in listed:
    near = difflib.get_close_matches(name, listed, 1)
    guess = f"; did you mean {near[0]}?" if near else "."
    print(
      f"error: there is no program {name!r}{guess} repr-jax --help lists them.",
      file=sys.stderr,
    )
    return 2
  module, _ = listed[name]
  sys.argv = [module, *rest]
  # As `python -m` finds programs and presets of the working directory.
  if "" not in sys.path:
    sys.path.insert(0, "")
  runpy.run_module(module, run_name="__main__", alter_sys=True)
  return 0


if __name__ == "__main__":
  sys.exit(main())

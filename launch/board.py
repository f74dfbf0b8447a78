"""Display of a running sweep: one live table, or lines in a log."""

import pathlib
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from experiments.run import directions, workdir
from repr_jax import errors

_ROWS = 12
_TAIL_BYTES = 4096


class Counts(NamedTuple):
  """How many runs are in each state."""

  done: int
  running: int
  failed: int
  waiting: int


class Best:
  """The best run so far by one figure of `results.json`.

  Attributes:
    text: the figure with its run, "" before there is one.
  """

  def __init__(self, metric: str | None = None, smallest: bool | None = None):
    """Chooses the figure.

    Args:
      metric: its metric, or "NAME: METRIC". By default, of the figures whose
        better direction is known: the first on validation data; without one,
        the first that the thesis has too; else the first.
      smallest: whether smaller is better; None for the metric's own
        direction.
    """
    self._metric = metric
    self._smallest = smallest
    self._value: float | None = None
    self.text = ""

  def add(self, name: str, directory: pathlib.Path) -> str:
    """Takes a finished run into account; returns its figure as text."""
    row = self._row(directory)
    if row is None:
      return ""
    value = float(row["value"])
    shown = f"{row['metric']} {value:.4g}"
    less = self._less(row)
    if less is None:
      return shown
    gain = 0.0 if self._value is None else value - self._value
    if self._value is None or (gain < 0 if less else gain > 0):
      self._value, self.text = value, f"{shown} ({name})"
    return shown

  def _less(self, row: Mapping[str, Any]) -> bool | None:
    if self._smallest is not None:
      return self._smallest
    known = directions.lower_is_better(row["metric"])
    return row.get("lower_is_better", known)

  def _row(self, directory: pathlib.Path) -> dict[str, Any] | None:
    try:
      rows = workdir.read_results(directory / "results.json")["rows"]
    except errors.InputError:
      return None
    if self._metric is None:
      known = [row for row in rows if self._less(row) is not None]
      chosen = [x for x in known if x["metric"].startswith("validation ")]
      told = [row for row in known if "thesis" in row]
      return (chosen or told or known or [None])[0]
    for row in rows:
      if self._metric in (row["metric"], f"{row['name']}: {row['metric']}"):
        return row
    return None


class Board:
  """Writes to a stream: redraws a table on a terminal, adds lines to a log."""

  def __init__(self, title: str, stream: TextIO | None = None):
    self._title = title
    self._stream = sys.stderr if stream is None else stream
    self._live = self._stream.isatty()
    self._drawn = 0
    self._began = time.monotonic()
    self._next = 0.0

  def say(self, text: str) -> None:
    """Writes a line that stays."""
    self._clear()
    self._stream.write(text + "\n")
    self._stream.flush()
    self._next = 0.0

  def draw(
    self,
    counts: Counts,
    best: str,
    running: Sequence[tuple[str, float, pathlib.Path]],
  ) -> None:
    """Redraws the table, on a terminal and not more than twice a second.

    Args:
      running: names of jobs, when they began (`time.monotonic`), their logs.
    """
    now = time.monotonic()
    if not self._live or now < self._next:
      return
    self._next = now + 0.5
    lines = [f"{self._title}: {summary(counts)}, {clock(now - self._began)}"]
    if best:
      lines.append(f"best: {best}")
    for name, began, log in running[:_ROWS]:
      lines.append(f"  {name}  {clock(now - began)}  {last_line(log)}")
    if len(running) > _ROWS:
      lines.append(f"  and {len(running) - _ROWS} more")
    width = shutil.get_terminal_size().columns - 1
    self._clear()
    self._stream.write("".join(line[:width] + "\n" for line in lines))
    self._stream.flush()
    self._drawn = len(lines)

  def _clear(self) -> None:
    if self._drawn:
      self._stream.write(f"\x1b[{self._drawn}F\x1b[J")
      self._drawn = 0


def summary(counts: Counts) -> str:
  """The counts in words."""
  return ", ".join(f"{n} {name}" for name, n in counts._asdict().items())


def clock(seconds: float) -> str:
  """A time as hours, minutes and seconds."""
  whole = int(seconds)
  return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def tail(log: pathlib.Path, lines: int) -> list[str]:
  """The last lines of a file, [] where there is none."""
  try:
    with open(log, "rb") as file:
      file.seek(0, 2)
      file.seek(max(0, file.tell() - _TAIL_BYTES * max(1, lines // 10)))
      text = file.read().decode(errors="replace")
  except OSError:
    return []
  return [x for x in text.replace("\r", "\n").splitlines() if x.strip()][
    -lines:
  ]


def last_line(log: pathlib.Path) -> str:
  """The last line of a program's log."""
  lines = tail(log, 1)
  return lines[0] if lines and not lines[0].startswith("[") else ""

"""Messages of a run on standard error, and the progress of its loops."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

T = TypeVar("T")


def say(text: str) -> None:
  """Prints a line on standard error."""
  print(text, file=sys.stderr, flush=True)


def format_warning(message, category, filename, lineno, line=None) -> str:
  """One line for the user; other categories also name the line of code."""
  del line
  if category is UserWarning:
    return f"warning: {message}\n"
  return f"{filename}:{lineno}: {category.__name__}: {message}\n"


def track(
  items: Iterable[T], name: str, total: int | None = None
) -> Iterator[T]:
  """Yields the items; shows a bar on a terminal, or lines in a log.

  Args:
    items: what the loop runs over.
    name: what the loop does.
    total: number of items, where `items` does not know it.

  Yields:
    The items.
  """
  if total is None and isinstance(items, Sized):
    total = len(items)
  if sys.stderr.isatty():
    import tqdm

    yield from tqdm.tqdm(items, desc=name, total=total)
    return
  began = last = time.monotonic()
  interval, done = 2.0, 0
  for item in items:
    now = time.monotonic()
    if done and now - last >= interval:
      # Lines come further apart as a loop grows long.
      last, interval = now, min(2 * interval, 60.0)
      say(_line(name, done, total, now - began))
    yield item
    done += 1
  if done:
    say(_line(name, done, total, time.monotonic() - began))


def _line(name: str, done: int, total: int | None, seconds: float) -> str:
  rate = done / max(seconds, 1e-9)
  line = f"{name}: {done}{'' if total is None else f'/{total}'}, {rate:.3g}/s"
  if total is not None and 0 < done < total:
    left = int((total - done) / rate)
    line += f", {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
  return line

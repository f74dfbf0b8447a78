"""Ends programs on signals, with their parent, or if nobody reads their output.

A program may be killed at any moment: its work directory stays usable, and work
after the last checkpoint is repeated.
"""

import contextlib
import ctypes
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

# Process id of the parent that the next program is to end with.
PARENT = "REPR_JAX_PARENT"

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
_POLL_SECONDS = 0.5
_AGAIN_SECONDS = 0.05
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STOPS = (signal.SIGINT, signal.SIGTERM)


def on_signals() -> None:
  """Makes SIGTERM unwind like Ctrl-C, and a second signal exit at once.

  Python handles signals between bytecodes, so the first one waits for a
  compiled program to return. The second does not wait. Where Python ignores
  exceptions, as in a callback of the garbage collector, the signal is sent
  again a moment later.
  """
  signal.signal(signal.SIGTERM, _unwind)
  reading, writing = os.pipe()
  os.set_blocking(writing, False)
  signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
  sent_again: list[int] = []
  usual = sys.unraisablehook

  def listen() -> None:
    seen = 0
    while numbers := os.read(reading, 64):
      for number in numbers:
        seen += number in _STOPS
        if seen > 1 + len(sent_again):
          os._exit(128 + number)

  def send_again(ignored: Any) -> None:
    number = _signal_of(ignored.exc_value)
    if number is None:
      usual(ignored)
      return
    sent_again.append(number)
    timer = threading.Timer(_AGAIN_SECONDS, os.kill, [os.getpid(), number])
    timer.daemon = True
    timer.start()

  sys.unraisablehook = send_again
  threading.Thread(target=listen, daemon=True).start()


def _signal_of(error: BaseException | None) -> int | None:
  """The signal that an exception unwinds for; None for other exceptions."""
  if isinstance(error, KeyboardInterrupt):
    return signal.SIGINT
  if isinstance(error, SystemExit) and error.code == 128 + signal.SIGTERM:
    return signal.SIGTERM
  return None


def _unwind(signum: int, frame: Any) -> None:
  del frame
  sys.exit(128 + signum)


def with_parent() -> None:
  """Ends this process when the parent that `PARENT` names dies."""
  given = os.environ.pop(PARENT, "")  # not for this process' own children
  if not given:
    return
  parent = int(given)
  if sys.platform == "linux":
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
  else:
    watch = threading.Thread(target=_watch, args=(parent,), daemon=True)
    watch.start()
  if os.getppid() != parent:  # it died before this process could ask
    os._exit(128 + signal.SIGKILL)


def _watch(parent: int) -> None:
  while os.getppid() == parent:
    time.sleep(_POLL_SECONDS)
  os._exit(128 + signal.SIGKILL)


@contextlib.contextmanager
def without_reader() -> Iterator[None]:
  """Ends the program quietly if nobody reads its output any more.

  As in `program | head`; the exit code is that of a program ended by SIGPIPE.
  """
  try:
    try:
      yield
    finally:
      sys.stdout.flush()
  except BrokenPipeError:
    # What is still in Python's buffers must not be written again.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
      try:
        stream.flush()
      except BrokenPipeError:
        os.dup2(nowhere, stream.fileno())
    sys.exit(128 + signal.SIGPIPE)


def describe(error: Exception) -> str:
  """Describes an error in one line; for a full disk also the remedy."""
  if isinstance(error, OSError) and error.errno in _FULL:
    place = f"{error.filename}: " if error.filename else ""
    return (
      f"{place}the disk is full ({os.strerror(error.errno)}); free some "
      "space, then run the same command again"
    )
  return str(error)

"""Peak memory of this process."""

import contextlib
import pathlib
import resource
import sys


def peak_bytes() -> int:
  """Largest resident memory since the start or the last `reset_peak`.

  Linux' `ru_maxrss` of a child process starts at its parent's value, so
  `VmHWM` of the process status is read first.
  """
  with contextlib.suppress(OSError, IndexError, ValueError):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
      if line.startswith("VmHWM:"):
        return 1024 * int(line.split()[1])
  unit = 1 if sys.platform == "darwin" else 1024
  return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def reset_peak() -> None:
  """Lets the peak begin at the memory in use now, where Linux permits it."""
  with contextlib.suppress(OSError):
    pathlib.Path("/proc/self/clear_refs").write_text("5")

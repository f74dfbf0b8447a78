"""Memory of this process."""

import contextlib
import pathlib
import resource
import sys


def peak_bytes() -> int:
  """Largest resident memory since the start or the last `reset_peak`.

  Linux' `ru_maxrss` of a child process starts at its parent's value, so
  `VmHWM` of the process status is read first.
  """
  peak = _status("VmHWM")
  if peak is not None:
    return peak
  unit = 1 if sys.platform == "darwin" else 1024
  return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident_bytes() -> int:
  """Resident memory now; the peak where the system does not tell."""
  return _status("VmRSS") or peak_bytes()


def reset_peak() -> None:
  """Resets the peak to the memory in use now, where Linux permits it."""
  with contextlib.suppress(OSError):
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def _status(field: str) -> int | None:
  """Bytes of a field of Linux' process status, None elsewhere."""
  with contextlib.suppress(OSError, IndexError, ValueError):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
      if line.startswith(field + ":"):
        return 1024 * int(line.split()[1])
  return None

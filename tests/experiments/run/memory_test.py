"""Peak memory grows with what the process holds, and can be reset."""

import pathlib
import subprocess
import sys

import pytest

from experiments.run import memory

_SIZE = 200_000_000
_CHILD = f"""
import numpy as np
from experiments.run import memory
memory.reset_peak()
before = memory.peak_bytes()
np.ones({_SIZE}, np.uint8).sum()
after = memory.peak_bytes()
memory.reset_peak()
print(before, after, memory.peak_bytes())
"""


def test_the_peak_counts_an_array_that_is_gone():
  if not pathlib.Path("/proc/self/clear_refs").exists():
    pytest.skip("only Linux resets the peak")
  told = subprocess.run(
    [sys.executable, "-c", _CHILD], capture_output=True, text=True, check=True
  ).stdout
  before, after, reset = map(int, told.split())
  assert 0.95 * _SIZE <= after - before < 1.2 * _SIZE
  assert reset < before + _SIZE / 2


def test_without_a_status_file_the_kernels_count_is_taken(monkeypatch):
  own = memory.peak_bytes()

  def absent(self):
    raise OSError

  monkeypatch.setattr(pathlib.Path, "read_text", absent)
  # The kernel counts pages of a thread late.
  assert 0.9 * own < memory.peak_bytes() and own > 10_000_000

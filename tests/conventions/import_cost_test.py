"""Programs that only start others do not import JAX for their --help."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
  "module", ["experiments.reproduce.__main__", "launch.sweep", "launch.collect"]
)
def test_slow_libraries_are_imported_when_they_are_needed(module):
  code = (
    f"import sys, {module}\n"
    "slow = ('jax', 'scipy.stats', 'orbax', 'matplotlib')\n"
    "print([x for x in slow if x in sys.modules])"
  )
  told = subprocess.run(
    [sys.executable, "-c", code], capture_output=True, text=True, check=True
  )
  assert told.stdout.strip() == "[]"

"""Runs the tests of `on_eight_devices.py` where there are eight devices."""

import os
import pathlib
import subprocess
import sys

import pytest

_HERE = pathlib.Path(__file__).parent


@pytest.mark.long
def test_on_eight_devices():
  environment = {
    **os.environ,
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": os.environ.get("XLA_FLAGS", "")
    + " --xla_force_host_platform_device_count=8"
    # Eight devices on busy cores wait longer for each other than XLA's 40 s.
    " --xla_cpu_collective_call_terminate_timeout_seconds=300"
    " --xla_cpu_collective_timeout_seconds=300",
  }
  for name in [x for x in environment if x.startswith("PYTEST_")]:
    del environment[name]
  path = _HERE / "on_eight_devices.py"
  done = subprocess.run(
    # Captured by the outer test: where XLA aborts, its message must be seen.
    [
      *(sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"),
      str(path),
    ],
    env=environment,
    cwd=_HERE.parent.parent,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]

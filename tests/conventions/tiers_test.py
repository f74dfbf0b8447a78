"""The everyday tier leaves long tests out; the long tier has them all."""

import os
import subprocess
import sys

import source

_COUNTED = "tests/reliability/fuzz_launch_test.py"
_LONG = "tests/launch/slurm_test.py"


def _collected(*options: str) -> list[str]:
  environment = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTEST_", "REPR_JAX_TESTS"))
  }
  ended = subprocess.run(
    [
      sys.executable, "-m", "pytest", "--collect-only", "-p",
      "no:cacheprovider", *options, _COUNTED, _LONG,
    ],
    cwd=source.ROOT,
    env=environment,
    capture_output=True,
    text=True,
  )  # fmt: skip
  assert ended.returncode == 0, ended.stdout
  return [line for line in ended.stdout.splitlines() if "::" in line]


def test_long_tests_are_in_the_long_tier_and_counted_ones_in_both():
  everyday, long = _collected(), _collected("-m", "long")
  assert not any(_LONG in name for name in everyday)
  assert any(_LONG in name for name in long)
  counted = {name for name in everyday if "damaged" in name}
  assert counted and counted <= set(long)
  assert not set(everyday) <= set(long)  # the others run once

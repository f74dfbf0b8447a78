"""Counts of the tests that try many cases, in the everyday and the long tier.

`python -m pytest` runs the everyday tier, `python -m pytest -m long` the long
one: tests marked `long`, and those marked `counted` with larger counts. An
environment variable of the same name with `REPR_JAX_` before it sets a count.
"""

import os

LONG = os.environ.get("REPR_JAX_TESTS") == "long"


def _count(name: str, everyday: int, long: int) -> int:
  return int(os.environ.get(f"REPR_JAX_{name}", long if LONG else everyday))


KILLS = _count("KILLS", 2, 20)  # of each experiment
FUZZ_CASES = _count("FUZZ_CASES", 200, 10_000)  # damaged files of each reader
FUZZ_SEED = int(os.environ.get("REPR_JAX_FUZZ_SEED", "0"))
SOAK_SECONDS = _count("SOAK_SECONDS", 4, 60)  # of requests to the explorer

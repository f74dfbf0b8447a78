"""Splits the cases of large tests between the everyday and the long tier.

`python -m pytest` runs the everyday tier, `python -m pytest -m long` the long
one: tests marked `long`, and those marked `counted` with larger counts. An
environment variable of the same name with `REPR_JAX_` before it sets a count.
"""

import os
from collections.abc import Iterable
from typing import Any

import pytest

LONG = os.environ.get("REPR_JAX_TESTS") == "long"


def _count(name: str, everyday: int, long: int) -> int:
  return int(os.environ.get(f"REPR_JAX_{name}", long if LONG else everyday))


def some(cases: Iterable[Any], step: int) -> list[Any]:
  """One of `step` cases for the everyday tier; the others are marked `long`."""
  return [
    case
    if i % step == 0
    else pytest.param(
      *(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long
    )
    for i, case in enumerate(cases)
  ]


KILLS = _count("KILLS", 2, 20)  # of each experiment
FUZZ_CASES = _count("FUZZ_CASES", 200, 10_000)  # damaged files of each reader
FUZZ_SEED = int(os.environ.get("REPR_JAX_FUZZ_SEED", "0"))
SOAK_SECONDS = _count("SOAK_SECONDS", 4, 60)  # of requests to the explorer

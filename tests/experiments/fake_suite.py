"""A suite for the tests of the bench: contenders that behave and others."""

import os
import signal
import sys
import time
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.bench import harness


def _ours(data: np.ndarray) -> Any:
  time.sleep(0.02)
  return jnp.asarray(data) * 2


def _slow(data: np.ndarray) -> Any:
  print("a peer that prints")
  time.sleep(0.1)
  return data * 2.5


def _missing(data: np.ndarray) -> Any:
  import no_such_package

  return no_such_package.fit(data)


def _crashing(data: np.ndarray) -> Any:
  raise FloatingPointError("no convergence")


def _dying(data: np.ndarray) -> Any:
  os.kill(os.getpid(), signal.SIGKILL)


def _endless(data: np.ndarray) -> Any:
  time.sleep(1000)


def _hungry(data: np.ndarray) -> Any:
  return np.ones(30_000_000).sum()


def _error(data: np.ndarray, result: Any) -> dict[str, float]:
  return {"error": np.abs(np.asarray(result) - 2 * data).max()}


def _alone(data: np.ndarray) -> Any:
  return float("torch" in sys.modules)


def cases(size: str) -> list[harness.Case]:
  """The cases; `size` sets the length of the data."""
  length = {"small": 4, "full": 8}[size]

  def setup() -> np.ndarray:
    np.ones(60_000_000).sum()  # more than what a contender takes
    return np.arange(length, dtype=np.float32)

  both = {"ours": _ours, "slow": _slow}
  ill = {
    "ours": _ours,
    "missing": _missing,
    "crashing": _crashing,
    "dying": _dying,
  }
  sized = {"ours": lambda x: np.ones(x.size).sum()}
  return [
    harness.Case("double", setup, both, quality=_error),
    harness.Case("ill", setup, ill),
    harness.Case("endless", setup, {"ours": _endless}),
    harness.Case("memory", setup, {"ours": _alone, "hungry": _hungry}),
    harness.Case("scale", np.ones, sized, sizes=(1000, 20_000_000)),
  ]

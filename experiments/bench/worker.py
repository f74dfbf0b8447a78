"""One contender in a process of its own: sets up, warms up, then takes turns.

The harness starts it as `python -m experiments.bench.worker ...` and speaks
with it in lines of JSON: commands on standard input, answers on a pipe. Only
one worker works at a time, and packages do not share threads.
"""

import gc
import importlib
import json
import math
import os
import sys
import time
from typing import Any

from experiments.run import memory

# A sample of at least this long: shorter calls are repeated and averaged.
_SAMPLE_SECONDS = 0.1
# After a first call this long, samples are single calls, without a trial call.
_LONG_SECONDS = 20.0


def _ready(result: Any) -> Any:
  if "jax" in sys.modules:
    import jax

    jax.block_until_ready(result)
  return result


class _Turns:
  """The contender with its data, between commands."""

  def __init__(self, module: str, size: str, case: str, contender: str, n: str):
    suite = importlib.import_module(module)
    (self._case,) = (x for x in suite.cases(size) if x.name == case)
    self._function = self._case.contenders[contender]
    self._data = self._case.setup(int(n)) if n else self._case.setup()
    self._calls = 1

  def warm(self) -> dict[str, Any]:
    """Compiles and imports in a first call, and measures memory and quality."""
    gc.collect()
    memory.reset_peak()
    before = memory.resident_bytes()
    began = time.perf_counter()
    result = _ready(self._function(self._data))
    first = time.perf_counter() - began
    peak = memory.peak_bytes()
    answer = {
      "first": first,
      "peak_bytes": peak,
      "increase_bytes": max(0, peak - before),
    }
    if self._case.quality is not None:
      answer["quality"] = _plain(self._case.quality(self._data, result))
    del result
    if first < _LONG_SECONDS:
      seconds = self.run()["seconds"]
      self._calls = math.ceil(_SAMPLE_SECONDS / max(seconds, 1e-7))
    return answer

  def run(self) -> dict[str, Any]:
    """One sample: seconds per call."""
    gc.collect()
    began = time.perf_counter()
    for _ in range(self._calls):
      _ready(self._function(self._data))
    return {"seconds": (time.perf_counter() - began) / self._calls}


def _plain(value: Any) -> Any:
  if isinstance(value, dict):
    return {str(key): _plain(item) for key, item in value.items()}
  return float(value)


def _failure(error: BaseException) -> dict[str, str]:
  if isinstance(error, ImportError):
    return {"missing": error.name or str(error)}
  return {"error": f"{type(error).__name__}: {error}"}


def main(arguments: list[str]) -> None:
  """Answers commands until there are no more."""
  answers = os.fdopen(int(arguments[0]), "w", buffering=1)
  turns = None
  for command in sys.stdin:
    try:
      if turns is None:
        turns = _Turns(*arguments[1:])
      answer = turns.warm() if command.strip() == "warm" else turns.run()
    except Exception as error:
      answer = _failure(error)
    answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
  main(sys.argv[1:])

"""The runs of a sweep: the argument `add` of a sweep file's `sweep(add)`.

```python
EXPERIMENT = "experiments.elkb"
PRESET = "elkb_fast"  # or FLAGFILE = "mine.flags", or neither


def sweep(add):
  add()  # the experiment as its preset has it
  add(model="T", constrained=False)  # one run
  add.list([{"dim": 50}, {"dim": 100, "batch": 500}])  # these runs
  add.grid(learning_rate=(0.03, 0.1), model=("B", "T"))  # 4 runs
  add.seeds(8, dim=50)  # seeds 0 to 7
  add.random(20, penalty=add.log_uniform(1e-3, 1))  # 20 draws
```
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from repr_jax import errors

Draw = Callable[[np.random.Generator], Any]


class Added(NamedTuple):
  """One run of a sweep: its flags by name, and the line that added it."""

  flags: dict[str, Any]
  line: int | None


class Adder:
  """Collects the runs of one sweep file; what `sweep` gets as `add`.

  Attributes:
    runs: what was added, in order.
  """

  def __init__(self, path: str):
    self.runs: list[Added] = []
    self._path = path

  def __call__(self, **flags: Any) -> None:
    """Adds one run with these flags over those of the preset."""
    self._append(flags)

  def list(self, runs: Iterable[Mapping[str, Any]]) -> None:
    """Adds a run for each mapping from flags to values."""
    for flags in runs:
      self._append(flags)

  def grid(self, **choices: Any) -> None:
    """Adds every combination; a value that is no sequence is fixed."""
    lists = [_as_list(value) for value in choices.values()]
    for values in itertools.product(*lists):
      self._append(dict(zip(choices, values)))

  def seeds(self, count: int, **flags: Any) -> None:
    """Adds runs that differ in `--seed` alone, from 0 to count - 1."""
    for seed in range(count):
      self._append({**flags, "seed": seed})

  def random(self, count: int, draw: int = 0, /, **choices: Any) -> None:
    """Adds random draws, the same ones each time the sweep starts.

    Args:
      count: how many; the first ones stay when more are asked for.
      draw: number of the draw; another gives other runs.
      **choices: for each flag a sequence to choose from, a distribution
        (`add.uniform`, `add.log_uniform`, any function of a NumPy generator),
        or a fixed value.
    """
    for index in range(count):
      rng = np.random.default_rng([draw, index])
      flags = {name: _drawn(rng, value) for name, value in choices.items()}
      self._append(flags)

  @staticmethod
  def uniform(low: float, high: float) -> Draw:
    """Numbers between two bounds, to four digits."""
    return lambda rng: _short(rng.uniform(low, high))

  @staticmethod
  def log_uniform(low: float, high: float) -> Draw:
    """Numbers whose logarithm is uniform, to four digits."""
    if not 0 < low <= high:
      raise ValueError(f"log_uniform needs 0 < low <= high, not {low}, {high}")
    bounds = math.log(low), math.log(high)
    return lambda rng: _short(math.exp(rng.uniform(*bounds)))

  def _append(self, flags: Mapping[str, Any]) -> None:
    line = _line_in(self._path)
    for name, value in flags.items():
      if value is None:
        raise errors.InputError(
          f"add: {name} is None; leave it out, or give a value",
          path=self._path,
          line=line,
        )
    self.runs.append(Added(dict(flags), line))


def _line_in(path: str) -> int | None:
  """The line of the sweep file from which this was called."""
  frame = sys._getframe(1)
  while frame is not None:
    if frame.f_code.co_filename == path:
      return frame.f_lineno
    frame = frame.f_back  # type: ignore[assignment]
  return None


def _as_list(value: Any) -> Sequence[Any]:
  if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
    return [value]
  return [*value]


def _drawn(rng: np.random.Generator, value: Any) -> Any:
  if callable(value):
    return value(rng)
  choices = _as_list(value)
  return choices[int(rng.integers(len(choices)))]


def _short(number: float) -> float:
  return float(f"{number:.4g}")

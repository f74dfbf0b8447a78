"""Early stopping on a validation figure, on the host.

```python
stopping = EarlyStopping(patience=3)
for epoch in range(epochs):
  if stopping.should_stop:
    break
  params = train(params)
  if stopping.update(epoch, validate(params)):
    best = params
  save(epoch, params, best, stopping.state)
```
"""

import math
from typing import NamedTuple

from repr_jax.errors import InputError


class State(NamedTuple):
  """Progress of early stopping: finite scalars, for a checkpoint.

  Attributes:
    best_value: best figure so far; 0 before the first.
    best_step: step of that figure; -1 before the first.
    waited: updates since the best figure or the last `restart`.
  """

  best_value: float = 0.0
  best_step: int = -1
  waited: int = 0


class EarlyStopping:
  """Tracks a validation figure and decides when training should stop.

  Attributes:
    patience: updates in a row without improvement before stopping.
    state: progress so far; assign a restored one to resume.
  """

  def __init__(
    self, patience: int, mode: str = "max", state: State | None = None
  ):
    """Starts without a figure, or from the state of a checkpoint.

    Args:
      patience: updates in a row without improvement before stopping, >= 1.
      mode: "max" if larger figures are better, "min" if smaller ones are.
      state: where to resume.
    """
    if patience < 1:
      raise InputError(f"patience must be 1 or more, not {patience}")
    if mode not in ("max", "min"):
      raise InputError(f'mode must be "max" or "min", not {mode!r}')
    self.patience = patience
    self.state = State() if state is None else state
    self._sign = 1.0 if mode == "max" else -1.0

  def update(self, step: int, value: float) -> bool:
    """Records the figure of a step.

    Args:
      step: step or epoch of the figure, >= 0.
      value: the figure. NaN never improves.

    Returns:
      Whether the figure is the best so far.
    """
    value = float(value)
    first = self.best_step is None
    gain = self._sign * (value - float(self.state.best_value))
    if math.isfinite(value) and (first or gain > 0):
      self.state = State(value, int(step), 0)
      return True
    self.state = self.state._replace(waited=int(self.state.waited) + 1)
    return False

  def restart(self) -> None:
    """Restarts the count, for example after lowering the learning rate."""
    self.state = self.state._replace(waited=0)

  @property
  def should_stop(self) -> bool:
    """Whether the last `patience` updates brought no improvement."""
    return int(self.state.waited) >= self.patience

  @property
  def best_step(self) -> int | None:
    """Step of the best figure; None before the first."""
    step = int(self.state.best_step)
    return None if step < 0 else step

  @property
  def best_value(self) -> float | None:
    """The best figure; None before the first."""
    none = self.best_step is None
    return None if none else float(self.state.best_value)

"""A small experiment for the tests of runs: a random walk that can be hurt."""

import os
import signal
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from experiments.run import runlib

_STEPS = flags.DEFINE_integer("steps", 40, "Length of the walk.")
_SCALE = flags.DEFINE_float("scale", 1.0, "Size of a step.")
_HURT = flags.DEFINE_string("hurt", "", "What happens at a step: nan, INT.")
_AT = flags.DEFINE_integer("at", 25, "The step.")


class State(NamedTuple):
  place: jax.Array
  key: jax.Array
  taken: int
  trail: np.ndarray


def _init() -> State:
  key = jax.random.key(runlib.SEED.value)
  return State(jnp.zeros(3), key, 0, np.zeros((0, 2)))


def main(argv: Any) -> None:
  del argv
  with runlib.Run("walk", volatile=["hurt", "at"], extendable=["steps"]) as run:
    start, state = run.restore(_init()) or (-1, _init())
    for step in run.progress(range(start + 1, _STEPS.value), "walk"):
      key, now = jax.random.split(state.key)
      move = _SCALE.value * jax.random.normal(now, (3,))
      state = State(0.9 * state.place + move, key, state.taken + 1, state.trail)
      hurt = _HURT.value if step == _AT.value else ""
      run.log(
        step, far=jnp.nan if hurt == "nan" else jnp.abs(state.place).max()
      )
      if step % 3 == 2:
        run.save(step, state)
      if hurt.isupper():
        os.kill(os.getpid(), getattr(signal, "SIG" + hurt))
    run.row("walk", "steps", state.taken, thesis=state.taken)
    np.save(run.directory / "place.npy", np.asarray(state.place))


if __name__ == "__main__":
  runlib.launch(main)

"""The loop of a group: masks, waiting runs, one program, any devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.run import vmapped_runs, vmapped_training

_EPOCHS = 4


def _step(inputs, state, arguments):
  return {"x": state["x"] * inputs["a"] + arguments}, state["x"].sum()


class _Learner:
  """Counts its epochs, and stops or fails where it is told to."""

  def __init__(self, value, start=-1, stop=None, fail=None):
    self.start, self.epochs = start, _EPOCHS
    self.state = {"x": np.full(2, value, np.float32)}
    self._stop, self._fail = stop, fail
    self.seen, self.states = [], []

  def should_stop(self):
    return self._stop is not None and len(self.seen) >= self._stop

  def needs_state(self, epoch):
    return epoch % 2 == 1

  def after(self, epoch, state, outputs, seconds):
    assert (state is not None) == self.needs_state(epoch) and seconds >= 0
    self.seen.append(epoch)
    self.states.append(state)
    self.losses = outputs
    if epoch == self._fail:
      raise ValueError("the loss is nan")


def _group(folder, count):
  members = [vmapped_runs.Member(folder / str(i), {}) for i in range(count)]
  return vmapped_runs.Group("small", members)


def _feed(epoch, active):
  for _ in range(2):
    yield jnp.full((len(active),), epoch, jnp.float32)


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("own_inputs", [False, True])
def test_each_run_goes_its_own_way(tmp_path, one_by_one, own_inputs):
  learners = {
    0: _Learner(1.0),
    1: _Learner(2.0, stop=2),
    2: _Learner(3.0, start=1),
    3: _Learner(4.0, fail=0),
  }
  with _group(tmp_path, 4) as group:
    inputs = {"a": np.float32(2)}
    program = vmapped_training.Program(
      _step,
      [x.state for x in learners.values()],
      [inputs] * 4 if own_inputs else inputs,
      own_inputs=own_inputs,
      one_by_one=one_by_one,
    )
    vmapped_training.train(group, learners, program, _feed)
    assert group.active() == [0, 1, 2]
  assert [x.seen for x in learners.values()] == [
    [0, 1, 2, 3], [0, 1], [2, 3], [0]
  ]  # fmt: skip
  assert "the loss is nan" in group.failures[3]
  for i, learner in learners.items():
    expected, sums = np.full(2, i + 1.0), []
    for epoch in learner.seen:
      for _ in range(2):
        sums.append(expected.sum())
        expected = expected * 2 + epoch
    np.testing.assert_allclose(program.state(i)["x"], expected)
    np.testing.assert_allclose(learner.losses, sums[-2:])


def test_runs_of_other_shapes_are_apart():
  trees = {
    3: (jnp.ones(2), 1), 4: (jnp.ones(3), 1), 5: (np.zeros(2, np.float32), 1),
    6: (jnp.ones(2), 2), 7: (jnp.ones(2, jnp.int32), 1),
  }  # fmt: skip
  assert vmapped_training.alike(trees) == [[3, 5], [4], [6], [7]]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_calls_compile_once(compilations, one_by_one):
  states = [{"x": np.ones(2, np.float32)}] * 3
  program = vmapped_training.Program(
    _step, states, {"a": np.float32(2)}, one_by_one=one_by_one
  )
  arguments = np.zeros(3, np.float32)

  def call(active):
    jax.block_until_ready(program.run(arguments, active))

  assert compilations.during(lambda: call([True] * 3)) == 1
  assert compilations.during(lambda: call([True, False, True])) == 0

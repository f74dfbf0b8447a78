"""Early stopping: improvement, patience, and resuming from its state."""

import math

import jax
import numpy as np
import pytest

from repr_jax.errors import InputError
from repr_jax.ops import early_stopping
from repr_jax.ops.early_stopping import EarlyStopping


def test_the_largest_figure_is_the_best_and_patience_ends():
  stopping = EarlyStopping(patience=2)
  bests = [
    stopping.update(i, x) for i, x in enumerate([-5.0, -6.0, -4.0, -4.0])
  ]
  assert bests == [True, False, True, False]
  assert not stopping.should_stop
  assert (stopping.best_step, stopping.best_value) == (2, -4.0)
  assert not stopping.update(4, -9.0)
  assert stopping.should_stop


def test_min_is_max_of_the_negative():
  values = np.random.default_rng(0).normal(size=30)
  up, down = EarlyStopping(4), EarlyStopping(4, mode="min")
  for i, value in enumerate(values):
    assert up.update(i, value) == down.update(i, -value)
    assert up.should_stop == down.should_stop
  assert up.best_step == down.best_step == int(np.argmax(values))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_never_improves(value):
  stopping = EarlyStopping(1, mode="min")
  assert not stopping.update(0, value)
  assert stopping.best_step is None and stopping.best_value is None
  assert stopping.update(1, 3.0)
  assert not stopping.update(2, value)
  assert stopping.best_value == 3.0


def test_a_restart_waits_anew_and_keeps_the_best():
  stopping = EarlyStopping(1)
  stopping.update(0, 2.0)
  stopping.update(1, 1.0)
  stopping.restart()
  assert not stopping.should_stop
  assert not stopping.update(2, 1.5)
  assert stopping.should_stop and stopping.best_step == 0


def test_a_restored_state_goes_on_as_if_never_interrupted():
  values = np.random.default_rng(1).normal(size=20)
  whole = EarlyStopping(5)
  for i, value in enumerate(values):
    whole.update(i, value)
  part = EarlyStopping(5)
  for i in range(7):
    part.update(i, values[i])
  leaves = [np.asarray(x) for x in jax.tree.leaves(part.state)]
  assert all(np.isfinite(x) and x.shape == () for x in leaves)
  rest = EarlyStopping(5, state=early_stopping.State(*leaves))
  for i in range(7, 20):
    rest.update(i, values[i])
  assert rest.state == whole.state


def test_the_state_before_the_first_figure_is_finite():
  assert all(np.isfinite(x) for x in jax.tree.leaves(EarlyStopping(1).state))


@pytest.mark.parametrize(
  ("arguments", "word"),
  [({"patience": 0}, "patience"), ({"patience": 1, "mode": "best"}, "mode")],
)
def test_wrong_arguments_are_named(arguments, word):
  with pytest.raises(InputError, match=word):
    EarlyStopping(**arguments)

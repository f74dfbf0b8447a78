"""Early stopping goes through a run's checkpoint and comes back."""

from experiments.run import runlib
from repr_jax.ops import early_stopping


def test_the_state_is_saved_with_a_run_and_restored(tmp_path):
  stopping = early_stopping.EarlyStopping(2)
  with runlib.Run("x", directory=tmp_path, config={}) as run:
    run.save(0, stopping.state)  # before any figure: finite all the same
    stopping.update(3, 0.1 + 0.2)
    stopping.update(4, 0.0)
    run.save(4, stopping.state)
  with runlib.Run("x", directory=tmp_path, config={}) as run:
    step, state = run.restore(early_stopping.State())
  assert step == 4 and state == stopping.state
  again = early_stopping.EarlyStopping(2, state=state)
  assert again.best_value == 0.1 + 0.2 and not again.should_stop
  again.update(5, 0.0)
  assert again.should_stop

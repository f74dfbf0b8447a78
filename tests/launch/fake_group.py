"""An experiment whose runs can share a program."""

from absl import flags

from experiments.run import runlib, vmapped_runs

VMAP_OVER = ("seed", "rate")

_RATE = flags.DEFINE_float("rate", 1.0, "A number.")
_SIZE = flags.DEFINE_integer("size", 1, "Another.")


def _figure(run: runlib.Run, values) -> None:
  if values["rate"] < 0:
    raise ValueError("the rate is negative")
  run.row("group", "accuracy", values["rate"] * values["size"] + values["seed"])


def run_vmapped(members):
  """Executes the runs one after another; what matters is that one process
  does."""
  with vmapped_runs.Group("group", members) as group:
    for i in group.active():
      group.attempt(i, _figure, group.runs[i], members[i].flags)
      group.finish(i)
    return group.failures


def main(argv):
  """One run."""
  del argv
  with runlib.Run("group") as run:
    _figure(run, flags.FLAGS.flag_values_dict())


if __name__ == "__main__":
  runlib.launch(main)

"""Step size and penalty of model B with rules on WordNet, three seeds each."""

EXPERIMENT = "experiments.elkb"
PRESET = "elkb_fast"


def sweep(add):
  """Adds the grid: 36 runs in five programs."""
  add.grid(
    learning_rate=(0.03, 0.1, 0.3),
    penalty=(0.0, 1e-4, 1e-3, 1e-2),
    seed=range(3),
  )

"""Chooses the initial scale for CoDEx-S on validation facts, three seeds each.

python -m launch.sweep --sweep=experiments/sweeps/elkb_codex.py
python -m launch.collect runs/sweeps/elkb_codex

One program trains all six runs. `launch.collect` names the scale with the best
validation MRR, with the mean and the spread of its test figures.
"""

EXPERIMENT = "experiments.elkb"
PRESET = "elkb_codex"


def sweep(add):
  """Adds the grid: 6 runs."""
  add.grid(scale=(0.001, 0.1), seed=range(3))

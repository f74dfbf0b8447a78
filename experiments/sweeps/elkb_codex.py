"""Chooses penalty, dropout and relation weight for CoDEx-S.

python -m launch.sweep --sweep=experiments/sweeps/elkb_codex.py
python -m launch.collect runs/sweeps/elkb_codex --figures="validation"

Validation facts replace the test facts, so that no test fact is read. One
program trains all runs whose losses have the same parts.
"""

import os

EXPERIMENT = "experiments.elkb"
PRESET = "elkb_codex"

_FOLDER = os.environ.get("REPR_JAX_DATA", "../shared/data") + "/codex_s"


def sweep(add):
  """Adds the grid: 12 runs."""
  add.grid(
    penalty=(0.005, 0.01, 0.02),
    dropout=(0.0, 0.05),
    relation_weight=(0.0, 0.25),
    test=f"{_FOLDER}/valid.txt",
    test_negatives=f"{_FOLDER}/valid_negatives.txt",
  )

"""Runs of multiview LSA over the truncation t of columns."""

EXPERIMENT = "experiments.mvlsa"
PRESET = "mvlsa_corpora"


def sweep(add):
  """Adds one run for each setting; all share one store of counts."""
  for t in (3_125, 6_250, 12_500, 20_000):
    add(t=t)

"""Runs of multiview LSA over the ridge r."""

EXPERIMENT = "experiments.mvlsa"
PRESET = "mvlsa_corpora"


def sweep(add):
  """Adds one run for each setting; all share one store of counts."""
  for r in (1e-10, 1e-5, 1.0, 100.0, 10_000.0):
    add(ridge=r)

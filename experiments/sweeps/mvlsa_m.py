"""Runs of multiview LSA over the rank m of each view."""

EXPERIMENT = "experiments.mvlsa"
PRESET = "mvlsa_corpora"


def sweep(add):
  """Adds one run for each setting; all share one store of counts."""
  for m in (50, 100, 200, 300, 500):
    add(m=m, k=min(300, 20 * m))

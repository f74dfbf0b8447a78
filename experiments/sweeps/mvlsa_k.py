"""Runs of multiview LSA over the dimension k of the vectors."""

EXPERIMENT = "experiments.mvlsa"
PRESET = "mvlsa_corpora"


def sweep(add):
  """Adds one run for each setting; all share one store of counts."""
  for k in (10, 25, 50, 100, 200, 300, 500):
    add(k=k)

"""Runs of multiview LSA over the support threshold v."""

EXPERIMENT = "experiments.mvlsa"
PRESET = "mvlsa_corpora"


def sweep(add):
  """Adds one run for each setting; all share one store of counts."""
  for v in (1, 8, 16, 24):
    add(min_support=v)

"""Runs of multiview LSA over the support threshold v."""

EXPERIMENT = "experiments.mvlsa"
FLAGFILE = "experiments/presets/mvlsa_corpora.flags"


def sweep(add):
  """Adds one run for each setting; all share one store of counts."""
  for v in (1, 8, 16, 24):
    add(min_support=v)

"""Runs of multiview LSA over the nonlinearity of counts."""

EXPERIMENT = "experiments.mvlsa"
PRESET = "mvlsa_corpora"


def sweep(add):
  """Adds one run for each setting; all share one store of counts."""
  for kind in ("log", "identity", "ppmi"):
    add(nonlinearity=kind)
  for power in (0.12, 0.25, 0.5, 0.75):
    add(nonlinearity="power", power=power)
